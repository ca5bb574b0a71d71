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
from .case import SINGLE, Array, Case, Point, Quantity
from .edit import Edit, Scope
from .texts import number_of
from .known import Known, Match
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
        self._tried: dict[int, list[Edit]] = {}
        self._due: dict[int, Any] = {}
        self._codes: dict[Unit, Any] = {}
        self.hook = Hook(self.engine.keep)
        backward, forward = called(lambda: case.gradients(self.point), lambda: case.run_forward(self.point.inputs))
        self.units, self.forwards = self._units(backward), self._units(forward)
        self.shared = {u.original for u in self.units} & {u.original for u in self.forwards}
        """Functions that both passes call: what they give is right, as the forward pass is."""
        self.bench = Bench(case, self.point, self.units, self.hook, seconds)

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

    # -- where

    def localise(self) -> None:
        """Orders the statements by how likely the mistake is in them: by the gradients that depend
        on them, and by what is known of their values.
        """
        wrong = set(self.wrong)
        hook, engine = self.hook, self.engine
        noise = np.random.default_rng(3)
        silent_steps: list[Step] = []

        def other(v: Any, _: int) -> Any:
            if engine.is_float(v) and not engine.is_bool(v):
                a = engine.array(v)
                return engine.tensor(a * (1 + 0.01 * noise.random(a.shape)) + 1e-3 * max(float(np.abs(a).max(initial=0.0)), self.point.scale) * noise.random(a.shape), v)
            if type(v) in (list, tuple):
                return type(v)(other(y, 0) for y in v)
            return v

        with hooked(self.units, [self.watched_code(u) for u in self.units], hook):
            for step in self.steps:
                node = step.statement.node
                root = node if step.statement.head else getattr(node, "value", None)
                hook.place, hook.turn, hook.other = getattr(root, "number", -1), 0, other
                if isinstance(root, (ast.Tuple, ast.Constant)) or root is None:
                    hook.place = -1
                found = self.bench.run() if hook.place >= 0 else None
                if hook.place < 0 and not isinstance(root, ast.Tuple):
                    silent_steps.append(step)
                    continue
                hook.place = -1
                if found is None:
                    step.touches = set(range(len(self.base)))
                else:
                    step.touches = {i for i, (a, b) in enumerate(zip(found, self.base)) if self._moved(i, a, b)}
                if not step.touches:
                    # The value is no tensor of floats (a number, an index), or it is changed in
                    # place: what depends on it follows from who reads it.
                    silent_steps.append(step)
            for step in self.steps:
                self._rescaled(step, wrong)
        for step in self.steps if self.scaled else ():
            step.known = step.known or any(self._reads_known(step.statement, n, i, len(step.runs)) for i, n in enumerate(step.runs))
        self._spread(silent_steps)
        for step in self.steps:
            step.rank = self._rank(step, wrong)
        self.steps.sort(key=lambda s: (s.rank, s.order))

    def _rescaled(self, step: Step, wrong: set[int]) -> None:
        """A result that is a multiple of what its variable is named for is right if nothing comes
        right without the factor: then that is taken off further down.
        """
        target = target_of(step.statement.node)
        place = getattr(getattr(step.statement.node, "value", None), "number", -1)
        seen = self.values.get(place) or []
        if step.is_named is not False or len(seen) != 1 or not self.engine.is_float(seen[0]):
            return
        value = self.engine.array(seen[0])
        factor = next((f for q in self.known.all if q.is_gradient and q.name and target in gradient_names(q.name) and (f := _multiple(value, q.value)) is not None), None)
        if factor is None:
            return
        hook, engine = self.hook, self.engine
        hook.place, hook.turn = place, 0
        hook.other = lambda v, _: engine.tensor(engine.array(v) / factor, v) if engine.is_float(v) else v
        found = self.bench.run()
        hook.place = -1
        if found is None:
            return
        errors = self.case.errors(self.point, found)
        if not any(errors[i] <= self.case.tolerance_at(self.point) for i in wrong):
            step.is_named = True
            self.scaled.add(key_of(value))

    def _spread(self, steps: list[Step]) -> None:
        """The gradients that depend on a statement without a tensor: those that depend on a
        statement that reads its variable, or stands in its block.
        """
        for step in reversed(sorted(steps, key=lambda s: s.order)):
            node, owner = step.statement.node, step.statement.owner
            targets = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            changed = target_of(node)
            targets |= {changed} if changed else set()
            inside = {id(n) for n in ast.walk(owner)} if step.statement.head and not isinstance(owner, ast.Lambda) else set()
            for other in self.steps:
                reads = {n.id for n in ast.walk(other.statement.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
                if other is not step and other.unit is step.unit and (id(other.statement.node) in inside or targets & reads and other.order > step.order):
                    step.touches |= other.touches
            if not step.touches and not targets and not inside:
                step.touches = set(range(len(self.base)))

    def _moved(self, i: int, a: Array, b: Array) -> bool:
        """Whether a gradient is another one than before, by more than rounding."""
        return a.shape != b.shape or not bool(np.all((np.abs(a - b) <= 1e-12 * self._size(i)) | (a == b) | (np.isnan(a) & np.isnan(b))))

    def _floats(self, root: Any) -> bool:
        return any(self.engine.is_float(v) for v in self.values.get(getattr(root, "number", -1), []))

    def _rank(self, step: Step, wrong: set[int]) -> float:
        """0 for a statement whose operands are all right and whose result is not; more for others.
        """
        statement = step.statement
        if not step.touches & wrong or statement.head and isinstance(statement.owner, ast.If) and step.unit.is_setting(statement.node):
            return 9.0
        if self._makes_one_wrong(step):
            return 0.1
        rank = 0.0 if wrong <= step.touches else 0.7
        still = {i for i in step.touches - wrong if float(np.abs(self.point.right[i]).max(initial=0.0)) >= self.point.sizes[i]}
        if still and step.results:
            # A wrong value would have made these gradients wrong, too.
            rank += 1.0
        if not step.results:
            rank += 0.25 if step.touches == wrong else 0.6
        elif step.is_named or self._is_of_forward(step):
            rank += 1.8 if step.right and step.is_named else 1.0
        elif step.right:
            # A right quantity, but perhaps not the one that is due.
            rank += (0.12 if self._is_whole_of_parts(step) else 0.3) if step.touches == wrong else 0.5
        elif not step.known:
            rank += 0.3
        elif step.reads_parts:
            rank += 0.15
        elif any(m is not None for m in step.results):
            rank += 0.1
        if step.is_local and not step.right:
            # If an edit does in two lines, it is rather due in the one that makes a gradient.
            rank += 0.2
        if step.is_named is False and step.known and not step.reads_parts:
            rank -= 0.2
        rank = max(rank, 0.0) + (0.6 if step.calls else 0.0) + (0.2 if step.reads_misnamed else 0.0)
        return rank + (0.5 if self._is_line_of_forward(step) else 0.0)

    def _is_line_of_forward(self, step: Step) -> bool:
        """Whether the forward pass has the same line, or runs this one itself."""
        node = step.statement.node
        if step.unit.original in self.shared:
            return True
        if step.results or not isinstance(node, ast.Assign):
            return False
        if self._forward_lines is None:
            nodes = [s.node for u in self.forwards for s in u.statements if not s.head]
            self._forward_lines = {ast.dump(n) for n in nodes if isinstance(n, ast.Assign)}
        return ast.dump(node) in self._forward_lines

    def _is_whole_of_parts(self, step: Step) -> bool:
        """Whether it gives a part of a gradient to a variable that gets no other part: the rest of
        it may be forgotten.
        """
        target = target_of(step.statement.node)
        made = [s for s in self.steps if s.unit is step.unit and target in targets_of(s.statement.node)]
        parts = all(m is not None and m.quantity.is_gradient and m.quantity.words.startswith("a part") for m in step.results)
        return target is not None and made == [step] and parts and not step.calls

    def _makes_one_wrong(self, step: Step) -> bool:
        """Whether it returns or assigns several values and makes one of them there, of what is
        right, and that is not.
        """
        node = step.statement.node
        if not isinstance(node, (ast.Return, ast.Assign)) or not isinstance(node.value, ast.Tuple) or len(step.runs) != 1 or step.calls:
            return False
        returned = isinstance(node, ast.Return) and len(node.value.elts) == len(self.case.inputs) and not any(isinstance(e, ast.Starred) for e in node.value.elts)
        for i, part in enumerate(node.value.elts):
            seen = self.values.get(getattr(part, "number", -1), [])
            whole = not isinstance(part, (ast.Name, ast.Constant)) or returned and self._is_other_part(part, i)
            made = whole and len(seen) == 1 and self._telling(seen[0])
            # A returned part is due to be its input's gradient, and no other quantity.
            due = i in self.case.graded if returned else False
            other = due and self.case.graded.index(i) in self.wrong and not step.reads_misnamed
            if made and (other or (m := self._match(seen[0])) is None or not m.exact) and self._reads_known(part, step.names):
                return True
        return False

    def _is_other_part(self, part: Any, i: int) -> bool:
        """Whether a variable that is returned for an input is a part of a gradient, and is not
        named for the input's.
        """
        seen = self.values.get(getattr(part, "number", -1), [])
        m = self._match(seen[0]) if seen and isinstance(part, ast.Name) else None
        return m is not None and m.exact and m.quantity.words.startswith("a part") and part.id not in gradient_names(self.case.names[i])

    def _is_of_forward(self, step: Step) -> bool:
        """Whether it computes a variable of the forward pass again, under its name."""
        target = target_of(step.statement.node)
        return target is not None and step.right and all(m is not None and m.quantity.name == target and not m.quantity.is_gradient for m in step.results)

    def _size(self, i: int) -> float:
        return self.point.sizes[i] or self.point.scale

    def watched_code(self, unit: Unit) -> Any:
        """The unit's code with its values watched."""
        if unit not in self._codes:
            self._codes[unit] = watched(unit)
        return self._codes[unit]


def gradient_names(name: str) -> set[str]:
    """Usual names for the gradient of a variable."""
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


def _multiple(x: Array, of: Array) -> float | None:
    """The factor by which one value is another, if it is one that a count may be: not of the other
    sign, and not twice or half.
    """
    if x.shape != of.shape or x.size < 3 or not of.any():
        # Any value of so few elements is a multiple of every other one.
        return None
    at = int(np.abs(of).argmax())
    factor = float(x.reshape(-1)[at] / of.reshape(-1)[at])
    off = float(np.abs(of * factor - x).max())
    return factor if 0 < factor and factor not in (1.0, 2.0, 0.5) and off <= 1e-9 * float(np.abs(x).max()) else None


def key_of(x: Array) -> Any:
    return x.shape, x.tobytes()
