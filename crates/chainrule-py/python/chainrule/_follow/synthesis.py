"""Synthesis of the expression for a due value from what is in scope.

The value that is due in a statement is solved for: where the gradients depend on it as a straight
line does, one value makes them right. The missing part of the statement is then a matter of
comparing arrays, thousands of which cost no more than a run of the backward pass.
"""

from __future__ import annotations

import ast
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .case import Array
from .edits import Edit, Scope
from .texts import fits, stretches
from .bench import target_of
from .solve import Due, due, due_for_some, due_of_variable, operands, root_of

if TYPE_CHECKING:
    from .search import Search
    from .steps import Step

@dataclass
class Atom:
    """A value with its text and what it costs to say."""

    text: str
    value: Array
    cost: float


def _atoms(search: Search, step: Step, scope: Scope, shape: tuple[int, ...]) -> list[Atom]:
    """Variables and parts of the statement that fit a shape, and what one makes of them."""
    plain: list[tuple[str, Array, float]] = []
    for name, v in scope.names.items():
        if search.engine.is_tensor(v):
            plain.append((name, np.asarray(search.engine.array(v), dtype=np.float64), 0.0 if "." not in name else 0.1))
    root = root_of(step)
    for node in ast.walk(root) if root is not None else ():
        v = scope.value(node)
        if isinstance(node, (ast.Call, ast.Subscript)) and search.engine.is_float(v):
            plain.append((step.unit.text(node), search.engine.array(v), 0.2))
    have = {text for text, _, _ in plain}
    for text, v in scope.donors:
        if search.engine.is_float(v) and text not in have and len(text) < 60 and tuple(v.shape) and len(plain) < 60:
            plain.append((text if text.endswith((")", "]")) and "(" in text and not text.startswith("-") and " " not in text.split("(")[0] else f"({text})", search.engine.array(v), 0.6))
    out: list[Atom] = []
    with np.errstate(all="ignore"):
        for text, x, cost in plain:
            if not stretches(x.shape, shape):
                if x.ndim + 1 == len(shape):
                    # One axis less: a value for each row.
                    rows = x[..., None]
                    if stretches(rows.shape, shape):
                        text, x, cost = f"{text}.unsqueeze(-1)", rows, cost + 0.3
                    else:
                        continue
                elif x.ndim == 2 and len(shape) == 2 and stretches(x.T.shape, shape):
                    text, x, cost = f"{text}{scope.transpose}", x.T, cost + 0.3
                else:
                    continue
            out.append(Atom(text, x, cost))
            forms = [(f"(1 - {text})", 1 - x, 0.4), (f"(1 + {text})", 1 + x, 0.5), (f"(1 - {text} ** 2)", 1 - x * x, 0.4), (f"{text} * (1 - {text})", x * (1 - x), 0.5), (f"{text} ** 2", x * x, 0.4)]
            forms += [(f"1 / {text}", 1 / x, 0.4), (f"1 / {text} ** 2", 1 / (x * x), 0.5), (f"{text} ** 3", x**3, 0.6), (f"{text}.exp()", np.exp(x), 0.6), (f"{text}.log()", np.log(x), 0.6), (f"{text}.sqrt()", np.sqrt(x), 0.6), (f"{text}.sign()", np.sign(x), 0.6), (f"({text} > 0)", (x > 0) * 1.0, 0.6)]
            out += [Atom(t, v, cost + c) for t, v, c in forms if np.isfinite(v).all() and v.any()]
    return sorted(out, key=lambda a: a.cost)[:260]


def _reductions(search: Search, scope: Scope, shape: tuple[int, ...]) -> Iterator[Atom]:
    """Products of matrices and sums over an axis of this shape, of two variables."""
    named = [(n, search.engine.array(v)) for n, v in scope.names.items() if search.engine.is_float(v) and n.isidentifier()][-24:]
    for (a, x), (b, y) in itertools.product(named, named):
        for tx, ty in itertools.product((False, True), (False, True)):
            p, q = x.T if tx else x, y.T if ty else y
            if p.ndim == 2 and q.ndim == 2 and p.shape[1] == q.shape[0] and (p.shape[0], q.shape[1]) == shape:
                t = scope.transpose
                yield Atom(f"{a}{t if tx else ''} @ {b}{t if ty else ''}", p @ q, 0.6)
        if a <= b and x.ndim == y.ndim and x.ndim >= 1 and fits(x.shape, y.shape):
            product = x * y if a != b else x
            text = f"({a} * {b})" if a != b else a
            for axis in range(product.ndim):
                for keep in (True, False):
                    total = product.sum(axis, keepdims=keep)
                    if total.shape == shape:
                        yield Atom(f"{text}.sum({axis}{', keepdim=True' if keep else ''})", total, 0.7)
                    elif stretches(total.shape, shape) and keep:
                        yield Atom(f"{text}.sum({axis}, keepdim=True)", total, 0.9)


