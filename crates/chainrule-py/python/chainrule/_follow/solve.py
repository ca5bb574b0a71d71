"""The value that is due in a place: solved for, from how the gradients depend on what stands there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .bench import before, target_of
from .case import Array, Quantity
from .record import HOOK, hooked
from .steps import gradient_names

if TYPE_CHECKING:
    from .search import Search
    from .steps import Step

RUNS = 12
"""The most runs of a statement whose values are solved for together."""

MOST = 160
"""The most elements of a value that is solved for; where the gradients are no straight line in it,
a quarter of it.
"""


@dataclass
class Due:
    """The value due in the place of a value, as far as the gradients tell: all that is `wanted` up
    to what no gradient depends on."""

    value: Array
    """The value that the user's expression gives there; of several runs the values of all of them,
    one after the other.
    """
    wanted: Array
    shapes: list[tuple[int, ...]]
    """The shape of the value in each run."""
    seen: Array | None
    """The directions on which the gradients depend, a column for each, by how much they do; None
    for all.
    """
    runs: list[dict[str, Any]]
    """The variables before each run. Several are the variables of a backward with the value due in
    this place: the next runs do not read what the mistake spoils in one."""
    values: dict[int, list[Any]]
    """The values of expressions in these runs."""

    def glance(self, n: int) -> Array:
        """Some of these directions mixed by fixed numbers, a column for each."""
        size = self.wanted.size if self.seen is None else self.seen.shape[1]
        mixed: Array = np.random.default_rng(2).standard_normal((size, n)) / size**0.5
        return mixed if self.seen is None else self.seen @ mixed

    def projected(self, rows: Array) -> Array:
        """Observations of some values through the gradients, a row for each."""
        out: Array = rows if self.seen is None else rows @ self.seen
        return out


def root_of(step: Step) -> Any:
    """The expression whose value a statement gives."""
    node = step.statement.node
    return node if step.statement.head else getattr(node, "value", None)


def values_of(search: Search, step: Step, node: Any, among: dict[int, list[Any]] | None = None) -> list[Array] | None:
    """The values of an expression, one for each run of its statement; None where they are no
    tensors of floats or runs are not told apart.
    """
    seen = (search.values if among is None else among).get(getattr(node, "number", -1)) or []
    if not seen or len(seen) != len(step.runs) or len(seen) > RUNS or not all(search.engine.is_float(v) for v in seen):
        return None
    return [search.engine.array(v) for v in seen]


def joined(values: list[Array]) -> Array:
    """The values of all runs as one."""
    return values[0] if len(values) == 1 else np.concatenate([v.reshape(-1) for v in values])


def due(search: Search, step: Step, node: Any = None) -> Due | bool | None:
    """The value due in the place of an expression's value (by default the statement's), if another
    value there can make all gradients right; False where none can."""
    node = root_of(step) if node is None else node
    values = values_of(search, step, node)
    if values is None:
        return None
    place = _Place(search, step, search.watched_code(step.unit), node.number, values)
    return (place.named() if node is root_of(step) else None) or place.solved()


def due_for_some(search: Search, step: Step) -> Due | None:
    """The value due in the place of the statement's value so that some of the wrong gradients
    become right, and none that is right becomes wrong."""
    node = root_of(step)
    values = values_of(search, step, node)
    if values is None or not 0 < sum(v.size for v in values) <= MOST:
        return None
    return _Place(search, step, search.watched_code(step.unit), node.number, values).solved_for_some()


def due_by_name(search: Search, step: Step, quantities: list[Quantity]) -> list[Due]:
    """The values that may be due in a statement by the name of its variable, in the first run that
    reads what is right. Nothing is solved: other mistakes may be left, and the value may be
    of any size."""
    root = root_of(step)
    values = values_of(search, step, root)
    if values is None or not step.known:
        return []
    run = step.judged
    own = np.asarray(values[run], dtype=np.float64, order="C")
    seen = {n: [v[run]] for n, v in search.values.items() if len(v) == len(step.runs)}
    wanted = [q.value for q in quantities if q.value.shape == own.shape and not np.array_equal(q.value, own)]
    return [Due(own, w, [own.shape], None, [step.runs[run]], seen) for w in wanted[:4]]


def due_of_variable(search: Search, step: Step, name: str) -> Due | bool | None:
    """The value due in a variable from a statement on."""
    code = before(step.unit, step.statement, f"{name} = {HOOK}.see(-2, {name})")
    values = [names.get(name) for names in step.runs]
    if not all(search.engine.is_float(v) for v in values):
        return None
    return _Place(search, step, code, -2, [search.engine.array(v) for v in values]).solved()


class _Place:
    """A place in the backward pass, in which other values can stand: one for each of its runs."""

    def __init__(self, search: Search, step: Step, code: Any, number: int, values: list[Array]) -> None:
        self.search, self.step, self.code, self.number = search, step, code, number
        self.sizes = [search._size(i) for i in range(len(search.base))]
        self.shapes = [v.shape for v in values]
        self.ends = np.cumsum([0, *(v.size for v in values)])
        self.value: Array = np.ascontiguousarray(joined(values), dtype=np.float64)

    def _flat(self, gradients: list[Array]) -> Array:
        return np.concatenate([g.reshape(-1) / s for g, s in zip(gradients, self.sizes)])

    def _with(self, value: Array) -> Array | None:
        """All gradients with this value in the place."""
        engine, hook, flat = self.search.engine, self.search.hook, value.reshape(-1)

        def other(v: Any, run: int) -> Any:
            if run >= len(self.shapes):
                raise ValueError("more runs than there were")
            return engine.tensor(flat[self.ends[run] : self.ends[run + 1]].reshape(self.shapes[run]), v)

        hook.other, hook.turn = other, 0
        hook.place = self.number
        try:
            found = self.search.bench.run()
        finally:
            hook.place = -1
        if found is None or any(f.shape != b.shape for f, b in zip(found, self.search.base)):
            return None
        return self._flat(found)

    def _found(self, wanted: Array, seen: Array | None) -> Due | None:
        """The value that is due, with all that is at hand beside it."""
        hook = self.search.hook
        if len(self.shapes) == 1:
            return Due(self.value, wanted, self.shapes, seen, self.step.runs, self.search.values)
        before = hook.values, hook.moments
        hook.values, hook.moments, hook.recording = {}, [], True
        try:
            self._with(wanted)
            values, moments = hook.values, hook.moments
        finally:
            hook.recording = False
            hook.values, hook.moments = before
        runs = [m.names for m in moments if m.statement == self.step.statement.number and not m.after]
        own = values.get(self.number, [])
        if len(runs) != len(self.shapes) or len(own) != len(runs) or [tuple(v.shape) for v in own] != self.shapes:
            return None
        return Due(joined([self.search.engine.array(v) for v in own]), wanted, self.shapes, seen, runs, values)

    def _slopes(self, value: Array, at: Array, step: float) -> Array | None:
        columns = []
        for k in range(value.size):
            moved = value.copy()
            moved.reshape(-1)[k] += step
            found = self._with(moved)
            if found is None or self.search.bench.left() <= 0:
                return None
            columns.append((found - at) / step)
        slopes = np.stack(columns, 1)
        return slopes if np.isfinite(slopes).all() else None

    def named(self) -> Due | None:
        """In a loop, the gradients that the variable is named for, one for each run, if these make
        all gradients right: fewer elements of gradients may depend on the values than there are.
        """
        target, count = target_of(self.step.statement.node), len(self.shapes)
        if target is None or count < 2 or isinstance(self.step.statement.node, ast.AugAssign):
            return None
        each = [q.value for q in self.search.known.all if q.is_gradient and q.name and target in gradient_names(q.name) and q.value.shape == self.shapes[0]]
        if len(each) < count:
            return None
        right = self._flat(self.search.point.right)
        with hooked([self.step.unit], [self.code], self.search.hook):
            for wanted in (each[:count], each[:count][::-1]):
                flat = joined(wanted)
                found = None if np.array_equal(flat, self.value.reshape(flat.shape)) else self._with(flat)
                if found is not None and found.shape == right.shape and np.abs(found - right).max() <= 1e-9:
                    return self._found(flat, None)
        return None

    def solved(self) -> Due | bool | None:
        """By Newton's steps, of which one is enough where the gradients are a straight line in the
        value.
        """
        value = self.value
        if not 0 < value.size <= MOST:
            return None
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
                if rank < value.size and len(self.shapes) > 1:
                    # Several values would do. A mistake in a value that is carried shows from the
                    # second run on, so the first run keeps its
                    # own; the values carried from there are then those of the right backward.
                    later = slopes[:, self.ends[1] :]
                    rest = np.linalg.lstsq(later, right - at, rcond=1e-9)[0]
                    if np.abs(later @ rest - (right - at)).max() <= 1e-9:
                        change = np.concatenate([np.zeros(self.ends[1]), rest])
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
                    return self._found(now, rows[:rank].T * (sizes[:rank] / sizes[0]))
                if value.size > 64 or np.abs(found - right).max() > 10 * np.abs(at - right).max():
                    return None
                at = found
        return None

    def solved_for_some(self) -> Due | None:
        """For as many of the wrong gradients as can be right together; a straight line only."""
        value, base, right = self.value, self.search.base, self.search.point.right
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
            return Due(value, value + change.reshape(value.shape), self.shapes, rows[:rank].T * (sizes[:rank] / sizes[0]), self.step.runs, self.search.values)

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
        if best[1] is None or len(self.shapes) == 1:
            return best[1]
        with hooked([self.step.unit], [self.code], self.search.hook):
            return self._found(best[1].wanted, best[1].seen)

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
        parent = parents.get(id(n))
        if n is root or (seen := values_of(search, step, n)) is None or seen[0].size < 2:
            continue
        inner = isinstance(parent, (ast.Call, ast.List, ast.Tuple)) or isinstance(parent, ast.Attribute) or isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.MatMult, ast.Pow, ast.Div)) and (n is parent.left or isinstance(parent.op, ast.MatMult))
        if inner:
            out.append(n)
    return out[:6]
