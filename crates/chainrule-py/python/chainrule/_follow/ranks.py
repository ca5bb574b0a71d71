"""How likely the mistake is in each statement of a backward pass: by the gradients that depend on
it, and by what is known of its values.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from .bench import target_of, targets_of
from .case import Array
from .record import hooked
from .steps import Recording, Step, gradient_names, key_of


class Ranks(Recording):
    """A recording whose statements are in the order in which they are suspected."""

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
        named = [f for q in self.known.all if q.is_gradient and q.name and target in gradient_names(q.name) and (f := _multiple(value, q.value)) is not None]
        # A number that comes in from above can make any factor, so all of them must be such as a
        # count may be: not another sign, and not twice or half.
        if not named or any(f < 0 or any(abs(f - x) <= 1e-6 for x in (0.5, 1.0, 2.0)) for f in named):
            return
        factor = named[0]
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
        node = statement.node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Name) and step.is_named is not True:
            # A value that is only given another name was to become something else.
            rank -= 0.1
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
            own = isinstance(part, ast.Name) and made and self._is_gradient_of_its_name(part.id, seen[0])
            other = due and self.case.graded.index(i) in self.wrong and (own or not step.reads_misnamed)
            if made and (other or (m := self._match(seen[0])) is None or not m.exact) and self._reads_known(part, step.names):
                return True
        return False

    def _is_other_part(self, part: Any, i: int) -> bool:
        """Whether a variable that is returned for an input is a part of a gradient, or is just what
        its name says, the gradient of another value, and is not named for the input's.
        """
        seen = self.values.get(getattr(part, "number", -1), [])
        m = self._match(seen[0]) if seen and isinstance(part, ast.Name) else None
        if m is None or not m.exact or part.id in gradient_names(self.case.names[i]):
            return False
        return m.quantity.words.startswith("a part") or self._is_gradient_of_its_name(part.id, seen[0])

    def _is_gradient_of_its_name(self, name: str, value: Any) -> bool:
        x = self.engine.array(value)
        near = self.known.near * float(np.abs(x).max(initial=0.0))
        return any(q.is_gradient and name in gradient_names(q.name) and q.value.shape == x.shape and np.abs(q.value - x).max(initial=0.0) <= near for q in self.known.all if q.name)

    def _is_of_forward(self, step: Step) -> bool:
        """Whether it computes a variable of the forward pass again, under its name."""
        target = target_of(step.statement.node)
        return target is not None and step.right and all(m is not None and m.quantity.name == target and not m.quantity.is_gradient for m in step.results)


def _multiple(x: Array, of: Array) -> float | None:
    """The factor by which one value is another."""
    if x.shape != of.shape or x.size < 3 or not of.any():
        # Any value of so few elements is a multiple of every other one.
        return None
    at = int(np.abs(of).argmax())
    factor = float(x.reshape(-1)[at] / of.reshape(-1)[at])
    off = float(np.abs(of * factor - x).max())
    return factor if off <= 1e-9 * float(np.abs(x).max()) else None
