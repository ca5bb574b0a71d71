"""Singular values, eigenvalues and what is made of them. The native side computes those with their
vectors, NumPy the rest; the gradients are ours and can be differentiated again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError, LinAlgError
from ._complex import _matrices as _m
from ._complex._tensor import ComplexTensor
from ._making import eye


# The types that the native side decomposes; a package without it leaves all to NumPy.
_NATIVE = ("float32", "float64") if hasattr(Tensor, "_svd") else ()


class SVD(NamedTuple):
    """`U`, the singular values, and `Vh`: their product is the matrix."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class Eigh(NamedTuple):
    """Eigenvalues in rising order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _matrices(op: str, A: Tensor, square: bool = False) -> Tensor:
    if A.ndim < 2 or (square and A.shape[-1] != A.shape[-2]):
        raise ArgumentError(f"{op}: shape {tuple(A.shape)}: {'square matrices are' if square else 'a matrix is'} needed")
    if not A.is_floating_point():
        raise TypeError(f"{op}: dtype {A.dtype.name}: defined for float32 and float64")
    return A


def _finite(name: str, x: Any, half: str = "") -> Any:
    """The matrix, of which `half` is read; an error for NaN and infinities, on which LAPACK may not
    converge, or not end.
    """
    read = {"": x, "L": np.tril(x), "U": np.triu(x)}[half]
    if not np.isfinite(read).all():
        raise LinAlgError(f"{name}: the matrix holds values that are not finite; take them out, or look where they come from")
    return x


def _parts(
    A: Tensor, name: str, compute: Callable[[Any], Sequence[Any]], rule: Callable[..., Tensor], native: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> list[Tensor]:
    """Several results of one function: they travel as one row, and `rule(A, gradients)` gives the
    gradient of A. `native` gives them, where there is such a function, for matrices with elements.
    """
    shapes: list[tuple[int, ...]] = []
    batch = tuple(A.shape[:-2])

    def computed(x: Tensor) -> list[Tensor]:
        x = x.detach()
        if native is not None and x.numel() and x.dtype.name in _NATIVE:
            return list(native(x))
        try:
            return [_c.from_numpy(np.ascontiguousarray(part)) for part in compute(x.numpy())]
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{name}: {error}") from None

    if not (A.requires_grad and _c.is_grad_enabled()) and not _c._session_on():
        return computed(A)

    def forward(x: Tensor) -> Tensor:
        found = [part.numpy() for part in computed(x)]
        shapes[:] = [part.shape[len(batch) :] for part in found]
        return _c.from_numpy(np.concatenate([part.reshape((*batch, math.prod(s))) for part, s in zip(found, shapes)], -1))

    def split(row: Tensor) -> list[Tensor]:
        out, at = [], 0
        for s in shapes:
            n = math.prod(s)
            out.append(row.narrow(-1, at, n).reshape((*batch, *s)))
            at += n
        return out

    def backward(cotangent: Tensor, x: Tensor, _: Tensor) -> list[Tensor]:
        return [rule(x, *split(cotangent))]

    return split(_c._apply_custom(name, forward, backward, [A]))


def _refuse(what: str, instead: str) -> Callable[..., Tensor]:
    def rule(*_: Tensor) -> Tensor:
        raise _c.GradientError(f"{what} has no gradient, for some of its columns are arbitrary; take {instead}")

    return rule


def _skew(x: Tensor) -> Tensor:
    return x - x.mT


def _differences(s: Tensor) -> Tensor:
    """`s[j] - s[i]` at i, j; 1 where they are equal by name."""
    n = s.shape[-1]
    return s.unsqueeze(-2) - s.unsqueeze(-1) + eye(n, dtype=s.dtype)


def _svd_rule(A: Tensor, gU: Tensor, gS: Tensor, gV: Tensor) -> Tensor:
    U, S, Vh = svd(A, full_matrices=False)
    rows, columns = A.shape[-2:]
    E = _differences(S * S)
    inner = _skew(U.mT @ gU) / E * S.unsqueeze(-2) + S.unsqueeze(-1) * (_skew(Vh @ gV.mT) / E) + gS.diag_embed()
    out = U @ inner @ Vh
    if rows > columns:
        out = out + ((gU - U @ (U.mT @ gU)) / S.unsqueeze(-2)) @ Vh
    if columns > rows:
        out = out + U @ ((gV - (gV @ Vh.mT) @ Vh) / S.unsqueeze(-1))
    return out


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """The decomposition `U @ diag(S) @ Vh` with `S` falling.

    The gradients of U and Vh need different singular values. The columns that `full_matrices` adds
    to U, and the rows of Vh, are arbitrary and give none, as in PyTorch.
    """
    if isinstance(A, ComplexTensor):
        return SVD(*_m.svd(A, full_matrices))
    k = min(_matrices("svd", A).shape[-2:])

    def rule(A: Tensor, gU: Tensor, gS: Tensor, gV: Tensor) -> Tensor:
        return _svd_rule(A, gU.narrow(-1, 0, k), gS, gV.narrow(-2, 0, k))

    def compute(x: Any) -> Any:
        return np.linalg.svd(_finite("svd", x), full_matrices=full_matrices)

    return SVD(*_parts(A, "svd", compute, rule, lambda x: x._svd(full_matrices)))


def svdvals(A: Tensor) -> Tensor:
    """The singular values, falling."""
    if isinstance(A, ComplexTensor):
        return _m.svdvals(A)

    def rule(A: Tensor, gS: Tensor) -> Tensor:
        U, _, Vh = svd(A, full_matrices=False)
        return (U * gS.unsqueeze(-2)) @ Vh

    return _parts(_matrices("svdvals", A), "svdvals", lambda x: [np.linalg.svd(_finite("svdvals", x), compute_uv=False)], rule)[0]


def _triangle(UPLO: str) -> Literal["L", "U"]:
    if UPLO not in ("L", "l", "U", "u"):
        raise ArgumentError(f"eigh: UPLO is 'L' or 'U', not {UPLO!r}")
    return "L" if UPLO in ("L", "l") else "U"


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues and eigenvectors of symmetric matrices, of which one triangle is read. Gradients
    of the vectors need different eigenvalues.
    """
    if isinstance(A, ComplexTensor):
        return Eigh(*_m.eigh(A, UPLO))
    half = _triangle(UPLO)

    def rule(A: Tensor, gL: Tensor, gV: Tensor) -> Tensor:
        L, V = eigh(A, half)
        return V @ (_skew(V.mT @ gV) / (2 * _differences(L)) + gL.diag_embed()) @ V.mT

    def compute(x: Any) -> Any:
        return np.linalg.eigh(_finite("eigh", x, half), half)

    return Eigh(*_parts(_matrices("eigh", A, True), "eigh", compute, rule, lambda x: x._eigh(half == "U")))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, rising."""
    if isinstance(A, ComplexTensor):
        return _m.eigh(A, UPLO, False)[0]
    half = _triangle(UPLO)

    def rule(A: Tensor, gL: Tensor) -> Tensor:
        V = eigh(A, half).eigenvectors
        return (V * gL.unsqueeze(-2)) @ V.mT

    return _parts(_matrices("eigvalsh", A, True), "eigvalsh", lambda x: [np.linalg.eigvalsh(_finite("eigvalsh", x, half), half)], rule)[0]


def _small(S: Tensor, atol: Any, rtol: Any, size: int) -> Any:
    """Up to where a singular value counts as zero."""
    if rtol is None:
        given = atol is not None and (not isinstance(atol, (int, float)) or atol > 0)
        rtol = 0.0 if given else size * float(np.finfo(S.dtype.name).eps)
    largest = S.amax(-1, True) if S.shape[-1] else S.sum(-1, True)

    def tall(x: Any) -> Any:
        return x.unsqueeze(-1) if isinstance(x, Tensor) else x

    relative = largest * tall(rtol)
    return relative if atol is None else relative.maximum(_c.tensor(0.0, S.dtype) + tall(atol))


def pinv(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse: singular values up to `max(atol, rtol * largest)` count as zero. A
    `hermitian` matrix is read from its lower triangle."""
    if isinstance(A, ComplexTensor):
        return A.pinverse(rtol, hermitian)
    _matrices("pinv", A, hermitian)
    def compute(x: Any) -> list[Any]:
        if hermitian:
            x = np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)
        U, S, V = np.linalg.svd(_finite("pinv", x), full_matrices=False)
        low = _small(_c.tensor(S), atol, rtol, max(x.shape[-2:])).numpy()
        inverse = np.divide(1, S, out=np.zeros_like(S), where=low < S)
        return [np.swapaxes(V, -1, -2) * inverse[..., None, :] @ np.swapaxes(U, -1, -2)]

    def rule(A: Tensor, g: Tensor) -> Tensor:
        P = pinv(A, atol=atol, rtol=rtol, hermitian=hermitian)
        T, G = P.mT, g.mT
        left, right = eye(A.shape[-2], dtype=A.dtype) - A @ P, eye(A.shape[-1], dtype=A.dtype) - P @ A
        return left @ G @ P @ T + T @ P @ G @ right - T @ g @ T

    return _parts(A, "pinv", compute, rule)[0]


