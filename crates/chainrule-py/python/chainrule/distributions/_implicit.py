"""Gradients of draws by their parameters, by implicit reparameterisation.

A draw x of a law with the distribution function F(x; a) moves with a so that F stays:
`dx/da = -(dF/da) / (dF/dx)`. The numerator is an integral of the density times its derivative by a,
which has one sign on each side of one point. The integral over the side that x lies on loses no
digits, and after `t = x exp(-w)` it is smooth and decays, so that a Gauss rule of 96 points takes
it to about 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .. import special
from .._chainrule import Tensor
from .._custom import Function

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
FAR = 45.0
"""Exponent at which a factor, exp(-45), ends an integral."""


def _digamma(x: Any) -> Any:
    return special.digamma(_c.tensor(np.ascontiguousarray(x))).numpy()


def _end(exponent: Callable[[Any], Any], first: Any) -> Any:
    """The place where a concave exponent that begins at 0 has fallen to `-FAR`."""
    low, high = np.zeros_like(first), first.copy()
    for _ in range(64):
        short = exponent(high) > -FAR
        if not short.any():
            break
        high = np.where(short, 2 * high, high)
    for _ in range(40):
        middle = (low + high) / 2
        above = exponent(middle) > -FAR
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def _integral(factor: Callable[[Any], Any], exponent: Callable[[Any], Any], first: Any, bend: Any) -> Any:
    """The integral of `factor exp(exponent)` from 0 on, in two parts that meet at `bend`, if that
    is inside.
    """
    end = _end(exponent, first)
    middle = np.where((bend > 0) & (bend < end), bend, end / 2)
    total = np.zeros_like(end)
    for low, long in ((0.0, middle), (middle, end - middle)):
        for node, weight in zip(_NODES, _WEIGHTS):
            w = low + long * node
            total += long * weight * factor(w) * np.exp(exponent(w))
    return total


def gamma_slope(a: Any, x: Any) -> Any:
    """The derivative of draws x of the standard gamma law by its shape a, in float64."""
    a, x = (np.atleast_1d(v) for v in np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64)))
    over = np.log(x) - _digamma(a)
    out = np.empty(a.shape)
    # After t = x exp(sign w) the exponent falls to both sides, and the factor has one sign.
    for sign, side in ((-1, over < 0), (1, over >= 0)):
        if side.any():
            b, y, c = a[side], x[side], over[side]
            first = FAR / b if sign < 0 else np.ones_like(b)
            out[side] = y * _integral(lambda w: sign * c + w, lambda w: sign * b * w - y * np.expm1(sign * w), first, np.zeros_like(b))
    return out


def beta_slope(a: Any, b: Any, x: Any) -> Any:
    """The derivative of draws x of the law Beta(a, b) by a, divided by `1 - x`, in float64."""
    a, b, x = (np.atleast_1d(v) for v in np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x))))
    c = _digamma(a) - _digamma(a + b)
    logs = np.log(x), np.log1p(-x)
    out = np.empty(a.shape)
    # The variable is the logarithm of the odds, at which the exponent bends where they are even.
    for sign, side in ((-1, logs[0] < c), (1, logs[0] >= c)):
        if side.any():
            p, q, k, (one, other) = a[side], b[side], c[side], (log[side] for log in logs)
            odds = one - other
            out[side] = x[side] * _integral(
                lambda w: -sign * (np.logaddexp(0.0, -odds - sign * w) + k),
                lambda w: -p * (np.logaddexp(0.0, -odds - sign * w) + one) - q * (np.logaddexp(0.0, odds + sign * w) + other),
                FAR / (p if sign < 0 else q),
                -sign * odds,
            )
    return out


class _GivenDraws(Function):
    """Given draws of a law, as a function of its parameter."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor, draws: Tensor) -> Tensor:
        ctx.save_for_backward(concentration, draws)
        return draws.clone()


class GammaDraws(_GivenDraws):
    """Given draws of the standard gamma law, as a function of its shape."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, x = ctx.saved_tensors
        slope = _c.tensor(gamma_slope(a.detach().numpy(), x.detach().numpy()).reshape(tuple(x.shape)))._to_dtype(g.dtype)
        return g * slope, None


class DirichletDraws(_GivenDraws):
    """Given shares of the Dirichlet law, as a function of its concentrations: one share moves as a
    draw of a beta law does, at the cost of the others in proportion.
    """

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        c, x = (t.detach() for t in ctx.saved_tensors)
        a, whole = c.double(), c.double().sum(-1, keepdim=True)
        edge = float(np.finfo(np.float64).tiny)
        shares = np.clip(x.double().numpy(), edge, 1 - 2.0**-53)
        slope = _c.tensor(beta_slope(a.numpy(), (whole - a).numpy(), shares))._to_dtype(g.dtype)
        return slope * (g - (x * g).sum(-1, keepdim=True)), None
