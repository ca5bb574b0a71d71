"""PyTorch's questions for Apple's graphics processors, of which there are none here."""

from __future__ import annotations


def is_available() -> bool:
    """No."""
    return False


def device_count() -> int:
    """None."""
    return 0


def empty_cache() -> None:
    """Nothing: there is no memory of a graphics processor."""


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator of a graphics processor to seed."""


def synchronize() -> None:
    """Nothing: ops have ended when they return."""


def current_allocated_memory() -> int:
    """0 bytes."""
    return 0


__all__ = ["current_allocated_memory", "device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
