"""Triangular factors, systems and what is made of them, for `chainrule.linalg`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError, LinAlgError
from ._complex._base import refused
from ._complex._tensor import ComplexTensor
from ._decompositions import _finite, _matrices, _parts
from ._functions import broadcast_shapes, cat
from ._making import eye


class LU(NamedTuple):
    """A permutation and two triangular factors: `P @ L @ U` is the matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both triangular factors in one matrix, and the rows that were exchanged, counted from 1."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """As `LUFactor`, with the number of the first pivot that is 0, or 0."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LstSq(NamedTuple):
    """The solution, the sums of the squares that are left, the rank, and the singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class WithInfo(NamedTuple):
    """A result, and 0 where it was found."""

    result: Tensor
    info: Tensor


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The X with `A X = B`, or `X A = B` if not `left`, for a triangular A, of which the other
    triangle is not read.
    """
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    _matrices("solve_triangular", A, True)
    T = A.triu() if upper else A.tril()
    if unitriangular:
        T = (A.triu(1) if upper else A.tril(-1)) + eye(A.shape[-1], dtype=A.dtype)
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
    T, B = T.expand(*batch, *T.shape[-2:]), B.expand(*batch, *B.shape[-2:])
    diagonal = T.detach().diagonal(0, -2, -1)
    # In a trace nothing looks at elements; the solve tells a 0 when the program runs.
    if not _c._session_on() and bool((diagonal == 0).any()):
        raise LinAlgError("solve_triangular: the matrix has a 0 on its diagonal: there is no solution, or many")
    return T._solve(B)


def _eliminated(name: str, x: Any, pivot: bool) -> tuple[Any, Any, Any]:
    """The factors of a batch of matrices by elimination, the largest element of each column in the
    diagonal.
    """
    _finite(name, x)
    a = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]).copy()
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    pivots = np.tile(np.arange(1, steps + 1), (len(a), 1))
    info = np.zeros(len(a), dtype=np.int64)
    batch = np.arange(len(a))
    for k in range(steps):
        if pivot:
            best = k + np.abs(a[:, k:, k]).argmax(1)
            pivots[:, k] = best + 1
            top = a[:, k].copy()
            a[:, k] = a[batch, best]
            a[batch, best] = top
        p = a[:, k, k]
        info = np.where((info == 0) & (p == 0), k + 1, info)
        a[:, k + 1 :, k] /= np.where(p == 0, 1, p)[:, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k : k + 1] * a[:, k : k + 1, k + 1 :]
    shape = x.shape[:-2]
    return a.reshape(x.shape), pivots.reshape((*shape, steps)), info.reshape(shape)


def permutation(pivots: Tensor, rows: int, dtype: Any) -> Tensor:
    """The matrix that undoes the exchanges of rows."""
    p = pivots.numpy()
    order = np.tile(np.arange(rows), (math.prod(p.shape[:-1]), 1))
    batch = np.arange(len(order))
    for k, row in enumerate(p.reshape(len(order), p.shape[-1]).T - 1):
        order[:, k], order[batch, row] = order[batch, row], order[:, k].copy()
    out = np.zeros((len(order), rows, rows))
    out[batch[:, None], order, np.arange(rows)] = 1
    return _c.tensor(out.reshape(*p.shape[:-1], rows, rows), dtype)


def unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """Both triangular factors of what holds them in one matrix."""
    rows, columns = LU.shape[-2:]
    k = min(rows, columns)
    L = LU[..., :k].tril(-1) + eye(rows, k, dtype=LU.dtype)
    return L, LU[..., :k, :].triu()


def _lu_rule(A: Tensor, G: Tensor, packed: Tensor, P: Tensor) -> Tensor:
    """The gradient of the matrix from that of its factors in one matrix."""
    rows, columns = A.shape[-2:]
    k = min(rows, columns)
    L, U = unpacked(packed)
    gL, gU = G[..., :k].tril(-1), G[..., :k, :].triu()
    L1, U1 = L[..., :k, :], U[..., :k]
    inner = (L.mT @ gL).tril(-1) + (gU @ U.mT).triu()
    if rows == columns:
        middle = solve_triangular(L1.mT, solve_triangular(U1, inner.mT, upper=True).mT, upper=True)
        return P @ middle
    if rows < columns:  # the columns beyond are L^-1 of those of A
        gU2, U2 = gU[..., k:], U[..., k:]
        inner = (L.mT @ gL - gU2 @ U2.mT).tril(-1) + (gU[..., :k] @ U1.mT).triu()
        left = solve_triangular(U1, inner.mT, upper=True).mT
        return P @ solve_triangular(L1.mT, cat([left, gU2], -1), upper=True)
    gL1, gL2, L2 = gL[..., :k, :], gL[..., k:, :], L[..., k:, :]
    inner = (L1.mT @ gL1).tril(-1) + (gU @ U.mT - L2.mT @ gL2).triu()
    top = solve_triangular(L1.mT, inner, upper=True)
    both = cat([top, gL2], -2)
    return P @ solve_triangular(U1, both.mT, upper=True).mT


