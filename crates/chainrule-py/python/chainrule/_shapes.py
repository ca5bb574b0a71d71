"""Shapes, parts and positions: functions that are composed of ops, under PyTorch's names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _chainrule as _c
from . import _functions as _f
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError
from ._types import as_tensor as _t
from ._out import with_out


def _many(tensors: tuple[Any, ...]) -> list[Tensor]:
    """Tensors that are given one by one, or as one list."""
    return list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else list(tensors)


# More axes


def _at_least(tensors: tuple[Any, ...], rank: int) -> Any:
    def one(x: Any) -> Any:
        if x.ndim < rank and x.ndim == 0:
            return x.reshape((1,) * rank)
        if x.ndim == 1 < rank:
            return x.reshape((1, -1) if rank == 2 else (1, -1, 1))
        return x.unsqueeze(-1) if x.ndim < rank else x

    if len(tensors) == 1 and isinstance(tensors[0], (Tensor, ComplexTensor)):
        return one(tensors[0])
    return tuple(one(t) for t in _many(tensors))


def atleast_1d(*tensors: Any) -> Any:
    """The tensors with at least one axis."""
    return _at_least(tensors, 1)


def atleast_2d(*tensors: Any) -> Any:
    """The tensors with at least two axes; a vector is a row."""
    return _at_least(tensors, 2)


def atleast_3d(*tensors: Any) -> Any:
    """The tensors with at least three axes; a vector lies along the middle one."""
    return _at_least(tensors, 3)


@with_out
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """Side by side; a vector is a column."""
    return _f.cat([t.reshape(-1, 1) if t.ndim < 2 else t for t in tensors], 1)


@with_out
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One behind the other, along the third axis."""
    return _f.cat([_at_least((t,), 3) for t in tensors], 2)


@with_out
def row_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One above the other; a vector is a row."""
    return _f.vstack(tensors)


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrices along the diagonal of one, zeros elsewhere."""
    parts: list[Tensor] = [_at_least((t,), 2) for t in tensors]
    if any(p.ndim > 2 for p in parts):
        raise ArgumentError(f"block_diag: shapes {[tuple(t.shape) for t in tensors]}: matrices are needed")
    width, at, rows = sum(p.shape[1] for p in parts), 0, []
    if not parts:
        return _c._full((1, 0), 0.0, None)
    for p in parts:
        rows.append(_c._pad(p, [(-1, [at, width - at - p.shape[1]])], "constant", 0.0) if p.dtype.name != "bool" else _padded_bool(p, at, width))
        at += p.shape[1]
    return _f.cat(rows, 0)


def _padded_bool(p: Tensor, at: int, width: int) -> Tensor:
    return _c._pad(p.long(), [(-1, [at, width - at - p.shape[1]])], "constant", 0.0).bool()


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one element of each vector, a row each."""
    if len(tensors) == 1:
        return tensors[0]
    return _f.stack([g.flatten() for g in _f.meshgrid(*tensors)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take `r` elements of a vector, a row each."""
    if input.ndim != 1 or r < 0:
        raise ArgumentError(f"combinations: shape {tuple(input.shape)}, r={r}: a vector and r from 0 are needed")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(len(input)), r)), dtype=np.int64).reshape(-1, r)
    if r == 0:
        return _c._full((0,), 0.0, input.dtype)
    return input.index_select(0, _c.tensor(rows.ravel())).reshape(tuple(rows.shape))


# Parts


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """A number of parts, as equal as can be, or the parts between positions."""
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    n = input.shape[dim]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ArgumentError(f"tensor_split: the number of parts must be positive, got {count}")
        small, more = divmod(n, count)
        return input.split([small + 1] * more + [small] * (count - more), dim)
    bounds = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in indices_or_sections), n]
    return tuple(input.narrow(dim, min(a, n), max(b - a, 0)) for a, b in zip(bounds, bounds[1:]))


