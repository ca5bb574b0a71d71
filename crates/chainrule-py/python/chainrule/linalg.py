"""Linear algebra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from ._chainrule import Tensor
from ._out import with_out
from ._complex import _matrices as _m
from ._complex._making import of_real
from ._complex._matrices import Eig
from ._complex._tensor import ComplexTensor
from ._decompositions import (
    SVD, Eigh, _matrices, complete_qr, cond, eigh, eigvalsh, matrix_rank, norm_by_singular_values, pinv, svd, svdvals,
)
from ._errors import ArgumentError, LinAlgError as LinAlgError
from ._factors import (
    LU, LstSq, LUFactor, LUFactorEx, cholesky_ex, householder_product, inv_ex, lstsq, lu, lu_factor, lu_factor_ex, lu_solve,
    permutation as permutation, solve_ex, solve_triangular, tensorinv, tensorsolve, unpacked as unpacked, vander,
)
from ._functions import broadcast_shapes, cat, cross, einsum
from ._making import empty, eye


class QR(NamedTuple):
    """An orthogonal and a triangular factor."""

    Q: Tensor
    R: Tensor


class SlogDet(NamedTuple):
    """Sign and logarithm of the size of a determinant."""

    sign: Tensor
    logabsdet: Tensor


@with_out
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Tensor:
    """The X with A X = B; with `left=False` the one with X A = B."""
    if not left:
        return solve(A.mT, B.mT).mT
    if B.ndim == 1 or (B.ndim + 1 == A.ndim and B.shape == A.shape[:-1]):
        return solve(A, B.unsqueeze(-1)).squeeze(-1)
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return A.expand((*batch, *A.shape[-2:]))._solve(B.expand((*batch, *B.shape[-2:])))


@with_out
def inv(A: Tensor, *, out: Any = None) -> Tensor:
    """The inverse."""
    return A.inverse()


@with_out
def det(A: Tensor, *, out: Any = None) -> Tensor:
    """The determinant."""
    return A.det()


def slogdet(A: Tensor) -> SlogDet:
    """Sign and logarithm of the size of the determinant."""
    return SlogDet(*A._slogdet())


@with_out
def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> QR:
    """The QR decomposition; with `mode="r"` only R, and Q is empty; with `mode="complete"` Q is
    square.
    """
    if mode not in ("reduced", "r", "complete"):
        raise ArgumentError(f"qr: there are the modes 'reduced', 'complete' and 'r', not '{mode}'")
    if A.ndim < 2:
        raise ArgumentError(f"qr: shape {tuple(A.shape)}: a matrix is needed")
    if isinstance(A, ComplexTensor):
        return QR(*_m.qr(A, mode))
    rows, columns = A.shape[-2:]
    if mode == "complete" and rows > columns:
        return QR(*complete_qr(A))
    q, r = A[..., :rows]._qr()
    if columns > rows:  # the first columns of a wide matrix give Q
        r = cat([r, q.mT @ A[..., rows:]], -1)
    return QR(q if mode != "r" else empty(0, dtype=A.dtype), r)


@with_out
def cholesky(L: Tensor, *, upper: bool = False, out: Any = None) -> Tensor:
    """The triangular factor of a positive definite matrix."""
    factor = L.cholesky()
    return factor if not upper else factor.mH if isinstance(factor, ComplexTensor) else factor.mT


@with_out
def vector_norm(x: Tensor, ord: float = 2.0, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The norm of vectors."""
    return x._norm(float(ord), dim, keepdim)


