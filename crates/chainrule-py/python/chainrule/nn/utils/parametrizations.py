"""Weights in other coordinates, computed whenever they are read: a length and a direction, divided
by the largest singular value, or orthogonal.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ... import _functions as _f
from ... import _making as _m
from ... import linalg
from ..._chainrule import Tensor, tensor
from ..._errors import ArgumentError
from ..._products import matrix_exp
from ...autograd import no_grad
from ..functional import normalize
from ..module import Module
from .norms import length_along
from .parametrize import register_parametrization

M = TypeVar("M", bound=Module)


def _weight_of(op: str, module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"{op}: {type(module).__name__} has no parameter or buffer '{name}'")
    return weight


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Any:
        return weight_v * (weight_g / length_along(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return length_along(weight, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """The weight as `g * v / |v|`: `parametrizations.weight.original0` is the length for each index
    along `dim` (one for all with None), `original1` the direction.

    ```
    m = cr.nn.utils.parametrizations.weight_norm(cr.nn.Linear(3, 2))
    assert m.parametrizations.weight.original0.shape == (2, 1)
    ```
    """
    _weight_of("weight_norm", module, name)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim {dim} of a weight with {weight.ndim} axes")
        if n_power_iterations < 1:
            raise ArgumentError(f"spectral_norm: n_power_iterations is positive, got {n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            for name, n in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, normalize(_m.empty(n, dtype=weight.dtype).normal_(), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Any:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # The next call writes to these, and the backward pass of this one needs them.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> M:
    """The weight divided by its largest singular value, as power iterations find it: 15 at first,
    and `n_power_iterations` more whenever it is read in training.

    ```
    m = cr.nn.utils.parametrizations.spectral_norm(cr.nn.Linear(4, 3))
    assert abs(cr.linalg.matrix_norm(m.weight, 2).item() - 1) < 1e-2
    ```
    """
    weight = _weight_of("spectral_norm", module, name)
    axis = int(bool(getattr(module, "transposed", False))) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, axis, eps))


_MAPS = ("matrix_exp", "cayley", "householder")


def _product_of_reflections(A: Tensor) -> Tensor:
    """The first columns of the product of the reflections `1 - tau v v^T`, `tau = 2 / |v|^2`, where
    v has zeros above a 1 on the diagonal and the column of `A` below.
    """
    n, k = A.shape[-2], A.shape[-1]
    below = A.tril(-1)
    tau = 2.0 / (1.0 + (below * below).sum(-2))
    v = below + _m.eye(n, k, dtype=A.dtype)
    Q = _m.eye(n, k, dtype=A.dtype).expand((*A.shape[:-2], n, k))
    for i in reversed(range(k)):
        one = v[..., :, i : i + 1]
        Q = Q - tau[..., i : i + 1].unsqueeze(-1) * (one @ (one.mT @ Q))
    return Q


def _reflections(Q: Tensor) -> Tensor:
    """The columns below the diagonal of which `_product_of_reflections` makes the orthogonal factor
    of a matrix, and on the diagonal the signs of its columns.
    """
    A: Any = Q.detach().numpy().copy()
    n, k = A.shape[-2:]
    for M in A.reshape(-1, n, k):
        for i in range(k):
            rest = float(np.sum(M[i + 1 :, i] ** 2))
            head = float(M[i, i])
            if rest == 0.0:
                # No reflection here: a vector of zeros below the 1 reflects the sign.
                M[i, i] = -np.sign(head)
                continue
            long = -np.copysign(np.sqrt(head * head + rest), head)
            v = M[i:, i] / (head - long)
            v[0] = 1.0
            M[i:, i + 1 :] -= np.outer(v, (long - head) / long * (v @ M[i:, i + 1 :]))
            M[i + 1 :, i], M[i, i] = v[1:], np.sign(long)
    return tensor(A)


def _orthogonalized(A: Tensor) -> Tensor:
    """The orthogonal factor of a tall matrix, whose triangular factor has no negative diagonal."""
    Q, R = linalg.qr(A)
    return Q * R.diagonal(0, -2, -1).sign().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, weight: Tensor, kind: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape, self.kind = tuple(weight.shape), kind
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Any:
        is_wide = X.shape[-2] < X.shape[-1]
        X = X.mT if is_wide else X
        n, k = X.shape[-2], X.shape[-1]
        if self.kind == "householder":
            signs = X.detach().diagonal(0, -2, -1).trunc().unsqueeze(-2)
            Q = _product_of_reflections(X) * signs
        else:
            X = X.tril()
            X = _f.cat([X, _m.zeros((*X.shape[:-2], n, n - k), dtype=X.dtype)], -1) if n != k else X
            A = X - X.mT
            if self.kind == "matrix_exp":
                Q = matrix_exp(A)
            else:
                one = _m.eye(n, dtype=A.dtype)
                Q = linalg.solve(one - 0.5 * A, one + 0.5 * A)
            Q = Q[..., :k]
        Q = self.base @ Q if "base" in self._buffers else Q
        return Q.mT if is_wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if tuple(Q.shape) != self.shape:
            raise ArgumentError(f"orthogonal: shape {tuple(Q.shape)}: a value of shape {self.shape} is needed")
        is_wide, shape = Q.shape[-2] < Q.shape[-1], tuple(Q.shape)
        Q = (Q.mT if is_wide else Q).detach()
        n, k = Q.shape[-2], Q.shape[-1]
        if "base" not in self._buffers:
            if self.kind != "householder":
                raise NotImplementedError(f"orthogonal: with use_trivialization=False no value can be assigned to {self.kind}")
            A = _reflections(Q)
            return A.mT if is_wide else A
        if n != k:
            Q = _orthogonalized(_f.cat([Q, _m.randn((*Q.shape[:-2], n, n - k), dtype=Q.dtype)], -1))
        else:
            eps = 2.0**-52 if Q.dtype.name == "float64" else 2.0**-23
            is_one = (Q.mT @ Q).allclose(_m.eye(n, dtype=Q.dtype).expand(Q.shape), atol=10.0 * n * eps)
            Q = Q.clone() if is_one else _orthogonalized(Q)
        self.base = Q
        start = _m.zeros(shape, dtype=Q.dtype)
        start.diagonal(0, -2, -1).fill_(-1.0)
        return start


def orthogonal(module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> M:
    """A weight with orthonormal columns, or rows where it has more columns than rows; axes before
    the last two are batches. The map makes `exp(A)` ("matrix_exp") or `(1 - A/2)^-1 (1 + A/2)`
    ("cayley") of the parameter `X` with the skew `A = tril(X) - tril(X)^T`, or a product of
    reflections ("householder"); the default is the first for square weights, else the last.
    With `use_trivialization` it is multiplied from the left by a fixed orthogonal `base`, so that
    it begins at the weight, made orthogonal.

    ```
    m = cr.nn.utils.parametrizations.orthogonal(cr.nn.Linear(4, 4))
    assert (m.weight @ m.weight.T).allclose(cr.eye(4), atol=1e-5)
    ```
    """
    weight = _weight_of("orthogonal", module, name)
    if weight.ndim < 2:
        raise ArgumentError(f"orthogonal: a weight with {weight.ndim} axes; a matrix or a batch of them is needed")
    kind = ("matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder") if orthogonal_map is None else orthogonal_map
    if kind not in _MAPS:
        raise ArgumentError(f"orthogonal: orthogonal_map is one of {', '.join(_MAPS)}, not {orthogonal_map!r}")
    return register_parametrization(module, name, _Orthogonal(weight, kind, use_trivialization), unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
