"""There is one device, the processor. These names let programs ask for it, and for others, as they do in PyTorch."""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c


def dtype_of(op: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The dtype among the arguments of `to`, if there is one. An error for a device other than the processor, and for what is neither."""
    found = options.get("dtype")
    for a in (*args, options.get("device")):
        if isinstance(a, _c.Tensor):
            found = a.dtype
        elif isinstance(a, (_c.dtype, type)):
            found = a
        elif a is not None and not isinstance(a, bool) and str(a) not in ("cpu", "cpu:0", "Device('cpu')"):
            raise ValueError(f"{op}: there is one device, the processor ('cpu'), not {a}")
    return None if found is None else _c._dtype(found)


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
