"""Functions whose first argument is a tensor. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._chainrule import Generator, Tensor, dtype
from ._methods import ValuesIndices
from ._types import Axes, Number, Shape, TensorLike, as_tensor as _t


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
    """`input.inverse`, as in PyTorch."""
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
    """`input.cholesky`, as in PyTorch."""
    return _t(input).cholesky()

def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """the angle of the point (b, a): atan(a / b) in the right quadrant.
    
    Gradient: da = g * b / (a^2 + b^2); db = -g * a / (a^2 + b^2)
    
    At kinks: at the origin the gradients are 0; across the cut a = 0, b < 0 the value jumps by 2 pi and the gradients do not
    """
    return _t(input, other).atan2(other)

def bitwise_and(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.bitwise_and`, as in PyTorch."""
    return _t(input, other).bitwise_and(other)

def bitwise_left_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.bitwise_left_shift`, as in PyTorch."""
    return _t(input, other).bitwise_left_shift(other)

def bitwise_or(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.bitwise_or`, as in PyTorch."""
    return _t(input, other).bitwise_or(other)

def bitwise_right_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.bitwise_right_shift`, as in PyTorch."""
    return _t(input, other).bitwise_right_shift(other)

def bitwise_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.bitwise_xor`, as in PyTorch."""
    return _t(input, other).bitwise_xor(other)

def copysign(input: TensorLike, other: TensorLike) -> Tensor:
    """|a| * sign(b).
    
    Gradient: da = g where the sign stayed, -g where it turned; db = 0
    
    At kinks: da = 0 where a = 0, and NaN where a is not finite; the sign of a zero in b counts
    """
    return _t(input, other).copysign(other)

def eq(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.eq`, as in PyTorch."""
    return _t(input, other).eq(other)

def floor_divide(input: TensorLike, other: TensorLike) -> Tensor:
    """floor(a / b).
    
    At kinks: an integer divided by 0 is an error, a float an infinity or NaN; no gradient flows
    """
    return _t(input, other).floor_divide(other)

def fmod(input: TensorLike, other: TensorLike) -> Tensor:
    """a - b * trunc(a / b).
    
    Gradient: da = g; db = -g * trunc(a / b)
    
    At kinks: at a jump the gradients are those of either side; an integer modulo 0 is an error, a float NaN
    """
    return _t(input, other).fmod(other)

def ge(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.ge`, as in PyTorch."""
    return _t(input, other).ge(other)

