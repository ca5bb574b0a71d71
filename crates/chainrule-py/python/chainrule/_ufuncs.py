"""NumPy's functions of tensors: `np.sqrt(x)`, `a + x` and `a += x` for an array `a`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor

# The methods of the right operand, where the left one is an array or a number of NumPy.
_REFLECTED = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.true_divide: "__rtruediv__", np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__", np.power: "__rpow__", np.matmul: "__rmatmul__", np.bitwise_and: "__rand__", np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__", np.left_shift: "__rlshift__", np.right_shift: "__rrshift__", np.equal: "__eq__", np.not_equal: "__ne__",
    np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__",
}


def _array(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
    """A function of NumPy with tensors among its operands. The operators of Python are those of the
    tensor, with gradients; other functions compute on the elements, and give tensors. With an array
    as `out`, as for `a += x`, the result is written there.
    """
    reflected = _REFLECTED.get(ufunc)
    if out is None and method == "__call__" and len(inputs) == 2 and reflected is not None and not options:
        left, right = inputs
        if not isinstance(left, Tensor) and hasattr(right, reflected):
            return getattr(right, reflected)(left)
    if out is not None and any(isinstance(o, Tensor) for o in out):
        raise TypeError(f"{ufunc.__name__}: out= of a function of NumPy is an array, not a tensor; write x.copy_(...)")
    arrays = [_array(x) for x in inputs]
    if out is not None:
        options["out"] = out
    found = getattr(ufunc, method)(*arrays, **options)
    if out is not None:
        return found
    if isinstance(found, tuple):
        return tuple(_c.tensor(np.asarray(x)) for x in found)
    return found if found is None else _c.tensor(np.asarray(found))


def attach() -> None:
    """Gives the native class NumPy's protocol."""
    setattr(Tensor, "__array_ufunc__", array_ufunc)


__all__: list[str] = []
