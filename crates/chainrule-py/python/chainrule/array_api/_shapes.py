"""The same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from .._complex import _making as _z
from .._complex._dtype import ComplexDtype
from ._dtypes import cast, result_type


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """All in their common shape."""
    shape = broadcast_shapes(*(tuple(a.shape) for a in arrays))
    return tuple(a.expand(shape) for a in arrays)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The common shape."""
    return tuple(_f.broadcast_shapes(*shapes))


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """In a larger shape."""
    return x.expand(tuple(shape))


def concat(arrays: Sequence[Any], /, *, axis: Any = 0) -> Any:
    """One after the other."""
    d = result_type(*arrays)
    arrays = [cast(a, d) for a in arrays]
    if isinstance(d, ComplexDtype):
        return _z.cat([a.flatten() for a in arrays], 0) if axis is None else _z.cat(arrays, axis)
    return _c._cat([a.flatten() for a in arrays], 0) if axis is None else _c._cat(arrays, axis)


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """Along a new axis."""
    d = result_type(*arrays)
    arrays = [cast(a, d) for a in arrays]
    return _z.stack(arrays, axis) if isinstance(d, ComplexDtype) else _c._stack(arrays, axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts along an axis."""
    parts: tuple[Any, ...] = moveaxis(x, axis, 0).unbind()
    return parts


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
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


def squeeze(x: Any, /, axis: Any) -> Any:
    """Without axes of size 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for a in axes:
        if x.shape[_axis("squeeze", a, x.ndim)] != 1:
            raise ValueError(f"squeeze: shape {tuple(x.shape)}: the axis {a} is not of size 1")
    return x.squeeze([a % x.ndim for a in axes])


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """The other way round."""
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return x.flip(axes) if axes else x.clone()


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Axes in other places."""
    if x.ndim == 0:
        return x
    return x.movedim(source, destination)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """Axes in another order."""
    return x.permute(tuple(axes))


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged."""
    return x.mT


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Each element several times."""
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and repeats.ndim:
        repeats = int(repeats)
    return x.repeat_interleave(repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """The same elements in another shape."""
    out = x.reshape(tuple(shape))
    if copy is False and out.numel() and out.data_ptr() != x.data_ptr():
        raise ValueError("reshape: this needs a copy, which copy=False forbids")
    return out.clone() if copy else out


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
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


def tile(x: Any, repetitions: Any, /) -> Any:
    """The whole several times."""
    return x.tile(tuple(repetitions)) if len(repetitions) or x.ndim == 0 else x.clone()


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """The order that sorts."""
    return x.argsort(axis, descending, stable)


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """Sorted along an axis."""
    return x.sort(axis, descending).values
