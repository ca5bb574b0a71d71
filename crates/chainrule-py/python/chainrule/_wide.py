"""Integers beside floats of Python, and quotients of integers, are of the default dtype, as in
PyTorch.

The native ops make them float32. While the default is float64, the operators and methods of these
names look at what they gave, and compute it again where nothing but integers went in; while it is
float32 they are the native ones, and cost nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor

_SIGNS = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow".split()
OPERATORS = tuple(f"__{name}__" for name in _SIGNS)
NAMES = tuple(
    "add sub subtract mul multiply div divide true_divide floor_divide fmod remainder pow copysign atan2 arctan2 deg2rad rad2deg logit where".split()
)

_NATIVE: dict[tuple[Any, str], Any] = {}
_FLOAT32, _FLOAT64 = _c._dtype("float32"), _c._dtype("float64")


def _is_float(x: Any) -> bool:
    """Whether `x` has a float dtype of its own; a float of Python (or NumPy's float64) has none."""
    if isinstance(x, Tensor):
        return x.is_floating_point()
    return hasattr(x, "__array_interface__") and not isinstance(x, float) and x.dtype.kind == "f"


def _widened(call: Callable[..., Any], keeps_bools: bool) -> Callable[..., Any]:
    def wide(x: Any) -> Any:
        if not isinstance(x, Tensor) or keeps_bools and x.dtype.name == "bool":
            return x
        return x._to_dtype(_FLOAT64)

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        out = call(*args, **kwargs)
        # The first question is the cheapest, and answers for most.
        if args and type(args[0]) is Tensor and args[0].is_floating_point():
            return out
        if type(out) is Tensor and out.dtype == _FLOAT32 and not any(map(_is_float, (*args, *kwargs.values()))):
            return call(*map(wide, args), **{k: wide(v) for k, v in kwargs.items()})
        return out

    return called


def _switch(on: bool) -> None:
    if on == bool(_NATIVE):
        return
    package = sys.modules[__package__]
    if on:
        for home, names in ((Tensor, (*OPERATORS, *NAMES)), (package, NAMES)):
            for name in names:
                native = _NATIVE[home, name] = getattr(home, name)
                # The condition of `where` is no operand.
                setattr(home, name, _widened(native, name == "where"))
        return
    for (home, name), native in _NATIVE.items():
        setattr(home, name, native)
    _NATIVE.clear()


def set_default_dtype(d: Any) -> None:
    """Sets the dtype of tensors made from floats of Python, float32 or float64; also that of
    integers beside such floats, and of quotients of integers.

    ```
    cr.set_default_dtype(cr.float64)
    assert (cr.arange(3) * 0.5).dtype == cr.float64
    cr.set_default_dtype(cr.float32)
    ```
    """
    _c.set_default_dtype(d)
    _switch(_c.get_default_dtype() == _FLOAT64)
