"""Functions whose first argument is a tensor: elementwise. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from .._chainrule import Tensor
from .._types import TensorLike, as_tensor as _t


def abs(input: TensorLike) -> Tensor:
    """|x|.

    Gradient: dx = g * sign(x)

    At kinks: the gradient at 0 is 0, and so it is at NaN
    """
    return _t(input).abs()


def acos(input: TensorLike) -> Tensor:
    """the angle from 0 to pi whose cosine is x.

    Gradient: dx = -g / sqrt(1 - x^2)

    At kinks: at 1 and -1 the gradient is infinite, beyond it is NaN
    """
    return _t(input).acos()


def acosh(input: TensorLike) -> Tensor:
    """ln(x + sqrt(x^2 - 1)).

    Gradient: dx = g / sqrt(x^2 - 1)

    At kinks: at 1 the gradient is infinite; between -1 and 1 it is NaN, below still g / sqrt(x^2 - 1)
    """
    return _t(input).acosh()


def asin(input: TensorLike) -> Tensor:
    """the angle from -pi/2 to pi/2 whose sine is x.

    Gradient: dx = g / sqrt(1 - x^2)

    At kinks: at 1 and -1 the gradient is infinite, beyond it is NaN
    """
    return _t(input).asin()


def asinh(input: TensorLike) -> Tensor:
    """ln(x + sqrt(x^2 + 1)).

    Gradient: dx = g / sqrt(x^2 + 1)
    """
    return _t(input).asinh()


def atan(input: TensorLike) -> Tensor:
    """the angle from -pi/2 to pi/2 whose tangent is x.

    Gradient: dx = g / (1 + x^2)
    """
    return _t(input).atan()


def atanh(input: TensorLike) -> Tensor:
    """ln((1 + x) / (1 - x)) / 2.

    Gradient: dx = g / (1 - x^2)

    At kinks: at 1 and -1 it is infinite and so is its gradient; beyond it is NaN, its gradient still g / (1 - x^2)
    """
    return _t(input).atanh()


def ceil(input: TensorLike) -> Tensor:
    """`input.ceil`, as in PyTorch."""
    return _t(input).ceil()


def cos(input: TensorLike) -> Tensor:
    """cos x.

    Gradient: dx = -g * sin(x)
    """
    return _t(input).cos()


def cosh(input: TensorLike) -> Tensor:
    """(e^x + e^-x) / 2.

    Gradient: dx = g * sinh(x)
    """
    return _t(input).cosh()


def det(input: TensorLike) -> Tensor:
    """`input.det`, as in PyTorch."""
    return _t(input).det()


def erf(input: TensorLike) -> Tensor:
    """2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.

    Gradient: dx = g * 2 / sqrt(pi) * e^(-x^2)
    """
    return _t(input).erf()


def erfc(input: TensorLike) -> Tensor:
    """1 - erf(x).

    Gradient: dx = -g * 2 / sqrt(pi) * e^(-x^2)
    """
    return _t(input).erfc()


def erfinv(input: TensorLike) -> Tensor:
    """the y with erf(y) = x.

    Gradient: dx = g * sqrt(pi) / 2 * e^(y^2), y = erfinv(x)

    At kinks: at 1 and -1 it is infinite and so is its gradient; beyond both are NaN
    """
    return _t(input).erfinv()


def exp(input: TensorLike) -> Tensor:
    """e^x.

    Gradient: dx = g * e^x
    """
    return _t(input).exp()


def exp2(input: TensorLike) -> Tensor:
    """2^x.

    Gradient: dx = g * 2^x * ln 2
    """
    return _t(input).exp2()


def expm1(input: TensorLike) -> Tensor:
    """e^x - 1.

    Gradient: dx = g * e^x
    """
    return _t(input).expm1()


def floor(input: TensorLike) -> Tensor:
    """`input.floor`, as in PyTorch."""
    return _t(input).floor()


def frac(input: TensorLike) -> Tensor:
    """x - trunc(x).

    Gradient: dx = g

    At kinks: the gradient is passed on at the jumps too
    """
    return _t(input).frac()


def inverse(input: TensorLike) -> Tensor:
    """the y with a y = 1.

    Gradient: da = -y^T g y^T

    At kinks: a singular matrix is an error
    """
    return _t(input).inverse()


def isfinite(input: TensorLike) -> Tensor:
    """`input.isfinite`, as in PyTorch."""
    return _t(input).isfinite()


def isinf(input: TensorLike) -> Tensor:
    """`input.isinf`, as in PyTorch."""
    return _t(input).isinf()


def isnan(input: TensorLike) -> Tensor:
    """`input.isnan`, as in PyTorch."""
    return _t(input).isnan()


def log(input: TensorLike) -> Tensor:
    """ln x.

    Gradient: dx = g / x

    At kinks: at 0 it is minus infinity and its gradient infinite, with the sign of the zero; below 0 it is NaN, its gradient still g / x
    """
    return _t(input).log()


def log10(input: TensorLike) -> Tensor:
    """ln x / ln 10.

    Gradient: dx = g / (x ln 10)

    At kinks: at 0 it is minus infinity and its gradient infinite, with the sign of the zero; below 0 it is NaN, its gradient still g / (x ln 10)
    """
    return _t(input).log10()


def log1p(input: TensorLike) -> Tensor:
    """ln(1 + x).

    Gradient: dx = g / (1 + x)

    At kinks: at -1 it is minus infinity and its gradient infinite; below -1 it is NaN, its gradient still g / (1 + x)
    """
    return _t(input).log1p()


def log2(input: TensorLike) -> Tensor:
    """ln x / ln 2.

    Gradient: dx = g / (x ln 2)

    At kinks: at 0 it is minus infinity and its gradient infinite, with the sign of the zero; below 0 it is NaN, its gradient still g / (x ln 2)
    """
    return _t(input).log2()


def logical_not(input: TensorLike) -> Tensor:
    """whether x is 0, as a bool tensor.

    At kinks: no gradient flows through a bool
    """
    return _t(input).logical_not()


def bitwise_not(input: TensorLike) -> Tensor:
    """-x - 1 for integers, not x for bools.

    At kinks: no gradient flows through integers
    """
    return _t(input).bitwise_not()


def neg(input: TensorLike) -> Tensor:
    """-x.

    Gradient: dx = -g
    """
    return _t(input).neg()


def reciprocal(input: TensorLike) -> Tensor:
    """1 / x.

    Gradient: dx = -g / x^2

    At kinks: at 0 it is infinite, with the sign of the zero, and the gradient is minus infinity
    """
    return _t(input).reciprocal()


def relu(input: TensorLike) -> Tensor:
    """max(x, 0).

    Gradient: dx = g where x > 0, else 0

    At kinks: the gradient at 0 is 0; NaN stays NaN and passes the gradient on
    """
    return _t(input).relu()


def rsqrt(input: TensorLike) -> Tensor:
    """x^(-1/2).

    Gradient: dx = -g / 2 * x^(-3/2)

    At kinks: at 0 it is infinite, with the sign of the zero, and its gradient has the opposite sign; below 0 it is NaN
    """
    return _t(input).rsqrt()


def selu(input: TensorLike) -> Tensor:
    """scale * x where x > 0, else scale * alpha * (e^x - 1), scale = 1.0507, alpha = 1.6733.

    Gradient: dx = g * scale where x > 0, else g * scale * alpha * e^x

    At kinks: the gradient at 0 is g * scale * alpha
    """
    return _t(input).selu()


def sigmoid(input: TensorLike) -> Tensor:
    """1 / (1 + e^-x).

    Gradient: dx = g * y * (1 - y), y = sigmoid(x)
    """
    return _t(input).sigmoid()


def sign(input: TensorLike) -> Tensor:
    """1 where x > 0, -1 where x < 0, else 0.

    Gradient: dx = 0

    At kinks: 0 at 0 and at NaN; the gradient is 0 there too
    """
    return _t(input).sign()


def sin(input: TensorLike) -> Tensor:
    """sin x.

    Gradient: dx = g * cos(x)
    """
    return _t(input).sin()


def sinh(input: TensorLike) -> Tensor:
    """(e^x - e^-x) / 2.

    Gradient: dx = g * cosh(x)
    """
    return _t(input).sinh()


def sqrt(input: TensorLike) -> Tensor:
    """x^(1/2).

    Gradient: dx = g / (2 sqrt(x))

    At kinks: the gradient at 0 is infinite, with the sign of the zero; below 0 the root is NaN
    """
    return _t(input).sqrt()


def square(input: TensorLike) -> Tensor:
    """x^2.

    Gradient: dx = 2 g x
    """
    return _t(input).square()


def t(input: TensorLike) -> Tensor:
    """`input.t`, as in PyTorch."""
    return _t(input).t()


def tan(input: TensorLike) -> Tensor:
    """sin x / cos x.

    Gradient: dx = g * (1 + tan(x)^2)
    """
    return _t(input).tan()


def tanh(input: TensorLike) -> Tensor:
    """(e^x - e^-x) / (e^x + e^-x).

    Gradient: dx = g * (1 - tanh(x)^2)
    """
    return _t(input).tanh()


def trace(input: TensorLike) -> Tensor:
    """`input.trace`, as in PyTorch."""
    return _t(input).trace()


def trunc(input: TensorLike) -> Tensor:
    """`input.trunc`, as in PyTorch."""
    return _t(input).trunc()


def cholesky(input: TensorLike) -> Tensor:
    """the lower triangular l with l l^T = a.

    Gradient: s = l^-T half(l^T g) l^-1, half: the lower triangle with half the diagonal; da = (s + s^T) / 2

    At kinks: a matrix that is not positive definite is an error
    """
    return _t(input).cholesky()


absolute = abs
negative = neg
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctanh = atanh
fix = trunc
