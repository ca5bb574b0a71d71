"""The search for the edit that makes a backward pass right."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bench import target_of
from .case import Array, Point, Quantity
from .edit import Edit, Scope
from .edits import Edits
from .texts import fits, name_of, number_of
from .known import Match
from .scopes import Scopes
from .solve import Due, due, root_of
from .steps import Step, gradient_names
from .synthesis import deeper_proposals, insertions, later_places, named_proposals, partial_proposals, proposals, returned_proposals

SHAPING = {"sum", "mean", "amax", "max", "min", "prod", "norm", "logsumexp", "unsqueeze", "squeeze", "view", "reshape", "expand", "einsum", "var", "std"}


@dataclass
class Hit:
    """An edit after which all gradients are right, or more of them than before."""

    step: Step
    edit: Edit
    right: set[int]
    error: float
    local: Match | None = None
    worth: float = 0.0
    sizes: int = 0
    """At how many points of other sizes, or with larger inputs, it is right."""
    is_chance: bool = False
    """Whether it is not right at all of these: a size may happen to be the number that is due."""
    before: Array | None = None
    """The statement's result before and after the edit."""
    after: Array | None = None

    @property
    def cost(self) -> float:
        return self.edit.cost + self.step.rank

    @property
    def bar(self) -> float:
        """Cost up to which other edits are tried."""
        return self.cost + (CHANCE if self.is_chance else 0.0)


LIKELY_WRONG = 0.12
"""The rank of a statement that reads what is right, and gives what is not."""

SLACK = 0.05
"""The cost by which an edit may exceed the best one so far."""

CHANCE = 1.0
"""Cost of an edit that is not right at all sizes at which the backward pass runs."""


