"""`chainrule.amp` under the older name of PyTorch's mixed precision."""

from __future__ import annotations

from typing import Any

from ..amp import GradScaler as _GradScaler
from ..amp import autocast as _autocast
from ..amp import custom_bwd, custom_fwd


class autocast(_autocast):
    """`amp.autocast("cuda", ...)`, which warns and has no effect without such a device."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """`amp.GradScaler("cuda", ...)`, which is not enabled without such a device."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
