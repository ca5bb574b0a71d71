"""Types of arguments, and reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor

Number = int | float | bool
TensorLike = Tensor | Number | np.ndarray[Any, Any] | np.generic
Axes = int | Sequence[int] | None
Shape = int | Sequence[int]


def as_tensor(x: Any, beside: Any = None) -> Tensor:
    """A tensor as it is, anything else as a new one; a number takes the dtype of the tensor that it
    stands beside.
    """
    if type(x) is Tensor:
        return x
    if isinstance(beside, Tensor) and isinstance(x, (int, float)):
        kind = (not isinstance(x, bool)) + isinstance(x, float)
        rank = 2 if beside.is_floating_point() else int(beside.dtype == INT64)
        if kind <= rank:
            return _c.tensor(x, beside.dtype)
    return _c.tensor(x)


INT64 = _c._dtype("int64")
