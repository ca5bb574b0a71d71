"""Limits of the dtypes, and names of dtypes that are not there."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _chainrule as _c


class AbsentDtype:
    """A dtype of PyTorch that is not there. It can be named, as in a table of dtypes, and compared;
    its use is an error.
    """

    is_floating_point: bool
    is_complex: bool

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_complex = name.startswith("complex")
        self.is_floating_point = "float" in name

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"


ABSENT = {
    name: AbsentDtype(full)
    for full, names in {
        "float16": ("float16", "half"), "bfloat16": ("bfloat16",), "uint8": ("uint8",), "int8": ("int8",), "int16": ("int16", "short"),
        "complex64": ("complex64", "cfloat"), "complex128": ("complex128", "cdouble"),
    }.items()
    for name in names
}
# Names of one dtype are one object.
ABSENT = {name: ABSENT[d.name] for name, d in ABSENT.items()}


class finfo:
    """The limits of a dtype of floats: `eps`, `max`, `min`, `tiny`, `smallest_normal`,
    `resolution`, `bits`.

    ```
    assert cr.finfo(cr.float32).eps == 2.0**-23
    ```
    """

    def __init__(self, type: Any = None) -> None:
        d = _c._dtype(_c.get_default_dtype() if type is None else type)
        if not d.is_floating_point:
            raise TypeError(f"finfo: {d.name} is no dtype of floats; use iinfo")
        found: Any = np.finfo(d.name)
        self.bits, self.dtype = int(found.bits), d.name
        self.eps, self.max, self.min = float(found.eps), float(found.max), float(found.min)
        self.tiny = self.smallest_normal = float(found.tiny)
        self.resolution = 10.0 ** -int(found.precision)

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, tiny={self.tiny:g}, dtype={self.dtype})"


class iinfo:
    """The limits of a dtype of integers: `min`, `max`, `bits`."""

    def __init__(self, type: Any) -> None:
        d = _c._dtype(type)
        if d.name != "int64":
            raise TypeError(f"iinfo: {d.name} is no dtype of integers; use finfo")
        self.bits, self.min, self.max, self.dtype = 64, -(2**63), 2**63 - 1, d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


__all__ = ["finfo", "iinfo"]
