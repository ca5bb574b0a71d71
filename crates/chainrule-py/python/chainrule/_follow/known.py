"""Values laid side by side: which quantity of the right passes a value is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import Array, Point, Quantity
from .scalars import np_prod

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
    """The elements in order of size, over the largest one: the same for all layouts and factors
    above 0.
    """
    flat = np.sort(x.reshape(-1))
    out: Array = flat / max(abs(flat[0]), abs(flat[-1]))
    return out


class Known:
    """The quantities of the right passes at one point."""

    def __init__(self, point: Point, given: list[Quantity], near: float = NEAR) -> None:
        self.near = near
        """Relative difference up to which two values are the same."""
        self._by_size: dict[int, list[Quantity]] = {}
        self._tables: dict[int, tuple[Array, Array]] = {}
        self.all = [*given, *point.quantities]
        above = [g for g in point.above if g is not None]
        one = float(np.asarray(above[0].reshape(-1)[0].item())) if len(above) == 1 and np_prod(above[0].shape) == 1 else 1.0
        if one != 1.0:
            # A backward pass may be that of the loss itself, with the factor from above at its end.
            self.all += [Quantity(q.words, q.value / one, True, q.name) for q in self.all if q.is_gradient]
        for q in self.all:
            self._add(q)

    def _add(self, q: Quantity) -> None:
        x = q.value
        if x.dtype != np.float64 or not x.size or not np.isfinite(x).all() or not x.any():
            return
        self._by_size.setdefault(x.size, []).append(q)

    def _table(self, size: int) -> tuple[Array, Array]:
        """The elements of all quantities of a size, a row for each; as they are, and sorted."""
        if size not in self._tables:
            rows = np.stack([np.ascontiguousarray(q.value).reshape(-1) for q in self._by_size[size]])
            self._tables[size] = rows, np.stack([_shape_of_sorted(row) for row in rows])
        return self._tables[size]

    def multiple(self, x: Any, q: Quantity) -> Match | None:
        """A value as a multiple of one quantity, if it is one."""
        if not isinstance(x, np.ndarray) or x.dtype != np.float64 or x.size < 3 or x.size != q.value.size or _squeezed(x.shape) != _squeezed(q.value.shape):
            return None
        mine, its = x.reshape(-1), q.value.reshape(-1)
        at = int(np.abs(its).argmax())
        factor = float(mine[at] / its[at]) if its[at] else 0.0
        near = self.near * float(np.abs(mine).max())
        return Match(q, factor, False) if factor and np.isfinite(factor) and np.abs(its * factor - mine).max() <= near else None

    def match(self, x: Any) -> Match | None:
        """The quantity that a value is, the exact one if there is one."""
        if not isinstance(x, np.ndarray) or x.dtype != np.float64 or x.size not in self._by_size or not np.isfinite(x).all() or not x.any():
            return None
        quantities = self._by_size[x.size]
        rows, ordered = self._table(x.size)
        flat = np.ascontiguousarray(x).reshape(-1)
        size, shape = float(np.abs(flat).max()), _squeezed(x.shape)
        like = np.array([_squeezed(q.value.shape) == shape for q in quantities])
        exact = np.flatnonzero(like & (np.abs(rows - flat).max(1) <= self.near * size))
        if exact.size:
            return Match(quantities[exact[0]], 1.0, False)
        if x.size < 3:
            # With this few elements every value is a multiple of every other one.
            return None
        at = int(np.abs(flat).argmax())
        with np.errstate(all="ignore"):
            factors = flat[at] / rows[:, at]
            off = np.abs(rows * factors[:, None] - flat).max(1)
        multiple = np.flatnonzero(like & (off <= self.near * size))
        if multiple.size:
            return Match(quantities[multiple[0]], float(factors[multiple[0]]), False)
        for sign, mine in ((1.0, _shape_of_sorted(flat)), (-1.0, _shape_of_sorted(-flat))):
            turned = np.flatnonzero(np.abs(ordered - mine).max(1) <= self.near)
            if turned.size:
                return Match(quantities[turned[0]], sign * size / float(np.abs(rows[turned[0]]).max()), True)
        return None
