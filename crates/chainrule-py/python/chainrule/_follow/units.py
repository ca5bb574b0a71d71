"""Functions of the user's that run in a backward pass: their source, and their code replaced for a
while.
"""

from __future__ import annotations

import ast
import copy
import gc
import linecache
import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = tuple(os.path.realpath(p) + os.sep for k, p in sysconfig.get_paths().items() if k in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_users(filename: str) -> bool:
    """Whether a file is the user's own: neither this package's nor an installed one's, and its
    source is at hand.
    """
    path = os.path.realpath(filename)
    if path.startswith((_HOME + os.sep, *_LIBRARIES)) or f"{os.sep}site-packages{os.sep}" in path:
        return False
    return bool(linecache.getlines(filename))


class Statement:
    """A simple statement, or the expression in the head of a compound one (`for`, `if`, `return` of
    a lambda).
    """

    def __init__(self, number: int, node: Any, owner: Any, head: bool) -> None:
        self.number, self.node, self.owner, self.head = number, node, owner, head
        self.line: int = node.lineno


class Unit:
    """A function of the user's with its syntax tree. Every expression in the tree has a number in
    `number`.
    """

    def __init__(self, functions: list[FunctionType], node: Any, lines: list[str], numbers: Iterator[int]) -> None:
        self.functions, self.node, self.lines = functions, node, lines
        self.original: CodeType = functions[0].__code__
        self.file = self.original.co_filename
        self.has_arrays = False
        """Whether arrays of NumPy run in it."""
        self.statements: list[Statement] = []
        for part in ast.walk(node):
            part.number = next(numbers)  # type: ignore[attr-defined]
        if isinstance(node, ast.Lambda):
            self._add(node.body, node, True, numbers)
        else:
            self._collect(node.body, numbers)
        self._pickled = pickle.dumps(node)

    def is_setting(self, test: Any) -> bool:
        """Whether a condition is about names from outside the function alone: which way the code
        goes was settled there.
        """
        own = {*self.original.co_varnames, *self.original.co_cellvars}
        names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        return bool(names) and not names & own

    def _add(self, node: Any, owner: Any, head: bool, numbers: Iterator[int]) -> None:
        self.statements.append(Statement(next(numbers), node, owner, head))

    def _collect(self, body: list[Any], numbers: Iterator[int]) -> None:
        for s in body:
            if isinstance(s, (ast.For, ast.If)):
                self._add(s.iter if isinstance(s, ast.For) else s.test, s, True, numbers)
            elif isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)):
                if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
                    self._add(s, s, False, numbers)
            for part in ("body", "orelse", "finalbody"):
                inner = getattr(s, part, None)
                if isinstance(inner, list) and not isinstance(s, ast.ClassDef):
                    self._collect(inner, numbers)

    def text(self, node: Any) -> str:
        """The source of a node."""
        first, last = node.lineno - 1, node.end_lineno - 1
        rows = [row.encode() for row in self.lines[first : last + 1]]
        rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        return b"".join(rows).decode()

    def compiled(self, change: Callable[[Any], Any], fix: bool = False) -> CodeType:
        """The code of the function after a change of (a copy of) its tree; it has the same free
        variables. `fix` gives new nodes a place.
        """
        node = pickle.loads(self._pickled)
        if isinstance(node, ast.Lambda):
            returned = ast.copy_location(ast.Return(node.body), node.body)
            node = ast.copy_location(ast.FunctionDef("__lambda__", node.args, [returned], [], None), node)
        node = change(node)
        free = self.original.co_freevars
        factory: Any = ast.parse(f"def __factory__({', '.join(free)}):\n    pass").body[0]
        if free:
            # A free variable that the change no longer mentions stays one.
            keep = ast.parse(f"if 0: ({', '.join(free)},)").body
            node.body = [*node.body, *keep]
        node.decorator_list, node.returns = [], None
        node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
        factory.body = [node]
        module = ast.Module([factory], [])
        outer = next(c for c in compile(ast.fix_missing_locations(module) if fix else module, self.file, "exec").co_consts if isinstance(c, CodeType))
        code = next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == node.name)
        if code.co_freevars != free:
            raise ValueError("the edit needs a variable that the function does not have")
        return code

    @contextmanager
    def running(self, code: CodeType) -> Iterator[None]:
        """The function runs with another code."""
        before = [f.__code__ for f in self.functions]
        for f in self.functions:
            f.__code__ = code
        try:
            yield
        finally:
            for f, b in zip(self.functions, before):
                f.__code__ = b


    def edited(self, outer: Any, text: str, numbers: Iterator[int]) -> Unit | None:
        """The function with the text of a node replaced, if as many lines stay."""
        rows = "".join(self.lines[outer.lineno - 1 : outer.end_lineno]).encode().splitlines(keepends=True)
        rows[-1] = text.encode() + rows[-1][outer.end_col_offset :] if len(rows) > 1 else rows[-1][: outer.col_offset] + text.encode() + rows[-1][outer.end_col_offset :]
        if len(rows) > 1:
            rows[0] = rows[0][: outer.col_offset] + rows[-1]
            del rows[1:]
        new = b"".join(rows).decode().splitlines(keepends=True)
        gone = outer.end_lineno - outer.lineno + 1 - len(new)
        if gone < 0:
            return None
        lines = [*self.lines[: outer.lineno - 1], *new, *["\n"] * gone, *self.lines[outer.end_lineno :]]
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            return None
        parts: Iterator[Any] = ast.walk(tree)
        for node in parts:
            if type(node) is type(self.node) and (node.lineno, node.col_offset) == (self.node.lineno, self.node.col_offset):
                unit = Unit(self.functions, copy.deepcopy(node), lines, numbers)
                unit.original, unit.has_arrays = self.original, self.has_arrays
                return unit
        return None


