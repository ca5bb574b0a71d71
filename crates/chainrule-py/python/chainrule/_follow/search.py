"""The search for the edit that makes a backward pass right."""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bench import Bench, silent, target_of
from .case import Array, Case, Point, Quantity
from .edits import Edit, Edits, Scope, fits, name_of, number_of
from .known import Known, Match
from .scalars import Numbers, numbers_at_hand
from .record import Hook, hooked, watched
from .solve import due
from .synthesis import deeper_proposals, insertions, partial_proposals, proposals
from .units import Statement, Unit, called, unit_of


SHAPING = {"sum", "mean", "amax", "max", "min", "prod", "norm", "logsumexp", "unsqueeze", "squeeze", "view", "reshape", "expand", "einsum", "var", "std"}


@dataclass
class Step:
    """A statement of the backward pass as it ran."""

    unit: Unit
    statement: Statement
    order: int
    names: dict[str, Any]
    results: list[Match | None]
    """What each result is, as far as it is known."""
    known: bool
    """Whether all tensors that it reads are quantities of the right passes."""
    reads_parts: bool = False
    is_named: bool | None = None
    """Whether its result is the gradient that its variable is named for."""
    touches: set[int] = field(default_factory=set)
    """The gradients that depend on its value."""
    rank: float = 0.0

    @property
    def is_whole_gradient(self) -> bool:
        """Whether its result is all of the gradient of a variable."""
        return all(m is not None and m.quantity.is_gradient and m.quantity.words.startswith("the gradient") for m in self.results)

    @property
    def right(self) -> bool:
        """Whether its result is a quantity of the right passes."""
        return bool(self.results) and all(m is not None and m.exact for m in self.results)


@dataclass
class Hit:
    """An edit after which all gradients are right, or more of them than before."""

    step: Step
    edit: Edit
    right: set[int]
    error: float
    local: Match | None = None
    worth: float = 0.0
    sizes: int | None = None
    """At how many points of other sizes it is right."""
    before: Array | None = None
    """The statement's result before and after the edit."""
    after: Array | None = None

    @property
    def cost(self) -> float:
        return self.edit.cost + self.step.rank


@dataclass
class Found:
    """What the search came to."""

    case: Case
    wrong: list[int]
    steps: list[Step]
    hits: list[list[Hit]] = field(default_factory=list)
    """For each mistake its corrections, the best first."""
    located: tuple[Step, Quantity] | None = None
    error: float = 0.0
    runs: int = 0
    is_whole: bool = True
    search: Any = None

    def match_of(self, node: Any) -> Match | None:
        """What the value of an expression is."""
        v = (self.search.values.get(getattr(node, "number", -1)) or [None])[0]
        match: Match | None = self.search._match(v)
        return match

    def match_of_text(self, hit: Hit, edit: Edit) -> Match | None:
        """What the variable is that an edit puts there."""
        match: Match | None = self.search._match(hit.step.names.get(edit.pieces[0][1])) if edit.pieces else None
        return match

    def numbers_of(self, step: Step) -> Numbers:
        """The numbers at hand in a statement."""
        numbers: Numbers = self.search.scope(step).numbers
        return numbers


