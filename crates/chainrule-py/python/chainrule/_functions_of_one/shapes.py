"""Functions whose first argument is a tensor: shapes. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from collections.abc import Sequence

from .._chainrule import Tensor
from .._types import Axes, Shape, TensorLike, as_tensor as _t


def reshape(input: TensorLike, shape: Shape) -> Tensor:
    """x in row-major order under another shape.

    Gradient: dx = g in the shape of x
    """
    return _t(input).reshape(shape)


def permute(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """x with its axes in another order.

    Gradient: dx = g with the axes back in order
    """
    return _t(input).permute(dims)


def transpose(input: TensorLike, dim0: int, dim1: int) -> Tensor:
    """`input.transpose`, as in PyTorch."""
    return _t(input).transpose(dim0, dim1)


def squeeze(input: TensorLike, dim: Axes = None) -> Tensor:
    """x without, or with, axes of size 1, or with axes joined.

    Gradient: dx = g in the shape of x
    """
    return _t(input).squeeze(dim)


def unsqueeze(input: TensorLike, dim: int) -> Tensor:
    """`input.unsqueeze`, as in PyTorch."""
    return _t(input).unsqueeze(dim)


def flatten(input: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """`input.flatten`, as in PyTorch."""
    return _t(input).flatten(start_dim, end_dim)


def unflatten(input: TensorLike, dim: int, sizes: Sequence[int]) -> Tensor:
    """x with one axis split into several.

    Gradient: dx = g in the shape of x
    """
    return _t(input).unflatten(dim, sizes)


def narrow(input: TensorLike, dim: int, start: int, length: int) -> Tensor:
    """`input.narrow`, as in PyTorch."""
    return _t(input).narrow(dim, start, length)


def split(input: TensorLike, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """x in parts along an axis.

    Gradient: dx has the gradient of each part in its place
    """
    return _t(input).split(split_size, dim)


def chunk(input: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`input.chunk`, as in PyTorch."""
    return _t(input).chunk(chunks, dim)


def unbind(input: TensorLike, dim: int = 0) -> tuple[Tensor, ...]:
    """`input.unbind`, as in PyTorch."""
    return _t(input).unbind(dim)


def select(input: TensorLike, dim: int, index: int) -> Tensor:
    """`input.select`, as in PyTorch."""
    return _t(input).select(dim, index)


def movedim(input: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """x with axes moved to other places.

    Gradient: dx = g with the axes moved back
    """
    return _t(input).movedim(source, destination)


def roll(input: TensorLike, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """y[.., k, ..] = x[.., (k - shift) mod n, ..].

    Gradient: dx[.., k, ..] = g[.., (k + shift) mod n, ..]
    """
    return _t(input).roll(shifts, dims)


def flip(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """y[.., k, ..] = x[.., n - 1 - k, ..].

    Gradient: dx[.., k, ..] = g[.., n - 1 - k, ..]
    """
    return _t(input).flip(dims)


def tile(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """`input.tile`, as in PyTorch."""
    return _t(input).tile(dims)


def repeat_interleave(input: TensorLike, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """y[.., k, ..] = x[.., k / times, ..].

    Gradient: dx[.., k / times, ..] += g[.., k, ..]
    """
    return _t(input).repeat_interleave(repeats, dim, output_size=output_size)


def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """y[.., k] = x[.., k, .., k + offset, ..].

    Gradient: dx[.., k, .., k + offset, ..] = g[.., k], and 0 elsewhere
    """
    return _t(input).diagonal(offset, dim1, dim2)


def diag(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input.diag`, as in PyTorch."""
    return _t(input).diag(diagonal)


def diag_embed(input: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """y[.., k, .., k + offset, ..] = x[.., k], and 0 elsewhere.

    Gradient: dx[.., k] = g[.., k, .., k + offset, ..]
    """
    return _t(input).diag_embed(offset, dim1, dim2)


def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input.tril`, as in PyTorch."""
    return _t(input).tril(diagonal)


def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input.triu`, as in PyTorch."""
    return _t(input).triu(diagonal)


swapaxes = transpose
swapdims = transpose
moveaxis = movedim
ravel = flatten
