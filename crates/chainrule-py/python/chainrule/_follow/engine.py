"""A library of tensors, as the search for a mistake sees it: what is the same for all of them."""

from __future__ import annotations

import copy
import itertools
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .case import FAR_SEED, Array, Case, Quantity
from .differences import slope
from .kinks import at_kink

MOST = 3000
"""The most elements of the inputs for which differences are taken."""


USES = 5
"""The most uses of a tensor of whose gradients' parts all sums are taken."""


def sums_of_parts(parts: list[tuple[int, Array]]) -> list[Quantity]:
    """The sums of some, but not all, of the parts of each tensor's gradient, which are given with
    the number of the tensor: a function that the tensor goes through has several of its uses.
    """
    of: dict[int, list[Array]] = {}
    for number, part in parts:
        of.setdefault(number, []).append(part)
    chosen = [c for own in of.values() if 2 < len(own) <= USES and own[0].size <= MOST for n in range(2, len(own)) for c in itertools.combinations(own, n)]
    return [Quantity("a part of a gradient, by way of several uses", np.sum(c, axis=0), True) for c in chosen]


class Engine:
    """Tensors of one library."""

    near = 1e-9
    """Relative difference up to which two values are the same quantity."""

    def is_tensor(self, x: Any) -> bool:
        raise NotImplementedError

    def is_float(self, x: Any) -> bool:
        raise NotImplementedError

    def is_graded(self, x: Any) -> bool:
        """Whether it is an input that has a gradient."""
        return self.is_float(x)

    def is_bool(self, x: Any) -> bool:
        raise NotImplementedError

    def is_single(self, x: Any) -> bool:
        """Whether it is a tensor in f32."""
        return self.is_float(x) and str(x.dtype).endswith("float32")

    def double(self, x: Any) -> Any:
        """A tensor as it is searched with: floats in f64."""
        raise NotImplementedError

    def copy(self, x: Any) -> Any:
        raise NotImplementedError

    def array(self, x: Any) -> Array:
        raise NotImplementedError

    def tensor(self, array: Array, like: Any) -> Any:
        """A tensor of these elements, with the dtype and the shape of another."""
        raise NotImplementedError

    def cut(self, x: Any, axis: int, size: int) -> Any:
        """A tensor with less along an axis."""
        raise NotImplementedError

    def apart(self) -> AbstractContextManager[None]:
        """Changes that the search makes in the library are undone afterwards."""
        raise NotImplementedError

    def quiet(self, seed: int) -> AbstractContextManager[None]:
        """No recording, and random numbers that are the same each time."""
        raise NotImplementedError

    def summed_to(self, g: Any, shape: Any) -> Any:
        """A gradient that was stretched, summed to a shape; as it is where that does not fit."""
        raise NotImplementedError

    def tape(self, case: Case, inputs: list[Any], above: list[Any], quantities: bool) -> tuple[list[Array], list[Quantity]]:
        """The gradients of the forward pass by the library's own autograd, and all values on the
        way.
        """
        raise NotImplementedError

    def held(self, case: Case, inputs: list[Any], above: list[Any]) -> list[Array]:
        """The gradients of the forward pass by the library's own autograd, with what it detaches
        held fixed.
        """
        return self.tape(case, inputs, above, False)[0]

    def copied(self, context: Any) -> Any:
        """Copies of the saved values, so that a backward that writes into them spoils no other
        run."""
        new = copy.copy(context)
        for name, x in vars(new).items():
            if type(x) in (list, tuple):
                setattr(new, name, type(x)(self.copy(y) for y in x))
            elif self.is_tensor(x):
                setattr(new, name, self.copy(x))
        return new

    def keep(self, x: Any) -> Any:
        """A copy of a value that may be of use, or None."""
        if self.is_tensor(x):
            return self.copy(x)
        if isinstance(x, (int, float, slice)):
            return x
        if isinstance(x, (list, tuple)) and 0 < len(x) <= 64 and all(self.is_tensor(y) for y in x):
            return tuple(self.copy(y) for y in x)
        return None

    def moved(self, x: Any, seed: int, i: int) -> Any:
        """An input near the given one; signs and integers stay, so that it is in the function's
        domain if that one was.
        """
        if not self.is_graded(x) or not seed:
            return self.copy(x)
        a, draw = self.array(x), np.random.default_rng(1000 * seed + i)
        if seed >= FAR_SEED and a.size and (a.min() < 0 < a.max()):
            # A part of the elements stays as near 0 as it was.
            spread = float(np.abs(a).mean()) * np.where(draw.random(a.shape) < 0.3, 1.0, 20.0 if seed == FAR_SEED + 1 else 4.0)
            return self.tensor(spread * draw.standard_normal(a.shape), x)
        size = float(np.abs(a).mean()) if a.size else 0.0
        near = a * (1 + 0.3 * (draw.random(a.shape) - 0.5))
        return self.tensor(np.where(a == 0, 0.3 * (size or 1.0) * draw.standard_normal(a.shape), near), x)

    def probe(self, y: Any, seed: int, i: int) -> Any:
        """A gradient that comes in for an output."""
        if not self.is_float(y):
            return None
        drawn = np.asarray(np.random.default_rng(77 + 1000 * seed + i).standard_normal(tuple(y.shape)))
        return self.tensor(drawn + 0.3 * np.sign(drawn), y)

    def as_gradient(self, g: Any, x: Any) -> Array:
        """A returned gradient as an engine takes it: none is zero, and what was stretched is
        summed.
        """
        if not self.is_tensor(g):
            return np.zeros(tuple(x.shape))
        return self.array(g if tuple(g.shape) == tuple(x.shape) else self.summed_to(g, x.shape))

    def reference(self, case: Case, inputs: list[Any], above: list[Any], quantities: bool) -> tuple[list[Array], list[Quantity]]:
        """The right gradients, and all values on the way: by the tape, if it is the function's own,
        else by differences.
        """
        try:
            right, known = self.tape(case, inputs, above, quantities)
            if self._agrees(case, inputs, above, right):
                return right, known
        except (RuntimeError, TypeError, ValueError):
            # The forward pass leaves the library, or writes where no tape can follow.
            pass
        return self._differences(case, inputs, above), []

    def value(self, case: Case, inputs: list[Any], above: list[Any]) -> float:
        outputs, _ = case.run_forward(inputs)
        return sum(float((self.array(y) * self.array(g)).sum()) for y, g in zip(outputs, above) if g is not None)

    def stepped(self, inputs: list[Any], along: dict[int, Array], step: float) -> list[Any]:
        """The inputs moved along a direction."""
        return [self.tensor(self.array(x) + step * along[i], x) if i in along else x for i, x in enumerate(inputs)]

    def _agrees(self, case: Case, inputs: list[Any], above: list[Any], right: list[Array], beside: bool = False) -> bool:
        """Whether the gradients agree with a difference along one direction: a forward pass may
        have a tape that is not its function's.
        """
        draw = np.random.default_rng(5)
        along = {i: np.asarray(draw.standard_normal(tuple(inputs[i].shape))) for i in case.graded}
        slope = sum(float((along[i] * r).sum()) for i, r in zip(case.graded, right))
        size = sum(float(np.abs(along[i] * r).sum()) for i, r in zip(case.graded, right))

        def difference(step: float) -> float:
            ends = [self.value(case, self.stepped(inputs, along, s * step), above) for s in (1, -1)]
            return (ends[0] - ends[1]) / (2 * step)

        # At a kink on the way no step agrees with another one; then the tape is believed.
        first, second = difference(1e-5), difference(1e-6)
        near = 1e-4 * (size + abs(first)) + 1e-12
        if abs(first - slope) <= near or abs(second - slope) <= near or abs(first - second) > near:
            return True
        if beside or not at_kink(self, case, inputs, above, along):
            return False
        # A difference at a kink is between its slopes: the tape is judged beside it.
        moved = [self.moved(x, 6, i) for i, x in enumerate(inputs)]
        return self._agrees(case, moved, above, self.tape(case, moved, above, False)[0], beside=True)

    def _differences(self, case: Case, inputs: list[Any], above: list[Any]) -> list[Array]:
        if sum(self.array(inputs[i]).size for i in case.graded) > MOST:
            raise ValueError("the forward pass cannot be followed, and there are too many elements for differences")
        case.tolerance = max(case.tolerance, 1e-6)
        out = []
        for i in case.graded:
            x = self.array(inputs[i])
            right = np.zeros(x.size)
            for k in range(x.size):
                size = max(1.0, abs(float(x.reshape(-1)[k])))

                def at(step: float, i: int = i, k: int = k, x: Array = x) -> float:
                    moved = np.array(x)
                    moved.reshape(-1)[k] += step
                    return self.value(case, [*inputs[:i], self.tensor(moved, inputs[i]), *inputs[i + 1 :]], above)

                right[k] = slope(at, size)
            out.append(right.reshape(x.shape))
        return out
