"""Arrays of NumPy, as the search for a mistake sees them: by themselves, or in a backward pass of
tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .case import Array, Case, Quantity
from .engine import Engine
from .on_the_way import slopes_on_the_way


def _is_array(x: Any) -> bool:
    """Whether it is an array, or the float that is left of one where a single element is read."""
    return isinstance(x, (np.ndarray, np.floating))


class Numpy(Engine):
    """The engine of NumPy. There is no tape: differences of the forward pass judge."""

    near = 1e-7

    def is_tensor(self, x: Any) -> bool:
        return _is_array(x)

    def is_float(self, x: Any) -> bool:
        return _is_array(x) and x.dtype.kind == "f"

    def is_graded(self, x: Any) -> bool:
        # A number that is given is a setting, whatever its type.
        return isinstance(x, np.ndarray) and self.is_float(x)

    def is_bool(self, x: Any) -> bool:
        return isinstance(x, np.ndarray) and x.dtype.kind == "b"

    def double(self, x: Any) -> Any:
        return x.astype(np.float64) if self.is_float(x) else self.copy(x)

    def copy(self, x: Any) -> Any:
        return x.copy() if isinstance(x, np.ndarray) else x

    def array(self, x: Any) -> Array:
        return np.asarray(x, dtype=np.float64) if self.is_float(x) else np.asarray(x)

    def tensor(self, array: Array, like: Any) -> Any:
        out = np.ascontiguousarray(array).astype(like.dtype).reshape(like.shape)
        return out if isinstance(like, np.ndarray) else out[()]

    def cut(self, x: Any, axis: int, size: int) -> Any:
        if size < 1:
            raise ValueError("nothing is left")
        return np.ascontiguousarray(x.take(range(size), axis))

    def probe(self, y: Any, seed: int, i: int) -> Any:
        # A sum or a mean is no array, but a number.
        number = isinstance(y, (float, np.floating))
        found = super().probe(np.asarray(y, dtype=np.float64) if number else y, seed, i)
        return np.float64(found) if number else found

    def as_gradient(self, g: Any, x: Any) -> Array:
        number = isinstance(g, (float, np.floating))
        return super().as_gradient(np.asarray(g, dtype=np.float64) if number else g, x)

    @contextmanager
    def apart(self) -> Iterator[None]:
        state = np.random.get_state()
        try:
            yield
        finally:
            np.random.set_state(state)

    @contextmanager
    def quiet(self, seed: int) -> Iterator[None]:
        np.random.seed(seed)
        with np.errstate(all="ignore"):
            yield

    def summed_to(self, g: Any, shape: Any) -> Any:
        to = tuple(shape)
        lead = g.ndim - len(to)
        if lead < 0 or any(b not in (1, d) for d, b in zip(g.shape[lead:], to)):
            return g
        a = g.sum(tuple(range(lead)))
        return a.sum(tuple(i for i, b in enumerate(to) if b == 1), keepdims=True).reshape(to)

    def reference(self, case: Case, inputs: list[Any], above: list[Any], quantities: bool) -> tuple[list[Array], list[Quantity]]:
        return self._differences(case, inputs, above), slopes_on_the_way(self, case, inputs, above) if quantities else []

    def tape(
        self, case: Case, inputs: list[Any], above: list[Any], quantities: bool
    ) -> tuple[list[Array], list[Quantity]]:
        raise TypeError("arrays have no tape")


_ARRAYS = Numpy()


class WithArrays(Engine):
    """Arrays of NumPy beside the tensors of an engine: on the way, not among the inputs."""

    def is_tensor(self, x: Any) -> bool:
        return _is_array(x) or super().is_tensor(x)

    def is_float(self, x: Any) -> bool:
        return _ARRAYS.is_float(x) or super().is_float(x)

    def is_graded(self, x: Any) -> bool:
        return not _is_array(x) and super().is_graded(x)

    def is_bool(self, x: Any) -> bool:
        return _ARRAYS.is_bool(x) or super().is_bool(x)

    def double(self, x: Any) -> Any:
        return x if _is_array(x) else super().double(x)

    def copy(self, x: Any) -> Any:
        return x.copy() if isinstance(x, np.ndarray) else super().copy(x)

    def array(self, x: Any) -> Array:
        return _ARRAYS.array(x) if _is_array(x) else super().array(x)

    def tensor(self, array: Array, like: Any) -> Any:
        engine: Engine = _ARRAYS if _is_array(like) else super()  # type: ignore[assignment]
        return engine.tensor(array, like)

    def cut(self, x: Any, axis: int, size: int) -> Any:
        return _ARRAYS.cut(x, axis, size) if isinstance(x, np.ndarray) else super().cut(x, axis, size)

    def summed_to(self, g: Any, shape: Any) -> Any:
        return _ARRAYS.summed_to(g, shape) if _is_array(g) else super().summed_to(g, shape)