def _split_along(op: str, axis: int, rank: int, input: Tensor, parts: Any) -> tuple[Tensor, ...]:
    if input.ndim < rank:
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: at least {rank} axes are needed")
    if isinstance(parts, int) and (parts < 1 or input.shape[axis] % parts):
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: axis {axis} cannot be cut into {parts} equal parts")
    return tensor_split(input, parts, axis)


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along axis 1, of vectors along axis 0."""
    return _split_along("hsplit", 0 if input.ndim == 1 else 1, 1, input, indices_or_sections)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along axis 0."""
    return _split_along("vsplit", 0, 2, input, indices_or_sections)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along axis 2."""
    return _split_along("dsplit", 2, 3, input, indices_or_sections)


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of these sizes along an axis."""
    return input.split(list(split_sizes), dim)


def unsafe_split(input: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """As `split`."""
    return input.split(split_size, dim)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As `chunk`."""
    return input.chunk(chunks, dim)


# Turned around


def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""
    if input.ndim < 2:
        raise ArgumentError(f"fliplr: shape {tuple(input.shape)}: at least 2 axes are needed")
    return input.flip(1)


def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""
    if input.ndim < 1:
        raise ArgumentError("flipud: shape (): at least 1 axis is needed")
    return input.flip(0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned `k` times by a quarter, from the first of two axes to the second."""
    if input.ndim < 2 or len(dims) != 2 or dims[0] % input.ndim == dims[1] % input.ndim:
        raise ArgumentError(f"rot90: shape {tuple(input.shape)}, dims={tuple(dims)}: two different axes are needed")
    a, b = dims
    quarter = k % 4
    if quarter == 0:
        return input.clone()
    if quarter == 2:
        return input.flip([a, b])
    return input.transpose(a, b).flip(a if quarter == 1 else b)


def msort(input: Tensor) -> Tensor:
    """Sorted along the first axis."""
    return input.sort(0)[0]


# Diagonals and triangles


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the elements on a diagonal."""
    return input.flatten().diag_embed(offset)


def _written(input: Tensor, view: Any, src: Tensor) -> Tensor:
    """A copy with a part of it written, recorded on the tape."""
    out = input.clone()
    view(out).copy_(src)
    return out


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor with another diagonal."""
    _same("diagonal_scatter", tuple(input.diagonal(offset, dim1, dim2).shape), src)
    return _written(input, lambda x: x.diagonal(offset, dim1, dim2), src)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """The tensor with another slice at a position of an axis."""
    _same("select_scatter", tuple(input.select(dim, index).shape), src)
    return _written(input, lambda x: x.select(dim, index), src)


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor with other slices from `start` up to, without, `end` by `step` of an axis."""
    at = (slice(None),) * (dim % input.ndim) + (slice(start, end, step),)
    _same("slice_scatter", tuple(input[at].shape), src)
    return _written(input, lambda x: x[at], src)


def _same(op: str, wanted: tuple[int, ...], src: Tensor) -> None:
    if wanted != tuple(src.shape):
        raise ArgumentError(f"{op}: src has shape {tuple(src.shape)}, and the part that is written has {wanted}")


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The rows and columns of the elements on and above a diagonal."""
    return _c.tensor(np.array(np.triu_indices(row, offset, col)), dtype or "int64")


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The rows and columns of the elements on and below a diagonal."""
    return _c.tensor(np.array(np.tril_indices(row, offset, col)), dtype or "int64")


# Positions


def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, a row each."""
    found: Tensor = input.nonzero()
    return found


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` positions of elements that are not zero; rows of `fill_value` where there
    are fewer.
    """
    found = input.nonzero()[:size]
    return _f.cat([found, _c._full((size - found.shape[0], input.ndim), fill_value, "int64")], 0)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The positions along each axis of flat positions."""
    sizes = [shape] if isinstance(shape, int) else shape.tolist() if isinstance(shape, Tensor) else list(shape)
    out = []
    for n in reversed(sizes):
        out.append(indices.remainder(n))
        indices = indices.floor_divide(n)
    return tuple(reversed(out))


@with_out
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Any = None) -> Tensor:
    """Whether the elements are among others."""
    x, y = _t(elements), _t(test_elements)
    found = np.isin(x.detach().numpy(), y.detach().numpy(), assume_unique=assume_unique, invert=invert)
    return _c.tensor(np.array(found, order="C")).reshape(tuple(x.shape))


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements, or slices along an axis, without those that equal the one before; without a
    gradient.
    """
    x = input.detach().numpy()
    moved = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    rows = moved.reshape(len(moved), math.prod(moved.shape[1:]))
    new = np.concatenate([np.ones(min(1, len(rows)), bool), (rows[1:] != rows[:-1]).any(1)])
    starts = np.flatnonzero(new)
    values = _c.tensor(np.ascontiguousarray(moved[starts] if dim is None else np.moveaxis(moved[starts], 0, dim)), input.dtype)
    inverse = _c.tensor((np.cumsum(new) - 1).reshape(x.shape if dim is None else -1))
    counts = _c.tensor(np.diff(np.append(starts, len(rows))))
    if not (return_inverse or return_counts):
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with other elements at flat positions; with `accumulate` they are added."""
    if index.numel() != source.numel():
        raise ArgumentError(f"put: {index.numel()} positions and {source.numel()} elements")
    flat = input.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(tuple(input.shape))


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


_scatter = Tensor.scatter


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """The tensor with the elements of `src`, or a number, at indexed places along an axis; with
    `reduce` 'add' or 'multiply' what stands there is a term or a factor.

    ```
    x = cr.zeros(2, 3).scatter(1, cr.tensor([[2], [0]]), value=1.0)
    assert x.tolist() == [[0, 0, 1], [1, 0, 0]]
    ```
    """
    src = value if src is None else src
    if src is None:
        raise ArgumentError("scatter: src or value is needed")
    if reduce is None:
        return _scatter(input, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f"scatter: reduce is 'add' or 'multiply', not {reduce!r}")
    if not isinstance(src, Tensor):
        src = _c._full(index._dims, src, input.dtype)
    return scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod")


def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """The elements of `src` that go to one position, reduced by 'sum', 'prod', 'mean', 'amax' or
    'amin', with what stands
    there if `include_self`. Ties of the extremes share the gradient."""
    if reduce not in _REDUCTIONS:
        raise ArgumentError(f"scatter_reduce: reduce is one of {', '.join(_REDUCTIONS)}, not {reduce!r}")
    if input.ndim == 0:
        return scatter_reduce(input.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self).reshape(())
    src = src[tuple(slice(0, n) for n in index.shape)]
    count = _c._full(input._dims, int(include_self), "int64").scatter_add(dim, index, _c._full(index._dims, 1, "int64"))
    hit = _c._full(input._dims, 0, "int64").scatter_add(dim, index, _c._full(index._dims, 1, "int64")) > 0
    if reduce in ("sum", "mean"):
        start = input if include_self else input.masked_fill(hit, 0)
        out = start.scatter_add(dim, index, src)
        if reduce == "mean":
            n = count.clamp(min=1)
            out = out / n._to_dtype(out.dtype) if out.is_floating_point() else out.floor_divide(n)
        return out
    if reduce == "prod":
        return _scatter_prod(input, dim, index, src, hit, include_self)
    return _scatter_extreme(input, dim, index, src, reduce, hit, include_self)


def _scatter_prod(input: Tensor, dim: int, index: Tensor, src: Tensor, hit: Tensor, include_self: bool) -> Tensor:
    """Products, a factor for each of the elements that go to one position."""
    start = input if include_self else input.masked_fill(hit, 1)
    # The number of an element among those of one position: each round multiplies by one of them.
    rank = _ranks(index, dim)
    out = start
    for k in range(int(rank.max()) + 1 if rank.numel() else 0):
        mine = rank == k
        zeros = _c._full(input._dims, 0, src.dtype)
        factors = zeros.scatter_add(dim, index, src.masked_fill(mine.logical_not(), 0))
        there = zeros.scatter_add(dim, index, mine._to_dtype(src.dtype)) > 0
        out = out * factors.where(there, 1)
    return out


def _ranks(index: Tensor, dim: int) -> Tensor:
    """The number of elements before an element along the axis that have its index."""
    at = np.moveaxis(index.numpy(), dim, -1)
    same = at[..., :, None] == at[..., None, :]
    earlier = np.tril(same, -1).sum(-1)
    return _c.tensor(np.ascontiguousarray(np.moveaxis(earlier, -1, dim)))


def _scatter_extreme(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, hit: Tensor, include_self: bool) -> Tensor:
    """The extremes, whose gradient goes in equal parts to all that have the value."""
    ufunc = np.maximum if reduce == "amax" else np.minimum
    low: Any = -np.inf if reduce == "amax" else np.inf
    if not input.is_floating_point():
        low = (np.iinfo(np.int64).min if reduce == "amax" else np.iinfo(np.int64).max) if input.dtype.name == "int64" else reduce == "amin"
    best = input.detach().numpy().copy()
    if not include_self:
        best[hit.numpy()] = low
    at = list(np.indices(index.numpy().shape, sparse=True))
    at[dim % input.ndim] = index.numpy()
    ufunc.at(best, tuple(at), src.detach().numpy())
    found = _c.tensor(best)
    if not input.is_floating_point():
        return found
    mine = (src.detach() == found.gather(dim, index))._to_dtype(src.dtype)
    own = (input.detach() == found)._to_dtype(src.dtype)
    own = own if include_self else own.masked_fill(hit, 0)
    ties = own.scatter_add(dim, index, mine)

    def backward(g: Tensor, x: Tensor, y: Tensor, _: Tensor) -> list[Tensor]:
        share = g / ties
        return [share * own, share.gather(dim, index) * mine]

    return _c._apply_custom("scatter_reduce", lambda x, y: found, backward, [input, src])


def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """As `scatter_reduce` for slices: those of `source` go to the positions `index` of an axis;
    'prod', 'mean', 'amax' or 'amin'.
    """
    if reduce not in _REDUCTIONS[1:]:
        raise ArgumentError(f"index_reduce: reduce is one of {', '.join(_REDUCTIONS[1:])}, not {reduce!r}")
    if input.ndim == 0:
        return scatter_reduce(input, 0, index.reshape(-1), source.reshape(-1), reduce, include_self=include_self)
    shape = tuple(-1 if i == dim % input.ndim else 1 for i in range(input.ndim))
    at = index.reshape(shape).expand(*source.shape)
    return scatter_reduce(input, dim, at, source, reduce, include_self=include_self)


# Strides


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the elements of the memory at these steps. Memory may be read twice, and the
    gradients add up; a write needs places that differ.
    """
    flat, offset = _in_memory(input)
    offset = offset if storage_offset is None else storage_offset
    if len(size) != len(stride) or any(n < 0 for n in (*size, *stride, offset)):
        raise ArgumentError(f"as_strided: size {tuple(size)}, stride {tuple(stride)}, storage_offset {offset}: a step of 0 or more for each size is needed")
    reach = offset + sum((n - 1) * step for n, step in zip(size, stride)) + 1
    if 0 in size:
        return flat[:0].reshape(tuple(size))
    if reach > flat.numel():
        raise ArgumentError(f"as_strided: size {tuple(size)} and stride {tuple(stride)} reach beyond {flat.numel()} elements")
    # Axes from the longest step to the shortest, so that each is a row of windows in those before.
    order = sorted(range(len(size)), key=lambda i: -stride[i])
    x, moving = flat.narrow(0, offset, reach - offset), [i for i in order if stride[i] > 0 and size[i] > 1]
    rest = [i for i in order if i not in moving]
    for k, i in enumerate(moving):
        inside = sum((size[j] - 1) * stride[j] for j in moving[k + 1 :]) + 1
        x = x.unfold(-1, inside, stride[i])
    x = x.squeeze(-1)
    for _ in rest:
        x = x.unsqueeze(-1)
    made = [*moving, *rest]
    x = x.expand([size[i] for i in made]) if any(size[i] > 1 for i in rest) else x
    return x.permute([made.index(i) for i in range(len(size))]) if made != sorted(made) else x


def _in_memory(x: Tensor) -> tuple[Tensor, int]:
    if not x.is_contiguous():
        raise ArgumentError(f"as_strided: shape {tuple(x.shape)}, strides {x.stride()}: a contiguous tensor is needed; use x.contiguous()")
    return x.reshape(-1), 0


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """The tensor with other elements at these steps of its memory."""
    flat, offset = _in_memory(input)
    at = np.full((), offset if storage_offset is None else storage_offset, dtype=np.int64)
    for n, step in zip(size, stride):
        at = at[..., None] + np.arange(n) * step
    return flat.index_put((_c.tensor(at.reshape(-1)),), src.reshape(-1)).reshape(tuple(input.shape))


def _copy_of(name: str) -> Any:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        f: Any = globals().get(name) or getattr(type(input), name)
        out = f(input, *args, **kwargs)
        return tuple(t.clone() for t in out) if isinstance(out, tuple) else out.clone()

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"As `{name}`, in memory of its own."
    return function


def alias_copy(input: Tensor) -> Tensor:
    """The tensor in memory of its own."""
    return input.clone()


def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The slices from `start` up to, without, `end` by `step` of an axis, in memory of their own.
    """
    return input[(slice(None),) * (dim % input.ndim) + (slice(start, end, step),)].clone()


expand_copy, view_copy, permute_copy, narrow_copy, t_copy, transpose_copy = map(_copy_of, "expand view permute narrow t transpose".split())
diagonal_copy, squeeze_copy, unsqueeze_copy, unfold_copy, unbind_copy = map(_copy_of, "diagonal squeeze unsqueeze unfold unbind".split())
split_with_sizes_copy, as_strided_copy = map(_copy_of, ("split_with_sizes", "as_strided"))


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over the axes that a tensor of this size would be stretched along."""
    want = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    lead = self.ndim - len(want)
    if lead < 0 or any(m not in (1, n) for m, n in zip(want, self.shape[lead:])):
        raise ArgumentError(f"sum_to_size: shape {tuple(self.shape)} is no stretched {want}")
    if not want:
        return self.sum()
    axes = [*range(lead), *(lead + i for i, m in enumerate(want) if m == 1 != self.shape[lead + i])]
    return (self.sum(axes, True) if axes else self).reshape(want)


def fill(input: Tensor, value: Any) -> Tensor:
    """The same number everywhere, in a tensor of the same shape and dtype."""
    return _t(value)._to_dtype(input.dtype).expand(*input.shape).clone() if isinstance(value, Tensor) else _c._full(input._dims, value, input.dtype)


def scalar_tensor(s: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A number as a tensor, of the default dtype unless another is given."""
    return _c.tensor(s, dtype or _c.get_default_dtype(), requires_grad)


def _transposed(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise ArgumentError(f"H: shape {tuple(self.shape)}: a matrix is needed; mH is for batches")
    return self.t() if self.ndim else self


METHODS: dict[str, Any] = {
    name: globals()[name]
    for name in (
        "tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split unsafe_chunk fliplr flipud rot90 msort diagflat diagonal_scatter "
        "select_scatter slice_scatter argwhere nonzero_static unique_consecutive put scatter scatter_reduce index_reduce as_strided as_strided_scatter "
        "sum_to_size isin narrow_copy"
    ).split()
} | {
    "H": property(_transposed, doc="The conjugate transpose of a matrix; real numbers stay."),
    "mH": property(lambda self: self.mT, doc="The conjugate transposes of matrices; real numbers stay."),
}
"""Functions that are methods, too."""
IN_PLACE = ("put", "scatter", "scatter_reduce", "index_reduce")
"""Methods that also write their result to the tensor."""

__all__ = [
    "alias_copy", "argwhere", "as_strided", "as_strided_copy", "as_strided_scatter", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag",
    "cartesian_prod", "column_stack", "combinations", "diagflat", "diagonal_copy", "diagonal_scatter", "dsplit", "dstack", "expand_copy", "fill",
    "fliplr", "flipud", "hsplit", "index_reduce", "isin", "msort", "narrow_copy", "nonzero_static", "permute_copy", "put", "rot90", "row_stack",
    "scalar_tensor", "scatter", "scatter_reduce", "select_scatter", "slice_copy", "slice_scatter", "split_with_sizes", "split_with_sizes_copy",
    "squeeze_copy", "t_copy", "tensor_split", "transpose_copy", "tril_indices", "triu_indices", "unbind_copy", "unfold_copy", "unique_consecutive",
    "unravel_index", "unsafe_chunk", "unsafe_split", "unsqueeze_copy", "view_copy", "vsplit",
]
