"""The array API standard, revision 2025.12, for the dtypes bool, int64, float32 and float64. There is no `fft`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _chainrule as _c
from . import _functions as _f
from . import linalg as _linalg
from ._chainrule import Tensor

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

bool = _c._dtype("bool")
int64 = _c._dtype("int64")
float32 = _c._dtype("float32")
float64 = _c._dtype("float64")
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

_ORDER = [bool, int64, float32, float64]
_PYTHON = (float, int)


def _device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"there is one device, the processor ('cpu'), not {device}")


# Data types


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
    return x.dtype if isinstance(x, Tensor) else x


def finfo(type: Any, /) -> _Finfo:
    """The limits of a float type."""
    d = _dtype_of(type)
    if d not in (float32, float64):
        raise TypeError(f"finfo: {d} is no float type")
    info = np.finfo(d.name)
    return _Finfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), d)


def iinfo(type: Any, /) -> _Iinfo:
    """The limits of the integer type."""
    d = _dtype_of(type)
    if d != int64:
        raise TypeError(f"iinfo: {d} is no integer type")
    return _Iinfo(64, 2**63 - 1, -(2**63), d)


_KINDS: dict[str, list[Any]] = {
    "bool": [bool],
    "signed integer": [int64],
    "unsigned integer": [],
    "integral": [int64],
    "real floating": [float32, float64],
    "complex floating": [],
    "numeric": [int64, float32, float64],
}


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind, or of one of several."""
    if isinstance(kind, tuple):
        return builtin_any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: there is no kind '{kind}'")
        return dtype in _KINDS[kind]
    return dtype == kind


def _scalar_dtype(x: Any, others: list[Any]) -> Any:
    """The dtype that a Python number takes beside arrays."""
    best = max_dtype(others) if others else None
    if isinstance(x, builtin_bool):
        kind = 0
    elif isinstance(x, int):
        kind = 1
    else:
        kind = 2
    have = -1 if best is None else min_int(_ORDER.index(best), 2)
    return best if have >= kind else [bool, int64, _c.get_default_dtype()][kind]


def max_dtype(dtypes: list[Any]) -> Any:
    """The widest."""
    return _ORDER[builtin_max(_ORDER.index(d) for d in dtypes)]


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
    return _ORDER.index(_dtype_of(from_)) <= _ORDER.index(to)


