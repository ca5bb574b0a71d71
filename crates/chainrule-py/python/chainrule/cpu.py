"""PyTorch's questions to the processor, under the names that graphics processors have."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from . import amp as amp


def is_available() -> bool:
    """Yes."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """The processor."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one processor."""


def synchronize(device: Any = None) -> None:
    """Nothing: ops have ended when they return."""


def stream(stream: Any) -> Any:
    """A block without effect: ops run one after the other."""
    return nullcontext(stream)


__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "stream", "synchronize"]
