"""The two dtypes of complex numbers, and their promotion beside the native ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _chainrule as _c


class ComplexDtype:
    """A dtype of complex numbers, whose parts are floats of dtype `part`."""

    is_complex = True
    is_floating_point = False

    def __init__(self, name: str, part: _c.dtype) -> None:
        self.name, self.part = name, part
        self.itemsize = 2 * part.itemsize

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComplexDtype) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return named, (self.name,)


complex64 = ComplexDtype("complex64", _c._dtype("float32"))
complex128 = ComplexDtype("complex128", _c._dtype("float64"))
NAMES = {
    "complex64": complex64, "cfloat": complex64, "complex128": complex128, "cdouble": complex128, "complex": complex128,
}
AnyDtype = _c.dtype | ComplexDtype


def named(x: Any) -> ComplexDtype | None:
    """The complex dtype that an object, a name, Python's `complex` or a dtype of NumPy means, if it
    means one.
    """
    if isinstance(x, ComplexDtype):
        return x
    name = x if isinstance(x, str) else getattr(x, "name", None) or getattr(x, "__name__", None)
    return NAMES.get(name) if isinstance(name, str) else None


def wanted(function: str, x: Any, default: ComplexDtype) -> ComplexDtype:
    """The complex dtype that was asked for, or the default; a real one is an error."""
    if x is None:
        return default
    d = named(x)
    if d is None:
        raise TypeError(f"{function}: {getattr(x, 'name', x)} cannot hold {default.name}; take the real part, or view_as_real")
    return d


def of_part(part: Any) -> ComplexDtype:
    """The complex dtype for real numbers of a dtype: float64 makes complex128, the narrower floats
    complex64, and integers the default.
    """
    d = _c._dtype(part)
    d = d if d.is_floating_point else _c.get_default_dtype()
    return complex128 if d.name == "float64" else complex64


def promoted(a: AnyDtype, b: AnyDtype) -> AnyDtype:
    """The dtype that arrays of both become."""
    if isinstance(a, ComplexDtype) or isinstance(b, ComplexDtype):
        return complex128 if "float64" in (_part_of(a), _part_of(b)) else complex64
    return _c._promoted(a, b)


def _part_of(d: AnyDtype) -> str:
    return d.part.name if isinstance(d, ComplexDtype) else d.name


def of_array(a: np.ndarray[Any, Any]) -> ComplexDtype:
    """The complex dtype of an array of NumPy's; half or extended precision is an error."""
    d = NAMES.get(a.dtype.name)
    if d is None:
        raise TypeError(f"tensor: an array of dtype {a.dtype} has no counterpart; convert it with astype to complex64 or complex128")
    return d
