"""Reductions, running sums and products of arrays."""

from __future__ import annotations

import builtins
from typing import Any

from .. import _functions as _f
from .._complex._tensor import ComplexTensor
from ._creation import full
from ._dtypes import UNSIGNED, bool_, cast, int64, pair, uint64
from ._shapes import concat


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The largest."""
    return x.amax(axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The smallest."""
    return x.amin(axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The mean."""
    return x.mean(axis, keepdims)


def _total(x: Any, dtype: Any) -> Any:
    """The dtype of a sum: the widest of the kind."""
    if dtype is not None or x.is_floating_point() or isinstance(x, ComplexTensor):
        return dtype or x.dtype
    return uint64 if x.dtype in UNSIGNED else int64


def _in_total(x: Any, dtype: Any) -> Any:
    d = _total(x, dtype)
    try:
        return x._to_dtype(d)
    except TypeError:
        return cast(x, d)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The sum."""
    return _in_total(x, dtype).sum(axis, keepdims)._to_dtype(_total(x, dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The product."""
    return _in_total(x, dtype).prod(axis, keepdims)._to_dtype(_total(x, dtype))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    """The standard deviation."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    """The variance."""
    if float(correction).is_integer() and correction >= 0:
        return x.var(axis, correction=correction, keepdim=keepdims)
    squares = (x - x.mean(axis, True)).square().sum(axis, keepdims)
    n = x.numel() // builtins.max(squares.numel(), 1)
    return squares / (n - correction)


def _running(x: Any, what: str, axis: Any, dtype: Any, include_initial: Any, first: float) -> Any:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"cumulative_{what}: shape {tuple(x.shape)}: the axis must be given")
        axis = 0
    x = _in_total(x, dtype)
    out = getattr(x, "cum" + what)(axis)._to_dtype(x.dtype)
    if include_initial:
        shape = list(x._dims)
        shape[axis] = 1
        out = concat([full(tuple(shape), first, dtype=x.dtype), out], axis=axis)
    return out


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    """Sums of what came so far."""
    return _running(x, "sum", axis, dtype, include_initial, 0.0)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    """Products of what came so far."""
    return _running(x, "prod", axis, dtype, include_initial, 1.0)


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Whether all hold."""
    return x.all(axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Whether one holds."""
    return x.any(axis, keepdims)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours."""
    parts = [p for p in (prepend, x, append) if p is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        later, earlier = x.narrow(axis, builtins.min(1, size), builtins.max(size - 1, 0)), x.narrow(axis, 0, builtins.max(size - 1, 0))
        x = later != earlier if x.dtype == bool_ else later - earlier
    return x


def matmul(x1: Any, x2: Any, /) -> Any:
    """The product of matrices."""
    a, b = pair(x1, x2)
    return a.matmul(b)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sums of products over pairs of axes."""
    a, b = pair(x1, x2)
    return _f.tensordot(a, b, axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sums of products along an axis, of the conjugates of `x1`."""
    a, b = pair(x1, x2)
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: shapes {tuple(a.shape)} and {tuple(b.shape)} differ along the axis {axis}")
    a, d = a.conj() if isinstance(a, ComplexTensor) else a, a.dtype
    return (a * b).sum(axis)._to_dtype(d)