def _factored(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    _matrices("lu_factor", A)
    found: list[Any] = []

    def compute(x: Any) -> list[Any]:
        found[:] = _eliminated("lu_factor", x, pivot)
        return found[:1]

    def rule(A: Tensor, G: Tensor) -> Tensor:
        packed, pivots, _ = _factored(A, pivot)
        return _lu_rule(A, G, packed, permutation(pivots, A.shape[-2], A.dtype))

    packed = _parts(A, "lu_factor", compute, rule)[0]
    return packed, _c.tensor(found[1]), _c.tensor(np.asarray(found[2]))


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """Both triangular factors in one matrix, and the pivots."""
    return LUFactor(*_factored(A, pivot)[:2])


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """As `lu_factor`, with the number of the first pivot that is 0, or 0 where there is none."""
    out = LUFactorEx(*_factored(A, pivot))
    if check_errors and bool((out.info != 0).any()):
        raise LinAlgError("lu_factor: the matrix is singular")
    return out


def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """The factors P, L and U, of which the product is the matrix; without `pivot` P is empty."""
    packed, pivots, _ = _factored(A, pivot)
    P = permutation(pivots, A.shape[-2], A.dtype) if pivot else _c._full((0,), 0.0, A.dtype)
    return LU(P, *unpacked(packed))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The X with `A X = B`, from what `lu_factor` gives for A; `left=False` means `X A = B`,
    `adjoint` takes the transpose of A.
    """
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    L, U = unpacked(LU)
    P = permutation(pivots, LU.shape[-2], LU.dtype)
    if adjoint:
        return P @ solve_triangular(L.mT, solve_triangular(U.mT, B, upper=False), upper=True, unitriangular=True)
    return solve_triangular(U, solve_triangular(L, P.mT @ B, upper=False, unitriangular=True), upper=True)


def _info(A: Tensor) -> Tensor:
    return _c._full(tuple(A.shape[:-2]), 0, "int64")


def cholesky_ex(L: Tensor, *, upper: bool = False, check_errors: bool = False) -> WithInfo:
    """As `cholesky`, and zeros: a matrix without a factor is an error."""
    factor = L.cholesky()
    return WithInfo(factor.mT if upper else factor, _info(L))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> WithInfo:
    """As `inv`, and zeros: a singular matrix is an error."""
    return WithInfo(A.inverse(), _info(A))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> WithInfo:
    """As `solve`, and zeros: a singular matrix is an error."""
    from .linalg import solve

    return WithInfo(solve(A, B, left=left), _info(A))


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LstSq:
    """The X with the least `|A X - B|`, of several the smallest; sums of squares where A is tall
    and of full rank,
    unless the driver is 'gelsy', PyTorch's own choice."""
    from .linalg import matrix_rank, pinv, svdvals

    rows, columns = A.shape[-2:]
    is_vector = B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1])
    b = B.unsqueeze(-1) if is_vector else B
    X = pinv(A, rtol=rcond) @ b
    # The driver 'gels' takes the rank to be full, and gives none.
    rank = _c._full((0,), 0, "int64") if driver == "gels" else matrix_rank(A, rtol=rcond)
    residuals = _c._full((0,), 0.0, A.dtype)
    if rows > columns and driver in ("gels", "gelsd", "gelss") and bool((rank == columns).all()):
        residuals = (A @ X - b).square().sum(-2)
    S = svdvals(A.detach()) if driver in ("gelsd", "gelss") else _c._full((0,), 0.0, A.dtype)
    return LstSq(X.squeeze(-1) if is_vector else X, residuals, rank, S)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of the linear map from the last axes to the first `ind` ones."""
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if ind < 1 or math.prod(first) != math.prod(last):
        raise ArgumentError(f"tensorinv: shape {tuple(A.shape)}: the first {ind} sizes and the others have different products")
    return A.reshape(math.prod(first), -1).inverse().reshape(*last, *first)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with `tensordot(A, X, X.ndim) = B`; the axes `dims` of A are moved to its end first."""
    if dims is not None:
        A = A.movedim(list(dims), list(range(A.ndim - len(dims), A.ndim)))
    rest = tuple(A.shape[B.ndim :])
    if math.prod(rest) != B.numel():
        raise ArgumentError(f"tensorsolve: shapes {tuple(A.shape)} and {tuple(B.shape)}: there are {math.prod(rest)} unknowns for {B.numel()} equations")
    return A.reshape(B.numel(), -1)._solve(B.reshape(-1, 1)).reshape(rest)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers of each element from 0 up to, without, `N`, a row each."""
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count < 0:
        raise ArgumentError(f"vander: N={count}: N must not be negative")
    first = _c._full((*x.shape, 1), 1, x.dtype)
    if count < 2:
        return first[..., :count]
    return cat([first, x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)], -1)


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections `1 - tau v v^T`, v the columns below the
    diagonal with a 1 on it.
    """
    if isinstance(A, ComplexTensor):
        raise refused("householder_product", A.dtype)
    rows, columns = A.shape[-2:]
    v = A.tril(-1) + eye(rows, columns, dtype=A.dtype)
    out = eye(rows, columns, dtype=A.dtype).expand(*A.shape)
    for i in reversed(range(tau.shape[-1])):
        one = v[..., i : i + 1]
        out = out - tau[..., i].unsqueeze(-1).unsqueeze(-1) * (one @ (one.mT @ out))
    return out


__all__ = [
    "LU", "LUFactor", "LUFactorEx", "LstSq", "cholesky_ex", "householder_product", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex",
    "lu_solve", "solve_ex", "solve_triangular", "tensorinv", "tensorsolve", "vander",
]