class Search(Scopes):
    """One search, at a point of which everything is recorded; what is found is confirmed at another
    one.
    """

    def judge(self, found: list[Array] | None) -> tuple[set[int], float]:
        """Mask of the right gradients, and the error of the worst."""
        if found is None:
            return set(), math.inf
        errors = self.case.errors(self.point, found)
        return {i for i, e in enumerate(errors) if e <= self.case.tolerance_at(self.point)}, max(errors, default=0.0)

    def try_edits(self, step: Step, edits: list[Edit]) -> list[Hit]:
        """The edits after which all gradients are right here and elsewhere; better ones than now
        are kept in `partial`.
        """
        hits: list[Hit] = []
        # An edit that costs more than the best one would not be shown.
        edits = [e for e in edits if e.cost + step.rank < self.cheapest + SLACK]
        before = set(range(len(self.base))) - set(self.wrong)
        due_here = self.named_of(step)
        for chunk in _chunks(edits, 150):
            with self.bench.beside(step.unit, step.statement, [e.text() for e in chunk]) as valid:
                for k, i in enumerate(valid, 1):
                    if self.bench.left() <= 0:
                        break
                    if chunk[i].cost + step.rank >= self.cheapest + SLACK:
                        continue
                    self.hook.k, self.hook.takes = k, []
                    found = self.bench.run()
                    if found is None:
                        continue
                    right, error = self.judge(found)
                    local = None
                    if len(right) == len(self.base) and not self._confirmed() or not self._keeps_forward(step):
                        continue
                    if len(right) < len(self.base) and right >= before and due_here:
                        local = self._is_one_of(due_here, step.judged)
                    hit = Hit(step, chunk[i], right, error, local)
                    if len(right) == len(self.base):
                        hit.sizes, hit.is_chance = self._elsewhere()
                        hits.append(hit)
                        self.cheapest = min(self.cheapest, hit.bar)
                    elif right > before or (local is not None and right >= before):
                        self.partial.append(hit)
        return hits

    def named_of(self, step: Step) -> list[Quantity]:
        """The gradients that a statement's variable is named for, where its result is none of them;
        else the gradient of which its result is a multiple.
        """
        target = target_of(step.statement.node)
        if target is None or step.is_named or not step.results:
            return []
        named = self.named_for(target)
        return named or ([m.quantity] if (m := self._multiple_of(step)) is not None else [])

    def named_for(self, name: str) -> list[Quantity]:
        """The gradients that a variable may be named for."""
        return [q for q in self.known.all if q.is_gradient and q.name and name in gradient_names(q.name)]

    def _multiple_of(self, step: Step) -> Match | None:
        """The gradient of which a result is a multiple, made of what is right: a factor is one too
        many there, or one is missing, whatever else is wrong.
        """
        m = step.results[0] if len(step.results) == 1 and step.known else None
        target, after = target_of(step.statement.node), step.after[-1] if step.after else None
        if m is not None and not m.exact and target is not None and after is not None:
            # Two gradients may be multiples of each other: the one that the variable is named for.
            m = next((n for q in self.named_for(target) if (n := self.known.multiple(after, q)) is not None), m)
        return m if m is not None and m.factor != 1.0 and not m.reordered and m.quantity.is_gradient else None

    def _is_one_of(self, quantities: list[Quantity], run: int) -> Match | None:
        """Whether the statement's result is one of these, in the first run that reads what is
        right.
        """
        if len(self.hook.takes) <= run or not self.engine.is_float(self.hook.takes[run]):
            return None
        x = self.engine.array(self.hook.takes[run]).reshape(-1)
        for q in quantities:
            known = q.value.reshape(-1)
            if known.shape == x.shape and np.abs(known - x).max(initial=0.0) <= 1e-9 * np.abs(known).max(initial=0.0):
                return Match(q, 1.0, False)
        return None

    def _keeps_forward(self, step: Step) -> bool:
        """Whether the forward pass gives what it did, with the edit that runs, where it calls the
        same function: it is the forward pass that says what is due.
        """
        if step.unit.original not in self.shared:
            return True
        k = self.hook.k
        outputs = []
        for self.hook.k in (0, k):
            try:
                found, _ = self.case.run_forward(self.point.inputs)
            except Exception:
                self.hook.k = k
                return False
            outputs.append([self.engine.array(y) for y in found if self.engine.is_float(y)])
        before, after = outputs
        return len(before) == len(after) and all(a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=0.0, equal_nan=True) for a, b in zip(before, after))

    def _confirmed(self) -> bool:
        for point in self.others:
            found = self.bench.run(point)
            if found is None or self._wrong(found, point):
                return False
        return True

    def confirms(self, hit: Hit) -> bool:
        """Whether the gradients that come right with an edit do so at other points, too."""
        with self.bench.beside(hit.step.unit, hit.step.statement, [hit.edit.text()]) as valid:
            self.hook.k, self.hook.takes = 1, []
            for point in [*self.others, *self.case.far()] if valid else []:
                found = self.bench.run(point)
                if found is None or hit.right & set(self._wrong(found, point)):
                    return False
        return True

    @contextmanager
    def any_cost(self) -> Iterator[None]:
        """Edits are tried whatever the best one so far costs."""
        before, self.cheapest = self.cheapest, math.inf
        try:
            yield
        finally:
            self.cheapest = before

    def start(self) -> None:
        """Forgets what was found before."""
        self.partial, self.cheapest, self._again, self._done, self._now = [], math.inf, set(), set(), set()

    _again: set[int]
    _done: set[tuple[str, int]]
    """The kinds of edits of statements that were all tried in vain."""
    _now: set[tuple[str, int]]
    """The kinds that were tried since the search was last asked for corrections."""
    partial: list[Hit]
    cheapest: float = math.inf
    """The cost of the best correction so far."""

    def sources(self) -> list[Step]:
        """The statements that make a variable which several mistaken ones read.

        If several statements read what is right and give what is not, a single mistake is in none
        of them: it is in what all of them read, a quantity that is right for something else.
        """
        mistaken = [s for s in self.steps if s.rank < LIKELY_WRONG and s.results and not s.right]
        if len(mistaken) < 2 or len({id(s.unit) for s in mistaken}) > 1:
            return []
        read = [{n.id for n in ast.walk(s.statement.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} for s in mistaken]
        shared = set.intersection(*read)
        makers = [s for s in self.steps if s.unit is mistaken[0].unit and s.right and s.is_named is not True and target_of(s.statement.node) in shared]
        return [s for s in makers if isinstance(self.due_of(s), Due)]

    def one(self, low: float = 0.0, high: float = 9.0, hits: list[Hit] | None = None, small: bool | None = None, among: list[Step] | None = None) -> list[Hit]:
        """The corrections by one edit of a statement between two ranks, the best first. With those
        that were found elsewhere, or if asked to, only small edits are tried; among given
        statements only those and what the value that is due tells.
        """
        small = bool(hits) if small is None else small
        suspects = [s for s in self.steps if low <= s.rank < high] if among is None else among
        # The least cost of an edit of each kind: what cannot beat the best hit is not tried.
        cheap = ((self._small, 0.9), (self._factors, 1.6))
        tiers: tuple[tuple[Any, float], ...] = (*cheap, (self._more, 2.2), (self._joined, 2.2), (self._donated, 2.0), (self._large, 2.3), (self._deeper, 2.4), (self._inserted, 2.6))
        groups = [[s for s in suspects if low <= s.rank < high] for low, high in ((0, 0.12), (0.12, 0.28), (0.28, 0.45), (0.45, 0.65), (0.65, 1), (1, 9))]
        tiers = cheap if small else (*cheap, (self._more, 2.2)) if among else tiers
        hits, solve = list(hits or ()), len(tiers) > len(cheap)
        likely, self._now = [s for s in suspects if s.rank < 0.45], set()
        for step in likely:
            for tier, least in cheap:
                self._tier(tier, least, step, hits)
        for step in likely:
            # To look for what is due costs few runs, where it can be solved for.
            if solve and step.results and isinstance(self.due_of(step), Due):
                self._tier(self._more, 2.2, step, hits)
        for step in suspects[len(likely) :]:
            for tier, least in cheap:
                self._tier(tier, least, step, hits)
        for steps in groups:
            for tier, least in tiers[len(cheap) :]:
                for step in steps:
                    if step.results:
                        self._tier(tier, least, step, hits)
        # A number, an index or an empty tensor that a statement makes is seldom off by more than a
        # little.
        for tier, least in tiers[len(cheap) :]:
            for step in suspects:
                if not step.results and not hits:
                    self._tier(tier, least, step, hits)
        # An edit that is right at other sizes, too, is no chance.
        most = max((h.sizes for h in hits), default=0)
        hits.sort(key=lambda h: (h.cost + CHANCE * (most > h.sizes), h.step.order))
        return hits

    def _tier(self, tier: Any, least: float, step: Step, hits: list[Hit]) -> None:
        """One kind of edits of one statement."""
        if self.bench.left() <= 0 or hits and step.rank + least >= min(h.bar for h in hits):
            return
        if hits and tier not in (self._small, self._factors) and step.rank > min(h.step.rank for h in hits) + 0.1:
            # A larger edit in a less likely place.
            return
        key = tier.__name__, id(step)
        if key in self._done or key in self._now:
            return
        self._now.add(key)
        try:
            if tier == self._inserted or not self._is_elsewhere(step):
                found = tier(step)
                hits += found
                if not found and self.bench.left() > 0:
                    self._done.add(key)
        except (ValueError, SyntaxError, RecursionError, np.linalg.LinAlgError):
            # One statement that cannot be edited so must not hide the others.
            return

    def again(self, high: float = 1.2) -> None:
        """Tries small edits where none can make all gradients right: of several mistakes each makes
        only some so.
        """
        for step in self.steps:
            if step.rank < high and self.bench.left() > 0 and id(step) not in self._again and self._is_elsewhere(step):
                self._again.add(id(step))
                self._small(step)
                self._factors(step)
                self._joined(step)
                if step.rank < 0.7:
                    self._donated(step)
            if step.rank < high and step.is_named is False and self.bench.left() > 0:
                self.try_edits(step, named_proposals(self, step, self.scope(step)))
        for step in self.steps:
            if step.rank < min(high, 0.7) and self.bench.left() > 0:
                self.try_edits(step, partial_proposals(self, step, self.scope(step)))

    def _is_evidence(self, step: Step, solved: Due) -> bool:
        """Whether fewer numbers were solved for than elements of gradients came right: as many of
        them make anything right.
        """
        return solved.seen is None or solved.seen.shape[1] < sum(self.point.right[i].size for i in step.touches)

    def located(self) -> Step | None:
        """The one statement in which another value makes all gradients right and whose operands are
        right, if there is just one, and none of which nothing is known.
        """
        self.bench.extend(0.4)
        near = [s for s in self.steps if s.rank < 0.35 and s.known and not s.statement.head]
        found = [s for s in near if s.results and not (s.right and s.is_named is not False) and isinstance(d := self.due_of(s), Due) and self._is_evidence(s, d)]
        open_ones = [s for s in near if not s.results and s.touches]
        if self.bench.left() <= 0:
            # Lines that could not be looked at might be it as well.
            return None
        if len(found) == 1 and not open_ones:
            return found[0]
        # If all that is read is right, and the result is not the gradient that its
        # variable is named for, the mistake is there, whatever it is.
        sure = [s for s in near if s.rank < LIKELY_WRONG and s.is_named is False and s.results and not s.right and self.due_of(s) is not False]
        return sure[0] if len(sure) == 1 and not found else None

    def _elsewhere(self) -> tuple[int, bool]:
        """The number of points of other sizes, or of larger inputs, at which the gradients are
        right with the edit that runs; and whether that is not all at which the user's backward
        runs.
        """
        if self._resized is None:
            self._resized = [*self.case.resized(), *self.case.far()]
            k, self.hook.k = self.hook.k, 0
            self._resized = [p for p in self._resized if self._runs_at(p)]
            self.hook.k = k
        good = 0
        for point in self._resized:
            found = self.bench.run(point)
            good += found is not None and not self._wrong(found, point)
        return good, good < len(self._resized)

    def _runs_at(self, point: Point) -> bool:
        """Whether the user's backward runs at a point, and gives gradients that fit."""
        found = self.bench.run(point)
        return found is not None and all(a.shape == r.shape for a, r in zip(found, point.right))

    def due_of(self, step: Step) -> Any:
        """The value due in the place of a statement's value; False where it is not the value that
        is wrong, None where nothing is known."""
        if id(step) not in self._due:
            found = due(self, step)
            if found is None and self.bench.left() <= 0:
                # The time is up: nothing is known of it, and may be later.
                return None
            self._due[id(step)] = found
        return self._due[id(step)]

    def _is_elsewhere(self, step: Step) -> bool:
        """Whether no value of the assigned variable could make all gradients right."""
        node = step.statement.node
        plain = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if not plain or any(isinstance(n, ast.Call) and name_of(n) in SHAPING for n in ast.walk(node.value)):
            # A value of another shape may be due, for which none was solved.
            return False
        return self.due_of(step) is False and not self._has_other_shape(step, node.targets[0].id)

    def _has_other_shape(self, step: Step, target: str) -> bool:
        """Whether a variable had another shape before it was assigned, or the gradient that it is
        named for has: then a value of that shape may be due.
        """
        was, now = step.names.get(target), (self.values.get(getattr(root_of(step), "number", -1)) or [None])[0]
        if not self.engine.is_tensor(now):
            return False
        due = [q.value.shape for q in self.known.all if q.is_gradient and q.name and target in gradient_names(q.name)]
        shapes = [*due, *(tuple(x.shape) for x in (was,) if x is not None and self.engine.is_tensor(x))]
        return any(shape != tuple(now.shape) for shape in shapes)

    def measured(self, hits: list[Hit]) -> list[Hit]:
        """The best hit gets its results before and after the edit, and the worst error of all
        points.
        """
        hit = hits[0]
        with self.bench.beside(hit.step.unit, hit.step.statement, [hit.edit.text()]):
            for k in (0, 1):
                self.hook.k, self.hook.takes = k, []
                self.bench.run()
                if len(self.hook.takes) > hit.step.judged and self.engine.is_float(self.hook.takes[hit.step.judged]):
                    taken = np.array(self.engine.array(self.hook.takes[hit.step.judged]))
                    hit.before, hit.after = (taken, hit.after) if k == 0 else (hit.before, taken)
            errors = [hit.error]
            for point in self.others:
                found = self.bench.run(point)
                errors += self.case.errors(point, found) if found is not None else []
            hit.error = max(errors)
        return hits

    def _small(self, step: Step) -> list[Hit]:
        # Texts are parsed, which costs as much as a run: only those that could be the best.
        most = min(2.3, self.cheapest + SLACK - step.rank)
        edits = self._tried.get(id(step)) or Edits(step.unit, step.statement, self.scope(step)).all(most)
        return self.try_edits(step, [e for e in edits if e.cost < 2.3])

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
            for name, other in [*scope.tensors(), *scope.indexed()]:
                if not fits(other, shape) or len(other) > len(shape) or name in scope.masks:
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
            call = parents.get(id(p))
            receiver = isinstance(p, ast.Attribute) and isinstance(call, ast.Call) and name_of(call) in SHAPING
            if p is None or receiver or isinstance(p, (ast.Call, ast.Tuple, ast.List)) or isinstance(p, ast.BinOp) and isinstance(p.op, (ast.Add, ast.Sub, ast.Pow)):
                keep.append(n)
        return keep

    def _factors(self, step: Step) -> list[Hit]:
        """A factor, or a number in the place of a written one: it is solved for, and then must be a
        number that has a meaning.
        """
        edits: list[Edit] = []
        scope = self.scope(step)
        for node in self._terms(step):
            text = step.unit.text(node)
            c = self._solved(step, node, lambda c: f"__chainrule__.c * ({text})", 1.0)
            for cost, form in [*scope.numbers.texts(c)[:3], *scope.written(c)] if c is not None else []:
                if form == "0":
                    continue
                new = _times(form, text, node)
                edits.append(Edit(step.unit, step.statement, [(node, new)], 1.5 if form == "-1" else 2.0 + 0.4 * cost, f"the factor {form} is missing", node))
        root = getattr(step.statement.node, "value", None)
        if root is not None and (m := self._multiple_of(step)) is not None:
            for cost, form in scope.numbers.texts(1 / m.factor)[:3]:
                edits.append(Edit(step.unit, step.statement, [(root, _times(form, step.unit.text(root), root))], 2.0 + 0.4 * cost, f"the factor {form} is missing", root))
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
        """The number that makes all wrong gradients right, if they depend on it as a straight line.
        """
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

    def _donated(self, step: Step) -> list[Hit]:
        return self.try_edits(step, Edits(step.unit, step.statement, self.scope(step)).donated())

    def _deeper(self, step: Step) -> list[Hit]:
        found = deeper_proposals(self, step, self.scope(step))
        return self.try_edits(step, found) if found else []

    def _inserted(self, step: Step) -> list[Hit]:
        places = [step, *(later_places(self, step) if step.rank <= LIKELY_WRONG else ())]
        for at in places:
            found = insertions(self, at, self.scope(at))
            for e in found:
                # The place is that of the statement which gives but a part.
                e.cost += step.rank - at.rank
            if found and (hits := self.try_edits(at, found)):
                return hits
        return []

    def _more(self, step: Step) -> list[Hit]:
        """A factor or a term that is forgotten, of the variables at hand."""
        scope = self.scope(step)
        found = proposals(self, step, scope) or returned_proposals(self, step, scope)
        if not found and step.is_named is False and self.due_of(step) is None:
            found = named_proposals(self, step, scope)
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
