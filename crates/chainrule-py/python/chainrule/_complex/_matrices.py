"""Linear algebra of complex matrices: values by NumPy, gradients with conjugate transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError, LinAlgError
from ._base import Array, Base, as_array, of_number
from ._reductions import Reductions
from ._rules import apply, not_in_programs

C = TypeVar("C", bound="Matrices")


def _checked(name: str, A: Base, square: bool = True) -> None:
    if A.ndim < 2 or (square and A._dims[-1] != A._dims[-2]):
        raise ArgumentError(f"{name}: shape {A._dims}: {'square matrices are' if square else 'a matrix is'} needed")


def _sound(name: str, compute: Callable[..., Any], A: Base) -> Any:
    """A decomposition by NumPy; an error for NaN and infinities, on which it may not end."""
    not_in_programs(name, A.dtype)
    a = as_array(A._data)
    if not np.isfinite(a).all():
        raise LinAlgError(f"{name}: the matrix holds values that are not finite; take them out, or look where they come from")
    try:
        return compute(a)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {error}") from None


def _to_real(name: str, value: Array, rule: Callable[..., Any], A: Any) -> Tensor:
    """A real function of a complex tensor; `rule(g, A)` gives the gradient."""
    found = np.ascontiguousarray(value)

    def backward(g: Tensor, pairs: Tensor, _: Tensor) -> Tensor:
        return rule(g, A._like(pairs))._data  # type: ignore[no-any-return]

    return _c._apply_custom(name, lambda _: _c.from_numpy(found).reshape(value.shape), backward, [A._data])


def _complex_row(g: Tensor, A: Any) -> Any:
    """Real numbers as factors of the columns of A."""
    return A * g.unsqueeze(-2)


def identity(n: int, like: Base) -> Any:
    """The identity matrix in the dtype of another."""
    return like._lifted(_c._arange(0, n, 1, None).unsqueeze(1) == _c._arange(0, n, 1, None))._to_dtype(like.dtype)


def _differences(x: Any) -> Any:
    """`x[j] - x[i]` at i, j, and 1 on the diagonal."""
    n = x.shape[-1]
    one = identity(n, x) if isinstance(x, Base) else identity(n, _unit(x)).real
    return x.unsqueeze(-2) - x.unsqueeze(-1) + one


def _unit(x: Tensor) -> Any:
    from ._making import of_real

    return of_real(x.detach())


class Matrices(Reductions):
    """Functions of matrices, and of batches of them."""

    def inverse(self: C) -> C:
        """The inverse. Gradient `-A^-H g A^-H`."""
        _checked("inv", self)
        value = _sound("inv", np.linalg.inv, self)
        return apply("inv", lambda _: value, lambda g, x, y: -(y.mH @ g @ y.mH), self)  # type: ignore[no-any-return]

    def det(self: C) -> C:
        """The determinant. Gradient `g conj(det) A^-H`."""
        _checked("det", self)
        value = np.linalg.det(as_array(self._data))

        def rule(g: Any, x: Any, y: Any) -> Any:
            return x.inverse().mH * (g * y.conj()).unsqueeze(-1).unsqueeze(-1)

        return apply("det", lambda _: value, rule, self)  # type: ignore[no-any-return]

    def slogdet(self: C) -> tuple[C, Tensor]:
        """The determinant divided by its size, and the logarithm of the size."""
        _checked("slogdet", self)
        not_in_programs("slogdet", self.dtype)
        sign, logarithm = np.linalg.slogdet(as_array(self._data))

        def of_sign(g: Any, x: Any, y: Any) -> Any:
            turned = (g * y.conj()).imag
            return x.inverse().mH * (x._lifted(turned) * 1j).unsqueeze(-1).unsqueeze(-1)

        def of_size(g: Tensor, x: Any) -> Any:
            return x.inverse().mH * g.unsqueeze(-1).unsqueeze(-1)

        return apply("slogdet", lambda _: sign, of_sign, self), _to_real("slogdet", np.asarray(logarithm), of_size, self)

    _slogdet = slogdet

    def _solve(self: C, b: Any) -> C:
        A, B = self._both(b)
        _checked("solve", A)

        def value(x: Array, y: Array) -> Array:
            try:
                return np.asarray(np.linalg.solve(x, y))
            except np.linalg.LinAlgError as error:
                raise LinAlgError(f"solve: {error}") from None

        def rule(g: Any, x: Any, y: Any, out: Any) -> Any:
            by_b = x.mH._solve(g)
            return -(by_b @ out.mH), by_b

        return apply("solve", value, rule, A, B)  # type: ignore[no-any-return]

    def cholesky(self: C) -> C:
        """The lower triangular L with `L L^H`, of positive definite Hermitian matrices."""
        _checked("cholesky", self)
        value = _sound("cholesky", np.linalg.cholesky, self)

        def rule(g: Any, x: Any, L: Any) -> Any:
            inner = (L.mH @ g.tril()).tril()
            inner = inner - inner._lifted(inner.diagonal(0, -2, -1).real.diag_embed() * 0.5) - inner._lifted(inner.diagonal(0, -2, -1).imag.diag_embed()) * 1j
            found = L.mH._solve(L.mH._solve(inner.mH).mH)
            return (found + found.mH) * 0.5

        return apply("cholesky", lambda _: value, rule, self)  # type: ignore[no-any-return]

    def pinverse(self: C, rcond: float | None = None, hermitian: bool = False) -> C:
        """The pseudo-inverse: singular values up to `rcond` times the largest count as zero."""
        _checked("pinv", self, hermitian)
        low = max(self._dims[-2:]) * float(np.finfo(self.dtype.part.name).eps) if rcond is None else rcond
        value = _sound("pinv", lambda a: np.linalg.pinv(a, rcond=low, hermitian=hermitian), self)

        def rule(g: Any, x: Any, P: Any) -> Any:
            T, G = P.mH, g.mH
            left, right = identity(x._dims[-2], x) - x @ P, identity(x._dims[-1], x) - P @ x
            return left @ G @ P @ T + T @ P @ G @ right - T @ g @ T

        return apply("pinv", lambda _: value, rule, self)  # type: ignore[no-any-return]

    def diagonal_of(self: C, values: Tensor) -> C:
        """Real numbers as diagonal matrices of this dtype."""
        return self._lifted(values.diag_embed())._to_dtype(self.dtype)

    def outer(self: C, vec2: Any) -> C:
        """All products of two vectors."""
        return self.unsqueeze(-1) * self._lifted(vec2).unsqueeze(0)

    def vdot(self: C, other: Any) -> C:
        """The sum of the products of the conjugates with another vector."""
        return self.conj().matmul(other)

    def trace(self: C) -> C:
        """The sum of the diagonal."""
        return self.diagonal().sum()

    def cross(self: C, other: Any, dim: int = -1) -> C:
        """The cross product along an axis of size 3."""
        a, b = self._both(other)
        x, y = (z.real for z in (a, b))
        u, v = (z.imag for z in (a, b))
        from .._functions import cross

        return a._like(_c._stack([cross(x, y, dim) - cross(u, v, dim), cross(x, v, dim) + cross(u, y, dim)], -1))

    _cross = cross


class Eig(NamedTuple):
    """Eigenvalues, in no order, and the eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


