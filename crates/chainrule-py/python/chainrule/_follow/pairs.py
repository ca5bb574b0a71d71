"""Edits of several places of one statement at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .edit import Edit, Scope
from .texts import as_operand, fits, number_of
from .units import Statement, Unit


class Pairs:
    """The edits of one statement that change two places, or all of a kind."""

    unit: Unit
    statement: Statement
    scope: Scope

    def text(self, node: Any) -> str:
        return self.unit.text(node)

    def sites(self) -> list[Any]:
        """The expressions of the statement that are read, outer ones first."""
        raise NotImplementedError

    def all_pairs(self) -> Iterator[Edit]:
        """All of them."""
        yield from self._exchanged_variables()
        yield from self._exchanged_counters()
        yield from self._everywhere()
        yield from self._mirrored()
        yield from self._turned_round()
        yield from self._bounds()
        yield from self._every_axis()
        yield from self._every_number()

    def _exchanged_variables(self) -> Iterator[Edit]:
        """Two variables of one shape, each in the place of the other."""
        names = [n for n in self.sites() if isinstance(n, ast.Name) and self.scope.shape(n) is not None]
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                if a.id != b.id and fits(self.scope.shape(a) or (), self.scope.shape(b) or ()):
                    yield Edit(self.unit, self.statement, [(a, b.id), (b, a.id)], 1.6, f"`{a.id}` and `{b.id}` are exchanged", a)

    def _exchanged_counters(self) -> Iterator[Edit]:
        """Two whole numbers of one index, each in the place of the other: `i * n + j`."""
        for node in self.sites():
            names = [n for n in ast.walk(node) if isinstance(n, ast.Name)] if isinstance(node, ast.BinOp) else []
            counters = [n for n in names if type(self.scope.value(n)) is int]
            if 1 < len(names) == len(counters) < 5 and len({n.id for n in names}) == len(names):
                for i, a in enumerate(counters):
                    for b in counters[i + 1 :]:
                        yield Edit(self.unit, self.statement, [(a, b.id), (b, a.id)], 1.25, f"`{a.id}` and `{b.id}` are exchanged", node)

    def _everywhere(self) -> Iterator[Edit]:
        """A variable that is read several times, another one in all these places."""
        places: dict[str, list[Any]] = {}
        for n in self.sites():
            if isinstance(n, ast.Name) and self.scope.value(n) is not None:
                places.setdefault(n.id, []).append(n)
        parts = [n.slice for n in ast.walk(self.statement.node) if isinstance(n, ast.Subscript)]
        indices = [x for part in parts for x in (part.elts if isinstance(part, ast.Tuple) else [part])]
        for name, nodes in places.items():
            shape, value = self.scope.shape(nodes[0]), self.scope.value(nodes[0])
            if len(nodes) > 1 and isinstance(value, int) and not isinstance(value, bool):
                for factor in (2, 3):
                    yield Edit(self.unit, self.statement, [(n, f"{factor} * {name}") for n in nodes], 2.0, f"{factor} times `{name}` is due", nodes[0])
                for step in (" - 1", " + 1"):
                    yield Edit(self.unit, self.statement, [(n, name + step) for n in nodes if n in indices], 1.6, f"`{name}{step}` is due", nodes[0])
            if len(nodes) < 2 or shape is None:
                continue
            for other, its in self.scope.tensors():
                if other != name and fits(its, shape):
                    yield Edit(self.unit, self.statement, [(n, other) for n in nodes], 1.05 + (0.0 if its == shape else 0.9), "another variable", nodes[0])

    def _every_axis(self) -> Iterator[Edit]:
        """A whole number that is read several times, as an axis is, another one in all places."""
        places: dict[int, list[Any]] = {}
        for call in ast.walk(self.statement.node):
            for n in [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []:
                x = number_of(n)
                if isinstance(x, int) and abs(x) < 4:
                    places.setdefault(x, []).append(n)
        for x, nodes in places.items():
            for other in range(-1, 4) if len(nodes) > 1 else ():
                if other != x:
                    yield Edit(self.unit, self.statement, [(n, str(other)) for n in nodes], 1.5, f"axis {other} is due", nodes[0])

    def _mirrored(self) -> Iterator[Edit]:
        """Two slices of the statement, each in the place of the other: a shift the other way."""
        places: dict[str, list[Any]] = {}
        for n in ast.walk(self.statement.node):
            if isinstance(n, ast.Slice):
                places.setdefault(self.text(n), []).append(n)
        texts = list(places)
        for i, a in enumerate(texts):
            for b in texts[i + 1 :]:
                pieces = [(n, b) for n in places[a]] + [(n, a) for n in places[b]]
                yield Edit(self.unit, self.statement, pieces, 1.5, f"the slices `{a}` and `{b}` are exchanged", places[a][0])

    def _turned_round(self) -> Iterator[Edit]:
        """Two signs of the statement, both the other way: a rotation turns back."""
        signed = [n for n in ast.walk(self.statement.node) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Sub)) and self.scope.shape(n) is not None]
        for i, a in enumerate(signed[:6]):
            for b in signed[i + 1 : 6]:
                if not any(n is b for n in ast.walk(a)):
                    pieces = [(n, f"{self.text(n.left)} {'-' if isinstance(n.op, ast.Add) else '+'} {as_operand(self.text(n.right), n.right) if isinstance(n.right, ast.BinOp) and isinstance(n.right.op, (ast.Add, ast.Sub)) else self.text(n.right)}") for n in (a, b)]
                    yield Edit(self.unit, self.statement, pieces, 1.7, "both signs are the other way round", a)

    def _bounds(self) -> Iterator[Edit]:
        """A bound of both signs, another one in both places."""
        literals = [(n, x) for n in self.sites() if (x := number_of(n)) is not None and not isinstance(x, bool)]
        for i, (a, x) in enumerate(literals):
            for b, y in literals[i + 1 :]:
                if x and x == -y:
                    for c in self.scope.constants:
                        if c != abs(x):
                            pieces = [(a, repr(c if x > 0 else -c)), (b, repr(c if y > 0 else -c))]
                            yield Edit(self.unit, self.statement, pieces, 1.4, f"{c!r} for {abs(x)!r}", a)

    def _every_number(self) -> Iterator[Edit]:
        """A whole number that is read several times, as a width in `x[2 * i:2 * i + 2]`, another
        one in all places."""
        places: dict[int, list[Any]] = {}
        for n in self.sites():
            if type(x := number_of(n)) is int and 1 < x < 1000:
                places.setdefault(x, []).append(n)
        others = {x for x in places} | {c for c in self.scope.constants if isinstance(c, int)} | {d for _, shape in self.scope.tensors() for d in shape if 1 < d < 1000}
        for x, nodes in places.items():
            for other in sorted(others - {x}) if len(nodes) > 1 else ():
                yield Edit(self.unit, self.statement, [(n, str(other)) for n in nodes], 1.6, f"{other} for {x}", nodes[0])
