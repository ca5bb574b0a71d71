"""Functions of one and two arrays, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._complex._base import refused
from .._complex._tensor import ComplexTensor
from ._dtypes import pair


def _two(name: str, method: str) -> Callable[[Any, Any], Any]:
    def function(x1: Any, x2: Any, /) -> Any:
        a, b = pair(x1, x2)
        return getattr(a, method)(b)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element."
    return function


def _one(name: str, method: str) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        return getattr(x, method)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element."
    return function


add, subtract, multiply, divide = _two("add", "add"), _two("subtract", "sub"), _two("multiply", "mul"), _two("divide", "div")
atan2, copysign, hypot, logaddexp = (_two(n, n) for n in ("atan2", "copysign", "hypot", "logaddexp"))
bitwise_and, bitwise_or, bitwise_xor = (_two(n, n) for n in ("bitwise_and", "bitwise_or", "bitwise_xor"))
logical_and, logical_or, logical_xor = (_two(n, n) for n in ("logical_and", "logical_or", "logical_xor"))
equal, not_equal, less, less_equal = _two("equal", "eq"), _two("not_equal", "ne"), _two("less", "lt"), _two("less_equal", "le")
greater, greater_equal, pow = _two("greater", "gt"), _two("greater_equal", "ge"), _two("pow", "pow")
maximum, minimum = _two("maximum", "maximum"), _two("minimum", "minimum")


def remainder(x1: Any, x2: Any, /) -> Any:
    """The remainder of a division that rounds down; a zero has the sign of the divisor."""
    a, b = pair(x1, x2)
    out = a.remainder(b)
    return out.where(out != 0, out.copysign(b)) if a.is_floating_point() else out


def sign(x: Any, /) -> Any:
    """-1, 0 or 1; NaN stays."""
    return x.sign().where(~x.isnan(), x) if x.is_floating_point() else x.sign()


bitwise_left_shift = _two("bitwise_left_shift", "bitwise_left_shift")
bitwise_right_shift = _two("bitwise_right_shift", "bitwise_right_shift")

abs, negative, logical_not, bitwise_invert = (
    _one("abs", "abs"), _one("negative", "neg"), _one("logical_not", "logical_not"), _one("bitwise_invert", "bitwise_not"),
)
acos, acosh, asin, asinh, atan, atanh, cos, cosh, exp, expm1 = (
    _one(n, n) for n in "acos acosh asin asinh atan atanh cos cosh exp expm1".split()
)
isfinite, isinf, isnan, log, log1p, log2, log10, reciprocal = (
    _one(n, n) for n in "isfinite isinf isnan log log1p log2 log10 reciprocal".split()
)
sin, sinh, square, sqrt, tan, tanh = (_one(n, n) for n in "sin sinh square sqrt tan tanh".split())


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """The quotient rounded down; where one of both is infinite the quotient itself, as the standard
    has it.
    """
    a, b = pair(x1, x2)
    out = a.floor_divide(b)
    return out.where(a.isfinite() & b.isfinite(), a / b) if a.is_floating_point() else out


def _whole(name: str) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        return getattr(x, name)() if x.is_floating_point() or isinstance(x, ComplexTensor) else x.clone()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element; integers stay."
    return function


ceil, floor, round, trunc = _whole("ceil"), _whole("floor"), _whole("round"), _whole("trunc")


def positive(x: Any, /) -> Any:
    """The same."""
    return x.clone()


def conj(x: Any, /) -> Any:
    """The conjugate; real numbers stay."""
    return x.conj() if isinstance(x, ComplexTensor) else x


def real(x: Any, /) -> Any:
    """The real parts; real numbers stay."""
    return x.real if isinstance(x, ComplexTensor) else x


def imag(x: Any, /) -> Any:
    """The imaginary parts of complex numbers."""
    if not isinstance(x, ComplexTensor):
        raise refused("imag", x.dtype)
    return x.imag


def signbit(x: Any, /) -> Any:
    """Whether the sign is minus, also of -0 and NaN."""
    if isinstance(x, ComplexTensor):
        raise refused("signbit", x.dtype)
    return _c._full((), 1.0, x.dtype).copysign(x) < 0


def nextafter(x1: Any, x2: Any, /) -> Any:
    """The next float after `x1` towards `x2`. Without a gradient."""
    a, b = pair(x1, x2)
    return _c.tensor(np.nextafter(a.detach().numpy(), b.detach().numpy()))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Between two bounds."""
    bounds = [b._to_dtype(x.dtype) if isinstance(b, Tensor) else b for b in (min, max)]
    bounds = [_c.tensor(b, x.dtype) if isinstance(b, int) and not x.is_floating_point() else b for b in bounds]
    if bounds[0] is not None:
        x = maximum(x, bounds[0])
    if bounds[1] is not None:
        x = minimum(x, bounds[1])
    return x.clone() if bounds == [None, None] else x
