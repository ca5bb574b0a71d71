"""The value that is due in a place: solved for, from how the gradients depend on what stands there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .bench import before
from .case import Array
from .record import HOOK, hooked

if TYPE_CHECKING:
    from .search import Search
    from .steps import Step

MOST = 160
"""The most elements of a value that is solved for; where the gradients are no straight line in it,
a quarter of it.
"""


@dataclass
class Due:
    """The value due in the place of a value, as far as the gradients tell: all that is `wanted` up
    to what no gradient depends on."""

    value: Array
    wanted: Array
    seen: Array
    """The directions on which the gradients depend, a column for each, by how much they do."""

    def projected(self, rows: Array) -> Array:
        """Observations of some values through the gradients, a row for each."""
        out: Array = rows @ self.seen
        return out


def root_of(step: Step) -> Any:
    """The expression whose value a statement gives."""
    node = step.statement.node
    return node if step.statement.head else getattr(node, "value", None)


def due(search: Search, step: Step, node: Any = None) -> Due | bool | None:
    """The value due in the place of an expression's value (by default the statement's), if another
    value there can make all gradients right; False where none can."""
    node = root_of(step) if node is None else node
    seen = search.values.get(getattr(node, "number", -1)) or []
    if len(seen) != 1 or not search.engine.is_float(seen[0]):
        return None
    return _Place(search, step, search.watched_code(step.unit), node.number).solved(search.engine.array(seen[0]))


def due_for_some(search: Search, step: Step) -> Due | None:
    """The value due in the place of the statement's value so that some of the wrong gradients
    become right, and none that is right becomes wrong."""
    node = root_of(step)
    seen = search.values.get(getattr(node, "number", -1)) or []
    if len(seen) != 1 or not search.engine.is_float(seen[0]) or not 0 < search.engine.array(seen[0]).size <= MOST:
        return None
    return _Place(search, step, search.watched_code(step.unit), node.number).solved_for_some(np.array(search.engine.array(seen[0])))


def due_of_variable(search: Search, step: Step, name: str) -> Due | bool | None:
    """The value due in a variable from a statement on."""
    code = before(step.unit, step.statement, f"{name} = {HOOK}.see(-2, {name})")
    return _Place(search, step, code, -2).solved(search.engine.array(step.names[name]))


class _Place:
    """A place in the backward pass, in which other values can stand."""

    def __init__(self, search: Search, step: Step, code: Any, number: int) -> None:
        self.search, self.step, self.code, self.number = search, step, code, number
        self.sizes = [search._size(i) for i in range(len(search.base))]

    def _flat(self, gradients: list[Array]) -> Array:
        return np.concatenate([g.reshape(-1) / s for g, s in zip(gradients, self.sizes)])

    def _with(self, value: Array) -> Array | None:
        """All gradients with this value in the place."""
        engine, hook = self.search.engine, self.search.hook
        hook.other = lambda v, _: engine.tensor(value, v)
        hook.place = self.number
        try:
            found = self.search.bench.run()
        finally:
            hook.place = -1
        if found is None or any(f.shape != b.shape for f, b in zip(found, self.search.base)):
            return None
        return self._flat(found)

    def _slopes(self, value: Array, at: Array, step: float) -> Array | None:
        columns = []
        for k in range(value.size):
            moved = value.copy()
            moved.reshape(-1)[k] += step
            found = self._with(moved)
            if found is None or self.search.bench.left() < 0:
                return None
            columns.append((found - at) / step)
        slopes = np.stack(columns, 1)
        return slopes if np.isfinite(slopes).all() else None

    def solved(self, value: Array) -> Due | bool | None:
        """By Newton's steps, of which one is enough where the gradients are a straight line in the
        value.
        """
        if not 0 < value.size <= MOST:
            return None
        value = np.ascontiguousarray(value, dtype=np.float64)
        right = self._flat(self.search.point.right)
        with hooked([self.step.unit], [self.code], self.search.hook):
            at, now = self._flat(self.search.base), value.copy()
            if at.shape != right.shape:
                return None
            size = float(np.abs(value).max()) or self.search.point.scale
            for turn in range(6):
                slopes = self._slopes(now, at, (1e-2 if turn == 0 else 1e-6) * size)
                if slopes is None or not slopes.any():
                    return None
                left, sizes, rows = np.linalg.svd(slopes, full_matrices=False)
                rank = int((sizes > 1e-9 * sizes[0]).sum())
                change = rows[:rank].T @ (left[:, :rank].T @ (right - at) / sizes[:rank])
                reached = bool(np.abs(slopes @ change - (right - at)).max() <= 1e-7)
                if turn == 0 and not reached and self._is_line(value, slopes, at):
                    return False
                now = now + change.reshape(value.shape)
                found = self._with(now)
                if found is None or not np.isfinite(found).all():
                    return None
                if np.abs(found - right).max() <= 1e-9:
                    # Values are compared by what the gradients see of them: a direction on which
                    # these hardly depend counts as little.
                    return Due(value, now, rows[:rank].T * (sizes[:rank] / sizes[0]))
                if value.size > 64 or np.abs(found - right).max() > 10 * np.abs(at - right).max():
                    return None
                at = found
        return None

    def solved_for_some(self, value: Array) -> Due | None:
        """For as many of the wrong gradients as can be right together; a straight line only."""
        base, right = self.search.base, self.search.point.right
        ends = np.cumsum([0, *(b.size for b in base)])
        rows_of = [np.arange(ends[i], ends[i + 1]) for i in range(len(base))]
        with hooked([self.step.unit], [self.code], self.search.hook):
            slopes = self._slopes(value, self._flat(base), 1e-2 * (float(np.abs(value).max()) or self.search.point.scale))
        if slopes is None or any(b.shape != r.shape for b, r in zip(base, right)):
            return None
        rest = self._flat(right) - self._flat(base)
        kept = [i for i in range(len(base)) if i not in self.search.wrong]
        def together(chosen: list[int]) -> Due | None:
            at = np.concatenate([rows_of[j] for j in [*kept, *chosen]])
            left, sizes, rows = np.linalg.svd(slopes[at], full_matrices=False)
            rank = int((sizes > 1e-9 * sizes[0]).sum()) if sizes[0] else 0
            if not rank:
                return None
            change = rows[:rank].T @ (left[:, :rank].T @ rest[at] / sizes[:rank])
            if np.abs(slopes[at] @ change - rest[at]).max() > 1e-7:
                return None
            return Due(value, value + change.reshape(value.shape), rows[:rank].T * (sizes[:rank] / sizes[0]))

        best: tuple[list[int], Due | None] = [], None
        # One gradient of as many elements is made right by some value in nearly any place; several
        # together are evidence.
        for first in self.search.wrong:
            chosen = [first]
            found = together(chosen)
            for i in self.search.wrong:
                if found is not None and i != first and (more := together([*chosen, i])) is not None:
                    chosen, found = [*chosen, i], more
            if found is not None and len(chosen) > len(best[0]):
                best = chosen, found
        return best[1]

    def _is_line(self, value: Array, slopes: Array, at: Array) -> bool:
        """Whether the gradients depend on the value as a straight line does, as far as one large
        change tells.
        """
        drawn: Array = np.asarray(np.random.default_rng(8).standard_normal(value.shape))
        change = drawn * (float(np.abs(value).max()) or self.search.point.scale)
        found = self._with(value + change)
        if found is None:
            return False
        along = slopes @ change.reshape(-1)
        return bool(np.abs(found - at - along).max() <= 1e-6 * (float(np.abs(along).max()) + 1e-300))


def operands(search: Search, step: Step) -> list[Any]:
    """The expressions in a statement, below the outermost one, whose values may be solved for by
    themselves.
    """
    root = root_of(step)
    if root is None:
        return []
    out = []
    parents = {id(c): p for p in ast.walk(root) for c in ast.iter_child_nodes(p)}
    for n in ast.walk(root):
        seen = search.values.get(getattr(n, "number", -1)) or []
        parent = parents.get(id(n))
        if n is root or len(seen) != 1 or not search.engine.is_float(seen[0]) or search.engine.array(seen[0]).size < 2:
            continue
        inner = isinstance(parent, ast.Call) or isinstance(parent, ast.Attribute) or isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.MatMult, ast.Pow, ast.Div)) and (n is parent.left or isinstance(parent.op, ast.MatMult))
        if inner:
            out.append(n)
    return out[:6]
