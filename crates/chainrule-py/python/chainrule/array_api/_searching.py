"""Indexing, searching and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from .._complex._tensor import ComplexTensor
from ._creation import asarray
from ._dtypes import int64, pair


def take(x: Any, indices: Tensor, /, *, axis: Any = None) -> Any:
    """The elements at these positions along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: shape {tuple(x.shape)}: the axis must be given")
        axis = 0
    n = x.shape[axis]
    flat = indices.flatten()._to_dtype(int64)
    out = x.index_select(axis, flat.where(flat >= 0, flat + n))
    at = axis % x.ndim
    return out.reshape((*x._dims[:at], *indices._dims, *x._dims[at + 1 :]))


def take_along_axis(x: Any, indices: Tensor, /, *, axis: int = -1) -> Any:
    """The elements at these positions along an axis, which differ from place to place."""
    n = x.shape[axis]
    at = axis % x.ndim
    shape = [k if i == at else m for i, (k, m) in enumerate(zip(indices._dims, x._dims))]
    indices = indices._to_dtype(int64)
    full = _f.broadcast_shapes(tuple(shape), tuple(1 if i == at else k for i, k in enumerate(indices._dims)))
    indices = indices.expand(tuple(indices._dims[i] if i == at else m for i, m in enumerate(full)))
    x = x.expand(tuple(n if i == at else m for i, m in enumerate(full)))
    return x.gather(axis, indices.where(indices >= 0, indices + n))


def argmax(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The position of the largest element."""
    return x.argmax(axis, keepdims)


def argmin(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The position of the smallest element."""
    return x.argmin(axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The number of elements that are not 0."""
    return (x != 0)._to_dtype(int64).sum(axis, keepdims)


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The positions of elements that are not 0."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no positions")
    return x.nonzero(as_tuple=True)  # type: ignore[no-any-return]


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """The positions of values in a sorted array."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not '{side}'")
    if sorter is not None:
        x1 = take(x1, sorter)
    a, b = pair(x1, x2)
    return _f.searchsorted(a, b.contiguous(), side=side)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Any:
    """One or the other."""
    a, b = pair(x1, x2)
    return a.where(condition, b) if isinstance(a, ComplexTensor) else _c._where(condition, a, b)


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


def unique_all(x: Any, /) -> UniqueAll:
    """All of `unique`; NaNs differ from one another."""
    flat = x.detach().flatten()
    values, indices, inverse, counts = np.unique(
        flat.numpy(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    new = (asarray(a) for a in (values, indices, inverse.reshape(x._dims), counts))
    return UniqueAll(*new)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The values that occur, and how often."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The values that occur, and which one each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """The values that occur."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: Any = False) -> Any:
    """Whether each element of `x1` is in `x2`."""
    a, b = pair(x1, x2)
    found = (a.unsqueeze(-1) == b.flatten()).any(-1)
    return ~found if invert else found
