"""Functions whose first argument is a tensor: indexing and products. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from .._chainrule import Generator, Tensor
from .._types import TensorLike, as_tensor as _t


def gather(input: TensorLike, dim: int, index: Tensor) -> Tensor:
    """y[i, j, k] = x[i, indices[i, j, k], k], for axis 1 of three.

    Gradient: dx[i, indices[i, j, k], k] += g[i, j, k]
    """
    return _t(input).gather(dim, index)


def index_select(input: TensorLike, dim: int, index: Tensor) -> Tensor:
    """y[.., k, ..] = x[.., indices[k], ..].

    Gradient: dx[.., indices[k], ..] += g[.., k, ..]
    """
    return _t(input).index_select(dim, index)


def take(input: TensorLike, index: Tensor) -> Tensor:
    """y[..] = x.flatten()[indices[..]].

    Gradient: dx.flatten()[indices[..]] += g[..]
    """
    return _t(input).take(index)


def take_along_dim(input: TensorLike, indices: Tensor, dim: int | None = None) -> Tensor:
    """`input.take_along_dim`, as in PyTorch."""
    return _t(input).take_along_dim(indices, dim)


def scatter(input: TensorLike, dim: int, index: Tensor, src: TensorLike) -> Tensor:
    """y = x, but y[i, indices[i, j, k], k] = source[i, j, k], for axis 1 of three.

    Gradient: dx = g with 0 at the places named; dsource[i, j, k] = g[i, indices[i, j, k], k], but 0 where a later one overwrote it
    """
    return _t(input).scatter(dim, index, src)


def scatter_add(input: TensorLike, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """y = x; y[i, indices[i, j, k], k] += source[i, j, k], for axis 1 of three.

    Gradient: dx = g; dsource[i, j, k] = g[i, indices[i, j, k], k]
    """
    return _t(input).scatter_add(dim, index, src)


def index_add(input: TensorLike, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """y = x; y[.., indices[k], ..] += source[.., k, ..].

    Gradient: dx = g; dsource[.., k, ..] = g[.., indices[k], ..]
    """
    return _t(input).index_add(dim, index, source, alpha=alpha)


def index_copy(input: TensorLike, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """y = x, but y[.., indices[k], ..] = source[.., k, ..].

    Gradient: dx = g with 0 at the positions named; dsource[.., k, ..] = g[.., indices[k], ..], but 0 where a later one overwrote it
    """
    return _t(input).index_copy(dim, index, source)


def index_fill(input: TensorLike, dim: int, index: Tensor, value: TensorLike) -> Tensor:
    """`input.index_fill`, as in PyTorch."""
    return _t(input).index_fill(dim, index, value)


def masked_fill(input: TensorLike, mask: Tensor, value: TensorLike) -> Tensor:
    """y = value where the mask is true, else x.

    Gradient: dx = g where the mask is false, else 0; dvalue = sum of g where it is true

    At kinks: the masked gradient is 0, whatever g is
    """
    return _t(input).masked_fill(mask, value)


def masked_select(input: TensorLike, mask: Tensor) -> Tensor:
    """the elements of x where the mask is true; masked_scatter puts those of a source there.

    Gradient: dx = g at the places that it came from, else 0; for masked_scatter dx = g where the mask is false, dsource = g where it is true
    """
    return _t(input).masked_select(mask)


def outer(input: TensorLike, vec2: Tensor) -> Tensor:
    """`input.outer`, as in PyTorch."""
    return _t(input).outer(vec2)


def dot(input: TensorLike, tensor: Tensor) -> Tensor:
    """dot: sum over k of a[k] * b[k]; mv: y[i] = sum over k of a[i, k] * x[k]; outer: y[i, j] = a[i] * b[j].

    Gradient: da = g * b and db = g * a, summed over what they lack
    """
    return _t(input).dot(tensor)


def mv(input: TensorLike, vec: Tensor) -> Tensor:
    """`input.mv`, as in PyTorch."""
    return _t(input).mv(vec)


def kron(input: TensorLike, other: Tensor) -> Tensor:
    """y[i * p + k, j * q + l] = a[i, j] * b[k, l], for b of p by q.

    Gradient: da[i, j] = sum over k, l of g[i * p + k, j * q + l] * b[k, l]; db[k, l] = sum over i, j of g[..] * a[i, j]
    """
    return _t(input).kron(other)


def addmm(input: TensorLike, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`input.addmm`, as in PyTorch."""
    return _t(input).addmm(mat1, mat2, beta=beta, alpha=alpha)


def addcmul(input: TensorLike, tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor:
    """`input.addcmul`, as in PyTorch."""
    return _t(input).addcmul(tensor1, tensor2, value=value)


def addcdiv(input: TensorLike, tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor:
    """`input.addcdiv`, as in PyTorch."""
    return _t(input).addcdiv(tensor1, tensor2, value=value)


def multinomial(input: TensorLike, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """`input.multinomial`, as in PyTorch."""
    return _t(input).multinomial(num_samples, replacement, generator=generator)


ger = outer
