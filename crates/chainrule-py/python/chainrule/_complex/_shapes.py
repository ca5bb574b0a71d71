"""The same complex numbers in another shape or order: views of the pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError
from ._base import Base, axes_of
from ._elements import Elements

C = TypeVar("C", bound="Shapes")
Dims = int | Sequence[int]


def _sizes(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        return tuple(int(n) for n in sizes[0])
    return tuple(int(n) for n in sizes)


def _key(key: Any) -> Any:
    """The key of the pairs: an ellipsis would reach over their axis."""
    parts = key if isinstance(key, tuple) else (key,)
    return (*parts, slice(None)) if any(p is Ellipsis for p in parts) else key


class Shapes(Elements):
    """Indexing, views and copies. Axes count as those of the complex tensor."""

    def _axis(self, function: str, dim: int, more: int = 0) -> int:
        ndim = self.ndim + more
        return axes_of(function, ndim, dim)[0] if ndim else axes_of(function, 1, dim)[0]

    def __getitem__(self: C, key: Any) -> C:
        self._check_key(key)
        return self._like(self._data[_key(key)])

    def _check_key(self, key: Any) -> None:
        """The axis of the parts is not to be reached."""
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(p, Base) for p in parts):
            raise IndexError("getitem: complex numbers are no positions")
        taken = sum(_taken(p) for p in parts)
        if taken > self.ndim:
            raise IndexError(f"getitem: {taken} indices for a tensor of shape {self._dims}")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_key(key)
        new = self._lifted(value)._to_dtype(self.dtype)
        self._data[_key(key)] = new._data

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a tensor without axes")
        return self._dims[0]

    def __iter__(self: C) -> Iterator[C]:
        if not self.ndim:
            raise TypeError("a tensor without axes cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def reshape(self: C, *shape: Any) -> C:
        """The elements in row-major order in another shape."""
        return self._like(self._data.reshape((*self._whole(_sizes(shape)), 2)))

    def view(self: C, *shape: Any) -> C:
        """A view in another shape."""
        return self._like(self._data.view((*self._whole(_sizes(shape)), 2)))

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape without -1."""
        if shape.count(-1) != 1:
            return shape
        known, all_of = 1, 1
        for n in shape:
            known *= n if n != -1 else 1
        for n in self._dims:
            all_of *= n
        return tuple((all_of // known if known else 0) if n == -1 else n for n in shape)

    def reshape_as(self: C, other: Any) -> C:
        """The elements in the shape of another tensor."""
        return self.reshape(tuple(other.shape))

    view_as = reshape_as

    def flatten(self: C, start_dim: int = 0, end_dim: int = -1) -> C:
        """Some axes as one."""
        if not self.ndim:
            return self.reshape(1)
        a, b = self._axis("flatten", start_dim), self._axis("flatten", end_dim)
        return self.reshape((*self._dims[:a], -1, *self._dims[b + 1 :])) if self._data.numel() else self.reshape(self._merged(a, b))

    def _merged(self, a: int, b: int) -> tuple[int, ...]:
        n = 1
        for size in self._dims[a : b + 1]:
            n *= size
        return (*self._dims[:a], n, *self._dims[b + 1 :])

    def ravel(self: C) -> C:
        """All axes as one."""
        return self.flatten()

    def permute(self: C, *dims: Any) -> C:
        """The axes in another order."""
        order = _sizes(dims)
        if len(order) != self.ndim:
            raise ArgumentError(f"permute: {len(order)} axes for a tensor of shape {self._dims}")
        return self._like(self._data.permute(*(self._axis("permute", d) for d in order), self.ndim))

    def transpose(self: C, dim0: int, dim1: int) -> C:
        """Two axes exchanged."""
        return self._like(self._data.transpose(self._axis("transpose", dim0), self._axis("transpose", dim1))) if self.ndim else self

    swapaxes = swapdims = transpose

    def t(self: C) -> C:
        """The transpose of a matrix; a vector stays."""
        if self.ndim > 2:
            raise ArgumentError(f"t: shape {self._dims}: a matrix or a vector is needed")
        return self.transpose(0, 1) if self.ndim == 2 else self

    @property
    def T(self: C) -> C:
        """The axes in the other order."""
        return self.permute(*reversed(range(self.ndim))) if self.ndim else self

    @property
    def mT(self: C) -> C:
        """The transposes of matrices."""
        if self.ndim < 2:
            raise ArgumentError(f"mT: shape {self._dims}: a matrix is needed")
        return self.transpose(-2, -1)

    @property
    def mH(self: C) -> C:
        """The conjugate transposes of matrices."""
        return self.mT.conj()

    @property
    def H(self: C) -> C:
        """The conjugate transpose of a matrix."""
        return self.t().conj()

    def adjoint(self: C) -> C:
        """The conjugate transposes of matrices."""
        return self.mH

    def movedim(self: C, source: Dims, destination: Dims) -> C:
        """Axes in other places."""
        from_, to = axes_of("movedim", self.ndim, source), axes_of("movedim", self.ndim, destination)
        return self._like(self._data.movedim(from_, to)) if self.ndim else self

    moveaxis = movedim

    def unsqueeze(self: C, dim: int) -> C:
        """A new axis of size 1."""
        return self._like(self._data.unsqueeze(self._axis("unsqueeze", dim, 1)))

    def squeeze(self: C, dim: Any = None) -> C:
        """Without axes of size 1."""
        axes = axes_of("squeeze", self.ndim, dim)
        return self.reshape(tuple(n for i, n in enumerate(self._dims) if n != 1 or i not in axes))

    def unflatten(self: C, dim: int, sizes: Sequence[int]) -> C:
        """One axis as several."""
        d = self._axis("unflatten", dim)
        return self.reshape((*self._dims[:d], *sizes, *self._dims[d + 1 :]))

    def expand(self: C, *sizes: Any) -> C:
        """A view in a larger shape; -1 keeps a size."""
        shape = _sizes(sizes)
        return self._like(self._data.expand((*shape, 2)))

    def expand_as(self: C, other: Any) -> C:
        """A view in the shape of another tensor."""
        return self.expand(tuple(other.shape))

    def contiguous(self: C) -> C:
        """The elements in row-major order in memory."""
        return self._like(self._data.contiguous())

    def flip(self: C, *axes: Any, dims: Any = None) -> C:
        """Axes the other way round."""
        return self._like(self._data.flip(axes_of("flip", self.ndim, _sizes(axes) if dims is None else dims)))

    def roll(self: C, shifts: Any, dims: Any = None) -> C:
        """Elements moved on, those at the end to the front."""
        if dims is None:
            return self.flatten().roll(shifts, 0).reshape(self._dims)
        axes = axes_of("roll", self.ndim, dims)
        data = self._data
        for shift, axis in zip([shifts] * len(axes) if isinstance(shifts, int) else shifts, axes):
            data = data.roll(shift, axis)
        return self._like(data)

    def repeat(self: C, *repeats: Any) -> C:
        """The whole several times."""
        return self._like(self._data.repeat(*_sizes(repeats), 1))

    def tile(self: C, *dims: Any) -> C:
        """The whole several times; axes that are not named once."""
        times = _sizes(dims)
        return self.repeat(*(1,) * (self.ndim - len(times)), *times)

    def repeat_interleave(self: C, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> C:
        """Each element several times."""
        x = self.flatten() if dim is None else self
        return x._like(x._data.repeat_interleave(repeats, 0 if dim is None else x._axis("repeat_interleave", dim)))

    def narrow(self: C, dim: int, start: int, length: int) -> C:
        """A part of an axis."""
        return self._like(self._data.narrow(self._axis("narrow", dim), start, length))

    def select(self: C, dim: int, index: int) -> C:
        """The slice at a position of an axis."""
        return self[(slice(None),) * self._axis("select", dim) + (index,)]

    def unbind(self: C, dim: int = 0) -> tuple[C, ...]:
        """The slices along an axis."""
        return tuple(self.select(dim, i) for i in range(self._dims[self._axis("unbind", dim)]))

    def split(self: C, split_size: Any, dim: int = 0) -> tuple[C, ...]:
        """Parts of these sizes along an axis."""
        return tuple(map(self._like, self._data.split(split_size, self._axis("split", dim))))

    def chunk(self: C, chunks: int, dim: int = 0) -> tuple[C, ...]:
        """Parts of one size along an axis, the last one smaller."""
        return tuple(map(self._like, self._data.chunk(chunks, self._axis("chunk", dim))))

    def index_select(self: C, dim: int, index: Tensor) -> C:
        """The slices at these positions of an axis."""
        if not self.ndim:
            return self.reshape(1).index_select(dim, index).reshape(())
        return self._like(self._data.index_select(self._axis("index_select", dim), index))

    def gather(self: C, dim: int, index: Tensor) -> C:
        """The elements at positions along an axis that differ from place to place."""
        if not self.ndim:
            return self.reshape(1).gather(dim, index.reshape(-1)).reshape(index._dims)
        at = index.unsqueeze(-1).expand((*index._dims, 2))
        return self._like(self._data.gather(self._axis("gather", dim), at))

    def masked_select(self: C, mask: Tensor) -> C:
        """The elements where the mask holds."""
        x, at = _c._broadcast_tensors([self.real.detach(), mask])
        return self.expand(x._dims)[at]

    def diagonal(self: C, offset: int = 0, dim1: int = 0, dim2: int = 1) -> C:
        """The diagonal of two axes, as the last axis."""
        out = self._data.diagonal(offset, self._axis("diagonal", dim1), self._axis("diagonal", dim2))
        return self._like(out.movedim(-1, -2))

    def diag_embed(self: C, offset: int = 0, dim1: int = -2, dim2: int = -1) -> C:
        """The last axis as a diagonal of square matrices."""
        return self._like(_c._stack([part.diag_embed(offset, dim1, dim2) for part in (self.real, self.imag)], -1))

    def tril(self: C, diagonal: int = 0) -> C:
        """The part on and below a diagonal."""
        return self._like(_c._stack([self.real.tril(diagonal), self.imag.tril(diagonal)], -1))

    def triu(self: C, diagonal: int = 0) -> C:
        """The part on and above a diagonal."""
        return self._like(_c._stack([self.real.triu(diagonal), self.imag.triu(diagonal)], -1))

    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """The positions of elements that are not 0."""
        return self.ne(0.0).nonzero(as_tuple=as_tuple)


def _taken(part: Any) -> int:
    """The number of axes that a part of a key takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    dtype = getattr(getattr(part, "dtype", None), "name", "")
    return int(part.ndim) if dtype == "bool" and hasattr(part, "ndim") else 1
