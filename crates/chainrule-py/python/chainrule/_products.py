"""Products and decompositions of matrices that are composed of others, under PyTorch's names."""

from __future__ import annotations

from typing import Any


from . import _chainrule as _c
from . import _functions as _f
from . import linalg as _l
from ._chainrule import Tensor
from ._out import with_out
from ._decompositions import _matrices
from ._making import eye
from ._results import SVD, Solution


def _sum(input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """`beta * input + alpha * product`; with `beta=0` the input is not looked at, and may hold NaN.
    """
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return product.expand(*_f.broadcast_shapes(input.shape, product.shape))
    return (input if beta == 1 else beta * input) + product


@with_out
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1, out: Any = None) -> Tensor:
    """`beta * x + alpha * (matrix @ vector)`."""
    return _sum(input, mat.mv(vec), beta, alpha)


@with_out
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1, out: Any = None) -> Tensor:
    """`beta * x + alpha * outer(vec1, vec2)`."""
    return _sum(input, vec1.outer(vec2), beta, alpha)


@with_out
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1, out: Any = None) -> Tensor:
    """`beta * x + alpha * (a @ b)` for batches of matrices."""
    return _sum(input, batch1.bmm(batch2), beta, alpha)


@with_out
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1, out: Any = None) -> Tensor:
    """`beta * x + alpha * sum of (a @ b)` over a batch of matrices."""
    return _sum(input, batch1.bmm(batch2).sum(0), beta, alpha)


@with_out
def vdot(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sum of the products of two vectors, of the conjugates of the first."""
    return (input if type(input) is Tensor else input.conj()).dot(other)


@with_out
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sums of the products along the last axes of both."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return _f.tensordot(input, other, ([-1], [-1]))


# Systems


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The X with `L L^T X = B` for a triangular factor L, or its transpose if `upper`."""
    first = _l.solve_triangular(L.mT if upper else L, B, upper=False)
    return _l.solve_triangular(L if upper else L.mT, first, upper=True)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of `L L^T` for a triangular factor L, or its transpose if `upper`."""
    return cholesky_solve(eye(L.shape[-1], dtype=L.dtype).expand(*L.shape), L, upper)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Solution:
    """The X with `A X = b` for a triangular A; with `transpose` that of `A^T X = b`."""
    matrix, is_upper = (A.mT, not upper) if transpose else (A, upper)
    return Solution(_l.solve_triangular(matrix, b, upper=is_upper, unitriangular=unitriangular), A.clone())


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The X with `A X = b`, from the factors of A."""
    return _l.lu_solve(LU_data, LU_pivots, b)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Both triangular factors in one matrix, and the pivots."""
    found = _l.lu_factor_ex(A, pivot=pivot)
    return found if get_infos else _l.LUFactor(found.LU, found.pivots)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """The permutation and both factors of what `linalg.lu_factor` gives."""
    none = _c._full((0,), 0.0, LU_data.dtype)
    P = _l.permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else none
    L, U = _l.unpacked(LU_data) if unpack_data else (none, none)
    return _l.LU(P, L, U)


# Decompositions


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """Singular values with U and V; the older form of `linalg.svd`, which gives the transpose of V.
    """
    if not compute_uv:
        rows, columns = input.shape[-2:]
        batch = input.shape[:-2]
        return SVD(
            _c._full((*batch, rows, rows), 0.0, input.dtype), _l.svdvals(input), _c._full((*batch, columns, columns), 0.0, input.dtype)
        )
    U, S, Vh = _l.svd(input, full_matrices=not some)
    return SVD(U, S, Vh.mT)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse: singular values up to `rcond` times the largest count as zero."""
    return _l.pinv(input, rtol=rcond)


matrix_exp, matrix_power = _l.matrix_exp, _l.matrix_power


METHODS: dict[str, Any] = {
    name: globals()[name]
    for name in (
        "addmv addr baddbmm addbmm vdot inner cholesky_solve cholesky_inverse triangular_solve lu_solve lu svd pinverse matrix_exp"
    ).split()
} | {"qr": lambda self, some=True: _l.qr(self, "reduced" if some else "complete"), "matrix_power": lambda self, n: _l.matrix_power(self, n)}
"""Functions that are methods, too."""
METHODS["qr"].__doc__ = "An orthogonal and a triangular factor; without `some` the first is square."
METHODS["matrix_power"].__doc__ = "The matrix times itself, n times."
IN_PLACE = ("addmv", "addr", "baddbmm", "addbmm")
"""Methods that also write their result to the tensor."""

qr: Any = METHODS["qr"]

__all__ = [
    "addbmm", "addmv", "addr", "baddbmm", "cholesky_inverse", "cholesky_solve", "inner", "lu", "lu_solve", "lu_unpack", "matrix_exp",
    "matrix_power", "pinverse", "qr", "svd", "triangular_solve", "vdot",
]
