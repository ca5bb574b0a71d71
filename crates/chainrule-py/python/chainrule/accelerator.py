"""PyTorch's questions for an accelerator, which there is not."""

from __future__ import annotations


def is_available() -> bool:
    """No."""
    return False


def device_count() -> int:
    """None."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None: there is one device, the processor."""
    return None


def synchronize(device: object = None) -> None:
    """Nothing: there is no accelerator to wait for."""
