"""There is one device, the processor. These names let programs ask for it, and for others, as they do in PyTorch."""

from __future__ import annotations


def device(type: str = "cpu", index: int | None = None) -> str:
    """The device of this name: there is `'cpu'` only."""
    if str(type) not in ("cpu", "cpu:0"):
        raise ValueError(f"device: there is one device, the processor ('cpu'), not {type!r}")
    return "cpu"


class cuda:
    """PyTorch's questions for graphics processors, of which there are none here."""

    @staticmethod
    def is_available() -> bool:
        """No."""
        return False

    @staticmethod
    def device_count() -> int:
        """None."""
        return 0
