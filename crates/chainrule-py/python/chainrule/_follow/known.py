"""Values laid side by side: which quantity of the right passes a value is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import Array, Point, Quantity

NEAR = 1e-9


@dataclass
class Match:
    """A value is a quantity, exactly, or up to a constant factor and the order of its elements."""

    quantity: Quantity
    factor: float
    reordered: bool

    @property
    def exact(self) -> bool:
        return self.factor == 1.0 and not self.reordered


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d for d in shape if d != 1)


def _shape_of_sorted(x: Array) -> Array:
    """The elements in order of size, over the largest one: the same for all layouts and factors above 0."""
    flat = np.sort(x.reshape(-1))
    return flat / max(abs(flat[0]), abs(flat[-1]))


class Known:
    """The quantities of the right passes at one point."""

    def __init__(self, point: Point, given: list[Quantity]) -> None:
        self._by_size: dict[int, list[tuple[Quantity, Array, Array]]] = {}
        self.all = [*given, *point.quantities]
        above = [g for g in point.above if g is not None]
        one = float(np.asarray(above[0].reshape(-1)[0].item())) if len(above) == 1 and above[0].numel() == 1 else 1.0
        if one != 1.0:
            # A backward pass may be that of the loss itself, with the factor from above at its end.
            self.all += [Quantity(q.words, q.value / one, True, q.name) for q in self.all if q.is_gradient]
        for q in self.all:
            self._add(q)

    def _add(self, q: Quantity) -> None:
        x = q.value
        if x.dtype != np.float64 or not x.size or not np.isfinite(x).all() or not x.any():
            return
        rows = self._by_size.setdefault(x.size, [])
        rows.append((q, np.ascontiguousarray(x).reshape(-1), _shape_of_sorted(x)))

    def match(self, x: Any) -> Match | None:
        """The quantity that a value is, the exact one if there is one."""
        if not isinstance(x, np.ndarray) or x.dtype != np.float64 or not x.size or not np.isfinite(x).all() or not x.any():
            return None
        rows = self._by_size.get(x.size)
        if not rows:
            return None
        flat = np.ascontiguousarray(x).reshape(-1)
        size = float(np.abs(flat).max())
        shape = _squeezed(x.shape)
        for q, known, _ in rows:
            if shape == _squeezed(q.value.shape) and np.abs(known - flat).max() <= NEAR * size:
                return Match(q, 1.0, False)
        if x.size < 3:
            # Of so few elements every value is a multiple of every other one.
            return None
        at = int(np.abs(flat).argmax())
        for q, known, _ in rows:
            if shape == _squeezed(q.value.shape) and known[at]:
                factor = flat[at] / known[at]
                if np.abs(known * factor - flat).max() <= NEAR * size:
                    return Match(q, float(factor), False)
        order, turned = _shape_of_sorted(x), _shape_of_sorted(-x)
        for q, known, sorted_known in rows:
            for sign, mine in ((1.0, order), (-1.0, turned)):
                if np.abs(mine - sorted_known).max() <= NEAR:
                    return Match(q, sign * size / float(np.abs(known).max()), True)
        return None
