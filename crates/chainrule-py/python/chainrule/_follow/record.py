"""A function run with its values watched: what each expression gave, what each variable was, and
what becomes of it when one value is another.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from typing import Any

from .units import Statement, Unit

HOOK = "__chainrule__"


WIDER = 64
"""Bound of what an edited statement may give, in times of the largest value of the pass."""


def _count(value: Any) -> int:
    """The number of elements of an array; 0 of anything else, also of what has another `shape`."""
    shape = getattr(value, "shape", None)
    return math.prod(shape) if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape) else 0


class Moment:
    """The variables before or after a statement runs."""

    __slots__ = ("after", "names", "statement")

    def __init__(self, statement: int, after: bool, names: dict[str, Any]) -> None:
        self.statement, self.after, self.names = statement, after, names


PARTS = 24
"""The most parts of a variable that are looked at."""


def _parts_of(name: str, v: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a dictionary or of an object of the user's, with the text by which each is read.
    """
    if type(v) is dict:
        if 0 < len(v) <= PARTS:
            yield from ((f'{name}["{k}"]', x) for k, x in v.items() if type(k) is str and k.isidentifier())
    elif hasattr(v, "__dict__") and not isinstance(v, (type, FunctionType, ModuleType)) and not hasattr(v, "dtype") and type(v).__module__ != "builtins":
        held = {k: x for k, x in vars(v).items() if not k.startswith("_") and k not in ("saved_tensors", "needs_input_grad")}
        if len(held) <= PARTS:
            yield from ((f"{name}.{k}", x) for k, x in held.items())


class Hook:
    """Callbacks of the watched code. It keeps values, or puts another in the place of one."""

    def __init__(self, keep: Callable[[Any], Any]) -> None:
        self.keep = keep
        self.values: dict[int, list[Any]] = {}
        self.moments: list[Moment] = []
        self.recording = True
        self.place = -1
        self.other: Callable[[Any, int], Any] = lambda x, _: x
        self.turn = 0
        self.k = 0
        """The edited statement that runs."""
        self.c = 1.0
        """A number that is looked for."""
        self.takes: list[Any] = []
        """The values that the edited statement assigned, in each of its runs."""
        self.most = 0
        """The most elements of a value that was kept."""
        self._last: dict[int, tuple[Any, int, Any]] = {}

    def _kept(self, value: Any) -> Any:
        """A copy of a value; the one from before, if nothing was written into it since."""
        self.most = max(self.most, _count(value))
        try:
            version = value._version
        except (AttributeError, RuntimeError):
            # No tensor of PyTorch, or one that counts no changes.
            return self.keep(value)
        before = self._last.get(id(value))
        if before is not None and before[0] is value and before[1] == version:
            return before[2]
        kept = self.keep(value)
        self._last[id(value)] = value, version, kept
        return kept

    def see(self, number: int, value: Any) -> Any:
        if self.recording:
            kept = self._kept(value)
            if kept is not None:
                self.values.setdefault(number, []).append(kept)
        if number == self.place:
            self.turn += 1
            return self.other(value, self.turn - 1)
        return value

    def take(self, value: Any) -> None:
        if _count(value) > WIDER * self.most + WIDER:
            # An edit of a size may make gigabytes of what no gradient is made of.
            raise ValueError("a value is far larger than any of the pass")
        # A later run may write into it.
        self.takes.append(self.keep(value))

    def at(self, statement: int, after: bool, names: dict[str, Any]) -> None:
        if self.recording:
            kept = {n: k for n, v in names.items() if (k := self._kept(v)) is not None}
            for n, v in names.items():
                # Parts of a context, of a cache and of a layer are at hand by their names, too.
                kept |= {text: k for text, x in _parts_of(n, v) if (k := self._kept(x)) is not None}
            self.moments.append(Moment(statement, after, kept))


class _Watch(ast.NodeTransformer):
    """Puts calls of the hook around expressions and beside statements."""

    def __init__(self, unit: Unit) -> None:
        self.heads = {id(s.owner): s for s in unit.statements if s.head}
        self.by_number = {s.node.number: s for s in unit.statements}

    def _call(self, name: str, *args: Any) -> Any:
        hook = ast.Attribute(ast.Name(HOOK, ast.Load()), name, ast.Load())
        return ast.Call(hook, list(args), [])

    def _see(self, node: Any) -> Any:
        return ast.copy_location(self._call("see", ast.Constant(node.number), node), node)

    def _moment(self, statement: Statement, after: bool) -> Any:
        names = ast.Call(ast.Name("locals", ast.Load()), [], [])
        return ast.Expr(self._call("at", ast.Constant(statement.number), ast.Constant(after), names))

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.expr):
            return self._expression(node)
        if isinstance(node, ast.stmt):
            return self._statement(node)
        return super().generic_visit(node)

    def _statement(self, node: Any) -> Any:
        statement = self.by_number.get(getattr(node, "number", None))
        if statement is None:
            head = node.iter if isinstance(node, ast.For) else node.test if isinstance(node, ast.If) else None
            statement = self.by_number.get(getattr(head, "number", None))
            if isinstance(node, ast.Return) and statement is None and node.value is not None:
                statement = self.by_number.get(getattr(node.value, "number", None))
        new = self.generic_visit(node)
        if statement is None:
            return new
        rows = [self._moment(statement, False), new]
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            rows.append(self._moment(statement, True))
        return rows

    def _expression(self, node: Any) -> Any:
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                function.value = self.visit(function.value)
            node.args = [self.visit(a) for a in node.args]
            for k in node.keywords:
                k.value = self.visit(k.value)
            return self._see(node)
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Slice)):
            return node if not isinstance(node, ast.Slice) else self.generic_visit(node)
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            # The index of a target is its only expression.
            if isinstance(node, ast.Subscript):
                node.slice = self.visit(node.slice)
            return node
        new = self.generic_visit(node)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp, ast.Compare)):
            return self._see(new)
        return new


def observed(unit: Unit, node: Any) -> Any:
    """The tree of the unit with its values watched."""
    return _Watch(unit).visit(node)


def watched(unit: Unit) -> Any:
    """The code of the unit with its values watched."""
    return unit.compiled(lambda node: observed(unit, node), fix=True)


@contextmanager
def hooked(units: list[Unit], codes: list[Any], hook: Hook) -> Iterator[None]:
    """The units run with these codes and this hook."""
    with ExitStack() as stack:
        spaces = []
        for unit, code in zip(units, codes):
            stack.enter_context(unit.running(code))
            space = unit.functions[0].__globals__
            if HOOK not in space:
                space[HOOK] = hook
                spaces.append(space)
        try:
            yield
        finally:
            for space in spaces:
                space.pop(HOOK, None)