def _without_gradient(name: str, value: Array, A: Any, instead: str) -> Any:
    def rule(*_: Any) -> Any:
        raise _c.GradientError(f"{name}: this result has no gradient for {A.dtype.name}; take {instead}")

    return apply(name, lambda _: value, rule, A) if value.dtype.kind == "c" else _to_real(name, value, rule, A)


def eigh(A: Any, UPLO: str = "L", vectors: bool = True) -> tuple[Tensor, Any]:
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices, of which one triangle is read.
    Gradients of the vectors need different eigenvalues.
    """
    name = "eigh" if vectors else "eigvalsh"
    _checked(name, A)
    side: Any = UPLO.upper()
    if side not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO is 'L' or 'U', not {UPLO!r}")
    E, V = _sound(name, lambda a: np.linalg.eigh(a, side), A)

    def of_values(g: Tensor, x: Any) -> Any:
        v = eigh(x, side)[1]
        return _complex_row(g, v) @ v.mH

    def of_vectors(g: Any, x: Any, v: Any) -> Any:
        inner = v.mH @ g
        _check_phase(name, g, inner)
        values = eigh(x, side, False)[0]
        _check_gaps(name, values.detach().numpy())
        inner = (inner - inner.mH) * 0.5 / _differences(values)
        inner = inner - inner._lifted(inner.diagonal(0, -2, -1)._data[..., 1].diag_embed()) * 1j
        return v @ inner @ v.mH

    return _to_real(name, E, of_values, A), apply(name, lambda _: V, of_vectors, A) if vectors else None


def _check_phase(name: str, g: Any, inner: Any) -> None:
    """The phase of an eigenvector is arbitrary: a loss that depends on it has no gradient. Forward
    mode asks with a leaf, and of all directions; it gets the vectors that do not turn.
    """
    if g.requires_grad and g.is_leaf:
        return
    turned = np.abs(as_array(inner.diagonal(0, -2, -1)._data).imag).max(initial=0.0)
    size = np.abs(as_array(inner._data)).max(initial=0.0)
    if turned > 1e3 * np.finfo(g.dtype.part.name).eps * size:
        raise _c.GradientError(f"{name}: the loss depends on the phases of the eigenvectors, which are arbitrary; take abs(), or products with conjugates")


def _check_gaps(name: str, values: Array) -> None:
    """The eigenvectors of equal eigenvalues are arbitrary."""
    n = values.shape[-1]
    gaps = np.abs(values[..., None, :] - values[..., :, None])[..., ~np.eye(n, dtype=bool)]
    if gaps.min(initial=np.inf) <= 1e2 * np.finfo(gaps.dtype).eps * np.abs(values).max(initial=0.0):
        raise _c.GradientError(f"{name}: two eigenvalues are equal, and the gradient of their eigenvectors does not exist; that of the eigenvalues does")


def eig(A: Any) -> Eig:
    """Eigenvalues and eigenvectors, of length 1, of square matrices."""
    _checked("eig", A)
    E, V = _sound("eig", np.linalg.eig, A)

    def rule(g: Any, x: Any, v: Any) -> Any:
        values, w = _eigenvalues("eig", x, None), v.mH
        _check_gaps("eig", as_array(values._data))
        inner = w @ g
        _check_phase("eig", g, inner)
        inner = inner - (w @ v) * inner.diagonal(0, -2, -1).real.unsqueeze(-2)
        inner = inner / _differences(values).conj()
        inner = inner - inner.diagonal(0, -2, -1).diag_embed()
        return w._solve(inner @ w)

    return Eig(_eigenvalues("eig", A, E), apply("eig", lambda _: V, rule, A))


def _eigenvalues(name: str, A: Any, values: Any) -> Any:
    """The eigenvalues; gradient `V^-H diag(g) V^H`."""
    # Not by eigvals, which may give another order.
    E = _sound(name, np.linalg.eig, A)[0] if values is None else values

    def rule(g: Any, x: Any, _: Any) -> Any:
        w = eig(x).eigenvectors.mH
        return w._solve(g.unsqueeze(-1) * w)

    return apply(name, lambda _: E, rule, A)


def eigvals(A: Any) -> Any:
    """The eigenvalues of square matrices, in no order."""
    _checked("eigvals", A)
    return _eigenvalues("eigvals", A, None)


def svd(A: Any, full_matrices: bool = True) -> tuple[Any, Tensor, Any]:
    """The decomposition `U @ diag(S) @ Vh`; S has a gradient, U and Vh have none."""
    _checked("svd", A, False)
    U, S, Vh = _sound("svd", lambda a: np.linalg.svd(a, full_matrices=full_matrices), A)
    instead = "svdvals, or eigh of A^H A"
    return _without_gradient("svd", U, A, instead), svdvals(A, S), _without_gradient("svd", Vh, A, instead)


def svdvals(A: Any, values: Any = None) -> Tensor:
    """The singular values, falling. Gradient `U diag(g) V^H`."""
    _checked("svdvals", A, False)
    S = _sound("svdvals", lambda a: np.linalg.svd(a, compute_uv=False), A) if values is None else values

    def rule(g: Tensor, x: Any) -> Any:
        U, _, Vh = _sound("svdvals", lambda a: np.linalg.svd(a, full_matrices=False), x)
        # Derivatives of higher order would need those of U and Vh.
        U, Vh = (_without_gradient("svdvals", part, x, "eigvalsh of A^H A") for part in (U, Vh))
        return U * g.unsqueeze(-2) @ Vh

    return _to_real("svdvals", S, rule, A)


def qr(A: Any, mode: str = "reduced") -> tuple[Any, Any]:
    """A unitary and a triangular factor, without gradients."""
    _checked("qr", A, False)
    Q, R = _sound("qr", lambda a: np.linalg.qr(a, mode="reduced" if mode == "r" else mode), A)  # type: ignore[call-overload]
    instead = "cholesky of A^H A"
    first = A._like(of_number(0, A.dtype).expand((0, 2))) if mode == "r" else _without_gradient("qr", Q, A, instead)
    return first, _without_gradient("qr", R, A, instead)