def matrix_rank(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Number of singular values larger than `max(atol, rtol * largest)`. Without a gradient."""
    A = A.detach() if isinstance(A, ComplexTensor) else _matrices("matrix_rank", A, hermitian).detach()
    S = eigvalsh(A).abs() if hermitian else svdvals(A)
    large: Tensor = _small(S, atol, rtol, max(A.shape[-2:])) < S
    return large.sum(-1)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """Condition number of the matrix, by the norm `p`: the 2-norm if nothing is said."""
    from .linalg import matrix_norm

    if p in (None, 2, -2):
        S = svdvals(A)
        return S[..., 0] / S[..., -1] if p != -2 else S[..., -1] / S[..., 0]
    return matrix_norm(A, p) * matrix_norm(A.inverse(), p)


def norm_by_singular_values(A: Tensor, ord: Any) -> Tensor:
    """The norms 'nuc', 2 and -2 of the last two axes."""
    S = svdvals(A)
    return S.sum(-1) if ord == "nuc" else S.amax(-1) if ord == 2 else S.amin(-1)


def complete_qr(A: Tensor) -> list[Tensor]:
    """A square orthogonal factor of a matrix that is taller than wide, and one with as many rows as
    it has.
    """
    return _parts(A, "qr", lambda x: np.linalg.qr(x, mode="complete"), _refuse("qr: in the complete mode a tall matrix", "mode='reduced'"))
