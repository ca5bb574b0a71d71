"""The linear algebra that the engine has."""

from __future__ import annotations

from math import inf
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
    return a._solve(b)


def cholesky(x: Tensor, /, *, upper: Any = False) -> Tensor:
    """The triangular factor."""
    return _linalg.cholesky(x, upper=upper)


def qr(x: Tensor, /, *, mode: str = "reduced") -> _linalg.QR:
    """The QR decomposition."""
    return _linalg.qr(x, mode)


def matrix_norm(x: Tensor, /, *, keepdims: Any = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: 'fro', 1, -1, inf, -inf."""
    if ord == "fro":
        return x._norm(2.0, (-2, -1), keepdims)
    if ord in (1, -1):
        sums = x.abs().sum(-2, True)
    elif ord in (inf, -inf):
        sums = x.abs().sum(-1, True)
    else:
        raise ValueError(f"matrix_norm: the norm {ord} needs singular values, which there are not")
    found = sums.amax((-2, -1), keepdims) if ord > 0 else sums.amin((-2, -1), keepdims)
    return found


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product with itself."""
    return _linalg.matrix_power(x, n)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Tensor:
    """The norm of vectors."""
    return x._norm(float(ord), axis, keepdims)
