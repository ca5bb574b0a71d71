"""The statements of a backward pass as they ran: what is known of their values, and how likely the
mistake is in each.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .bench import Bench, target_of, targets_of
from .chains import Link
from .case import SINGLE, Array, Case, Point, Quantity
from .edit import Edit, Scope
from .texts import name_of, number_of
from .known import Known, Match
from .outside import Outside
from .record import Hook, hooked, watched
from .units import Statement, Unit, called, unit_of

RUNS = 12
"""The most runs of one statement that are looked at."""


@dataclass
class Step:
    """A statement of the backward pass as it ran."""

    unit: Unit
    statement: Statement
    order: int
    runs: list[dict[str, Any]]
    """The variables before each of its runs: several in a loop, or in a function that is called
    several times.
    """
    results: list[Match | None]
    """The quantity that each result is, as far as it is known; where it runs several times, of the
    runs that read what is right.
    """
    known: bool
    """Whether all tensors that it reads are quantities of the right passes, in some run: in a
    recurrence the mistake of one run spoils what later ones read.
    """
    judged: int = 0
    """The first such run."""
    reads_parts: bool = False
    is_local: bool = False
    """Whether its result is the same whatever gradient comes in."""
    calls: bool = False
    """Whether another function of the user's runs in it: then the mistake is rather there."""
    is_named: bool | None = None
    """Whether its result is the gradient that its variable is named for."""
    reads_misnamed: bool = False
    """Whether it reads a variable that is not the gradient that it is named for: the mistake is
    rather there."""
    touches: set[int] = field(default_factory=set)
    """The gradients that depend on its value."""
    rank: float = 0.0
    after: list[Array] = field(default_factory=list)
    """Its variable after each run, as far as that is a tensor of floats."""

    @property
    def names(self) -> dict[str, Any]:
        """The variables before its first run."""
        return self.runs[0]

    @property
    def is_whole_gradient(self) -> bool:
        """Whether its result is all of the gradient of a variable."""
        return all(m is not None and m.quantity.is_gradient and m.quantity.words.startswith("the gradient") for m in self.results)

    @property
    def right(self) -> bool:
        """Whether its result is a quantity of the right passes."""
        return bool(self.results) and all(m is not None and m.exact for m in self.results)


