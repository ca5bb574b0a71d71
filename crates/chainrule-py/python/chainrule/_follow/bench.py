"""Edited statements run in the place of the user's: many are compiled at once, and one at a time
runs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType
from typing import Any

from .case import Array, Case, Point
from .outside import Outside
from .record import HOOK, Hook, hooked, observed
from .units import Statement, Unit


def _assigned(name: str, value: Any) -> Any:
    row: Any = ast.parse(f"{name} = 0").body[0]
    row.value = value
    return row


class _Splice(ast.NodeTransformer):
    """Puts edited statements beside the one that they are to replace; which of them runs is asked
    of the hook.
    """

    def __init__(self, statement: Statement, trees: list[Any]) -> None:
        self.statement, self.trees = statement, trees

    def _cases(self, rows: list[Any]) -> list[Any]:
        out: list[Any] = ast.parse("\n".join(f"if {HOOK}.k == {k}: pass" for k in range(len(rows)))).body
        for test, row in zip(out, rows):
            test.body = row if isinstance(row, list) else [row]
        return out

    def visit(self, node: Any) -> Any:
        """A statement, or several in its place."""
        number = self.statement.node.number
        if not isinstance(node, ast.stmt):
            return node
        if getattr(node, "number", None) == number:
            return [*self._cases([node, *self.trees]), *self._take(node)]
        head = node.iter if isinstance(node, ast.For) else node.test if isinstance(node, ast.If) else node.value if isinstance(node, ast.Return) else None
        if head is not None and getattr(head, "number", None) == number:
            name = "__head__"
            rows = self._cases([_assigned(name, e) for e in [head, *self.trees]])
            read = ast.copy_location(ast.Name(name, ast.Load()), head)
            if isinstance(node, ast.For):
                node.iter = read
            elif isinstance(node, ast.If):
                node.test = read
            elif isinstance(node, ast.Return):
                node.value = read
            return [*rows, node]
        return self.generic_visit(node)

    def _take(self, node: Any) -> list[Any]:
        target = target_of(node)
        if target is None:
            return []
        return ast.parse(f"{HOOK}.take({target})").body


class _Before(ast.NodeTransformer):
    """Puts statements before one."""

    def __init__(self, statement: Statement, text: str) -> None:
        self.statement, self.text = statement, text

    def visit(self, node: Any) -> Any:
        if not isinstance(node, ast.stmt):
            return node
        new = self.generic_visit(node)
        return [*ast.parse(self.text).body, new] if getattr(node, "number", None) == self.statement.node.number else new


def before(unit: Unit, statement: Statement, text: str) -> Any:
    """The watched code of the unit with another statement before one."""
    return unit.compiled(lambda node: ast.NodeTransformer.generic_visit(_Before(statement, text), observed(unit, node)), fix=True)


def target_of(node: Any) -> str | None:
    """The variable that a statement assigns or changes, if it is one."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        # `np.add.at(x, ...)` changes its first argument.
        scattered = node.value.func.attr == "at" and isinstance(node.value.func.value, ast.Attribute) and node.value.args
        target = node.value.args[0] if scattered else node.value.func.value
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def targets_of(node: Any) -> list[str]:
    """The variables that a statement assigns or changes: of `a, b = ...` both."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        return [n.id for n in node.targets[0].elts if isinstance(n, ast.Name)]
    target = target_of(node)
    return [] if target is None else [target]


RUNS = 1500
"""The runs of a backward pass that are granted for each second of the budget. They are what ends
a search, so that it finds the same on a slow or busy machine.
"""
SLOW = 3.0
"""The longest that the thread may take for its runs, in times of the budget: a backward pass that
costs over 2 ms is searched for as long as this lets it.
"""
WAIT = 30
"""The longest that a search lasts by the clock, in times of the budget."""


class Bench:
    """Runs of one case's backward pass, and how long they may take together."""

    def __init__(self, case: Case, point: Point, units: list[Unit], hook: Hook, seconds: float, outside: Outside) -> None:
        self.case, self.point, self.units, self.hook, self.outside = case, point, units, hook, outside
        self.runs = self.granted = 0
        self.until = self.latest = 0.0
        self.extend(seconds)

    def left(self) -> float:
        """The seconds left of the budget: none once the granted runs are done, or the thread's own
        time, or that of the clock.
        """
        if self.runs >= self.granted:
            return 0.0
        own = (self.until - time.thread_time()) / SLOW
        return min((self.granted - self.runs) / RUNS, own, self.latest - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Sees to it that so many seconds are left."""
        self.granted = max(self.granted, self.runs + int(RUNS * seconds))
        self.until = max(self.until, time.thread_time() + SLOW * seconds)
        self.latest = max(self.latest, time.monotonic() + WAIT * seconds)

    def run(self, point: Point | None = None) -> list[Array] | None:
        """The gradients, or None where the backward fails."""
        self.runs += 1
        point = point or self.point
        try:
            return self.case.gradients(point, edited=True)
        except Exception:
            return None
        finally:
            self.outside.restore()

    @contextmanager
    def beside(self, unit: Unit, statement: Statement, texts: list[str]) -> Iterator[list[int]]:
        """The unit with these texts beside the statement; gives which of them are valid. `hook.k`
        picks one: the first valid one is 1.
        """
        trees: list[Any] = []
        valid: list[int] = []
        for i, text in enumerate(texts):
            try:
                tree: list[Any] = ast.parse(text).body
                trees.append(tree[0].value if statement.head else tree)
                valid.append(i)
            except (SyntaxError, AttributeError, IndexError):
                continue
        code, fit = self._compiled(unit, statement, trees)
        valid = [valid[j] for j in fit]
        with hooked([unit], [code], self.hook):
            self.hook.k = 0
            try:
                yield valid
            finally:
                self.hook.k = 0


    @staticmethod
    def _compiled(unit: Unit, statement: Statement, trees: list[Any]) -> tuple[CodeType, list[int]]:
        """The code with these trees beside the statement, and which of them it has: what is parsed
        is not always compiled, as an argument that is given twice.
        """

        def code_of(some: list[Any]) -> CodeType:
            return unit.compiled(lambda node: _spliced(node, statement, some))

        def is_compiled(tree: Any) -> bool:
            try:
                code_of([tree])
            except (SyntaxError, ValueError):
                return False
            return True

        try:
            return code_of(trees), list(range(len(trees)))
        except (SyntaxError, ValueError):
            fit = [j for j, tree in enumerate(trees) if is_compiled(tree)]
            return code_of([trees[j] for j in fit]), fit


def _spliced(node: Any, statement: Statement, trees: list[Any]) -> Any:
    return ast.NodeTransformer.generic_visit(_Splice(statement, trees), node)


@contextmanager
def silent() -> Iterator[None]:
    """The user's code prints and warns once, not for each edit."""
    with ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
