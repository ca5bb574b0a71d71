"""Orthogonal polynomials by their recurrences, under PyTorch's names in `special`.

The degree is a number or a tensor of whole numbers, broadcast with `x`; a negative one gives 0.
Gradients are those of the recurrences, with respect to `x`. PyTorch has none.
"""

from __future__ import annotations

from collections.abc import Callable

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._types import TensorLike, as_tensor as _t

Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]
First = Callable[[Tensor], Tensor]

MOST = 10_000
"""The largest degree: one beyond it takes seconds."""


def _polynomial(name: str, x: TensorLike, n: TensorLike, first: First, step: Step) -> Tensor:
    """`p_0 = 1`, `p_1 = first(x)`, `p_{k+1} = step(k, x, p_k, p_{k-1})`, each at its degrees."""
    x, n = _t(x), _t(n)
    if not x.is_floating_point():
        x = x._to_dtype(_c.get_default_dtype())
    degree = n.detach()._to_dtype("int64")
    largest = int(degree.max().item()) if degree.numel() else -1
    if largest > MOST:
        raise ArgumentError(f"{name}: a degree of {largest}: {MOST} is the most")
    shape = (x + degree).shape
    x, degree = x.expand(shape), degree.expand(shape)
    out, before, now = _c._full(shape, 0.0, x.dtype), _c._full(shape, 1.0, x.dtype), first(x)
    for k in range(largest + 1):
        out = _c._where(degree == k, before, out)
        if k < largest:
            before, now = now, step(k + 1, x, now, before)
    return out


def _chebyshev(k: int, x: Tensor, now: Tensor, before: Tensor) -> Tensor:
    return 2 * x * now - before


def chebyshev_polynomial_t(x: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev's polynomials of the first kind: `cos(n acos(x))` within -1 and 1."""
    return _polynomial("chebyshev_polynomial_t", x, n, lambda x: x, _chebyshev)


def chebyshev_polynomial_u(x: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev's polynomials of the second kind, with the first one `2 x`."""
    return _polynomial("chebyshev_polynomial_u", x, n, lambda x: 2 * x, _chebyshev)


def chebyshev_polynomial_v(x: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev's polynomials of the third kind, with the first one `2 x - 1`."""
    return _polynomial("chebyshev_polynomial_v", x, n, lambda x: 2 * x - 1, _chebyshev)


def chebyshev_polynomial_w(x: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev's polynomials of the fourth kind, with the first one `2 x + 1`."""
    return _polynomial("chebyshev_polynomial_w", x, n, lambda x: 2 * x + 1, _chebyshev)


def shifted_chebyshev_polynomial_t(x: TensorLike, n: TensorLike) -> Tensor:
    """`chebyshev_polynomial_t(2 x - 1, n)`, for numbers from 0 to 1."""
    return chebyshev_polynomial_t(2 * _t(x) - 1, n)


def shifted_chebyshev_polynomial_u(x: TensorLike, n: TensorLike) -> Tensor:
    """`chebyshev_polynomial_u(2 x - 1, n)`, for numbers from 0 to 1."""
    return chebyshev_polynomial_u(2 * _t(x) - 1, n)


def shifted_chebyshev_polynomial_v(x: TensorLike, n: TensorLike) -> Tensor:
    """`chebyshev_polynomial_v(2 x - 1, n)`, for numbers from 0 to 1."""
    return chebyshev_polynomial_v(2 * _t(x) - 1, n)


def shifted_chebyshev_polynomial_w(x: TensorLike, n: TensorLike) -> Tensor:
    """`chebyshev_polynomial_w(2 x - 1, n)`, for numbers from 0 to 1."""
    return chebyshev_polynomial_w(2 * _t(x) - 1, n)


def hermite_polynomial_h(x: TensorLike, n: TensorLike) -> Tensor:
    """Hermite's polynomials of physics: `h_{k+1} = 2 x h_k - 2 k h_{k-1}`."""
    return _polynomial(
        "hermite_polynomial_h", x, n, lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - 2 * k * before
    )


def hermite_polynomial_he(x: TensorLike, n: TensorLike) -> Tensor:
    """Hermite's polynomials of probability: `h_{k+1} = x h_k - k h_{k-1}`."""
    return _polynomial(
        "hermite_polynomial_he", x, n, lambda x: x, lambda k, x, now, before: x * now - k * before
    )


def laguerre_polynomial_l(x: TensorLike, n: TensorLike) -> Tensor:
    """Laguerre's polynomials: `(k + 1) l_{k+1} = (2 k + 1 - x) l_k - k l_{k-1}`."""
    return _polynomial(
        "laguerre_polynomial_l", x, n, lambda x: 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)
    )


def legendre_polynomial_p(x: TensorLike, n: TensorLike) -> Tensor:
    """Legendre's polynomials: `(k + 1) p_{k+1} = (2 k + 1) x p_k - k p_{k-1}`."""
    return _polynomial(
        "legendre_polynomial_p", x, n, lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)
    )


__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
]