@with_out
def matrix_norm(A: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf."""
    rows, columns = (d % A.ndim for d in dim)
    if ord == "fro":
        return A._norm(2.0, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        found = norm_by_singular_values(A.movedim((rows, columns), (-2, -1)), ord)
        if keepdim:
            for d in sorted((rows, columns)):
                found = found.unsqueeze(d)
        return found
    if ord not in (1, -1, inf, -inf):
        raise ArgumentError(f"matrix_norm: there is no norm {ord!r}; there are 'fro', 'nuc', 1, -1, 2, -2, inf and -inf")
    sums = A.abs().sum(rows if abs(ord) == 1 else columns, keepdim=True)
    return sums.amax((rows, columns), keepdim) if ord > 0 else sums.amin((rows, columns), keepdim)


@with_out
def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The norm of a vector, of a matrix, or without `ord` of all elements."""
    if ord is None:
        return A._norm(2.0, dim, keepdim)
    axes = list(range(A.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if len(axes) == 2:
        return matrix_norm(A, ord, axes, keepdim)
    if len(axes) > 2 or isinstance(ord, str):
        raise ArgumentError(f"norm: shape {tuple(A.shape)}: the order {ord!r} over {len(axes)} axes is no norm of a vector or a matrix")
    return A._norm(float(ord), axes if axes else None, keepdim)


def _complex(name: str, A: Any) -> Any:
    if isinstance(A, ComplexTensor):
        return A
    if not isinstance(A, Tensor) or A.dtype.name not in ("float32", "float64"):
        raise TypeError(f"{name}: {getattr(A, 'dtype', type(A).__name__)} is not supported; matrices of float32, float64, complex64 or complex128 are")
    return of_real(A)


def eig(A: Tensor | ComplexTensor) -> Eig:
    """Eigenvalues and eigenvectors, of length 1, of square matrices, in no order; complex also of
    real matrices.

    Gradients of the vectors need different eigenvalues, and a loss that does not depend on the
    phases of the vectors, which are arbitrary: else they are an error.
    """
    return _m.eig(_complex("eig", A))


def eigvals(A: Tensor | ComplexTensor) -> ComplexTensor:
    """The eigenvalues of square matrices, in no order; complex also of real matrices."""
    return _m.eigvals(_complex("eigvals", A))  # type: ignore[no-any-return]


@with_out
def matmul(A: Tensor, B: Tensor, *, out: Any = None) -> Tensor:
    """The product."""
    return A @ B


@with_out
def matrix_power(A: Tensor, n: int, *, out: Any = None) -> Tensor:
    """A times itself, n times."""
    if n < 0:
        return matrix_power(A.inverse(), -n)
    one = _m.identity(A.shape[-1], A) if isinstance(A, ComplexTensor) else eye(A.shape[-1], dtype=A.dtype)
    product, square = one.expand(A.shape), A
    while n:
        if n & 1:
            product = product @ square
        n >>= 1
        if n:
            square = square @ square
    return product


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
    33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)


def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices, `1 + A + A^2 / 2 + ...`: a quotient of polynomials of the
    matrix over a power of 2,
    squared as often."""
    A = _matrices("matrix_exp", input, True)
    if not A.numel():
        return A.clone()
    norm = float(A.detach().abs().sum(-2).amax())
    if not math.isfinite(norm):
        raise LinAlgError("matrix_exp: the matrix holds values that are not finite")
    times = max(0, math.ceil(math.log2(norm / 5.37))) if norm > 5.37 else 0
    A = A / 2.0**times if times else A
    b, one = _PADE, eye(A.shape[-1], dtype=A.dtype)
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A4 @ A2
    odd = A @ (A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * one)
    even = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * one
    out = solve(even - odd, even + odd)
    for _ in range(times):
        out = out @ out
    return out


@with_out
def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The product of several matrices."""
    product = tensors[0]
    for t in tensors[1:]:
        product = product @ t
    return product


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of the products along an axis, of the conjugates of x."""
    return ((x.conj() if isinstance(x, ComplexTensor) else x) * y).sum(dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices."""
    return A.diagonal(offset, dim1, dim2)


__all__ = [
    "LU", "LinAlgError", "QR", "SVD", "Eig", "Eigh", "LUFactor", "LUFactorEx", "LstSq", "SlogDet", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "einsum", "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm",
    "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
    "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]