def gt(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.gt`, as in PyTorch."""
    return _t(input, other).gt(other)

def hypot(input: TensorLike, other: TensorLike) -> Tensor:
    """sqrt(a^2 + b^2).
    
    Gradient: da = g * a / y; db = g * b / y, y = hypot(a, b)
    
    At kinks: where both are 0 the gradients are NaN
    """
    return _t(input, other).hypot(other)

def le(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.le`, as in PyTorch."""
    return _t(input, other).le(other)

def logaddexp(input: TensorLike, other: TensorLike) -> Tensor:
    """log(e^a + e^b).
    
    Gradient: da = g * sigmoid(a - b); db = g * sigmoid(b - a)
    
    At kinks: where both are the same infinity, that is the result, and the gradients are NaN
    """
    return _t(input, other).logaddexp(other)

def logical_and(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.logical_and`, as in PyTorch."""
    return _t(input, other).logical_and(other)

def logical_or(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.logical_or`, as in PyTorch."""
    return _t(input, other).logical_or(other)

def logical_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.logical_xor`, as in PyTorch."""
    return _t(input, other).logical_xor(other)

def lt(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.lt`, as in PyTorch."""
    return _t(input, other).lt(other)

def matmul(input: TensorLike, other: TensorLike) -> Tensor:
    """c[.., i, j] = sum over k of a[.., i, k] * b[.., k, j].
    
    Gradient: da = g @ b^T; db = a^T @ g
    """
    return _t(input, other).matmul(other)

def maximum(input: TensorLike, other: TensorLike) -> Tensor:
    """max(a, b).
    
    Gradient: da = g where a > b, g/2 where a = b, else 0; db the other way round
    
    At kinks: at a tie each operand gets half the gradient; NaN in either gives NaN, and the whole gradient to both
    """
    return _t(input, other).maximum(other)

def minimum(input: TensorLike, other: TensorLike) -> Tensor:
    """min(a, b).
    
    Gradient: da = g where a < b, g/2 where a = b, else 0; db the other way round
    
    At kinks: at a tie each operand gets half the gradient; NaN in either gives NaN, and the whole gradient to both
    """
    return _t(input, other).minimum(other)

def mul(input: TensorLike, other: TensorLike) -> Tensor:
    """a * b.
    
    Gradient: da = g * b; db = g * a
    """
    return _t(input, other).mul(other)

def ne(input: TensorLike, other: TensorLike) -> Tensor:
    """`input.ne`, as in PyTorch."""
    return _t(input, other).ne(other)

def remainder(input: TensorLike, other: TensorLike) -> Tensor:
    """a - b * floor(a / b).
    
    Gradient: da = g; db = -g * floor(a / b)
    
    At kinks: at a jump the gradients are those of either side; an integer modulo 0 is an error, a float NaN
    """
    return _t(input, other).remainder(other)

def add(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """a + b.
    
    Gradient: da = g; db = g
    """
    return _t(input).add(other, alpha=alpha)

def sub(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """a - b.
    
    Gradient: da = g; db = -g
    """
    return _t(input).sub(other, alpha=alpha)

def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """a / b.
    
    Gradient: da = g / b; db = -g * a / b^2
    
    At kinks: b = 0 gives an infinity or NaN, and so do the gradients
    """
    return _t(input).div(other, rounding_mode=rounding_mode)

def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """a^b.
    
    Gradient: da = g * b * a^(b-1); db = g * a^b * ln a
    
    At kinks: 0^0 = 1; da = 0 where b = 0; db = 0 where a = 0 and b >= 0; a root at 0 has an infinite gradient
    """
    return _t(input).pow(exponent)

def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """min(max(x, min), max).
    
    Gradient: dx = g where min < x < max, else 0
    
    At kinks: the gradient is 0 at a bound and at NaN; NaN stays NaN; where the bounds are crossed, max wins
    """
    return _t(input).clamp(min, max)

def clamp_min(input: TensorLike, min: TensorLike) -> Tensor:
    """`input.clamp_min`, as in PyTorch."""
    return _t(input).clamp_min(min)

def clamp_max(input: TensorLike, max: TensorLike) -> Tensor:
    """`input.clamp_max`, as in PyTorch."""
    return _t(input).clamp_max(max)

def round(input: TensorLike, *, decimals: int = 0) -> Tensor:
    """`input.round`, as in PyTorch."""
    return _t(input).round(decimals=decimals)

def nan_to_num(input: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x where it is finite, else the number given.
    
    Gradient: dx = g where x is finite, else 0
    
    At kinks: where x is not finite the gradient is 0
    """
    return _t(input).nan_to_num(nan, posinf, neginf)

def lerp(input: TensorLike, end: Tensor, weight: TensorLike) -> Tensor:
    """start + weight * (end - start).
    
    Gradient: dstart = g * (1 - weight); dend = g * weight; dweight = g * (end - start)
    
    At kinks: between an infinite end and a finite one it is NaN or the infinite one, by the nearer end
    """
    return _t(input).lerp(end, weight)

def isclose(input: TensorLike, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """`input.isclose`, as in PyTorch."""
    return _t(input).isclose(other, rtol, atol, equal_nan)

def allclose(input: TensorLike, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """`input.allclose`, as in PyTorch."""
    return _t(input).allclose(other, rtol, atol, equal_nan)

def sum(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor:
    """sum of x over the axes.
    
    Gradient: dx = g, expanded over the axes
    """
    return _t(input).sum(dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype)

def mean(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor:
    """sum of x over the axes / n.
    
    Gradient: dx = g / n, expanded over the axes
    
    At kinks: the mean of nothing is NaN
    """
    return _t(input).mean(dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype)

def prod(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor:
    """product of x over the axes.
    
    Gradient: dx = g * the product of the other elements
    
    At kinks: right with zeros; beside infinities and NaN what the product of the others gives
    """
    return _t(input).prod(dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype)

def amax(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """the largest element over the axes.
    
    Gradient: dx = g where x is the largest, shared equally by ties
    
    At kinks: ties share the gradient equally; where the largest is NaN the gradient is NaN
    """
    return _t(input).amax(dim, keepdim, axis=axis, keepdims=keepdims)

def amin(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """the smallest element over the axes.
    
    Gradient: dx = g where x is the smallest, shared equally by ties
    
    At kinks: ties share the gradient equally; where the smallest is NaN the gradient is NaN
    """
    return _t(input).amin(dim, keepdim, axis=axis, keepdims=keepdims)

def any(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`input.any`, as in PyTorch."""
    return _t(input).any(dim, keepdim, axis=axis, keepdims=keepdims)

def all(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`input.all`, as in PyTorch."""
    return _t(input).all(dim, keepdim, axis=axis, keepdims=keepdims)

def logsumexp(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """log(sum of e^x over the axes).
    
    Gradient: dx = g * e^(x - y)
    
    At kinks: where the result is minus infinity, or the element plus infinity, the gradient is NaN
    """
    return _t(input).logsumexp(dim, keepdim, axis=axis, keepdims=keepdims)

def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """the first position of the largest element.
    
    At kinks: of ties the first is meant; NaN is the largest
    """
    return _t(input).argmax(dim, keepdim, axis=axis, keepdims=keepdims)

def argmin(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """the first position of the smallest element.
    
    At kinks: of ties the first is meant; NaN is the smallest
    """
    return _t(input).argmin(dim, keepdim, axis=axis, keepdims=keepdims)

def max(input: TensorLike, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """the largest element over the axes.
    
    Gradient: dx = g where x is the largest, shared equally by ties
    
    At kinks: ties share the gradient equally; where the largest is NaN, the NaNs do if all axes go, else the gradient is NaN
    """
    return _t(input).max(dim, keepdim, axis=axis, keepdims=keepdims)

def min(input: TensorLike, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """the smallest element over the axes.
    
    Gradient: dx = g where x is the smallest, shared equally by ties
    
    At kinks: ties share the gradient equally; where the smallest is NaN, the NaNs do if all axes go, else the gradient is NaN
    """
    return _t(input).min(dim, keepdim, axis=axis, keepdims=keepdims)

def var(input: TensorLike, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """sum((x - mean)^2) / (n - correction).
    
    Gradient: dx = g * 2 * (x - mean) / (n - correction)
    
    At kinks: with correction >= n the result is an infinity or NaN
    """
    return _t(input).var(dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)

def std(input: TensorLike, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """sqrt(sum((x - mean)^2) / (n - correction)).
    
    Gradient: dx = g * (x - mean) / ((n - correction) * std)
    
    At kinks: where all elements are equal the gradient is 0; with correction >= n the result is an infinity or NaN
    """
    return _t(input).std(dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)

def median(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Any:
    """the lower of the middle elements of the sorted order, and its position.
    
    Gradient: dx = g at that position
    
    At kinks: ties: along an axis one gets the gradient, of all elements the equal ones share it; NaN is the median if there is one
    """
    return _t(input).median(dim, keepdim, axis=axis)

def norm(input: TensorLike, p: float | str = 2.0, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None) -> Tensor:
    """sum(|x|^p)^(1/p) over the axes.
    
    Gradient: dx = g * sign(x) * (|x| / y)^(p - 1)
    
    At kinks: 0 where the norm or the element is 0; of p = infinity ties share the gradient equally
    """
    return _t(input).norm(p, dim, keepdim, axis=axis)

def count_nonzero(input: TensorLike, dim: Axes = None, *, axis: Axes = None) -> Tensor:
    """the number of elements over the axes that are not 0.
    
    At kinks: NaN is not 0
    """
    return _t(input).count_nonzero(dim, axis=axis)

def cumsum(input: TensorLike, dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None) -> Tensor:
    """y[i] = x[0] + ... + x[i].
    
    Gradient: dx[i] = g[i] + ... + g[n - 1]
    """
    return _t(input).cumsum(dim, dtype=dtype, axis=axis)

def cumprod(input: TensorLike, dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None) -> Tensor:
    """y[i] = x[0] * ... * x[i].
    
    Gradient: dx[i] = sum over k >= i of g[k] * the product of x[0] to x[k] without x[i]
    
    At kinks: right with zeros; beside infinities and NaN what the products of the others give
    """
    return _t(input).cumprod(dim, dtype=dtype, axis=axis)

def logcumsumexp(input: TensorLike, dim: int) -> Tensor:
    """y[i] = log(e^x[0] + ... + e^x[i]).
    
    Gradient: dx[i] = sum over k >= i of g[k] * e^(x[i] - y[k])
    
    At kinks: where the own result is minus infinity, or the element plus infinity, the gradient is NaN
    """
    return _t(input).logcumsumexp(dim)

def cummax(input: TensorLike, dim: int) -> ValuesIndices:
    """y[i] = the largest of x[0] to x[i], and its last position.
    
    Gradient: dx[p[i]] += g[i], where p[i] is that position
    
    At kinks: of ties the last gets the gradient; NaN is the largest
    """
    return _t(input).cummax(dim)

def cummin(input: TensorLike, dim: int) -> ValuesIndices:
    """y[i] = the smallest of x[0] to x[i], and its last position.
    
    Gradient: dx[p[i]] += g[i], where p[i] is that position
    
    At kinks: of ties the last gets the gradient; NaN is the smallest
    """
    return _t(input).cummin(dim)

def sort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices:
    """y[i] = x[p[i]], rising or falling, and the positions p.
    
    Gradient: dx[p[i]] = g[i]
    
    At kinks: equal elements keep their order; NaN is the largest
    """
    return _t(input).sort(dim, descending, stable)

def argsort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """the positions of the elements in rising or falling order.
    
    At kinks: equal elements keep their order; NaN is the largest
    """
    return _t(input).argsort(dim, descending, stable)

def topk(input: TensorLike, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
    """y[i] = x[p[i]], the k largest or smallest, and their positions p.
    
    Gradient: dx[p[i]] = g[i], 0 elsewhere
    
    At kinks: of equal elements the first are taken; NaN is the largest
    """
    return _t(input).topk(k, dim, largest, sorted)

def unique(input: TensorLike, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: None = None) -> Any:
    """the different elements in rising order, where each element is among them, and how often each occurs.
    
    At kinks: each NaN is a value of its own, at the end
    """
    return _t(input).unique(sorted, return_inverse, return_counts, dim)

def bincount(input: TensorLike, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """y[k] = the number of elements that are k, or the sum of their weights."""
    return _t(input).bincount(weights, minlength)

def nonzero(input: TensorLike, *, as_tuple: bool = False) -> Any:
    """the indices of the elements that are not 0, in row-major order.
    
    At kinks: NaN is not 0; no gradient flows from an index
    """
    return _t(input).nonzero(as_tuple=as_tuple)

def softmax(input: TensorLike, dim: int, dtype: dtype | None = None) -> Tensor:
    """exp(x) / sum(exp(x)).
    
    Gradient: dx = y * (g - sum(y * g))
    
    At kinks: a row of minus infinities, or with plus infinity or NaN, gives NaN
    """
    return _t(input).softmax(dim, dtype)

def log_softmax(input: TensorLike, dim: int, dtype: dtype | None = None) -> Tensor:
    """x - log(sum(exp(x))).
    
    Gradient: dx = g - softmax(x) * sum(g)
    
    At kinks: a row of minus infinities, or with plus infinity or NaN, gives NaN
    """
    return _t(input).log_softmax(dim, dtype)

def reshape(input: TensorLike, shape: Shape) -> Tensor:
    """x in row-major order under another shape.
    
    Gradient: dx = g in the shape of x
    """
    return _t(input).reshape(shape)

def permute(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """x with its axes in another order.
    
    Gradient: dx = g with the axes back in order
    """
    return _t(input).permute(dims)

def transpose(input: TensorLike, dim0: int, dim1: int) -> Tensor:
    """`input.transpose`, as in PyTorch."""
    return _t(input).transpose(dim0, dim1)

def squeeze(input: TensorLike, dim: Axes = None) -> Tensor:
    """x without, or with, axes of size 1, or with axes joined.
    
    Gradient: dx = g in the shape of x
    """
    return _t(input).squeeze(dim)

def unsqueeze(input: TensorLike, dim: int) -> Tensor:
    """`input.unsqueeze`, as in PyTorch."""
    return _t(input).unsqueeze(dim)

def flatten(input: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """`input.flatten`, as in PyTorch."""
    return _t(input).flatten(start_dim, end_dim)

def unflatten(input: TensorLike, dim: int, sizes: Sequence[int]) -> Tensor:
    """x with one axis split into several.
    
    Gradient: dx = g in the shape of x
    """
    return _t(input).unflatten(dim, sizes)

def narrow(input: TensorLike, dim: int, start: int, length: int) -> Tensor:
    """`input.narrow`, as in PyTorch."""
    return _t(input).narrow(dim, start, length)

def split(input: TensorLike, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """x in parts along an axis.
    
    Gradient: dx has the gradient of each part in its place
    """
    return _t(input).split(split_size, dim)

def chunk(input: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`input.chunk`, as in PyTorch."""
    return _t(input).chunk(chunks, dim)

def unbind(input: TensorLike, dim: int = 0) -> tuple[Tensor, ...]:
    """`input.unbind`, as in PyTorch."""
    return _t(input).unbind(dim)

def select(input: TensorLike, dim: int, index: int) -> Tensor:
    """`input.select`, as in PyTorch."""
    return _t(input).select(dim, index)

def movedim(input: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """x with axes moved to other places.
    
    Gradient: dx = g with the axes moved back
    """
    return _t(input).movedim(source, destination)

def roll(input: TensorLike, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """y[.., k, ..] = x[.., (k - shift) mod n, ..].
    
    Gradient: dx[.., k, ..] = g[.., (k + shift) mod n, ..]
    """
    return _t(input).roll(shifts, dims)

def flip(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """y[.., k, ..] = x[.., n - 1 - k, ..].
    
    Gradient: dx[.., k, ..] = g[.., n - 1 - k, ..]
    """
    return _t(input).flip(dims)

def tile(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """`input.tile`, as in PyTorch."""
    return _t(input).tile(dims)

def repeat_interleave(input: TensorLike, repeats: int | Tensor, dim: int | None = None) -> Tensor:
    """y[.., k, ..] = x[.., k / times, ..].
    
    Gradient: dx[.., k / times, ..] += g[.., k, ..]
    """
    return _t(input).repeat_interleave(repeats, dim)

def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """y[.., k] = x[.., k, .., k + offset, ..].
    
    Gradient: dx[.., k, .., k + offset, ..] = g[.., k], and 0 elsewhere
    """
    return _t(input).diagonal(offset, dim1, dim2)

def diag(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input.diag`, as in PyTorch."""
    return _t(input).diag(diagonal)

def diag_embed(input: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """y[.., k, .., k + offset, ..] = x[.., k], and 0 elsewhere.
    
    Gradient: dx[.., k] = g[.., k, .., k + offset, ..]
    """
    return _t(input).diag_embed(offset, dim1, dim2)

def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input.tril`, as in PyTorch."""
    return _t(input).tril(diagonal)

def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input.triu`, as in PyTorch."""
    return _t(input).triu(diagonal)

def gather(input: TensorLike, dim: int, index: Tensor) -> Tensor:
    """y[i, j, k] = x[i, indices[i, j, k], k], for axis 1 of three.
    
    Gradient: dx[i, indices[i, j, k], k] += g[i, j, k]
    """
    return _t(input).gather(dim, index)

def index_select(input: TensorLike, dim: int, index: Tensor) -> Tensor:
    """y[.., k, ..] = x[.., indices[k], ..].
    
    Gradient: dx[.., indices[k], ..] += g[.., k, ..]
    """
    return _t(input).index_select(dim, index)

def take(input: TensorLike, index: Tensor) -> Tensor:
    """y[..] = x.flatten()[indices[..]].
    
    Gradient: dx.flatten()[indices[..]] += g[..]
    """
    return _t(input).take(index)

def take_along_dim(input: TensorLike, indices: Tensor, dim: int | None = None) -> Tensor:
    """`input.take_along_dim`, as in PyTorch."""
    return _t(input).take_along_dim(indices, dim)

def scatter(input: TensorLike, dim: int, index: Tensor, src: TensorLike) -> Tensor:
    """y = x, but y[i, indices[i, j, k], k] = source[i, j, k], for axis 1 of three.
    
    Gradient: dx = g with 0 at the places named; dsource[i, j, k] = g[i, indices[i, j, k], k], but 0 where a later one overwrote it
    """
    return _t(input).scatter(dim, index, src)

def scatter_add(input: TensorLike, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """y = x; y[i, indices[i, j, k], k] += source[i, j, k], for axis 1 of three.
    
    Gradient: dx = g; dsource[i, j, k] = g[i, indices[i, j, k], k]
    """
    return _t(input).scatter_add(dim, index, src)

def index_add(input: TensorLike, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """y = x; y[.., indices[k], ..] += source[.., k, ..].
    
    Gradient: dx = g; dsource[.., k, ..] = g[.., indices[k], ..]
    """
    return _t(input).index_add(dim, index, source)

def index_copy(input: TensorLike, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """y = x, but y[.., indices[k], ..] = source[.., k, ..].
    
    Gradient: dx = g with 0 at the positions named; dsource[.., k, ..] = g[.., indices[k], ..], but 0 where a later one overwrote it
    """
    return _t(input).index_copy(dim, index, source)

def index_fill(input: TensorLike, dim: int, index: Tensor, value: TensorLike) -> Tensor:
    """`input.index_fill`, as in PyTorch."""
    return _t(input).index_fill(dim, index, value)

def masked_fill(input: TensorLike, mask: Tensor, value: TensorLike) -> Tensor:
    """y = value where the mask is true, else x.
    
    Gradient: dx = g where the mask is false, else 0; dvalue = sum of g where it is true
    
    At kinks: the masked gradient is 0, whatever g is
    """
    return _t(input).masked_fill(mask, value)

def masked_select(input: TensorLike, mask: Tensor) -> Tensor:
    """the elements of x where the mask is true; masked_scatter puts those of a source there.
    
    Gradient: dx = g at the places that it came from, else 0; for masked_scatter dx = g where the mask is false, dsource = g where it is true
    """
    return _t(input).masked_select(mask)

def outer(input: TensorLike, vec2: Tensor) -> Tensor:
    """`input.outer`, as in PyTorch."""
    return _t(input).outer(vec2)

def dot(input: TensorLike, tensor: Tensor) -> Tensor:
    """dot: sum over k of a[k] * b[k]; mv: y[i] = sum over k of a[i, k] * x[k]; outer: y[i, j] = a[i] * b[j].
    
    Gradient: da = g * b and db = g * a, summed over what they lack
    """
    return _t(input).dot(tensor)

def mv(input: TensorLike, vec: Tensor) -> Tensor:
    """`input.mv`, as in PyTorch."""
    return _t(input).mv(vec)

def kron(input: TensorLike, other: Tensor) -> Tensor:
    """y[i * p + k, j * q + l] = a[i, j] * b[k, l], for b of p by q.
    
    Gradient: da[i, j] = sum over k, l of g[i * p + k, j * q + l] * b[k, l]; db[k, l] = sum over i, j of g[..] * a[i, j]
    """
    return _t(input).kron(other)

def addmm(input: TensorLike, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`input.addmm`, as in PyTorch."""
    return _t(input).addmm(mat1, mat2, beta=beta, alpha=alpha)

def addcmul(input: TensorLike, tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor:
    """`input.addcmul`, as in PyTorch."""
    return _t(input).addcmul(tensor1, tensor2, value=value)

def addcdiv(input: TensorLike, tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor:
    """`input.addcdiv`, as in PyTorch."""
    return _t(input).addcdiv(tensor1, tensor2, value=value)

def multinomial(input: TensorLike, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """`input.multinomial`, as in PyTorch."""
    return _t(input).multinomial(num_samples, replacement, generator=generator)

absolute = abs
negative = neg
multiply = mul
divide = div
true_divide = div
subtract = sub
clip = clamp
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctanh = atanh
arctan2 = atan2
fix = trunc
mm = matmul
bmm = matmul
greater = gt
greater_equal = ge
less = lt
less_equal = le
not_equal = ne
swapaxes = transpose
swapdims = transpose
moveaxis = movedim
ravel = flatten
ger = outer

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "ceil",
    "cholesky",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "det",
    "diag",
    "diag_embed",
    "diagonal",
    "div",
    "divide",
    "dot",
    "eq",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "fmod",
    "frac",
    "gather",
    "ge",
    "ger",
    "greater",
    "greater_equal",
    "gt",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "inverse",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "kron",
    "le",
    "lerp",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "lt",
    "masked_fill",
    "masked_select",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "min",
    "minimum",
    "mm",
    "moveaxis",
    "movedim",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "nan_to_num",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nonzero",
    "norm",
    "not_equal",
    "outer",
    "permute",
    "pow",
    "prod",
    "ravel",
    "reciprocal",
    "relu",
    "remainder",
    "repeat_interleave",
    "reshape",
    "roll",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "select",
    "selu",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "unbind",
    "unflatten",
    "unique",
    "unsqueeze",
    "var",
]
