"""The same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from ._dtypes import result_type


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


def argsort(x: Tensor, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """The order that sorts."""
    return x.argsort(axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """Sorted along an axis."""
    return x.sort(axis, descending).values
