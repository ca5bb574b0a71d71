"""There is one device, the processor. These names let programs ask for it, and for others, as they
do in PyTorch.
"""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c
from ._complex._base import Base
from ._complex._dtype import ComplexDtype, named


def dtype_of(op: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The dtype among the arguments of `to`, if there is one. An error for a device other than the
    processor, and for what is neither.
    """
    found = options.get("dtype")
    for a in (*args, options.get("device")):
        if isinstance(a, (_c.Tensor, Base)):
            found = a.dtype
        elif isinstance(a, (_c.dtype, type, ComplexDtype)):
            found = a
        elif a is not None and not isinstance(a, bool) and str(a) not in ("cpu", "cpu:0", "Device('cpu')"):
            raise ValueError(f"{op}: there is one device, the processor ('cpu'), not {a}")
    if found is None:
        return None
    try:
        return _c._dtype(found)
    except TypeError:
        if named(found) is None:
            raise
        return named(found)


class device(str):
    """The device of this name: there is `'cpu'` only.

    It has a `type` and an `index`, and is equal to its name.

    ```
    d = cr.device("cuda" if cr.cuda.is_available() else "cpu")
    assert d.type == "cpu" and d == "cpu"
    ```
    """

    __slots__ = ("index",)
    index: int | None  # type: ignore[assignment]

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> device:
        if str(type) not in ("cpu", "cpu:0") or index not in (None, 0):
            raise ValueError(f"device: there is one device, the processor ('cpu'), not {str(type)!r}")
        new = super().__new__(cls, "cpu")
        new.index = index if index is not None or str(type) == "cpu" else 0
        return new

    @property
    def type(self) -> str:
        """The kind of device."""
        return "cpu"

    def __reduce__(self) -> Any:
        return device, ("cpu", self.index)

    def __repr__(self) -> str:
        return "device(type='cpu')" if self.index is None else f"device(type='cpu', index={self.index})"


CPU = device("cpu")