class Fit:
    """Products of atoms, beside what they should be up to a number."""

    def __init__(self, due: Due, target: Array, factor: Array | None, atoms: list[Atom]) -> None:
        self.due = due
        self.target = due.projected(target.reshape(1, -1))[0]
        self.size = float(np.abs(self.target).max(initial=0.0))
        self.factor = None if factor is None else np.broadcast_to(factor, target.shape).reshape(-1)
        self.atoms = atoms
        # Comparing is cheap beside running, but not for large values.
        self.until = time.thread_time() + 0.25
        self.rows = np.stack([np.broadcast_to(a.value, target.shape).reshape(-1) for a in atoms]) if atoms else np.zeros((0, target.size))

    def numbers(self, rows: Array) -> Iterator[tuple[int, float]]:
        """The rows that are the target up to a number, with the number."""
        rows = self.due.projected(rows if self.factor is None else rows * self.factor)
        with np.errstate(all="ignore"):
            square = np.einsum("ij,ij->i", rows, rows)
            c = rows @ self.target / square
            off = np.abs(rows * c[:, None] - self.target).max(1)
        for j in np.flatnonzero((off <= 1e-7 * self.size) & (np.abs(c) > 1e-12) & np.isfinite(c)):
            yield int(j), float(c[j])

    def products(self, deepest: int) -> Iterator[tuple[float, float, list[Atom]]]:
        """Products of up to so many atoms: cost, number, atoms."""
        atoms, rows = self.atoms, self.rows
        if not self.size or not atoms:
            return
        for j, c in self.numbers(rows):
            yield atoms[j].cost, c, [atoms[j]]
        if deepest < 2:
            return
        for i in range(len(atoms)):
            if time.thread_time() > self.until:
                return
            for j, c in self.numbers(rows[i] * rows[i:]):
                yield 0.3 + atoms[i].cost + atoms[i + j].cost, c, [atoms[i], atoms[i + j]]
        if deepest < 3:
            return
        cheap = [i for i, a in enumerate(atoms) if a.cost <= 0.75][:60]
        for n, i in enumerate(cheap):
            if time.thread_time() > self.until:
                return
            for m, j in enumerate(cheap[n:], n):
                for k, c in self.numbers((rows[i] * rows[j]) * rows[cheap[m:]]):
                    third = cheap[m + k]
                    yield 0.6 + atoms[i].cost + atoms[j].cost + atoms[third].cost, c, [atoms[i], atoms[j], atoms[third]]


def _term(scope: Scope, c: float, atoms: list[Atom]) -> tuple[float, str] | None:
    """A product with its number in front, without the sign; None if the number has no meaning."""
    texts = scope.numbers.texts(abs(c))
    if not texts or texts[0][0] > 4:
        return None
    cost, number = texts[0]
    product = " * ".join(a.text for a in atoms)
    if number == "1":
        return 0.0, product
    if number.startswith("1 / "):
        return 0.3 * cost, f"{product} / {number[4:]}"
    return 0.3 * cost, f"{number} * {product}" if " " not in number else f"({number}) * {product}"


def proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """Edits after which the statement's value is the one that is due."""
    solved = search.due_of(step)
    root = root_of(step)
    return _proposed(search, step, scope, root, solved, 3) if isinstance(solved, Due) else []


def partial_proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """Edits after which some of the wrong gradients are right."""
    solved = due_for_some(search, step)
    return _proposed(search, step, scope, root_of(step), solved, 2) if solved is not None else []


def deeper_proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """As `proposals`, for the operands in the statement."""
    out: list[Edit] = []
    for node in operands(search, step):
        if search.bench.left() < 0:
            break
        solved = due(search, step, node)
        if isinstance(solved, Due):
            out += _proposed(search, step, scope, node, solved, 2)
    return sorted(out, key=lambda e: e.cost)[:40]