def astype(x: Tensor, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Tensor:
    """Another dtype."""
    _device(device)
    out = x._to_dtype(dtype)
    return x.clone() if copy and out is x else out


# Creation


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """An array of anything."""
    _device(device)
    if isinstance(obj, Tensor):
        if copy is False and dtype not in (None, obj.dtype):
            raise ValueError("asarray: another dtype needs a copy, which copy=False forbids")
        out = obj if dtype is None else obj._to_dtype(dtype)
        return out.detach().clone() if copy and out is obj else out
    if copy is False and not hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray):
        raise ValueError("asarray: this needs a copy, which copy=False forbids")
    return _c.tensor(obj, dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """From `start` up to, without, `stop` by `step`."""
    _device(device)
    if stop is None:
        start, stop = 0, start
    return _c._arange(start, stop, step, dtype)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Elements that do not matter."""
    return zeros(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros."""
    _device(device)
    return _c._full(_shape(shape), 0.0, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones."""
    _device(device)
    return _c._full(_shape(shape), 1.0, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The same number everywhere."""
    _device(device)
    return _c._full(_shape(shape), fill_value, dtype)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """As `empty`, in the shape and dtype of `x`."""
    return zeros(x._dims, dtype=dtype or x.dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape and dtype of `x`."""
    return zeros(x._dims, dtype=dtype or x.dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape and dtype of `x`."""
    return ones(x._dims, dtype=dtype or x.dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The same number everywhere, in the shape and dtype of `x`."""
    return full(x._dims, fill_value, dtype=dtype or x.dtype, device=device)


def eye(n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on a diagonal."""
    _device(device)
    rows = _c._arange(0, n_rows, 1, None).unsqueeze(1)
    columns = _c._arange(0, n_rows if n_cols is None else n_cols, 1, None)
    return (columns - rows == k)._to_dtype(dtype or _c.get_default_dtype())


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> Tensor:
    """Numbers at equal distances."""
    _device(device)
    gaps = num - 1 if endpoint else num
    out: Tensor = _c._arange(0, num, 1, float64) * ((stop - start) / gaps if gaps else 0.0) + start
    if endpoint and num > 1:
        out[-1] = stop
    return out._to_dtype(dtype or _c.get_default_dtype())


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Grids of coordinates."""
    if len(arrays) < 2:
        return arrays
    return _f.meshgrid(*arrays, indexing=indexing)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """An array over the memory of another."""
    from .dlpack import from_dlpack as exchange

    return exchange(x, device=device, copy=copy)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """What lies on and below a diagonal."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """What lies on and above a diagonal."""
    return x.triu(k)


# Element by element


def _pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Both as arrays of their common dtype."""
    d = result_type(x1, x2)
    return tuple(x._to_dtype(d) if isinstance(x, Tensor) else _c.tensor(x, d) for x in (x1, x2))  # type: ignore[return-value]


def _two(name: str, method: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        a, b = _pair(x1, x2)
        return getattr(a, method)(b)  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element."
    return function


def _one(name: str, method: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return getattr(x, method)()  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element."
    return function


add, subtract, multiply, divide = _two("add", "add"), _two("subtract", "sub"), _two("multiply", "mul"), _two("divide", "div")
atan2, copysign, hypot, logaddexp = (_two(n, n) for n in ("atan2", "copysign", "hypot", "logaddexp"))
bitwise_and, bitwise_or, bitwise_xor = (_two(n, n) for n in ("bitwise_and", "bitwise_or", "bitwise_xor"))
logical_and, logical_or, logical_xor = (_two(n, n) for n in ("logical_and", "logical_or", "logical_xor"))
equal, not_equal, less, less_equal = _two("equal", "eq"), _two("not_equal", "ne"), _two("less", "lt"), _two("less_equal", "le")
greater, greater_equal, pow = _two("greater", "gt"), _two("greater_equal", "ge"), _two("pow", "pow")
maximum, minimum = _two("maximum", "maximum"), _two("minimum", "minimum")


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """What is left of a division that rounds down; a zero has the sign of the divisor."""
    a, b = _pair(x1, x2)
    out = a.remainder(b)
    return out.where(out != 0, out.copysign(b)) if a.is_floating_point() else out


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN stays."""
    return x.sign().where(~x.isnan(), x) if x.is_floating_point() else x.sign()


bitwise_left_shift = _two("bitwise_left_shift", "bitwise_left_shift")
bitwise_right_shift = _two("bitwise_right_shift", "bitwise_right_shift")

abs, negative, logical_not, bitwise_invert = (
    _one("abs", "abs"), _one("negative", "neg"), _one("logical_not", "logical_not"), _one("bitwise_invert", "bitwise_not"),
)
acos, acosh, asin, asinh, atan, atanh, cos, cosh, exp, expm1 = (
    _one(n, n) for n in "acos acosh asin asinh atan atanh cos cosh exp expm1".split()
)
isfinite, isinf, isnan, log, log1p, log2, log10, reciprocal = (
    _one(n, n) for n in "isfinite isinf isnan log log1p log2 log10 reciprocal".split()
)
sin, sinh, square, sqrt, tan, tanh = (_one(n, n) for n in "sin sinh square sqrt tan tanh".split())


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient rounded down; where one of both is infinite the quotient itself, as the standard has it."""
    a, b = _pair(x1, x2)
    out = a.floor_divide(b)
    return out.where(a.isfinite() & b.isfinite(), a / b) if a.is_floating_point() else out


def _whole(name: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return getattr(x, name)() if x.is_floating_point() else x.clone()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element; integers stay."
    return function


ceil, floor, round, trunc = _whole("ceil"), _whole("floor"), _whole("round"), _whole("trunc")


def positive(x: Tensor, /) -> Tensor:
    """The same."""
    return x.clone()


def conj(x: Tensor, /) -> Tensor:
    """The same: there are no complex numbers."""
    return x


def real(x: Tensor, /) -> Tensor:
    """The same: there are no complex numbers."""
    return x


def imag(x: Tensor, /) -> Tensor:
    """Refused: there are no complex numbers."""
    raise TypeError(f"imag: {x.dtype} has no imaginary part; there are no complex numbers")


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign is minus, also of -0 and NaN."""
    return _c._full((), 1.0, x.dtype).copysign(x) < 0


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next float after `x1` towards `x2`. Without a gradient."""
    a, b = _pair(x1, x2)
    return _c.tensor(np.nextafter(a.detach().numpy(), b.detach().numpy()))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Between two bounds."""
    bounds = [b._to_dtype(x.dtype) if isinstance(b, Tensor) else b for b in (min, max)]
    bounds = [_c.tensor(b, x.dtype) if isinstance(b, int) and not x.is_floating_point() else b for b in bounds]
    if bounds[0] is not None:
        x = maximum(x, bounds[0])
    if bounds[1] is not None:
        x = minimum(x, bounds[1])
    return x.clone() if bounds == [None, None] else x


# Indexing and searching


def take(x: Tensor, indices: Tensor, /, *, axis: Any = None) -> Tensor:
    """The elements at these positions along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: shape {tuple(x.shape)}: the axis must be given")
        axis = 0
    n = x.shape[axis]
    flat = indices.flatten()
    out = x.index_select(axis, flat.where(flat >= 0, flat + n))
    at = axis % x.ndim
    return out.reshape((*x._dims[:at], *indices._dims, *x._dims[at + 1 :]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at these positions along an axis, which differ from place to place."""
    n = x.shape[axis]
    at = axis % x.ndim
    shape = [k if i == at else m for i, (k, m) in enumerate(zip(indices._dims, x._dims))]
    full = _f.broadcast_shapes(tuple(shape), tuple(1 if i == at else k for i, k in enumerate(indices._dims)))
    indices = indices.expand(tuple(indices._dims[i] if i == at else m for i, m in enumerate(full)))
    x = x.expand(tuple(n if i == at else m for i, m in enumerate(full)))
    return x.gather(axis, indices.where(indices >= 0, indices + n))


def argmax(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """Where the largest is."""
    return x.argmax(axis, keepdims)


def argmin(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """Where the smallest is."""
    return x.argmin(axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """How many are not 0."""
    return (x != 0)._to_dtype(int64).sum(axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where elements are not 0."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no positions")
    return x.nonzero(as_tuple=True)  # type: ignore[no-any-return]


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Where values belong in a sorted array."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not '{side}'")
    if sorter is not None:
        x1 = take(x1, sorter)
    a, b = _pair(x1, x2)
    return _f.searchsorted(a, b.contiguous(), side=side)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """One or the other."""
    a, b = _pair(x1, x2)
    return _c._where(condition, a, b)


# Sets


class UniqueAll(NamedTuple):
    """Values, where they first are, which one each element is, how many there are."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Values, and how many there are."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Values, and which one each element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """All of `unique`; NaNs differ from one another."""
    flat = x.detach().flatten()
    values, indices, inverse, counts = np.unique(
        flat.numpy(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    new = (_c.tensor(a) for a in (values, indices, inverse.reshape(x._dims), counts))
    return UniqueAll(*new)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The values that occur, and how often."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The values that occur, and which one each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The values that occur."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: Any = False) -> Tensor:
    """Whether each element of `x1` is in `x2`."""
    a, b = _pair(x1, x2)
    found = (a.unsqueeze(-1) == b.flatten()).any(-1)
    return ~found if invert else found


# Shapes


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """All in their common shape."""
    return _f.broadcast_tensors(*arrays)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The common shape."""
    return tuple(_f.broadcast_shapes(*shapes))


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """In a larger shape."""
    return x.expand(tuple(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: Any = 0) -> Tensor:
    """One after the other."""
    d = result_type(*arrays)
    arrays = [a._to_dtype(d) for a in arrays]
    return _c._cat([a.flatten() for a in arrays], 0) if axis is None else _c._cat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Along a new axis."""
    d = result_type(*arrays)
    return _c._stack([a._to_dtype(d) for a in arrays], axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis."""
    return moveaxis(x, axis, 0).unbind()


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """New axes of size 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = x.ndim + len(axes)
    at = sorted(_axis("expand_dims", a, rank) for a in axes)
    if len(set(at)) != len(at):
        raise ValueError(f"expand_dims: {axis} names an axis twice")
    for a in at:
        x = x.unsqueeze(a)
    return x


def _axis(op: str, a: int, rank: int) -> int:
    if not -rank <= a < rank:
        raise IndexError(f"{op}: axis {a} is out of range for {rank} axes")
    return a % rank


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Without axes of size 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for a in axes:
        if x.shape[_axis("squeeze", a, x.ndim)] != 1:
            raise ValueError(f"squeeze: shape {tuple(x.shape)}: the axis {a} is not of size 1")
    return x.squeeze([a % x.ndim for a in axes])


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """The other way round."""
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return x.flip(axes) if axes else x.clone()


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Axes in other places."""
    if x.ndim == 0:
        return x
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """Axes in another order."""
    return x.permute(tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: Any = None) -> Tensor:
    """Each element several times."""
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and repeats.ndim:
        repeats = int(repeats)
    return x.repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: Any, *, copy: Any = None) -> Tensor:
    """The same elements in another shape."""
    out = x.reshape(tuple(shape))
    if copy is False and out.numel() and out.data_ptr() != x.data_ptr():
        raise ValueError("reshape: this needs a copy, which copy=False forbids")
    return out.clone() if copy else out


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved on, those at the end to the front."""
    if x.ndim == 0:
        return x.clone()
    if axis is None:
        return x.roll(shift)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    for s, a in zip(shifts, axes):
        x = x.roll(s, a)
    return x


def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """The whole several times."""
    return x.tile(tuple(repetitions)) if len(repetitions) or x.ndim == 0 else x.clone()


# Sorting


def argsort(x: Tensor, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """The order that sorts."""
    return x.argsort(axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """Sorted along an axis."""
    return x.sort(axis, descending).values


# Statistics


def max(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The largest."""
    return x.amax(axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The smallest."""
    return x.amin(axis, keepdims)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The mean."""
    return x.mean(axis, keepdims)


def _none(x: Tensor, axis: Any) -> Any:
    """An empty tuple of axes reduces nothing."""
    return isinstance(axis, tuple) and not axis


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Tensor:
    """The sum."""
    return x.sum(axis, keepdims, dtype=dtype)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Tensor:
    """The product."""
    return x.prod(axis, keepdims, dtype=dtype)


def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Tensor:
    """The standard deviation."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Tensor:
    """The variance."""
    if float(correction).is_integer() and correction >= 0:
        return x.var(axis, correction=correction, keepdim=keepdims)
    squares = (x - x.mean(axis, True)).square().sum(axis, keepdims)
    n = x.numel() // builtin_max(squares.numel(), 1)
    return squares / (n - correction)


def _running(x: Tensor, what: str, axis: Any, dtype: Any, include_initial: Any, first: float) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"cumulative_{what}: shape {tuple(x.shape)}: the axis must be given")
        axis = 0
    if dtype is None and x.dtype == bool:
        dtype = int64
    x = x if dtype is None else x._to_dtype(dtype)
    out = x._cumulative(what, axis)
    if include_initial:
        shape = list(x._dims)
        shape[axis] = 1
        out = _c._cat([_c._full(tuple(shape), first, x.dtype), out], axis)
    return out


def cumulative_sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Tensor:
    """Sums of what came so far."""
    return _running(x, "sum", axis, dtype, include_initial, 0.0)


def cumulative_prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Tensor:
    """Products of what came so far."""
    return _running(x, "prod", axis, dtype, include_initial, 1.0)


def all(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """Whether all hold."""
    return x.all(axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """Whether one holds."""
    return x.any(axis, keepdims)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours."""
    parts = [p for p in (prepend, x, append) if p is not None]
    x = _c._cat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        later, earlier = x.narrow(axis, builtin_min(1, size), builtin_max(size - 1, 0)), x.narrow(axis, 0, builtin_max(size - 1, 0))
        x = later != earlier if x.dtype == bool else later - earlier
    return x


# Products


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices."""
    a, b = _pair(x1, x2)
    return a.matmul(b)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes."""
    a, b = _pair(x1, x2)
    return _f.tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis."""
    a, b = _pair(x1, x2)
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: shapes {tuple(a.shape)} and {tuple(b.shape)} differ along the axis {axis}")
    return (a * b).sum(axis)


# What there is


class Info:
    """What this namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Features and limits."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        """The processor."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """The processor only."""
        return ("cpu",)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What dtypes new arrays have."""
        _device(device)
        return {"real floating": _c.get_default_dtype(), "complex floating": None, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """All dtypes, or those of some kinds."""
        _device(device)
        every = {"bool": bool, "int64": int64, "float32": float32, "float64": float64}
        return every if kind is None else {name: d for name, d in every.items() if isdtype(d, kind)}


def __array_namespace_info__() -> Info:
    """What this namespace can do."""
    return Info()


import builtins as _builtins  # noqa: E402

builtin_any, builtin_bool, builtin_max, builtin_min = _builtins.any, _builtins.bool, _builtins.max, _builtins.min
min_int = builtin_min


class linalg:
    """The linear algebra that the engine has."""

    matmul = staticmethod(matmul)
    matrix_transpose = staticmethod(matrix_transpose)
    tensordot = staticmethod(tensordot)
    vecdot = staticmethod(vecdot)

    @staticmethod
    def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
        """The cross product."""
        a, b = _pair(x1, x2)
        return _f.cross(a, b, axis)

    @staticmethod
    def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
        """All products."""
        a, b = _pair(x1, x2)
        if a.ndim != 1 or b.ndim != 1:
            raise ValueError(f"outer: shapes {tuple(a.shape)} and {tuple(b.shape)}: two vectors are needed")
        return a.outer(b)

    @staticmethod
    def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
        """The sum of a diagonal."""
        return x.diagonal(offset, -2, -1).sum(-1, dtype=dtype)

    @staticmethod
    def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
        """The diagonal of matrices."""
        return x.diagonal(offset, -2, -1)

    @staticmethod
    def det(x: Tensor, /) -> Tensor:
        """The determinant."""
        return x.det()

    @staticmethod
    def slogdet(x: Tensor, /) -> _linalg.SlogDet:
        """Sign and logarithm of the determinant."""
        return _linalg.slogdet(x)

    @staticmethod
    def inv(x: Tensor, /) -> Tensor:
        """The inverse."""
        return x.inverse()

    @staticmethod
    def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
        """The x with x1 x = x2."""
        a, b = _pair(x1, x2)
        return a._solve(b)

    @staticmethod
    def cholesky(x: Tensor, /, *, upper: Any = False) -> Tensor:
        """The triangular factor."""
        return _linalg.cholesky(x, upper=upper)

    @staticmethod
    def qr(x: Tensor, /, *, mode: str = "reduced") -> _linalg.QR:
        """The QR decomposition."""
        return _linalg.qr(x, mode)

    @staticmethod
    def matrix_norm(x: Tensor, /, *, keepdims: Any = False, ord: Any = "fro") -> Tensor:
        """The norm of matrices: 'fro', 1, -1, inf, -inf."""
        if ord == "fro":
            return x._norm(2.0, (-2, -1), keepdims)
        if ord in (1, -1):
            sums = x.abs().sum(-2, True)
        elif ord in (inf, -inf):
            sums = x.abs().sum(-1, True)
        else:
            raise ValueError(f"matrix_norm: the norm {ord} needs singular values, which there are not")
        found = sums.amax((-2, -1), keepdims) if ord > 0 else sums.amin((-2, -1), keepdims)
        return found

    @staticmethod
    def matrix_power(x: Tensor, n: int, /) -> Tensor:
        """The product with itself."""
        return _linalg.matrix_power(x, n)

    @staticmethod
    def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Tensor:
        """The norm of vectors."""
        return x._norm(float(ord), axis, keepdims)
