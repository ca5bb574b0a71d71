"""Values of special functions on arrays of float64: series, asymptotic expansions and recurrences.

They are evaluated in float64 for both dtypes. Relative errors are a few units in the last place
away from
the zeros of a function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# B(2k) / (2k), the coefficients of the asymptotic expansion of digamma.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
# B(2k) / (2k)!, the coefficients of Euler and Maclaurin.
_BERNOULLI = tuple(
    b / math.factorial(2 * k)
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), 1)
)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except ValueError:  # a pole
        return math.inf
    except OverflowError:
        return math.inf


def lgamma(x: Array) -> Array:
    """The logarithm of the size of the gamma function."""
    return np.array([_lgamma(v) for v in x.ravel().tolist()], dtype=np.float64).reshape(x.shape)


def digamma(x: Array) -> Array:
    """The derivative of the logarithm of the gamma function: NaN at negative integers, infinite at
    0.
    """
    reflected = x < 0
    y = np.where(reflected, 1 - x, x)
    total = np.zeros_like(y)
    for _ in range(10):
        small = y < 10
        total = np.where(small, total - 1 / np.where(small & (y != 0), y, 1), total)
        y = np.where(small, y + 1, y)
    inverse = 1 / (y * y)
    series = np.zeros_like(y)
    for c in reversed(_DIGAMMA):
        series = (series + c) * inverse
    out = total + np.log(y) - 0.5 / y - series
    # The fraction alone counts for the tangent, and keeps its digits.
    fraction = x - np.round(x)
    turned = np.where(fraction == 0, np.nan, np.pi / np.tan(np.pi * np.where(fraction == 0, 0.5, fraction)))
    out = np.where(reflected, out - turned, out)
    return np.where(x == 0, -np.copysign(np.inf, x), np.where(np.isneginf(x), np.nan, out))


def zeta(s: Array, q: Array) -> Array:
    """The zeta function of Hurwitz, the sum of `(q + k)^-s` over k from 0, for `s` above 1."""
    s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
    whole = q == np.floor(q)
    pole, bad = (q <= 0) & whole, (s < 1) | ((q < 0) & ~whole & (s != np.floor(s))) | np.isnan(s + q)
    usual = ~(pole | bad) & (s > 1)
    p, a = np.where(usual, s, 2.0), np.where(usual, q, 1.0)
    total = np.zeros_like(a)
    while True:
        below = a < 12
        if not below.any():
            break
        total = np.where(below, total + np.where(below, a, 1.0) ** -p, total)
        a = np.where(below, a + 1, a)
    power = a**-p
    total = total + a * power / (p - 1) + power / 2
    factor, tail = p * power / a, np.zeros_like(a)
    for k, b in enumerate(_BERNOULLI, 1):
        tail = tail + b * factor
        factor = factor * (p + 2 * k - 1) * (p + 2 * k) / (a * a)
    return np.where(bad, np.nan, np.where(pole | (s == 1), np.inf, total + tail))


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta(np.asarray(n + 1.0), x)


def bessel_i(order: int, x: Array) -> Array:
    """`exp(-|x|) I(x)`, the modified Bessel function of order 0 or 1, scaled."""
    size = np.abs(x)
    near = np.minimum(size, 40.0)
    # The rule of trapezoids converges geometrically for a periodic function.
    angles = np.arange(1, 96) * (np.pi / 96)
    total = 0.5 * (1 + (-1) ** order * np.exp(-2 * near))
    for angle in angles.tolist():
        total = total + np.exp(near * (math.cos(angle) - 1)) * math.cos(order * angle)
    far = np.maximum(size, 40.0)
    term = series = np.ones_like(far)
    for k in range(1, 25):
        term = term * -(4 * order * order - (2 * k - 1) ** 2) / (8 * k * far)
        series = series + term
    out = np.where(size <= 40, total / 96, series / np.sqrt(2 * np.pi * far))
    out = np.where(np.isnan(x), np.nan, np.where(np.isinf(x), 0.0, out))
    return out * np.sign(x) if order == 1 else out


def erfcx(x: Array) -> Array:
    """`exp(x^2) erfc(x)`."""

    def one(v: float) -> float:
        if v < 25:
            return math.exp(v * v) * math.erfc(v) if v > -26.7 else math.inf
        w = 1 / (v * v)
        return (1 - w / 2 * (1 - 1.5 * w * (1 - 2.5 * w))) / (v * math.sqrt(math.pi))

    return np.array([one(v) for v in x.ravel().tolist()], dtype=np.float64).reshape(x.shape)


def igamma(a: Array, x: Array) -> tuple[Array, Array]:
    """The regularised incomplete gamma functions, from 0 to x and from x on."""
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    pairs = [_incomplete(p, q) for p, q in zip(a.ravel().tolist(), x.ravel().tolist())]
    lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return lower.reshape(a.shape), upper.reshape(a.shape)


def _incomplete(a: float, x: float) -> tuple[float, float]:
    if math.isnan(a + x) and not math.isinf(x) or a < 0 or x < 0 or math.isnan(a) or math.isnan(x):
        return math.nan, math.nan
    if a == 0:
        return (math.nan, math.nan) if x == 0 else (1.0, 0.0)
    if x == 0 or math.isinf(a):
        return (math.nan, math.nan) if math.isinf(x) else (0.0, 1.0)
    if math.isinf(x):
        return 1.0, 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        k = a
        while term > total * 1e-17:
            k += 1
            term *= x / k
            total += term
        return front * total, 1 - front * total
    # The continued fraction, by Lentz' method.
    b, c = x + 1 - a, 1e300
    d = fraction = 1 / b
    for i in range(1, 100_000):
        n = -i * (i - a)
        b += 2
        d = 1 / (n * d + b or 1e-300)
        c = b + n / c or 1e-300
        fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return 1 - front * fraction, front * fraction