def _proposed(search: Search, step: Step, scope: Scope, root: Any, solved: Due, deepest: int) -> list[Edit]:
    value, wanted = solved.value, solved.wanted
    unit, statement = step.unit, step.statement
    text = unit.text(root)
    atoms = _atoms(search, step, scope, value.shape)
    out: list[Edit] = []

    def add(node: Any, new: str, cost: float, what: str) -> None:
        out.append(Edit(unit, statement, [(node, new)], cost, what, node))

    missing = wanted - value
    sums = list(_reductions(search, scope, value.shape))
    shares = [Atom(f"1 / {a.text}", 1 / a.value, a.cost + 0.2) for a in sums if (a.value != 0).all()] + sums
    named = [a for a in atoms if a.cost <= 0.1][:24]
    projections = ((0.3 + a.cost + cost, c, [a, *parts]) for a in named for cost, c, parts in Fit(solved, missing, a.value, sums).products(1))
    for cost, c, parts in itertools.chain(Fit(solved, missing, None, atoms).products(deepest), Fit(solved, missing, None, sums).products(1), projections):
        if (term := _term(scope, c, parts)) is not None:
            # A sum in the place of an operand is bracketed where it needs to be.
            add(root, f"{text} {'-' if c < 0 else '+'} {term[1]}", 2.2 + cost + term[0], f"the term `{'-' if c < 0 else ''}{term[1]}` is missing")
    for node, at in _parts(search, root, value):
        target = at[0] + at[1] * missing
        for cost, c, parts in itertools.chain(Fit(solved, target, at[0], atoms).products(2), Fit(solved, target, at[0], shares).products(1)):
            if (term := _term(scope, c, parts)) is not None:
                inner = _factor_text(unit.text(node), node)
                if term[1].startswith("1 / "):
                    new = f"{inner} / {term[1][4:]}"
                else:
                    new = f"{term[1]} * {inner}" if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult) else f"{term[1]} * ({inner})"
                add(node, f"-{new}" if c < 0 else new, 2.2 + cost + term[0], f"the factor `{'-' if c < 0 else ''}{term[1]}` is missing")
    for extra, (cost, c, parts) in itertools.chain(((0.2, p) for p in Fit(solved, wanted, None, sums).products(1)), ((0.0, p) for p in Fit(solved, wanted, None, atoms).products(2))):
        if (term := _term(scope, c, parts)) is not None:
            add(root, f"{'-' if c < 0 else ''}{term[1]}", 3.0 + extra + cost + term[0], "another expression")
    out.sort(key=lambda e: e.cost)
    return out[:40]


def insertions(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """A term that is to be added to a variable before a statement: of what was not there yet where
    the variable was assigned.
    """
    node = step.statement.node
    if step.statement.head or isinstance(node, ast.Return):
        return []
    out: list[Edit] = []
    reads = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for name in reads:
        v = step.names.get(name)
        made = [s for s in search.steps if s.unit is step.unit and s.order < step.order and target_of(s.statement.node) == name]
        between = [s for s in search.steps if s.unit is step.unit and made and made[-1].order < s.order < step.order]
        if not search.engine.is_float(v) or not made or not between or all(s.right for s in made[-1:]) and made[-1].is_whole_gradient:
            continue
        solved = due_of_variable(search, step, name)
        if not isinstance(solved, Due):
            continue
        atoms = _atoms(search, step, scope, solved.value.shape)
        for cost, c, parts in Fit(solved, solved.wanted - solved.value, None, atoms).products(3):
            if (term := _term(scope, c, parts)) is not None:
                new = f"{name} = {name} {'-' if c < 0 else '+'} {term[1]}"
                text = f"{new}\n{step.unit.text(node)}"
                out.append(Edit(step.unit, step.statement, [], 2.6 + cost + term[0], f"before it `{new}` is missing: a path of the gradient of `{name}`", node, whole=text))
    return sorted(out, key=lambda e: e.cost)[:20]


def _factor_text(text: str, node: Any) -> str:
    product = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult))
    return text if product or isinstance(node, (ast.Name, ast.Call, ast.Subscript)) else f"({text})"


def _parts(search: Search, root: Any, value: Array) -> Iterator[tuple[Any, tuple[Array, float]]]:
    """The value and its terms, each with the sign with which it stands in the value."""
    yield root, (value, 1.0)
    if isinstance(root, ast.BinOp) and isinstance(root.op, (ast.Add, ast.Sub)):
        for node, sign in ((root.left, 1.0), (root.right, -1.0 if isinstance(root.op, ast.Sub) else 1.0)):
            seen = search.values.get(getattr(node, "number", -1)) or []
            if len(seen) == 1 and search.engine.is_float(seen[0]):
                at = search.engine.array(seen[0])
                if at.shape == value.shape:
                    yield node, (at, sign)


__all__ = ["deeper_proposals", "insertions", "partial_proposals", "proposals"]
