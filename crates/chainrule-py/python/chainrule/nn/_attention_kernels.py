"""PyTorch's choice among kernels of attention. Here there is one, which needs no choice."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any


class SDPBackend(enum.Enum):
    """PyTorch's kernels of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block as it is: results do not depend on the kernel."""
    yield


__all__ = ["SDPBackend", "sdpa_kernel"]
