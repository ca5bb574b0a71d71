"""Limits of the dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _chainrule as _c
from ._complex._dtype import named


class _BFloat16:
    """Limits of bfloat16, which NumPy lacks: eight significant bits, and float32's exponents."""

    bits, eps, max, min, tiny, precision = 16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, -(2 - 2.0**-7) * 2.0**127, 2.0**-126, 2


class finfo:
    """The limits of a dtype of floats: `eps`, `max`, `min`, `tiny`, `smallest_normal`,
    `resolution`, `bits`.

    ```
    assert cr.finfo(cr.float32).eps == 2.0**-23
    ```
    """

    def __init__(self, type: Any = None) -> None:
        whole = named(type)
        d = _c._dtype(_c.get_default_dtype() if type is None else whole.part if whole else type)
        if not d.is_floating_point:
            raise TypeError(f"finfo: {d.name} is no dtype of floats; use iinfo")
        found: Any = _BFloat16 if d.name == "bfloat16" else np.finfo(d.name)
        self.bits, self.dtype = int(found.bits), d.name
        self.eps, self.max, self.min = float(found.eps), float(found.max), float(found.min)
        self.tiny = self.smallest_normal = float(found.tiny)
        self.resolution = 10.0 ** -int(found.precision)

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, tiny={self.tiny:g}, dtype={self.dtype})"


class iinfo:
    """The limits of a dtype of integers: `min`, `max`, `bits`.

    ```
    assert cr.iinfo(cr.int8).max == 127
    ```
    """

    def __init__(self, type: Any) -> None:
        d = _c._dtype(type)
        if d.is_floating_point or d.name == "bool":
            raise TypeError(f"iinfo: {d.name} is no dtype of integers; use finfo")
        found = np.iinfo(d.name)
        self.bits, self.min, self.max, self.dtype = int(found.bits), int(found.min), int(found.max), d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


__all__ = ["finfo", "iinfo"]
