"""Data types, and how they are promoted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._complex._tensor import ComplexTensor
from .._complex._dtype import ComplexDtype, complex64 as complex64, complex128 as complex128, of_part, promoted
from .._complex._making import of_real, tensor as complex_tensor

bool_ = _c._dtype("bool")
int8 = _c._dtype("int8")
int16 = _c._dtype("int16")
int32 = _c._dtype("int32")
int64 = _c._dtype("int64")
uint8 = _c._dtype("uint8")
uint16 = _c._dtype("uint16")
uint32 = _c._dtype("uint32")
uint64 = _c._dtype("uint64")
float32 = _c._dtype("float32")
float64 = _c._dtype("float64")

SIGNED = [int8, int16, int32, int64]
UNSIGNED = [uint8, uint16, uint32, uint64]
_FLOATS = [_c._dtype("float16"), _c._dtype("bfloat16"), float32, float64]


def _kind(d: Any) -> int:
    """Bool, integer, float, complex, as 0, 1, 2 and 3."""
    return 3 if isinstance(d, ComplexDtype) else 2 if d in _FLOATS else 1 if d in SIGNED or d in UNSIGNED else 0


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"there is one device, the processor ('cpu'), not {device}")


class _Finfo(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class _Iinfo(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: Any


def _dtype_of(x: Any) -> Any:
    return x.dtype if isinstance(x, (Tensor, ComplexTensor)) else x


def finfo(type: Any, /) -> _Finfo:
    """The limits of a float type, and of a complex one those of its parts."""
    d = _dtype_of(type)
    d = d.part if isinstance(d, ComplexDtype) else d
    if d not in (float32, float64):
        raise TypeError(f"finfo: {d} is no float type")
    info = np.finfo(d.name)
    return _Finfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), d)


def iinfo(type: Any, /) -> _Iinfo:
    """The limits of the integer type."""
    d = _dtype_of(type)
    if _kind(d) != 1:
        raise TypeError(f"iinfo: {d} is no integer type")
    info = np.iinfo(d.name)
    return _Iinfo(int(info.bits), int(info.max), int(info.min), d)


_KINDS: dict[str, list[Any]] = {
    "bool": [bool_],
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": [float32, float64],
    "complex floating": [complex64, complex128],
    "numeric": [*SIGNED, *UNSIGNED, float32, float64, complex64, complex128],
}


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind, or of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: there is no kind '{kind}'")
        return dtype in _KINDS[kind]
    return dtype == kind


def _scalar_dtype(x: Any, others: list[Any]) -> Any:
    """The dtype that a Python number takes beside arrays."""
    best = max_dtype(others) if others else None
    if isinstance(x, bool):
        kind = 0
    elif isinstance(x, int):
        kind = 1
    elif isinstance(x, complex):
        return of_part(_c.get_default_dtype()) if best is None else promoted(best, of_part(best)) if _kind(best) < 3 else best
    else:
        kind = 2
    have = -1 if best is None else _kind(best)
    return best if have >= kind else [bool_, int64, _c.get_default_dtype()][kind]


def max_dtype(dtypes: list[Any]) -> Any:
    """The dtype that holds all of them, by the library's table."""
    widest = dtypes[0]
    for d in dtypes[1:]:
        if {widest, d} & {uint64} and {widest, d} & set(SIGNED):
            raise TypeError(f"result_type: no dtype holds both {widest.name} and {d.name}")
        widest = promoted(widest, d)
    return widest


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype to which these are promoted together."""
    known = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (int, float, complex))]
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (int, float, complex))]
    if not known and not numbers:
        raise ValueError("result_type: nothing was given")
    for x in numbers:
        known.append(_scalar_dtype(x, known))
    return max_dtype(known)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether a dtype can become another by promotion."""
    start = _dtype_of(from_)
    if start == uint64 and to in SIGNED or start in SIGNED and to == uint64:
        return False
    return promoted(start, to) == to


def cast(x: Any, d: Any) -> Any:
    """An array, or a number, in a dtype."""
    if isinstance(d, ComplexDtype):
        return of_real(x, d) if isinstance(x, Tensor) else x._to_dtype(d) if isinstance(x, ComplexTensor) else complex_tensor(x, d)
    return x._to_dtype(d) if isinstance(x, (Tensor, ComplexTensor)) else _c.tensor(x, d)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """Another dtype; of complex numbers no real one."""
    check_device(device)
    out = cast(x, dtype)
    return x.clone() if copy and out is x else out


def pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both as arrays of their common dtype."""
    d = result_type(x1, x2)
    if isinstance(d, ComplexDtype):
        return cast(x1, d), cast(x2, d)
    return tuple(x._to_dtype(d) if isinstance(x, Tensor) else _c.tensor(x, d) for x in (x1, x2))  # type: ignore[return-value]