class Recording:
    """Both passes at a point, with all values."""

    def __init__(self, case: Case, seconds: float) -> None:
        self.case = case
        self.point = case.point(1, quantities=True)
        self.others = [case.point(2), case.point(0)]
        self.base = case.gradients(self.point)
        self.wrong = self._wrong(self.base, self.point)
        if not self.wrong and (given := self._wrong(case.gradients(self.others[1]), self.others[1])):
            self.point, self.wrong = case.point(0, quantities=True), given
            self.base, self.others = case.gradients(self.point), [case.point(0), self.others[0]]
        if not self.wrong:
            self._begin_elsewhere()
        self.engine = case.engine
        self.numbers = itertools.count()
        self._resized: list[Point] | None = None
        self._matches: dict[Any, Match | None] = {}
        self._attributes: list[tuple[str, Any]] | None = None
        self._scopes: dict[int, Scope] = {}
        self._mentioned: set[str] | None = None
        self._forward_lines: set[str] | None = None
        self._given: list[tuple[str, Any, set[str]]] | None = None
        self._steep: list[tuple[str, Any, set[str]]] | None = None
        self._bracketed: list[tuple[str, set[str]]] | None = None
        self._rows: list[list[Link]] | None = None
        self._tried: dict[int, list[Edit]] = {}
        self._due: dict[int, Any] = {}
        self._codes: dict[Unit, Any] = {}
        self.hook = Hook(self.engine.keep)
        backward, forward = called(lambda: case.gradients(self.point), lambda: case.run_forward(self.point.inputs))
        self.units, self.forwards = self._units(backward), self._units(forward)
        self.shared = {u.original for u in self.units} & {u.original for u in self.forwards}
        """Functions that both passes call: what they give is right, as the forward pass is."""
        self.bench = Bench(case, self.point, self.units, self.hook, seconds, Outside([*self.units, *self.forwards]))

    def _begin_elsewhere(self) -> None:
        """Begins at another point, where the backward is right near the given inputs: at one at
        which a gate or a bound is reached.
        """
        case = self.case
        points = itertools.chain((case.point(seed) for seed in (2, 6, 7, 8)), case.far())
        odd = next((p for p in points if self._wrong(case.gradients(p), p)), None)
        if odd is None:
            return
        self.point = case.point(odd.seed, quantities=True)
        self.point.sizes = odd.sizes
        far = [p for p in case.far() if p.seed != odd.seed]
        self.others = [case.point(0), case.point(1), *far]
        self.base = case.gradients(self.point)
        self.wrong = self._wrong(self.base, self.point)

    def _wrong(self, found: list[Array], point: Point) -> list[int]:
        return [i for i, e in enumerate(self.case.errors(point, found)) if not e <= self.case.tolerance_at(point)]

    def _units(self, found: list[Any]) -> list[Unit]:
        units = [unit_of(functions, self.numbers) for functions in found]
        return [u for u in units if u is not None]

    # -- recording

    def record(self) -> None:
        """Runs both passes with all values kept, and says of each statement what is known of it."""
        forward_names = self._forward_names()
        hook = self.hook
        hook.values, hook.moments, hook.recording = {}, [], True
        with hooked(self.units, [self.watched_code(u) for u in self.units], hook):
            self.case.gradients(self.point)
        hook.recording = False
        if any(self.engine.is_single(v) for values in hook.values.values() for v in values):
            # A backward pass in single precision is right to its last digits.
            self.case.tolerance = max(self.case.tolerance, SINGLE)
            self.wrong = self._wrong(self.base, self.point)
        engine, moments = self.engine, hook.moments
        self.values = hook.values
        for unit in self.units:
            nodes: Iterator[Any] = ast.walk(unit.node)
            unit.has_arrays = any(isinstance(v, np.ndarray) for n in nodes for v in hook.values.get(n.number, [])[:1])
        for name, v in self._named_floats(moments):
            forward_names.setdefault(key_of(engine.array(v)), name)
        self.known = self._known(forward_names)
        self.constants = self._constants()
        self.bounds = self._bounds()
        self.still = self._still()
        self.local = self._local()
        self.scaled: set[Any] = set()
        self.steps = self._steps(moments)

    def _still(self) -> set[Any]:
        """Values that are the same at another point: constants, which tell nothing."""
        return self._same_at(self.others[0])

    def _local(self) -> set[Any]:
        """Values that are the same whatever gradient comes in: what a line makes of the forward
        pass for the lines below. None, where the backward is that of the loss
        itself and takes the gradient that comes in at its end."""
        engine = self.engine
        same = self._same_at(replace(self.point, above=[None if g is None else engine.tensor(2 * engine.array(g), g) for g in self.point.above]))
        made = {key_of(engine.array(v)): v for _, v in self._named_floats(self.hook.moments)}
        # A value that is none of the forward pass is a gradient, or on the way to one.
        own = {key for key, v in made.items() if key not in self.still and ((m := self._match(v)) is None or m.quantity.is_gradient)}
        # A variable that is named for a gradient is meant to be one.
        speaking = set[str]().union(*(gradient_names(q.name) for q in self.known.all if q.name))
        named = {key_of(engine.array(v)) for name, v in self._named_floats(self.hook.moments) if name in speaking}
        return same - named if 2 * len(own & same) < len(own) else set()

    def _same_at(self, point: Point) -> set[Any]:
        """Values that are the same at another point."""
        hook = Hook(self.engine.keep)
        with hooked(self.units, [self.watched_code(u) for u in self.units], hook):
            self.bench.run(point)
        mine = {key_of(self.engine.array(v)) for _, v in self._named_floats(self.hook.moments)}
        return mine & {key_of(self.engine.array(v)) for _, v in self._named_floats(hook.moments)}

    def _named_floats(self, moments: list[Any]) -> Iterator[tuple[str, Any]]:
        """The variables that are tensors of floats, each value once, in the order in which they
        came.
        """
        seen: set[Any] = set()
        for m in moments:
            for name, v in m.names.items():
                if (name, id(v)) not in seen and self.engine.is_float(v):
                    seen.add((name, id(v)))
                    if (key := (name, key_of(self.engine.array(v)))) not in seen:
                        seen.add(key)
                        yield name, v

    def _forward_names(self) -> dict[Any, str]:
        """The variables of the forward pass by their values."""
        hook = Hook(self.engine.keep)
        with hooked(self.forwards, [watched(u) for u in self.forwards], hook):
            self.case.run_forward(self.point.inputs)
        names: dict[Any, str] = {}
        self.forward_moments, self.forward_values = hook.moments, hook.values
        for i in self.case.graded:
            names[key_of(self.engine.array(self.point.inputs[i]))] = self.case.names[i]
        for name, v in self._named_floats(hook.moments):
            names.setdefault(key_of(self.engine.array(v)), name)
        return names

    def _known(self, names: dict[Any, str]) -> Known:
        engine, point = self.engine, self.point
        given = [Quantity(f"`{self.case.names[i]}`", engine.array(point.inputs[i]), False, self.case.names[i]) for i in self.case.graded]
        given += [Quantity(f"the gradient of `{self.case.names[i]}`", r, True, self.case.names[i]) for i, r in zip(self.case.graded, point.right)]
        given += [Quantity("the gradient that comes in", engine.array(g), True) for g in point.above if g is not None]
        last: dict[int, str] = {}
        for i, q in enumerate(point.quantities):
            name = names.get(key_of(q.value), "") if not q.is_gradient else last.get(i - 1, "")
            if not q.is_gradient:
                last[i] = name
            if name and not q.words.startswith("a part"):
                q.name, q.words = name, f"the gradient of `{name}`" if q.is_gradient else f"`{name}`"
        given += [Quantity(f"`{name}`", engine.array(v), False, name) for name, v in self._named_floats(self.forward_moments)]
        given += [Quantity(f"`{text}` of {q.words}", v, False) for q in [*given, *point.quantities] if not q.is_gradient for text, v in _derived(q.value)]
        # Named ones are found first, and gradients of named ones before parts of gradients.
        point.quantities.sort(key=lambda q: (not q.name, q.words.startswith("a part")))
        return Known(point, given, self.engine.near)

    def _constants(self) -> list[float]:
        found = []
        for unit in [*self.forwards, *self.units]:
            for n in ast.walk(unit.node):
                x = number_of(n)
                if x is not None and x not in found and not (isinstance(x, int) and abs(x) < 3):
                    found.append(x)
        return found[:24]

    def _bounds(self) -> list[float]:
        """The numbers that either pass compares with or holds values within, and its constants."""
        found: list[Any] = []
        for unit in [*self.forwards, *self.units]:
            for n in ast.walk(unit.node):
                if isinstance(n, ast.Compare):
                    found += [n.left, *n.comparators]
                elif isinstance(n, ast.Call) and name_of(n) in ("clamp", "clip", "maximum", "minimum"):
                    found += [*n.args, *(k.value for k in n.keywords)]
        return list(dict.fromkeys([abs(x) for n in found if (x := number_of(n))] + self.constants))

    def _match(self, v: Any) -> Match | None:
        if not self.engine.is_float(v):
            return None
        a = self.engine.array(v)
        key = key_of(a)
        if key not in self._matches:
            self._matches[key] = self.known.match(a)
        return self._matches[key]

    def _steps(self, moments: list[Any]) -> list[Step]:
        first: dict[int, Any] = {}
        after: dict[int, list[Any]] = {}
        order: dict[int, int] = {}
        for at, m in enumerate(moments):
            if m.after:
                after.setdefault(m.statement, []).append(m)
            else:
                first.setdefault(m.statement, m)
                order.setdefault(m.statement, at)
        before: dict[int, list[Any]] = {}
        for m in moments:
            if not m.after:
                before.setdefault(m.statement, []).append(m)
        steps = []
        for unit in self.units:
            for s in unit.statements:
                if s.number in first:
                    steps.append(self._step(unit, s, order[s.number], before[s.number], after.get(s.number, [])))
        owners = {s.number: unit for unit in self.units for s in unit.statements}
        for m, after_it in zip(moments, moments[1:]):
            if not m.after and owners[m.statement] is not owners[after_it.statement]:
                for st in steps:
                    st.calls |= st.statement.number == m.statement and not after_it.after
        last = {(st.unit, t): st for st in sorted(steps, key=lambda st: st.order) for t in targets_of(st.statement.node)}
        for st in steps:
            st.is_named = self._as_named(st) if all(last[st.unit, t] is st for t in targets_of(st.statement.node)) else None
        for st in steps:
            reads = {n.id for n in ast.walk(st.statement.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            st.reads_misnamed = any((made := last.get((st.unit, n))) is not None and made is not st and made.is_named is False and made.order < st.order for n in reads)
        return steps

    def _step(self, unit: Unit, s: Statement, order: int, before: list[Any], after: list[Any]) -> Step:
        """A statement with what is known of it. The runs whose operands are right count.
        """
        count = len(before)
        good = [i for i in range(min(count, RUNS)) if self._reads_known(s, before[i].names, i, count)]
        chosen = good if 0 < len(good) < count else list(range(count))
        results = self._results(s, after, chosen, count)
        if not results:
            results = self._constant_results(s, after)
        runs = [m.names for m in before[:RUNS]]
        parts = any(self._reads_parts(s, runs[i]) for i in chosen[:RUNS])
        step = Step(unit, s, order, runs, results, bool(good), good[0] if good else 0, parts)
        made = [m.names.get(t) for m in after[:RUNS] for t in targets_of(s.node)]
        step.after = [self.engine.array(v) for v in made if self.engine.is_float(v)]
        step.is_local = bool(made) and all(self.engine.is_float(v) and key_of(self.engine.array(v)) in self.local for v in made)
        return step

    def _as_named(self, step: Step) -> bool | None:
        """Whether a result is the gradient that the variable's name (`dx`, `grad_x`, `x_grad`)
        speaks of; None where it speaks of none.
        """
        targets = targets_of(step.statement.node)
        if not targets or not step.results:
            return None
        named = {t: [q.value for q in self.known.all if q.is_gradient and q.name and t in gradient_names(q.name)] for t in targets}
        if not all(named.values()) or len(step.results) % len(targets):
            return None
        pairs = zip(step.results, targets * (len(step.results) // len(targets)))
        named_right = all(m is not None and m.exact and any(x.size == m.quantity.value.size and np.allclose(x.reshape(-1), m.quantity.value.reshape(-1), rtol=self.known.near, atol=0) for x in named[t]) for m, t in pairs)
        if not named_right and step.right and all(t.startswith("g") and not t.startswith("grad") for t in targets):
            # `gw` may be `g` times `w`.
            return None
        if not named_right and step.right and step.unit is not self.units[0]:
            # In a helper a name may be that of another variable, or of a part of its gradient.
            return None
        return named_right

    def _results(self, s: Statement, after: list[Any], chosen: list[int], count: int) -> list[Match | None]:
        if isinstance(s.node, ast.AugAssign) and count > 1:
            # A sum is a quantity when its last part is in; each part may be one, too.
            parts = self.values.get(getattr(s.node.value, "number", -1), [])
            each = [self._match(parts[i]) for i in chosen if self._telling(parts[i])] if len(parts) == count else []
            whole = self._match(after[-1].names.get(target_of(s.node))) if after else None
            if len(each) and len(chosen) < count and (whole is None or not whole.exact):
                return each
        if isinstance(s.node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            after = [after[i] for i in chosen] if len(after) == count and not isinstance(s.node, ast.AugAssign) else after[-1:] if isinstance(s.node, ast.AugAssign) else after
            target = target_of(s.node)
            if target is not None:
                return [self._match(m.names[target]) for m in after if self._telling(m.names.get(target))]
            return [self._match(m.names[n]) for m in after for n in targets_of(s.node) if self._telling(m.names.get(n))]
        value = s.node.value if isinstance(s.node, ast.Return) else s.node
        out: list[Match | None] = []
        for part in value.elts if isinstance(value, ast.Tuple) else [value]:
            seen = self.values.get(getattr(part, "number", -1), [])
            out += [self._match(v) for v in ([seen[i] for i in chosen] if len(seen) == count else seen) if self._telling(v)]
        return out

    def _constant_results(self, s: Statement, after: list[Any]) -> list[Match | None]:
        """The known quantity of a result that is the same for all inputs, as a gradient may be."""
        target = target_of(s.node)
        values = [m.names[target] for m in after if target in m.names] if target else []
        matches = [self._match(v) for v in values if self.engine.is_float(v) and self.engine.array(v).any()]
        speaks = any(q.is_gradient and q.name and target in gradient_names(q.name) for q in self.known.all)
        return matches if any(m is not None for m in matches) or speaks else []

    def _telling(self, v: Any) -> bool:
        """Whether a value can be told from others: zeros and ones stand everywhere."""
        if not self.engine.is_float(v):
            return False
        a = self.engine.array(v)
        return bool(a.size) and key_of(a) not in self.still and bool(a.any())

    def _reads_known(self, s: Statement | ast.expr, names: dict[str, Any], run: int = 0, count: int = 1) -> bool:
        """Whether all tensors that a statement, or an expression, reads in a run are quantities of
        the right passes, or come of such by an index.
        """

        def value(n: Any) -> Any:
            seen = self.values.get(getattr(n, "number", -1), [])
            return seen[run] if len(seen) == count else names.get(n.id) if isinstance(n, ast.Name) else None

        def good(n: Any) -> bool:
            if isinstance(n, (ast.Name, ast.Subscript, ast.Attribute)):
                v = value(n)
                if self.engine.is_float(v):
                    key = key_of(self.engine.array(v))
                    if key in self.still or key in self.scaled or key in self.local or (m := self._match(v)) is not None and m.exact:
                        return True
                    return not isinstance(n, ast.Name) and self.engine.is_float(value(n.value)) and good(n.value)
            return all(good(c) for c in ast.iter_child_nodes(n) if isinstance(c, (ast.expr, ast.keyword)))

        root = s if isinstance(s, ast.AST) else s.node if isinstance(s.node, ast.expr) else getattr(s.node, "value", None)
        return root is None or good(root)

    def _reads_parts(self, s: Statement, names: dict[str, Any]) -> bool:
        """Whether it reads what is but a part of a gradient, which may be due there or the whole of
        it.
        """
        reads = {n.id for n in ast.walk(s.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        matches = [self._match(names[n]) for n in reads if n in names]
        return any(m is not None and m.quantity.is_gradient and not m.quantity.words.startswith(("the gradient of `", "the gradient that")) for m in matches)

    def _size(self, i: int) -> float:
        return self.point.sizes[i] or self.point.scale

    def watched_code(self, unit: Unit) -> Any:
        """The unit's code with its values watched."""
        if unit not in self._codes:
            self._codes[unit] = watched(unit)
        return self._codes[unit]


def gradient_names(name: str) -> set[str]:
    """Usual names for the gradient of a variable, or of an attribute."""
    name = name.rpartition(".")[2]
    return {f"d{name}", f"d_{name}", f"g{name}", f"g_{name}", f"grad_{name}", f"grad{name}", f"{name}_grad", f"{name}_bar", f"{name}bar", f"dl_d{name}"}


def _derived(x: Array) -> list[tuple[str, Array]]:
    """Common functions of a forward value in a backward pass, each in one op."""
    if x.dtype != np.float64 or not x.size or x.size > 20_000 or not np.isfinite(x).all():
        return []
    with np.errstate(all="ignore"):
        out = [("sigmoid", 1 / (1 + np.exp(-x))), ("tanh", np.tanh(x)), ("exp", np.exp(x)), ("log", np.log(x)), ("1 /", 1 / x), ("sqrt", np.sqrt(x)), ("square", x * x), ("1 / sqrt", 1 / np.sqrt(x))]
        for axis in range(x.ndim):
            e = np.exp(x - x.max(axis, keepdims=True))
            out.append(("softmax", e / e.sum(axis, keepdims=True)))
    return [(t, v) for t, v in out if np.isfinite(v).all()]


def key_of(x: Array) -> Any:
    return x.shape, x.tobytes()
