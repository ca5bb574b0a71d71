"""Lists of tensors as one vector, and back."""

from __future__ import annotations

from collections.abc import Sequence

from . import _chainrule as _c
from ._chainrule import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements one after the other."""
    return _c._cat([t.reshape(-1) for t in tensors], 0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Parts of the vector in the shapes of the tensors."""
    parts, start = [], 0
    for t in tensors:
        parts.append(flat.narrow(0, start, t.numel()).view(tuple(t.shape)))
        start += t.numel()
    return tuple(parts)


__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]
