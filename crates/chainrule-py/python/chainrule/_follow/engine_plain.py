"""Numbers and lists of Python, as the search for a mistake sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Array
from .engine_numpy import Numpy


def are_plain(inputs: list[Any]) -> bool:
    """Whether inputs are numbers and lists of numbers."""
    return all(isinstance(x, (int, float)) or isinstance(x, (list, tuple)) and are_plain(list(x)) for x in inputs)


class Plain(Numpy):
    """The engine of floats and lists of floats. A list among the inputs is given as an array, which
    is read as a list is.
    """

    def _is_list(self, x: Any) -> bool:
        return isinstance(x, list) and bool(x) and all(isinstance(y, float) or self._is_list(y) for y in x)

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, float) or super().is_tensor(x)

    def is_float(self, x: Any) -> bool:
        return isinstance(x, float) or super().is_float(x)

    def is_graded(self, x: Any) -> bool:
        return self.is_float(x)

    def is_single(self, x: Any) -> bool:
        return False

    def double(self, x: Any) -> Any:
        if isinstance(x, bool) or isinstance(x, int):
            return x
        return np.float64(x) if isinstance(x, float) else np.asarray(x, dtype=np.float64)

    def copy(self, x: Any) -> Any:
        return [self.copy(y) for y in x] if isinstance(x, list) else super().copy(x)

    def array(self, x: Any) -> Array:
        return np.asarray(x, dtype=np.float64) if isinstance(x, (float, list)) else super().array(x)

    def tensor(self, array: Array, like: Any) -> Any:
        return np.float64(array) if isinstance(like, float) else super().tensor(array, like)

    def keep(self, x: Any) -> Any:
        if isinstance(x, float):
            return np.float64(x)
        if self._is_list(x):
            try:
                return np.asarray(x, dtype=np.float64)
            except ValueError:
                # Rows of several lengths.
                return None
        return super().keep(x)

    def as_gradient(self, g: Any, x: Any) -> Array:
        return super().as_gradient(np.asarray(g, dtype=np.float64) if self._is_list(g) else g, x)
