"""Special functions, under PyTorch's names. Values of the gamma functions and of Bessel's come from
series in
float64; gradients are ours, and can be differentiated again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _chainrule as _c
from . import _special_values as _values
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._functions import logit as logit
from ._ops import (
    erf as erf, erfc as erfc, erfinv as erfinv, exp2 as exp2, expm1 as expm1, log1p as log1p, log_softmax as log_softmax,
    logsumexp as logsumexp, round as round, sigmoid as expit, softmax as softmax,
)
from ._polynomials import (
    chebyshev_polynomial_t as chebyshev_polynomial_t, chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v, chebyshev_polynomial_w as chebyshev_polynomial_w,
    hermite_polynomial_h as hermite_polynomial_h, hermite_polynomial_he as hermite_polynomial_he,
    laguerre_polynomial_l as laguerre_polynomial_l, legendre_polynomial_p as legendre_polynomial_p,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v, shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)
from ._types import TensorLike, as_tensor as _t

Values = Callable[..., Any]


def _float(x: TensorLike) -> Tensor:
    """A tensor of floats, of the default dtype where the elements are integers."""
    t = _t(x)
    return t if t.is_floating_point() else t._to_dtype(_c.get_default_dtype())


def _custom(name: str, values: Values, slope: Callable[[Tensor, Tensor], Tensor] | None, x: TensorLike) -> Tensor:
    """A function of the elements; `slope` gives its derivative from the elements and the values."""
    x = _float(x)

    def forward(x: Tensor) -> Tensor:
        import numpy as np

        with np.errstate(all="ignore"):
            found = values(np.asarray(x.detach().numpy(), np.float64))
        return _c.tensor(np.array(found, order="C"), x.dtype)

    def backward(g: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
        if slope is None:
            raise _c.GradientError(f"{name} has no gradient here")
        return [g * slope(x, y)]

    return _c._apply_custom(name, forward, backward, [x])


def gammaln(input: TensorLike) -> Tensor:
    """The logarithm of the size of the gamma function. Gradient: `g digamma(x)`."""
    return _custom("lgamma", _values.lgamma, lambda x, _: digamma(x), input)


def digamma(input: TensorLike) -> Tensor:
    """The derivative of the logarithm of the gamma function. Gradient: `g polygamma(1, x)`."""
    return _custom("digamma", _values.digamma, lambda x, _: polygamma(1, x), input)


psi = digamma


def polygamma(n: int, input: TensorLike) -> Tensor:
    """The n-th derivative of `digamma`. Gradient: `g polygamma(n + 1, x)`."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"polygamma: n, the first argument, must be an int, not {type(n).__name__}; call polygamma(n, input) or input.polygamma(n)")
    if n < 0:
        raise ArgumentError(f"polygamma: n must not be negative, got {n}")
    return _custom("polygamma", lambda x: _values.polygamma(n, x), lambda x, _: polygamma(n + 1, x), input)


def multigammaln(input: TensorLike, p: int) -> Tensor:
    """The logarithm of the gamma function of p variables: `p (p - 1) / 4 log(pi) + sum of lgamma(x
    - i / 2)`, i below p.
    """
    if p < 1:
        raise ArgumentError(f"mvlgamma: p must be positive, got {p}")
    x = _float(input)
    out = gammaln(x) + 0.25 * p * (p - 1) * math.log(math.pi)
    for i in range(1, p):
        out = out + gammaln(x - i / 2)
    return out


def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """The zeta function of Hurwitz: the sum of `(q + k)^-s` over k from 0. The gradient is that of
    `q`, `-s zeta(s + 1, q)`.
    """
    s, q = _float(_t(input, other)), _float(_t(other, input))
    s = s.detach()
    q, s = q.expand((q + s).shape), s.expand((q + s).shape)
    return _custom("zeta", lambda x: _values.zeta(s.numpy(), x), lambda x, _: -s * zeta(s + 1, x), q)


def i0e(input: TensorLike) -> Tensor:
    """`exp(-|x|) I0(x)`, the modified Bessel function of order 0, scaled."""
    return _custom("i0e", lambda x: _values.bessel_i(0, x), lambda x, y: i1e(x) - x.sign() * y, input)


def i1e(input: TensorLike) -> Tensor:
    """`exp(-|x|) I1(x)`, the modified Bessel function of order 1, scaled."""
    return _custom("i1e", lambda x: _values.bessel_i(1, x), lambda x, y: i0e(x) - y * x.sign() - _share(x, y), input)


def _share(x: Tensor, y: Tensor) -> Tensor:
    """`y / x`, which tends to 1/2 where both are 0."""
    zero = x == 0
    return (y / x.masked_fill(zero, 1.0)).masked_fill(zero, 0.5)


