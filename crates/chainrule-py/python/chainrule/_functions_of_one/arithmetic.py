"""Functions whose first argument is a tensor: arithmetic. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from .._chainrule import Tensor
from .._types import Number, TensorLike, as_tensor as _t


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


multiply = mul
divide = div
true_divide = div
subtract = sub
clip = clamp
arctan2 = atan2
mm = matmul
bmm = matmul
greater = gt
greater_equal = ge
less = lt
less_equal = le
not_equal = ne
