"""Scope of a statement: variables, attributes, and expressions of both passes."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from .chains import chains
from .edit import Scope
from .scalars import numbers_at_hand
from .slopes import slopes
from .ranks import Ranks
from .steps import Step


class Scopes(Ranks):
    """A recording that says what is at hand in each statement."""

    def scope(self, step: Step) -> Scope:
        """Scope of a statement."""
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
        indices = [*dict.fromkeys(text for text, free in self._indices() if free <= set(names))]
        masks = [n for n, v in names.items() if engine.is_bool(v)]
        transpose = ".t()" if ".t()" in source else ".mT" if ".mT" in source else ".T"
        numbers = numbers_at_hand(names, self.constants, engine.is_tensor)
        if self._rows is None:
            passes = [*((u, self.forward_values) for u in self.forwards), *((u, self.values) for u in self.units)]
            self._rows = [row for unit, values in passes for row in chains(unit, values, engine.is_tensor)]
        kinds, donors, steep = self._kinds(names), self._donors(step, names), self._slopes(step, names)
        return Scope(engine, names, self.values, numbers, self.constants, self.bounds, [], masks, list(dict.fromkeys(slices)), transpose, kinds, donors, self._rows, steep, indices)

    def _indices(self) -> list[tuple[str, set[str]]]:
        """The indices of either pass that have several axes and a slice, and the names that each
        reads.
        """
        if self._bracketed is None:
            found = {}
            for unit in [*self.units, *self.forwards]:
                for n in ast.walk(unit.node):
                    if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Tuple) and any(isinstance(p, ast.Slice) and (p.lower or p.upper or p.step) for p in n.slice.elts):
                        found[unit.text(n.slice)] = {m.id for m in ast.walk(n.slice) if isinstance(m, ast.Name)}
            self._bracketed = [*found.items()]
        return self._bracketed

    def _fixed(self) -> list[tuple[str, Any]]:
        """Attributes of classes and modules that either pass reads (`Layer.eps`): at hand
        everywhere.
        """
        if self._attributes is None:
            self._attributes = [*self.case.at_hand()]
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

    def _slopes(self, step: Step, names: dict[str, Any]) -> list[tuple[str, Any]]:
        """Slopes of what the forward pass computes whose variables are at hand here."""
        if self._steep is None:
            self._steep = self._all_slopes()
        at_hand = set(names) | set(step.unit.functions[0].__globals__)
        return [(text, v) for text, v, free in self._steep if free <= at_hand]

    def _all_slopes(self) -> list[tuple[str, Any, set[str]]]:
        out: dict[str, tuple[Any, set[str]]] = {}
        with self.engine.quiet(1):
            for unit in self.forwards:
                at = {m.statement: m.names for m in self.forward_moments if not m.after}
                for s in unit.statements:
                    root = s.node if s.head else getattr(s.node, "value", None)
                    if s.number not in at or not isinstance(root, (ast.BinOp, ast.Call)):
                        continue
                    space = {**unit.functions[0].__globals__, **at[s.number]}
                    for text, free in slopes(root):
                        try:
                            # A formula of values that are there; what it cannot take is left out.
                            value = eval(text, space)
                        except Exception:
                            continue
                        if text not in out and self.engine.is_float(value):
                            out[text] = value, free
        return [(text, v, free) for text, (v, free) in out.items()]

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
