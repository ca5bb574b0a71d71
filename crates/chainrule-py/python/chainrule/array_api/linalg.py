"""The linear algebra that the engine has."""

from __future__ import annotations

from typing import Any

from .. import _functions as _f
from .. import linalg as _linalg
from .._complex import _matrices as _m
from .._complex._tensor import ComplexTensor
from ._dtypes import pair
from ._shapes import matrix_transpose
from ._statistics import matmul, sum as _sum, tensordot, vecdot


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product."""
    a, b = pair(x1, x2)
    if isinstance(a, ComplexTensor):
        at = axis % max(a.ndim, b.ndim)
        if a.shape[axis] != 3 or b.shape[axis] != 3:
            raise ValueError(f"cross: shapes {tuple(a.shape)} and {tuple(b.shape)} are not of size 3 along the axis {axis}")
        return a.cross(b, at)
    return _f.cross(a, b, axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """All products."""
    a, b = pair(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: shapes {tuple(a.shape)} and {tuple(b.shape)}: two vectors are needed")
    return a.outer(b)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal."""
    return _sum(x.diagonal(offset, -2, -1), axis=-1, dtype=dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonal of matrices."""
    return x.diagonal(offset, -2, -1)


def det(x: Any, /) -> Any:
    """The determinant."""
    return x.det()


def slogdet(x: Any, /) -> _linalg.SlogDet:
    """Sign and logarithm of the determinant."""
    return _linalg.slogdet(x)


def inv(x: Any, /) -> Any:
    """The inverse."""
    return x.inverse()


def solve(x1: Any, x2: Any, /) -> Any:
    """The x with x1 x = x2."""
    a, b = pair(x1, x2)
    if b.ndim == 1:
        return _linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = _f.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand((*batch, *a.shape[-2:]))._solve(b.expand((*batch, *b.shape[-2:])))


def cholesky(x: Any, /, *, upper: Any = False) -> Any:
    """The triangular factor."""
    return _linalg.cholesky(x, upper=upper)


def qr(x: Any, /, *, mode: str = "reduced") -> _linalg.QR:
    """The QR decomposition."""
    return _linalg.qr(x, mode)


def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """The norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf."""
    return _linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def svd(x: Any, /, *, full_matrices: Any = True) -> _linalg.SVD:
    """The decomposition by singular values."""
    return _linalg.svd(x, full_matrices)


def svdvals(x: Any, /) -> Any:
    """The singular values, falling."""
    return _linalg.svdvals(x)


def eig(x: Any, /) -> _m.Eig:
    """Eigenvalues, in no order, and eigenvectors, complex also of real matrices."""
    return _linalg.eig(x)


def eigvals(x: Any, /) -> Any:
    """The eigenvalues, in no order, complex also of real matrices."""
    return _linalg.eigvals(x)


def eigh(x: Any, /) -> _linalg.Eigh:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return _linalg.eigh(x)


def eigvalsh(x: Any, /) -> Any:
    """The eigenvalues of Hermitian matrices."""
    return _linalg.eigvalsh(x)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverse."""
    return _linalg.pinv(x, rtol=rtol)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """The number of singular values that are not zero."""
    return _linalg.matrix_rank(x, rtol=rtol)


def matrix_power(x: Any, n: int, /) -> Any:
    """The product with itself."""
    return _linalg.matrix_power(x, n)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """The norm of vectors."""
    return x._norm(float(ord), axis, keepdims)
