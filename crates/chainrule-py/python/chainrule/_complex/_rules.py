"""Functions of complex numbers: values by NumPy, gradients by the derivative.

For a holomorphic f the gradient of a real loss is `conj(f'(z)) * g`, as in PyTorch: g and the
result hold the derivatives by the real parts, and by the imaginary parts as imaginary ones. The
rules are written in complex tensors, so they can be differentiated again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from ._base import Array, Base, as_array, of_array


def not_in_programs(name: str, dtype: Any) -> None:
    """An error in the trace of a compiled function, which cannot go on in NumPy."""
    if _c._session_on():
        raise _c.GradientError(f"compile: {name} of {dtype.name} is computed by NumPy, which a program cannot do: call it outside of the compiled function")


def apply(name: str, value: Callable[..., Array], rule: Callable[..., Any], *inputs: Base) -> Any:
    """`value(*arrays)` as a complex tensor; `rule(g, *inputs, out)` gives the gradients of all
    inputs, as complex tensors or None. The inputs have one dtype.
    """
    first = inputs[0]
    d = first.dtype
    not_in_programs(name, d)

    def forward(*data: Tensor) -> Tensor:
        with np.errstate(all="ignore"):
            return of_array(np.asarray(value(*map(as_array, data))), d)

    def backward(g: Tensor, *rest: Tensor) -> list[Tensor | None]:
        found = rule(first._like(g), *map(first._like, rest))
        found = found if isinstance(found, (tuple, list)) else (found,)
        return [None if z is None else z._data for z in found]

    return first._like(_c._apply_custom(name, forward, backward, [z._data for z in inputs]))


def apply_together(name: str, value: Callable[..., Array], rule: Callable[..., Any], a: Base, b: Base) -> Any:
    """`apply` for two inputs that are broadcast."""
    x, y = _c._broadcast_tensors([a._data, b._data])
    return apply(name, value, rule, a._like(x), a._like(y))



def _expm1(a: Array) -> Array:
    """NumPy's, which gives NaN at most infinities, and a real part of -0 at -0."""
    out = np.asarray(np.expm1(a))
    out = np.asarray(np.where(np.isfinite(out), out, np.exp(a) - 1.0))
    out.real += 0.0
    return out


# Derivatives by the argument and the value.
DERIVATIVES: dict[str, tuple[Callable[[Array], Array], Callable[[Any, Any], Any]]] = {
    "exp": (np.exp, lambda z, y: y),
    "exp2": (lambda a: np.exp(a * math.log(2.0)), lambda z, y: y * math.log(2.0)),
    "expm1": (_expm1, lambda z, y: y + 1.0),
    "log": (np.log, lambda z, y: 1.0 / z),
    "log2": (np.log2, lambda z, y: 1.0 / (z * math.log(2.0))),
    "log10": (np.log10, lambda z, y: 1.0 / (z * math.log(10.0))),
    "log1p": (np.log1p, lambda z, y: 1.0 / (1.0 + z)),
    "sqrt": (np.sqrt, lambda z, y: 0.5 / y),
    "rsqrt": (lambda a: 1.0 / np.sqrt(a), lambda z, y: -0.5 * y / z),
    "reciprocal": (np.reciprocal, lambda z, y: -(y * y)),
    "sin": (np.sin, lambda z, y: z.cos()),
    "cos": (np.cos, lambda z, y: -z.sin()),
    "tan": (np.tan, lambda z, y: 1.0 + y * y),
    "asin": (np.arcsin, lambda z, y: (1.0 - z * z).rsqrt()),
    "acos": (np.arccos, lambda z, y: -(1.0 - z * z).rsqrt()),
    "atan": (np.arctan, lambda z, y: 1.0 / (1.0 + z * z)),
    "sinh": (np.sinh, lambda z, y: z.cosh()),
    "cosh": (np.cosh, lambda z, y: z.sinh()),
    "tanh": (np.tanh, lambda z, y: 1.0 - y * y),
    "asinh": (np.arcsinh, lambda z, y: (1.0 + z * z).rsqrt()),
    # Two roots: the one of their product has another branch.
    "acosh": (np.arccosh, lambda z, y: (z - 1.0).rsqrt() * (z + 1.0).rsqrt()),
    "atanh": (np.arctanh, lambda z, y: 1.0 / (1.0 - z * z)),
    "sigmoid": (lambda a: 1.0 / (1.0 + np.exp(-a)), lambda z, y: y * (1.0 - y)),
}
"""The holomorphic functions of one number by name: value and derivative."""


def of_one(name: str, z: Base) -> Any:
    """The value of a function of the table."""
    value, derivative = DERIVATIVES[name]
    return apply(name, value, lambda g, x, y: g * derivative(x, y).conj(), z)


def divided(a: Base, b: Base) -> Any:
    """`a / b`; gradients `g / conj(b)` and `-g * conj(y / b)`."""
    return apply_together("div", np.divide, lambda g, x, y, out: (g / y.conj(), -(g * (out / y).conj())), a, b)


def raised(a: Base, b: Base) -> Any:
    """`a ** b`; gradients by the conjugates of `b * a^(b-1)` and `log(a) * a^b`, 0 where a power
    does not change.
    """

    def rule(g: Any, x: Any, y: Any, out: Any) -> Any:
        by_base = (y * x ** (y - 1.0)).masked_fill(y == 0.0, 0.0)
        by_exponent = (out * x.log()).masked_fill((x == 0.0).logical_and(y.real >= 0.0), 0.0)
        return g * by_base.conj(), g * by_exponent.conj()

    return apply_together("pow", np.power, rule, a, b)
