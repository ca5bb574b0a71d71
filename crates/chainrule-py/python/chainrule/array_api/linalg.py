"""The linear algebra that the engine has."""

from __future__ import annotations

from typing import Any

from .. import _functions as _f
from .. import linalg as _linalg
from .._chainrule import Tensor
from ._dtypes import pair
from ._shapes import matrix_transpose
from ._statistics import matmul, tensordot, vecdot


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product."""
    a, b = pair(x1, x2)
    return _f.cross(a, b, axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products."""
    a, b = pair(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: shapes {tuple(a.shape)} and {tuple(b.shape)}: two vectors are needed")
    return a.outer(b)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal."""
    return x.diagonal(offset, -2, -1).sum(-1, dtype=dtype)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of matrices."""
    return x.diagonal(offset, -2, -1)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return x.det()


def slogdet(x: Tensor, /) -> _linalg.SlogDet:
    """Sign and logarithm of the determinant."""
    return _linalg.slogdet(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return x.inverse()


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The x with x1 x = x2."""
    a, b = pair(x1, x2)
    if b.ndim == 1:
        return _linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = _f.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand((*batch, *a.shape[-2:]))._solve(b.expand((*batch, *b.shape[-2:])))


def cholesky(x: Tensor, /, *, upper: Any = False) -> Tensor:
    """The triangular factor."""
    return _linalg.cholesky(x, upper=upper)


def qr(x: Tensor, /, *, mode: str = "reduced") -> _linalg.QR:
    """The QR decomposition."""
    return _linalg.qr(x, mode)


def matrix_norm(x: Tensor, /, *, keepdims: Any = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf."""
    return _linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def svd(x: Tensor, /, *, full_matrices: Any = True) -> _linalg.SVD:
    """The decomposition by singular values."""
    return _linalg.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, falling."""
    return _linalg.svdvals(x)


def eigh(x: Tensor, /) -> _linalg.Eigh:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return _linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric matrices."""
    return _linalg.eigvalsh(x)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse."""
    return _linalg.pinv(x, rtol=rtol)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values that are not zero."""
    return _linalg.matrix_rank(x, rtol=rtol)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product with itself."""
    return _linalg.matrix_power(x, n)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Tensor:
    """The norm of vectors."""
    return x._norm(float(ord), axis, keepdims)