def called(*runs: Callable[[], Any]) -> list[list[list[FunctionType]]]:
    """The user's functions that run in each of some calls, in the order of their first calls,
    without those that are made in it.

    Closures that share one code are told apart by nothing that is at hand here, so they come
    together.
    """
    codes: list[dict[CodeType, None]] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            codes[-1].setdefault(frame.f_code)

    before = sys.gettrace()
    for run in runs:
        codes.append({})
        sys.settrace(watch)
        try:
            run()
        finally:
            sys.settrace(before)
    users = [[c for c in each if is_users(c.co_filename)] for each in codes]
    # One walk over all objects for all of them.
    holders = gc.get_referrers(*(c for each in users for c in each))
    by_code: dict[CodeType, list[FunctionType]] = {}
    for f in holders:
        if isinstance(f, FunctionType):
            by_code.setdefault(f.__code__, []).append(f)
    return [[by_code[c] for c in each if c in by_code] for each in users]


_trees: dict[tuple[str, int], Any] = {}


def _tree(filename: str) -> tuple[Any, list[str]]:
    lines = linecache.getlines(filename)
    key = (filename, hash("".join(lines)))
    if key not in _trees:
        _trees[key] = ast.parse("".join(lines))
    return _trees[key], lines


def _holds(node: Any, code: CodeType) -> bool:
    """Whether the code lies in a lambda's body, as columns tell."""
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None and (p[2], p[3]) != (0, 0)]
    first, last = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
    # Instructions without a place of their own have that of the first line.
    inside = [first <= (p[0], p[2]) and (p[1], p[3]) <= last for p in places]
    return bool(inside) and all(inside)


def unit_of(functions: list[FunctionType], numbers: Iterator[int]) -> Unit | None:
    """The function with its tree, if its source is there and is that of the code."""
    code = functions[0].__code__
    linecache.checkcache(code.co_filename)
    try:
        tree, lines = _tree(code.co_filename)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if node.name == code.co_name and first == code.co_firstlineno:
                return Unit(functions, copy.deepcopy(node), lines, numbers)
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno and _holds(node, code):
            return Unit(functions, copy.deepcopy(node), lines, numbers)
    return None