def i0(input: TensorLike) -> Tensor:
    """The modified Bessel function of order 0. Gradient: `g I1(x)`."""
    import numpy as np

    return _custom("i0", lambda x: _values.bessel_i(0, x) * np.exp(np.abs(x)), lambda x, _: i1(x), input)


def i1(input: TensorLike) -> Tensor:
    """The modified Bessel function of order 1. Gradient: `g (I0(x) - I1(x) / x)`."""
    import numpy as np

    return _custom("i1", lambda x: _values.bessel_i(1, x) * np.exp(np.abs(x)), lambda x, _: i0(x) - _share(x, i1(x)), input)


def erfcx(input: TensorLike) -> Tensor:
    """`exp(x^2) erfc(x)`. Gradient: `g (2 x y - 2 / sqrt(pi))`."""
    return _custom("erfcx", _values.erfcx, lambda x, y: 2 * x * erfcx(x) - 2 / math.sqrt(math.pi), input)


def ndtr(input: TensorLike) -> Tensor:
    """The area under the normal curve up to x."""
    x = _float(input) * -math.sqrt(0.5)
    return x.erfc() * 0.5


def ndtri(input: TensorLike) -> Tensor:
    """The x up to which the area under the normal curve is `p`: the inverse of `ndtr`."""
    p = _float(input)
    return (2.0 * p - 1.0).erfinv() * math.sqrt(2.0)


def log_ndtr(input: TensorLike) -> Tensor:
    """The logarithm of `ndtr`, exact far below 0 as well."""
    x = _float(input)
    low = x < -1.0
    t = x.masked_fill(low.logical_not(), -1.0) * -math.sqrt(0.5)
    tail = (erfcx(t) * 0.5).log() - t * t
    return tail.where(low, (-0.5 * (x.masked_fill(low, 0.0) * math.sqrt(0.5)).erfc()).log1p())


def entr(input: TensorLike) -> Tensor:
    """`-x log(x)`: 0 at 0 and minus infinity below."""
    x = _float(input)
    inside = x > 0
    out = -x * x.masked_fill(x <= 0, 1.0).log()
    return out.where(inside.logical_or(x.isnan()), 0.0).masked_fill(x < 0, -math.inf)


def xlogy(input: TensorLike, other: TensorLike) -> Tensor:
    """`x log(y)`, and 0 where x is 0 and y is a number."""
    x, y = _float(_t(input, other)), _float(_t(other, input))
    return x * y.masked_fill((x == 0).logical_and((y <= 0).logical_or(y == math.inf)), 1.0).log()


def xlog1py(input: TensorLike, other: TensorLike) -> Tensor:
    """`x log(1 + y)`, and 0 where x is 0 and y is a number."""
    x, y = _float(_t(input, other)), _float(_t(other, input))
    return x * y.masked_fill((x == 0).logical_and((y <= -1).logical_or(y == math.inf)), 0.0).log1p()


def sinc(input: TensorLike) -> Tensor:
    """`sin(pi x) / (pi x)`, and 1 at 0."""
    x = _float(input)
    zero = x == 0
    angle = x.masked_fill(zero, 1.0) * math.pi
    return (angle.sin() / angle).masked_fill(zero, 1.0)


def gammainc(input: Tensor, other: Tensor) -> Tensor:
    """The regularised incomplete gamma function from 0 to x. The gradient is that of x, `g x^(a -
    1) exp(-x) / gamma(a)`.
    """
    return _incomplete(0, input, other)


def gammaincc(input: Tensor, other: Tensor) -> Tensor:
    """The regularised incomplete gamma function from x on, `1 - gammainc(a, x)`."""
    return _incomplete(1, input, other)


def _incomplete(which: int, a: Tensor, x: Tensor) -> Tensor:
    name = ("igamma", "igammac")[which]
    if a.requires_grad:
        raise _c.GradientError(f"{name}: there is no gradient of the first argument; detach it")
    shape = (a + x).shape
    a, x = a.expand(shape), x.expand(shape)

    def slope(x: Tensor, _: Tensor) -> Tensor:
        return ((a - 1) * x.log() - x - gammaln(a)).exp() * (1.0 - 2.0 * which)

    return _custom(name, lambda v: _values.igamma(a.detach().numpy(), v)[which], slope, x)


def spherical_bessel_j0(input: TensorLike) -> Tensor:
    """`sin(x) / x`."""
    return sinc(_float(input) / math.pi)


modified_bessel_i0, modified_bessel_i1 = i0, i1

__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e",
    "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "spherical_bessel_j0",
    "xlog1py", "xlogy", "zeta",
]
