"""Linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ._chainrule import Tensor
from ._functions import cross, einsum


class QR(NamedTuple):
    """An orthogonal and a triangular factor."""

    Q: Tensor
    R: Tensor


class SlogDet(NamedTuple):
    """Sign and logarithm of the size of a determinant."""

    sign: Tensor
    logabsdet: Tensor


def solve(A: Tensor, B: Tensor) -> Tensor:
    """The X with A X = B."""
    return A._solve(B)


def inv(A: Tensor) -> Tensor:
    """The inverse."""
    return A.inverse()


def det(A: Tensor) -> Tensor:
    """The determinant."""
    return A.det()


def slogdet(A: Tensor) -> SlogDet:
    """Sign and logarithm of the size of the determinant."""
    return SlogDet(*A._slogdet())


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """The QR decomposition."""
    if mode != "reduced":
        raise ValueError(f"qr: there is the reduced mode only, not '{mode}'")
    return QR(*A._qr())


def cholesky(L: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix."""
    factor = L.cholesky()
    return factor.mT if upper else factor


def vector_norm(x: Tensor, ord: float = 2.0, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of vectors."""
    return x._norm(float(ord), dim, keepdim)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of a vector, or of all elements."""
    return A._norm(2.0 if ord in (None, "fro") else float(ord), dim, keepdim)


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """The product."""
    return A @ B


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A times itself, n times."""
    from ._functions import eye

    if n < 0:
        return matrix_power(A.inverse(), -n)
    out, square = eye(A.shape[-1], dtype=A.dtype).expand(A.shape), A
    while n:
        if n & 1:
            out = out @ square
        n >>= 1
        if n:
            square = square @ square
    return out


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices."""
    out = tensors[0]
    for t in tensors[1:]:
        out = out @ t
    return out


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of the products along an axis."""
    return (x * y).sum(dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices."""
    return A.diagonal(offset, dim1, dim2)


__all__ = [
    "QR", "SlogDet", "cholesky", "cross", "det", "diagonal", "einsum", "inv", "matmul", "matrix_power", "multi_dot", "norm", "qr",
    "slogdet", "solve", "vecdot", "vector_norm",
]