class Search:
    """One search, at a point of which everything is recorded; what is found is confirmed at another one."""

    def __init__(self, case: Case, seconds: float) -> None:
        self.case = case
        self.point = case.point(1, quantities=True)
        self.others = [case.point(2), case.point(0)]
        self.base = case.gradients(self.point)
        self.wrong = self._wrong(self.base, self.point)
        if not self.wrong and (given := self._wrong(case.gradients(self.others[1]), self.others[1])):
            self.point, self.wrong = case.point(0, quantities=True), given
            self.base, self.others = case.gradients(self.point), [case.point(0), self.others[0]]
        self.engine = case.engine
        self.numbers = itertools.count()
        self._resized: list[Point] | None = None
        self._matches: dict[Any, Match | None] = {}
        self._attributes: list[tuple[str, Any]] | None = None
        self._scopes: dict[int, Scope] = {}
        self._mentioned: set[str] | None = None
        self._given: list[tuple[str, Any, set[str]]] | None = None
        self._tried: dict[int, list[Edit]] = {}
        self._due: dict[int, Any] = {}
        self._codes: dict[Unit, Any] = {}
        self.hook = Hook(self.engine.keep)
        backward, forward = called(lambda: case.gradients(self.point), lambda: case.run_forward(self.point.inputs))
        self.units, self.forwards = self._units(backward), self._units(forward)
        self.bench = Bench(case, self.point, self.units, self.hook, seconds)

    def _wrong(self, found: list[Array], point: Point) -> list[int]:
        return [i for i, e in enumerate(self.case.errors(point, found)) if not e <= self.case.tolerance]

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
        engine, moments = self.engine, hook.moments
        self.values = hook.values
        for m in moments:
            for name, v in m.names.items():
                if engine.is_float(v):
                    forward_names.setdefault(_key(engine.array(v)), name)
        self.known = self._known(forward_names)
        self.constants = self._constants()
        self.still = self._still()
        self.steps = self._steps(moments)

    def _still(self) -> set[Any]:
        """Values that are the same at another point: constants, which tell nothing."""
        point = self.others[0]
        hook = Hook(self.engine.keep)
        with hooked(self.units, [self.watched_code(u) for u in self.units], hook):
            self.bench.run(point)
        mine = {_key(self.engine.array(v)) for m in self.hook.moments for v in m.names.values() if self.engine.is_float(v)}
        return mine & {_key(self.engine.array(v)) for m in hook.moments for v in m.names.values() if self.engine.is_float(v)}

    def _forward_names(self) -> dict[Any, str]:
        """The variables of the forward pass by their values."""
        hook = Hook(self.engine.keep)
        with hooked(self.forwards, [watched(u) for u in self.forwards], hook):
            self.case.run_forward(self.point.inputs)
        names: dict[Any, str] = {}
        self.forward_moments, self.forward_values = hook.moments, hook.values
        for i in self.case.graded:
            names[_key(self.engine.array(self.point.inputs[i]))] = self.case.names[i]
        for m in hook.moments:
            for name, v in m.names.items():
                if self.engine.is_float(v):
                    names.setdefault(_key(self.engine.array(v)), name)
        return names

    def _known(self, names: dict[Any, str]) -> Known:
        engine, point = self.engine, self.point
        given = [Quantity(f"`{self.case.names[i]}`", engine.array(point.inputs[i]), False, self.case.names[i]) for i in self.case.graded]
        given += [Quantity(f"the gradient of `{self.case.names[i]}`", r, True, self.case.names[i]) for i, r in zip(self.case.graded, point.right)]
        given += [Quantity("the gradient that comes in", engine.array(g), True) for g in point.above if g is not None]
        last: dict[int, str] = {}
        for i, q in enumerate(point.quantities):
            name = names.get(_key(q.value), "") if not q.is_gradient else last.get(i - 1, "")
            if not q.is_gradient:
                last[i] = name
            if name and not q.words.startswith("a part"):
                q.name, q.words = name, f"the gradient of `{name}`" if q.is_gradient else f"`{name}`"
        for m in self.forward_moments:
            for name, v in m.names.items():
                if engine.is_float(v):
                    given.append(Quantity(f"`{name}`", engine.array(v), False, name))
        given += [Quantity(f"`{text}` of {q.words}", v, False) for q in [*given, *point.quantities] if not q.is_gradient for text, v in _derived(q.value)]
        # Named ones are found first, and gradients of named ones before parts of gradients.
        point.quantities.sort(key=lambda q: (not q.name, q.words.startswith("a part")))
        return Known(point, given)

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
        key = _key(a)
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
        steps = []
        for unit in self.units:
            for s in unit.statements:
                if s.number not in first:
                    continue
                names = first[s.number].names
                runs = [m.names for m in moments if m.statement == s.number and not m.after][:12]
                results = self._results(s, after.get(s.number, []))
                if not results:
                    results = self._constant_results(s, after.get(s.number, []))
                steps.append(Step(unit, s, order[s.number], names, results, all(self._reads_known(s, n) for n in runs), any(self._reads_parts(s, n) for n in runs)))
        last = {(st.unit, target_of(st.statement.node)): st for st in sorted(steps, key=lambda st: st.order)}
        for st in steps:
            st.is_named = self._as_named(st) if last[st.unit, target_of(st.statement.node)] is st else None
        return steps

    def _as_named(self, step: Step) -> bool | None:
        """Whether a result is the gradient that the variable's name (`dx`, `grad_x`, `x_grad`) speaks of; None where it speaks of none."""
        target = target_of(step.statement.node)
        if target is None or not step.results:
            return None
        named = [q.value for q in self.known.all if q.is_gradient and q.name and target in _gradient_names(q.name)]
        if not named:
            return None
        return all(m is not None and m.exact and any(x.size == m.quantity.value.size and np.allclose(x.reshape(-1), m.quantity.value.reshape(-1), rtol=1e-9, atol=0) for x in named) for m in step.results)

    def _results(self, s: Statement, after: list[Any]) -> list[Match | None]:
        if isinstance(s.node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            target = target_of(s.node)
            if target is not None:
                return [self._match(m.names[target]) for m in after if self._telling(m.names.get(target))]
            if isinstance(s.node, ast.Assign) and isinstance(s.node.targets[0], ast.Tuple):
                names = [n.id for n in s.node.targets[0].elts if isinstance(n, ast.Name)]
                return [self._match(m.names[n]) for m in after for n in names if self._telling(m.names.get(n))]
            return []
        value = s.node.value if isinstance(s.node, ast.Return) else s.node
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        return [self._match(v) for p in parts for v in self.values.get(getattr(p, "number", -1), []) if self._telling(v)]

    def _constant_results(self, s: Statement, after: list[Any]) -> list[Match | None]:
        """What is known of a result that is the same for all inputs, as a gradient may be."""
        target = target_of(s.node)
        values = [m.names[target] for m in after if target in m.names] if target else []
        matches = [self._match(v) for v in values if self.engine.is_float(v) and self.engine.array(v).any()]
        speaks = any(q.is_gradient and q.name and target in _gradient_names(q.name) for q in self.known.all)
        return matches if any(m is not None for m in matches) or speaks else []

    def _telling(self, v: Any) -> bool:
        """Whether a value can be told from others: zeros and ones stand everywhere."""
        if not self.engine.is_float(v):
            return False
        a = self.engine.array(v)
        return bool(a.size) and _key(a) not in self.still and bool(a.any())

    def _reads_known(self, s: Statement, names: dict[str, Any]) -> bool:
        reads = {n.id for n in ast.walk(s.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        floats = [names[n] for n in reads if n in names and self.engine.is_float(names[n])]
        return all(_key(self.engine.array(v)) in self.still or (m := self._match(v)) is not None and m.exact for v in floats)

    def _reads_parts(self, s: Statement, names: dict[str, Any]) -> bool:
        """Whether it reads what is but a part of a gradient, which may be due there or the whole of it."""
        reads = {n.id for n in ast.walk(s.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        matches = [self._match(names[n]) for n in reads if n in names]
        return any(m is not None and m.quantity.is_gradient and not m.quantity.words.startswith("the gradient of `") for m in matches)

    # -- where

    def localise(self) -> None:
        """Orders the statements by how likely the mistake is in them: by the gradients that depend on them, and by what is known of their values."""
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
                    # The value is no tensor of floats (a number, an index), or it is changed in place: what depends on it follows from who reads it.
                    silent_steps.append(step)
        self._spread(silent_steps)
        for step in self.steps:
            step.rank = self._rank(step, wrong)
        self.steps.sort(key=lambda s: (s.rank, s.order))

    def _spread(self, steps: list[Step]) -> None:
        """The gradients that depend on a statement without a tensor: those that depend on a statement that reads its variable, or stands in its block."""
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
        """0 for a statement whose operands are all right and whose result is not; more for others."""
        if not step.touches & wrong:
            return 9.0
        rank = 0.0 if wrong <= step.touches else 0.7
        still = {i for i in step.touches - wrong if float(np.abs(self.point.right[i]).max(initial=0.0)) > 1e-12 * self.point.scale}
        if still and step.results:
            # A wrong value would have made these gradients wrong, too.
            rank += 1.0
        if not step.results:
            rank += 0.25 if step.touches == wrong else 0.6
        elif step.is_named:
            rank += 1.0
        elif step.right:
            # A right quantity, but perhaps not the one that is due.
            rank += 0.3 if step.touches == wrong else 0.5
        elif not step.known:
            rank += 0.3
        elif step.reads_parts:
            rank += 0.15
        elif any(m is not None for m in step.results):
            rank += 0.1
        if step.is_named is False and not step.reads_parts:
            rank -= 0.2
        rank = max(rank, 0.0)
        return rank

    # -- what

    def scope(self, step: Step) -> Scope:
        """What is at hand where a statement runs."""
        if id(step) not in self._scopes:
            self._scopes[id(step)] = self._scope(step)
        return self._scopes[id(step)]

    def _scope(self, step: Step) -> Scope:
        engine, names = self.engine, dict(step.names)
        if self._mentioned is None:
            self._mentioned = {n.id for u in [*self.units, *self.forwards] for n in ast.walk(u.node) if isinstance(n, ast.Name)}
        mentioned = self._mentioned
        for name, v in step.unit.functions[0].__globals__.items():
            if name in mentioned and name not in names and (engine.is_tensor(v) or isinstance(v, (int, float))) and not name.startswith("__"):
                names[name] = v
        for text, v in self._fixed():
            names.setdefault(text, v)
        source = "".join(step.unit.lines[step.unit.node.lineno - 1 : step.unit.node.end_lineno])
        slices = [step.unit.text(n) for n in ast.walk(step.unit.node) if isinstance(n, ast.Slice)]
        masks = [n for n, v in names.items() if engine.is_bool(v)]
        transpose = ".t()" if ".t()" in source else ".mT" if ".mT" in source else ".T"
        numbers = numbers_at_hand(names, self.constants, engine.is_tensor)
        return Scope(engine, names, self.values, numbers, self.constants, [], masks, list(dict.fromkeys(slices)), transpose, self._kinds(names), self._donors(step, names))

    def _fixed(self) -> list[tuple[str, Any]]:
        """Attributes of classes and modules that either pass reads (`Layer.eps`): at hand everywhere."""
        if self._attributes is None:
            self._attributes = []
            for unit, values in [*((u, self.values) for u in self.units), *((u, self.forward_values) for u in self.forwards)]:
                for n in ast.walk(unit.node):
                    if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and isinstance(unit.functions[0].__globals__.get(n.value.id), type):
                        v = (values.get(n.number) or [None])[0]  # type: ignore[attr-defined]
                        if v is not None and (unit.text(n), v) not in self._attributes if not self.engine.is_tensor(v) else unit.text(n) not in [t for t, _ in self._attributes]:
                            self._attributes.append((unit.text(n), v))
        return self._attributes

    def _kinds(self, names: dict[str, Any]) -> dict[str, bool]:
        return {n: m.quantity.is_gradient for n, v in names.items() if (m := self._match(v)) is not None}

    def _donors(self, step: Step, names: dict[str, Any]) -> list[tuple[str, Any]]:
        """Expressions of both passes whose variables are at hand here."""
        if self._given is None:
            self._given = self._all_donors()
        at_hand = set(names) | set(step.unit.functions[0].__globals__) | set(dir(builtins))
        return [(text, v) for text, v, free in self._given if free <= at_hand]

    def _all_donors(self) -> list[tuple[str, Any, set[str]]]:
        out: dict[str, tuple[Any, set[str]]] = {}
        for unit, values in [*((u, self.forward_values) for u in self.forwards), *((u, self.values) for u in self.units)]:
            for n in ast.walk(unit.node):
                if not isinstance(n, (ast.Call, ast.BinOp, ast.Subscript, ast.UnaryOp)) or not isinstance(getattr(n, "ctx", ast.Load()), ast.Load):
                    continue
                seen = values.get(n.number)  # type: ignore[union-attr]
                free = {m.id for m in ast.walk(n) if isinstance(m, ast.Name)}
                if not seen or not free or n.lineno != n.end_lineno:
                    continue
                text = unit.text(n)
                if text not in out and "saved_tensors" not in text:
                    out[text] = seen[0], free
        return [(text, v, free) for text, (v, free) in out.items()]

    def judge(self, found: list[Array] | None) -> tuple[set[int], float]:
        """Which gradients are right, and how far off the worst is."""
        if found is None:
            return set(), math.inf
        errors = self.case.errors(self.point, found)
        return {i for i, e in enumerate(errors) if e <= self.case.tolerance}, max(errors, default=0.0)

    def watched_code(self, unit: Unit) -> Any:
        """The unit's code with its values watched."""
        if unit not in self._codes:
            self._codes[unit] = watched(unit)
        return self._codes[unit]

    def try_edits(self, step: Step, edits: list[Edit]) -> list[Hit]:
        """The edits after which all gradients are right here and elsewhere; better ones than now are kept in `partial`."""
        hits: list[Hit] = []
        before = set(range(len(self.base))) - set(self.wrong)
        target = target_of(step.statement.node)
        named = [q for q in self.known.all if q.is_gradient and q.name and target in _gradient_names(q.name)] if target and not step.is_named else []
        due_here = [] if len(step.results) != 1 else named
        for chunk in _chunks(edits, 150):
            with self.bench.beside(step.unit, step.statement, [e.text() for e in chunk]) as valid:
                for k, i in enumerate(valid, 1):
                    if self.bench.left() < 0:
                        break
                    self.hook.k, self.hook.taken = k, None
                    found = self.bench.run()
                    if found is None:
                        continue
                    right, error = self.judge(found)
                    local = None
                    if len(right) == len(self.base) and not self._confirmed():
                        continue
                    if len(right) < len(self.base) and right >= before and due_here and self.engine.is_float(self.hook.taken):
                        local = self._is_one_of(due_here)
                    hit = Hit(step, chunk[i], right, error, local)
                    if len(right) == len(self.base):
                        hits.append(hit)
                    elif right > before or (local is not None and right >= before):
                        self.partial.append(hit)
        return hits

    def _is_one_of(self, quantities: list[Quantity]) -> Match | None:
        """Whether the statement's result is one of these."""
        x = self.engine.array(self.hook.taken).reshape(-1)
        for q in quantities:
            known = q.value.reshape(-1)
            if known.shape == x.shape and np.abs(known - x).max(initial=0.0) <= 1e-9 * np.abs(known).max(initial=0.0):
                return Match(q, 1.0, False)
        return None

    def _confirmed(self) -> bool:
        for point in self.others:
            found = self.bench.run(point)
            if found is None or self._wrong(found, point):
                return False
        return True

    partial: list[Hit]

    def one(self) -> list[Hit]:
        """The corrections by one edit, the best first."""
        self.partial = []
        suspects = [s for s in self.steps if s.rank < 9]
        # The least cost of an edit of each kind: what cannot beat the best hit is not tried.
        tiers = ((self._small, 0.9), (self._factors, 1.6), (self._joined, 2.2), (self._donated, 2.0), (self._large, 2.3), (self._more, 2.2), (self._deeper, 2.4), (self._inserted, 2.6))
        groups = [[s for s in suspects if low <= s.rank < high] for low, high in ((0, 0.12), (0.12, 0.28), (0.28, 0.45), (0.45, 0.65), (0.65, 1), (1, 9))]
        hits: list[Hit] = []
        for steps in groups:
            for tier, least in tiers:
                for step in steps:
                    if self.bench.left() < 0 or hits and step.rank + least >= min(h.cost for h in hits):
                        continue
                    try:
                        if tier == self._inserted or not self._is_elsewhere(step):
                            hits += tier(step)
                    except (ValueError, SyntaxError, RecursionError, np.linalg.LinAlgError):
                        # One statement that cannot be edited so must not hide the others.
                        continue
        for h in hits:
            if h.sizes is None:
                h.sizes = self._elsewhere_right(h) if h.cost < min(g.cost for g in hits) + 1.0 else 0
        # An edit that is right at other sizes, too, is no chance.
        most = max((h.sizes or 0 for h in hits), default=0)
        hits.sort(key=lambda h: (h.cost + 1.0 * (most - (h.sizes or 0) > 0), h.step.order))
        return hits

    def again(self) -> None:
        """Tries small edits where none can make all gradients right: of several mistakes each makes only some so."""
        for step in self.steps:
            if step.rank < 1.2 and self.bench.left() > 0 and self._is_elsewhere(step):
                self._small(step)
                self._factors(step)
        for step in self.steps:
            if step.rank < 0.7 and self.bench.left() > 0:
                self.try_edits(step, partial_proposals(self, step, self.scope(step)))

    def _elsewhere_right(self, hit: Hit) -> int:
        """At how many points of other sizes the gradients are right with the edit."""
        if self._resized is None:
            self._resized = self.case.resized()
        good = 0
        with self.bench.beside(hit.step.unit, hit.step.statement, [hit.edit.text()]):
            self.hook.k = 1
            for point in self._resized:
                found = self.bench.run(point)
                good += found is not None and not self._wrong(found, point)
        return good

    def due_of(self, step: Step) -> Any:
        """What is due in the place of a statement's value; False where it is not the value that is wrong, None where nothing is known."""
        if id(step) not in self._due:
            self._due[id(step)] = due(self, step)
        return self._due[id(step)]

    def _is_elsewhere(self, step: Step) -> bool:
        """Whether no value of the assigned variable could make all gradients right."""
        node = step.statement.node
        plain = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if not plain or any(isinstance(n, ast.Call) and name_of(n) in SHAPING for n in ast.walk(node.value)):
            # A value of another shape may be due, for which none was solved.
            return False
        return self.due_of(step) is False

    def measured(self, hits: list[Hit]) -> list[Hit]:
        """The best hit gets its results before and after the edit, and the worst error of all points."""
        hit = hits[0]
        with self.bench.beside(hit.step.unit, hit.step.statement, [hit.edit.text()]):
            for k in (0, 1):
                self.hook.k, self.hook.taken = k, None
                self.bench.run()
                if self.engine.is_float(self.hook.taken):
                    taken = np.array(self.engine.array(self.hook.taken))
                    hit.before, hit.after = (taken, hit.after) if k == 0 else (hit.before, taken)
            errors = [hit.error]
            for point in self.others:
                found = self.bench.run(point)
                errors += self.case.errors(point, found) if found is not None else []
            hit.error = max(errors)
        return hits

    def _small(self, step: Step) -> list[Hit]:
        return self.try_edits(step, [e for e in self._edits(step) if e.cost < 2.3])

    def _large(self, step: Step) -> list[Hit]:
        return self.try_edits(step, [e for e in self._edits(step) if e.cost >= 2.3])

    def _edits(self, step: Step) -> list[Edit]:
        if id(step) not in self._tried:
            self._tried[id(step)] = Edits(step.unit, step.statement, self.scope(step)).all()
        return self._tried[id(step)]

    def _joined(self, step: Step) -> list[Hit]:
        """A variable at hand, or a number of either pass, added to a term or multiplied with it."""
        scope, edits = self.scope(step), []
        for node in self._terms(step):
            shape, text = scope.shape(node), step.unit.text(node)
            if shape is None:
                continue
            for name, other in scope.tensors():
                if not fits(other, shape) or len(other) > len(shape) or scope.engine.is_bool(scope.names[name]):
                    continue
                forms = [(2.6, f"{text} + {name}", "term"), (2.6, f"{text} - {name}", "term"), (2.2, _times(name, text, node), "factor"), (2.4, f"{_pow(text, node)} / {name}", "division by")]
                edits += [Edit(step.unit, step.statement, [(node, new)], cost, f"the {what} `{name}` is missing", node) for cost, new, what in forms]
            for x in scope.constants:
                edits.append(Edit(step.unit, step.statement, [(node, f"{text} + {x!r}")], 2.4, f"`{x!r}` is missing", node))
                edits.append(Edit(step.unit, step.statement, [(node, f"{x!r} * {_pow(text, node)}")], 2.4, f"the factor {x!r} is missing", node))
        edits.sort(key=lambda e: e.cost)
        return self.try_edits(step, edits)

    def _terms(self, step: Step) -> list[Any]:
        """The expressions of a statement for which a factor is looked for."""
        node = step.statement.node
        root = node if step.statement.head else getattr(node, "value", None)
        if root is None:
            return []
        out = []
        for n in ast.walk(root):
            if not isinstance(n, ast.expr) or not self.engine.is_float((self.values.get(getattr(n, "number", -1)) or [None])[0]):
                continue
            out.append(n)
        parents = {id(c): p for p in ast.walk(root) for c in ast.iter_child_nodes(p)}
        keep = []
        for n in out:
            p = parents.get(id(n))
            # A factor of a factor is one of the product.
            if p is None or isinstance(p, (ast.Call, ast.Tuple, ast.List)) or isinstance(p, ast.BinOp) and isinstance(p.op, (ast.Add, ast.Sub, ast.Pow)):
                keep.append(n)
        return keep

    def _factors(self, step: Step) -> list[Hit]:
        """A factor, or a number in the place of a written one: it is solved for, and then must be a number that has a meaning."""
        edits: list[Edit] = []
        scope = self.scope(step)
        for node in self._terms(step):
            text = step.unit.text(node)
            c = self._solved(step, node, lambda c: f"__chainrule__.c * ({text})", 1.0)
            for cost, form in scope.numbers.texts(c)[:3] if c is not None else []:
                if form == "0":
                    continue
                new = _times(form, text, node)
                edits.append(Edit(step.unit, step.statement, [(node, new)], 2.0 + 0.4 * cost, f"the factor {form} is missing", node))
        for node in ast.walk(step.statement.node):
            x = number_of(node) if isinstance(node, ast.expr) else None
            if x is None or isinstance(node, ast.Constant) and isinstance(node.value, bool):
                continue
            c = self._solved(step, node, lambda c: "__chainrule__.c", float(x))
            for cost, form in scope.numbers.texts(c)[:3] if c is not None else []:
                edits.append(Edit(step.unit, step.statement, [(node, form)], 1.2 + 0.4 * cost, f"{form} for {x!r}", node))
        edits.sort(key=lambda e: e.cost)
        return self.try_edits(step, edits) if edits else []

    def _solved(self, step: Step, node: Any, text: Any, now: float) -> float | None:
        """The number that makes all wrong gradients right, if they depend on it as a straight line."""
        edit = Edit(step.unit, step.statement, [(node, text(0))], 0, "")
        try:
            with self.bench.beside(step.unit, step.statement, [edit.text()]) as valid:
                if not valid:
                    return None
                self.hook.k, self.hook.c = 1, now + 1.0
                found = self.bench.run()
        except (SyntaxError, ValueError):
            return None
        return self._line(found, now)

    def _line(self, found: list[Array] | None, now: float) -> float | None:
        if found is None or any(a.shape != b.shape for a, b in zip(found, self.base)):
            return None
        slope = np.concatenate([(a - b).reshape(-1) / self._size(i) for i, (a, b) in enumerate(zip(found, self.base))])
        due = np.concatenate([(r - b).reshape(-1) / self._size(i) for i, (r, b) in enumerate(zip(self.point.right, self.base)) if r.shape == b.shape])
        if slope.shape != due.shape or not np.isfinite(slope).all() or not np.isfinite(due).all():
            return None
        square = float(slope @ slope)
        if square < 1e-24:
            return None
        c = float(slope @ due) / square
        if np.abs(slope * c - due).max() > 1e-7:
            return None
        return now + c

    def _size(self, i: int) -> float:
        size = float(np.abs(self.point.right[i]).max(initial=0.0))
        return size if size > 1e-12 * self.point.scale else self.point.scale

    def _donated(self, step: Step) -> list[Hit]:
        return self.try_edits(step, Edits(step.unit, step.statement, self.scope(step)).donated())

    def _deeper(self, step: Step) -> list[Hit]:
        found = deeper_proposals(self, step, self.scope(step))
        return self.try_edits(step, found) if found else []

    def _inserted(self, step: Step) -> list[Hit]:
        found = insertions(self, step, self.scope(step))
        return self.try_edits(step, found) if found else []

    def _more(self, step: Step) -> list[Hit]:
        """A factor or a term that is forgotten, of the variables at hand."""
        scope = self.scope(step)
        found = proposals(self, step, scope)
        if found:
            hits = self.try_edits(step, found)
            if hits:
                return hits
        if self.due_of(step) is not None:
            return []
        edits: list[Edit] = []
        for node in self._terms(step):
            shape = scope.shape(node)
            if shape is None:
                continue
            text = step.unit.text(node)
            for name, forms in _atoms(scope, shape):
                for cost, form in forms:
                    what = f"the factor `{form}` is missing"
                    edits.append(Edit(step.unit, step.statement, [(node, _times(form, text, node))], 2.2 + cost, what, node))
                    edits.append(Edit(step.unit, step.statement, [(node, f"{_pow(text, node)} / {_wrap(form)}")], 2.4 + cost, f"the division by `{form}` is missing", node))
                    if cost < 1:
                        edits.append(Edit(step.unit, step.statement, [(node, f"{text} + {form}")], 2.6 + cost, f"the term `{form}` is missing", node))
                        edits.append(Edit(step.unit, step.statement, [(node, f"{text} - {form}")], 2.6 + cost, f"the term `{form}` is missing", node))
        edits.sort(key=lambda e: e.cost)
        return self.try_edits(step, edits)


def _atoms(scope: Scope, shape: tuple[int, ...]) -> Iterator[tuple[str, list[tuple[float, str]]]]:
    """Values at hand that fit beside one of a shape, and what is often made of them."""
    for name, other in scope.tensors():
        if not fits(other, shape) or len(other) > len(shape) or scope.engine.is_bool(scope.names[name]):
            continue
        yield name, [(0.8, f"(1 - {name} ** 2)"), (0.8, f"(1 - {name})"), (0.8, f"(1 + {name})"), (0.9, f"{name} ** 2"), (1.0, f"{name} * (1 - {name})"), (1.0, f"{name}.exp()"), (1.0, f"{name} ** 0.5")]


def _gradient_names(name: str) -> set[str]:
    """How one calls the gradient of a variable."""
    return {f"d{name}", f"d_{name}", f"g{name}", f"g_{name}", f"grad_{name}", f"grad{name}", f"{name}_grad", f"{name}_bar", f"{name}bar", f"dl_d{name}"}


def _derived(x: Array) -> list[tuple[str, Array]]:
    """What a backward pass often makes of a value of the forward pass, where that does it in one op."""
    if x.dtype != np.float64 or not x.size or x.size > 20_000 or not np.isfinite(x).all():
        return []
    with np.errstate(all="ignore"):
        out = [("sigmoid", 1 / (1 + np.exp(-x))), ("tanh", np.tanh(x)), ("exp", np.exp(x)), ("log", np.log(x)), ("1 /", 1 / x), ("sqrt", np.sqrt(x)), ("square", x * x), ("1 / sqrt", 1 / np.sqrt(x))]
        for axis in range(x.ndim):
            e = np.exp(x - x.max(axis, keepdims=True))
            out.append(("softmax", e / e.sum(axis, keepdims=True)))
    return [(t, v) for t, v in out if np.isfinite(v).all()]


def _wrap(text: str) -> str:
    return text if text.isidentifier() or text.startswith("(") else f"({text})"


def _pow(text: str, node: Any) -> str:
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) or isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Pow, ast.MatMult)) else f"({text})"


def _times(form: str, text: str, node: Any) -> str:
    """A text times a number, as one writes it."""
    inner = _pow(text, node)
    if form.startswith("1 / "):
        return f"{inner} / {form[4:]}"
    if form == "-1":
        return f"-{inner}"
    if " / " in form or " * " in form:
        return f"{inner} * ({form})" if not form.startswith("(") else f"{inner} * {form}"
    return f"{form} * {inner}"


def _chunks(edits: list[Edit], n: int) -> Iterator[list[Edit]]:
    for i in range(0, len(edits), n):
        yield edits[i : i + n]


def _key(x: Array) -> Any:
    return x.shape, x.tobytes()


@contextmanager
def after(search: Search, hit: Hit) -> Iterator[Search | None]:
    """The search that goes on with one edit made; None where that changes the lines."""
    text = hit.edit.text()
    if "\n" in text and hit.edit.whole is not None:
        text = "; ".join(text.split("\n"))
    unit = hit.step.unit.edited(hit.step.statement.node, text, search.numbers)
    if unit is None:
        yield None
        return
    with unit.running(unit.compiled(lambda node: node)):
        new = copy.copy(search)
        new.units = [unit if u is hit.step.unit else u for u in search.units]
        new._tried, new._scopes, new._mentioned, new._given = {}, {}, None, None
        new._codes, new._due, new._attributes, new.partial = {}, {}, None, []
        new.bench = Bench(search.case, search.point, new.units, search.hook, search.bench.left())
        new.base = search.case.gradients(search.point)
        new.wrong = new._wrong(new.base, new.point)
        new.record()
        new.localise()
        yield new


def _promising(search: Search) -> list[Hit]:
    """Edits that bring some of the gradients right, or a value to the quantity that its variable is named for; one of each statement."""
    before = len(search.base) - len(search.wrong)
    best: dict[int, Hit] = {}
    for h in search.partial:
        gain = len(h.right) - before
        if gain <= 0 and not (h.local is not None and h.cost < 3.5):
            continue
        h.worth = h.cost - 0.5 * gain + (0.5 if gain <= 0 else 0.0)
        key = id(h.step)
        if key not in best or h.worth < best[key].worth:
            best[key] = h
    return sorted(best.values(), key=lambda h: h.worth)


def _two(search: Search, found: Found, depth: int) -> bool:
    """Several mistakes, one after the other: an edit that brings something right is kept, and the search goes on from there."""
    for first in _promising(search)[:4]:
        if search.bench.left() <= 0:
            break
        with after(search, first) as rest:
            if rest is None:
                continue
            hits = rest.one()
            if not hits and depth > 1 and _two(rest, found, depth - 1):
                found.hits.insert(0, search.measured([first]))
                return True
            if hits:
                found.hits = [search.measured([first]), rest.measured(hits)]
                found.error = hits[0].error
                return True
    return False


def find(case: Case, seconds: float = 1.2) -> Found | None:
    """The mistakes in a backward pass; None where its gradients are right or nothing can be said."""
    with silent(), case.engine.apart():
        search = Search(case, seconds)
        found = Found(case, search.wrong, [])
        if not search.wrong or not search.units:
            return found if search.wrong else None
        search.record()
        search.localise()
        found.search, found.steps = search, search.steps
        hits = search.one()
        if hits:
            found.hits.append(search.measured(hits))
            found.error = hits[0].error
        else:
            search.again()
            search.bench.until = max(search.bench.until, search.bench.until - search.bench.left() + 0.8 * seconds)
            if not _two(search, found, 2):
                first = next((h for h in _promising(search) if len(h.right) > len(search.base) - len(search.wrong)), None)
                if first is not None:
                    found.hits, found.is_whole, found.error = [search.measured([first])], False, 0.0
        found.runs = search.bench.runs
    return found
