"""Mixed precision under PyTorch's names. Everything runs in the dtype of its operands, and
gradients need no scale.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any


class autocast:
    """A block or a decorator without effect: ops run in the dtype of their operands, more exactly
    than in half precision.

    ```
    with cr.amp.autocast("cpu", dtype=cr.bfloat16):
        assert (cr.ones(2) * 2).dtype == cr.float32
    ```
    """

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        self.device_type, self.dtype, self.enabled = device_type, dtype, enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return run


class GradScaler:
    """A scale of 1: float32 gradients do not underflow. `step` steps the optimizer, `update` does
    nothing.

    ```
    scaler = cr.amp.GradScaler()
    w = cr.ones(2, requires_grad=True)
    opt = cr.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [0.5, 0.5]
    ```
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        pass

    def scale(self, outputs: Any) -> Any:
        """The outputs as they are."""
        return outputs if not isinstance(outputs, Iterable) or hasattr(outputs, "backward") else type(outputs)(outputs)  # type: ignore[call-arg]

    def unscale_(self, optimizer: Any) -> None:
        """Nothing: the gradients have no scale."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Nothing: the scale stays 1."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """No."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to take over."""


__all__ = ["GradScaler", "autocast"]
