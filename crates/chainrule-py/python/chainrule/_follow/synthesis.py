"""Synthesis of the expression for a due value from what is in scope.

The value that is due in a statement is solved for: where the gradients depend on it as a straight
line does, one value makes them right. The missing part of the statement is then a matter of
comparing arrays, thousands of which cost no more than a run of the backward pass.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .case import Array
from .edit import Edit, Scope
from .texts import fits, number_of, stretches
from .bench import target_of
from .solve import Due, due, due_by_name, due_for_some, due_of_variable, joined, operands, root_of, values_of

if TYPE_CHECKING:
    from .search import Search
    from .steps import Step

WORK = 2.5e8
"""The products that are compared with one value, in units of about a nanosecond."""
DISPATCH = 5e4

MOST_LIKE = 32
"""The most parts of variables that neither pass reads."""

GLANCE = 6
"""The mixed directions in which products are compared before they are compared as a whole."""


@dataclass
class Atom:
    """A value with its text and what it costs to say; where the statement runs several times, the
    values of all runs, one after the other.
    """

    text: str
    value: Array
    cost: float


def _at_hand(search: Search, step: Step, scope: Scope, solved: Due) -> list[tuple[str, list[Array], float]]:
    """Variables, parts of the statement and, where it runs once, expressions from elsewhere: with
    the value in each run, and a cost.
    """
    plain: list[tuple[str, list[Array], float]] = []
    for name, v in scope.names.items():
        if search.engine.is_tensor(v):
            # Names from outside the function are the same in each run.
            values = [names.get(name, v if name not in step.names else None) for names in solved.runs]
            if all(search.engine.is_tensor(x) for x in values):
                plain.append((name, [np.asarray(search.engine.array(x), dtype=np.float64) for x in values], 0.0 if "." not in name else 0.1))
    plain += _like_slices(search, step, scope, solved)
    for name in scope.masks:
        # The number of elements that a mask picks: the divisor of a mean over them.
        picked = [names.get(name, scope.names[name]) for names in solved.runs]
        if name.isidentifier() and all(search.engine.is_bool(x) for x in picked):
            plain.append((f"{name}.sum()", [np.asarray(float(search.engine.array(x).sum())) for x in picked], 0.2))
    root = root_of(step)
    for node in ast.walk(root) if root is not None else ():
        if isinstance(node, (ast.Call, ast.Subscript)) and (seen := values_of(search, step, node, solved.values)) is not None:
            plain.append((step.unit.text(node), seen, 0.2))
    have = {text for text, _, _ in plain}
    if len(step.runs) > 1:
        return plain + [(text, seen, 0.2) for text, seen in _indexed(search, solved, scope) if text not in have]
    for text, v in scope.slopes:
        plain.append((f"({text})", [search.engine.array(v)], 0.7))
    for text, v in scope.donors:
        if search.engine.is_float(v) and text not in have and len(text) < 60 and tuple(v.shape) and len(plain) < 60:
            plain.append((text if text.endswith((")", "]")) and "(" in text and not text.startswith("-") and " " not in text.split("(")[0] else f"({text})", [search.engine.array(v)], 0.6))
    return plain


def _like_slices(search: Search, step: Step, scope: Scope, solved: Due) -> list[tuple[str, list[Array], float]]:
    """Parts of the variables that a statement reads, as either pass takes them of others of the
    same shape: `dwin[:, 2:]` where the forward pass has `sq[:, 2:]`.
    """
    root = root_of(step)
    reads = dict.fromkeys(n.id for n in ast.walk(root) if isinstance(n, ast.Name)) if root is not None and len(solved.runs) == 1 else {}
    own = {n: scope.names[n] for n in reads if search.engine.is_float(scope.names.get(n)) and len(scope.names[n].shape)}
    out: dict[str, Array] = {}
    for text, v, _ in search._given or ():
        base, _, index = text.partition("[")
        if not (text.endswith("]") and base.isidentifier() and ":" in index and "(" not in text and search.engine.is_float(v)):
            continue
        for name, x in own.items():
            try:
                # An index of numbers and slices changes nothing.
                part = eval(f"{name}[{index}", {"__builtins__": {}}, dict(scope.names)) if base != name else v
            except Exception:
                continue
            if search.engine.is_float(part):
                out[f"{name}[{index}"] = np.asarray(search.engine.array(part), dtype=np.float64)
    return [(text, [x], 0.2) for text, x in list(out.items())[:16]]


def _indexed(search: Search, solved: Due, scope: Scope) -> Iterator[tuple[str, list[Array]]]:
    """Elements and parts of variables (`p[1]`, `z[:, :n]`) that either pass reads somewhere, and
    the same parts of variables of the same shape, with what they are in each run of a statement.
    """
    read = [text for text, v in scope.donors if search.engine.is_float(v) and text.endswith("]") and "(" not in text]
    like = [text for part in read for text in _same_part(search, part, scope)][:MOST_LIKE]
    for text in dict.fromkeys([*read, *like]):
        try:
            # The variables are those of the run, and an index changes nothing.
            values = [eval(text, {"__builtins__": {}}, dict(names)) for names in solved.runs]
        except Exception:
            continue
        if all(search.engine.is_float(x) for x in values):
            yield text, [search.engine.array(x) for x in values]


def _same_part(search: Search, part: str, scope: Scope) -> Iterator[str]:
    """The part `z[:, :n]` of each variable that has the shape of `z`."""
    base, _, index = part.partition("[")
    v = scope.names.get(base)
    if v is not None and search.engine.is_float(v) and ":" in index:
        shape = tuple(v.shape)
        yield from (f"{name}[{index}" for name, x in scope.names.items() if name.isidentifier() and name != base and search.engine.is_float(x) and tuple(x.shape) == shape)


def _fitted(x: Array, shape: tuple[int, ...]) -> tuple[str, Array, float] | None:
    """The way in which a value comes to fit a shape: the text after its own, the value, and the
    cost.
    """
    if stretches(x.shape, shape):
        return "", x, 0.0
    if x.ndim + 1 == len(shape) and stretches((*x.shape, 1), shape):
        # One axis less: a value for each row.
        return ".unsqueeze(-1)", x[..., None], 0.3
    if 0 < x.ndim < len(shape):
        # A value of the first axes, for all of the last ones.
        wide = x.reshape(*x.shape, *[1] * (len(shape) - x.ndim))
        return (f"[..., {', '.join(['None'] * (len(shape) - x.ndim))}]", wide, 0.3) if stretches(wide.shape, shape) else None
    if x.ndim == 2 and len(shape) == 2 and stretches(x.T.shape, shape):
        return "T", x.T, 0.3
    return None


def _atoms(search: Search, step: Step, scope: Scope, solved: Due) -> list[Atom]:
    """Variables and parts of the statement that fit a shape, and what one makes of them."""
    out: list[Atom] = []
    shapes = solved.shapes
    with np.errstate(all="ignore"):
        for text, values, cost in _at_hand(search, step, scope, solved):
            fitted = [_fitted(v, shape) for v, shape in zip(values, shapes)] if len(values) == len(shapes) else [None]
            first = fitted[0]
            if first is None or any(f is None or f[0] != first[0] for f in fitted):
                continue
            text, cost = text + (scope.transpose if first[0] == "T" else first[0]), cost + first[2]
            x = np.concatenate([np.broadcast_to(f[1], shape).reshape(-1) for f, shape in zip(fitted, shapes) if f is not None])
            out.append(Atom(text, x, cost))
            # Slopes of a sigmoid are made of shares, and those of tanh of values up to one.
            share, below_one = 0.0 if ((x >= 0) & (x <= 1)).all() else 0.3, 0.0 if (np.abs(x) <= 1).all() else 0.3
            forms = [(f"(1 - {text})", 1 - x, 0.4 + share), (f"(1 + {text})", 1 + x, 0.5), (f"(1 - {text} ** 2)", 1 - x * x, 0.4 + below_one), (f"{text} * (1 - {text})", x * (1 - x), 0.5 + share), (f"{text} ** 2", x * x, 0.4)]
            forms += [(f"1 / {text}", 1 / x, 0.35), (f"1 / {text} ** 2", 1 / (x * x), 0.5), (f"{text} ** 3", x**3, 0.6), (f"{text}.exp()", np.exp(x), 0.6), (f"{text}.log()", np.log(x), 0.6), (f"{text}.sqrt()", np.sqrt(x), 0.6), (f"{text}.sign()", np.sign(x), 0.6), (f"({text} > 0)", (x > 0) * 1.0, 0.6)]
            if cost <= 0.2 and text.isidentifier():
                forms += _gates(text, x, scope.bounds)
            out += [Atom(t, v, cost + c) for t, v, c in forms if np.isfinite(v).all() and v.any()]
    return sorted(out, key=lambda a: a.cost)[:260]


def _gates(text: str, x: Array, bounds: list[float]) -> Iterator[tuple[str, Array, float]]:
    """Masks of a value by a bound of either pass, and the value held within it."""
    for c in [c for c in bounds if x.min() < c < x.max() or x.min() < -c < x.max()][:4]:
        yield f"{text}.clamp({-c!r}, {c!r})", np.clip(x, -abs(c), abs(c)), 0.7
        yield f"({text}.abs() < {c!r})", (np.abs(x) < c) * 1.0, 0.8
        for bound in (c, -c):
            yield f"({text} > {bound!r})", (x > bound) * 1.0, 0.8
            yield f"({text} < {bound!r})", (x < bound) * 1.0, 0.8


WIDE = 20
"""The most values of which three are multiplied and summed."""


def _sums_of_three(wide: list[tuple[str, Array]], shape: tuple[int, ...]) -> Iterator[Atom]:
    """Sums over an axis of products of three values."""
    for (a, x), (b, y), (c, z) in itertools.combinations(wide, 3):
        if x.shape != y.shape or y.shape != z.shape:
            continue
        for axis in range(x.ndim):
            if (*x.shape[:axis], *x.shape[axis + 1 :]) == shape:
                yield Atom(f"({a} * {b} * {c}).sum({axis})", (x * y * z).sum(axis), 1.0)


def _uneven_sums(wide: list[tuple[str, Array]], shape: tuple[int, ...]) -> Iterator[Atom]:
    """Sums over an axis of products of a value with one that has an axis less, at its end."""
    for (a, x), (b, y) in itertools.product(wide, wide):
        if y.ndim != x.ndim + 1 or y.shape[:-1] != x.shape or x.ndim < 2:
            continue
        for axis in range(y.ndim):
            if (*y.shape[:axis], *y.shape[axis + 1 :]) == shape:
                yield Atom(f"({a}[..., None] * {b}).sum({axis})", (x[..., None] * y).sum(axis), 0.9)


def _reductions(search: Search, step: Step, scope: Scope, solved: Due) -> Iterator[Atom]:
    """Products of matrices and sums over an axis of this shape, of two variables; in the first run,
    then in the others.
    """
    names = [n for n, v in scope.names.items() if search.engine.is_float(v) and n.isidentifier()][-24:]
    runs = [[(n, search.engine.array(at.get(n, scope.names[n]))) for n in names if search.engine.is_float(at.get(n, scope.names[n]))] for at in solved.runs]
    if len(runs) != len(solved.shapes) or any(len(r) != len(runs[0]) for r in runs):
        return
    at_hand = [(text, values) for text, values, _ in _at_hand(search, step, scope, solved) if len(values) == len(runs)]
    uneven = [(text, values) for text, values in at_hand if values[0].ndim in (len(solved.shapes[0]), len(solved.shapes[0]) + 1)][:2 * WIDE]
    wide = [(text, values) for text, values in at_hand if any((*values[0].shape[:i], *values[0].shape[i + 1 :]) == solved.shapes[0] for i in range(values[0].ndim))][:WIDE]
    found = []
    for run, (named, shape) in enumerate(zip(runs, solved.shapes)):
        each = {a.text: a for a in _reductions_of(scope, named, shape)}
        each |= {a.text: a for a in _uneven_sums([(text, values[run]) for text, values in uneven], shape)}
        found.append(each | {a.text: a for a in _sums_of_three([(text, values[run]) for text, values in wide], shape)})
    for text, atom in found[0].items():
        if all(text in each for each in found):
            yield Atom(text, np.concatenate([each[text].value.reshape(-1) for each in found]), atom.cost)


def _reductions_of(scope: Scope, named: list[tuple[str, Array]], shape: tuple[int, ...]) -> Iterator[Atom]:
    for (a, x), (b, y) in itertools.product(named, named):
        for tx, ty in itertools.product((False, True), (False, True)):
            p, q = x.T if tx else x, y.T if ty else y
            if p.ndim == 2 and q.ndim == 2 and p.shape[1] == q.shape[0] and (p.shape[0], q.shape[1]) == shape:
                t = scope.transpose
                yield Atom(f"{a}{t if tx else ''} @ {b}{t if ty else ''}", p @ q, 0.6)
            elif not tx and p.ndim > 2 and q.ndim == 2 and p.shape[-1] == q.shape[0] and (*p.shape[:-1], q.shape[1]) == shape:
                yield Atom(f"{a} @ {b}{scope.transpose if ty else ''}", p @ q, 0.6)
            elif not ty and p.ndim == 2 and q.ndim == 1 and p.shape[1] == q.shape[0] and p.shape[:1] == shape:
                yield Atom(f"{a}{scope.transpose if tx else ''} @ {b}", p @ q, 0.6)
        if x.ndim == y.ndim == 1 and (*x.shape, *y.shape) == shape:
            yield Atom(f"{a}[:, None] * {b}[None]", x[:, None] * y[None], 0.7)
        if x.shape == y.shape == shape and len(shape) and a != b:
            yield from _projections(a, x, b, y)
        if a <= b and x.ndim == y.ndim and x.ndim >= 1 and fits(x.shape, y.shape):
            product = x * y if a != b else x
            text = f"({a} * {b})" if a != b else a
            for axis in range(product.ndim):
                for keep in (True, False):
                    total = product.sum(axis, keepdims=keep)
                    if total.shape == shape:
                        yield Atom(f"{text}.sum({axis}{', keepdim=True' if keep else ''})", total, 0.7)
                    elif stretches(total.shape, shape) and keep:
                        yield Atom(f"{text}.sum({axis}, keepdim=True)", np.broadcast_to(total, shape), 0.9)


def _projections(a: str, x: Array, b: str, y: Array) -> Iterator[Atom]:
    """One value less its part along another: as softmax, its logarithm, and all that is made of
    length one have in their gradients.
    """
    for axis in range(-1, x.ndim - 1):
        total = (x * y).sum(axis, keepdims=True)
        yield Atom(f"{a} * ({b} - ({a} * {b}).sum({axis}, keepdim=True))", x * (y - total), 1.0)
        yield Atom(f"({b} - {a} * ({a} * {b}).sum({axis}, keepdim=True))", y - x * total, 1.1)
        yield Atom(f"({b} - {a} * {b}.sum({axis}, keepdim=True))", y - x * y.sum(axis, keepdims=True), 1.1)


class Fit:
    """Products of atoms, beside what they should be up to a number."""

    def __init__(self, due: Due, target: Array, factor: Array | None, atoms: list[Atom]) -> None:
        self.due = due
        self.target = due.projected(target.reshape(1, -1))[0]
        self.size = float(np.abs(self.target).max(initial=0.0))
        self.factor = None if factor is None else factor.reshape(-1)
        self.atoms = atoms
        # Comparing is cheap beside running, but not for large values. Counted, not timed: a busy
        # machine compares as much.
        self.left = WORK
        self.depth = 1.0 if due.seen is None else 1.0 + due.seen.shape[1]
        self.rows = np.stack([a.value.reshape(-1) for a in atoms]) if atoms else np.zeros((0, target.size))
        # A look through a few mixed directions rules nearly all rows out: a multiple of the target
        # is one in each.
        self.glance = due.glance(GLANCE)
        self.glimpse = target.reshape(-1) @ self.glance

    def numbers(self, rows: Array) -> Iterator[tuple[int, float]]:
        """The rows that are the target up to a number, with the number."""
        self.left -= DISPATCH + rows.size * GLANCE
        rows = rows if self.factor is None else rows * self.factor
        with np.errstate(all="ignore"):
            seen = rows @ self.glance
            c = seen @ self.glimpse / np.einsum("ij,ij->i", seen, seen)
            off = np.abs(seen * c[:, None] - self.glimpse).max(1)
        near = np.flatnonzero((off <= 1e-5 * np.abs(self.glimpse).max(initial=0.0) + 1e-7 * self.size) & np.isfinite(c))
        if not near.size:
            return
        self.left -= near.size * rows.shape[1] * self.depth
        rows = self.due.projected(rows[near])
        with np.errstate(all="ignore"):
            square = np.einsum("ij,ij->i", rows, rows)
            c = rows @ self.target / square
            off = np.abs(rows * c[:, None] - self.target).max(1)
        for j in np.flatnonzero((off <= 1e-7 * self.size) & (np.abs(c) > 1e-12) & np.isfinite(c)):
            yield int(near[j]), float(c[j])

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
            if self.left < 0:
                return
            for j, c in self.numbers(rows[i] * rows[i:]):
                yield 0.3 + atoms[i].cost + atoms[i + j].cost, c, [atoms[i], atoms[i + j]]
        if deepest < 3:
            return
        cheap = [i for i, a in enumerate(atoms) if a.cost <= 0.75][:60]
        for n, i in enumerate(cheap):
            if self.left < 0:
                return
            for m, j in enumerate(cheap[n:], n):
                for k, c in self.numbers((rows[i] * rows[j]) * rows[cheap[m:]]):
                    third = cheap[m + k]
                    yield 0.6 + atoms[i].cost + atoms[j].cost + atoms[third].cost, c, [atoms[i], atoms[j], atoms[third]]


def _term(scope: Scope, c: float, atoms: list[Atom]) -> tuple[float, str, bool] | None:
    """A product with its number in front, without the sign, and whether that is a minus; None if
    the number has no meaning.
    """
    texts = scope.numbers.texts(c)
    if not texts or texts[0][0] > 4:
        return None
    cost, number = texts[0]
    minus, number = number.startswith("-"), number.removeprefix("-")
    below = [a.text.removeprefix("1 / ") for a in atoms if a.text.startswith("1 / ")]
    product = " * ".join([a.text for a in atoms if not a.text.startswith("1 / ")] or ["1"]) + "".join(f" / {text}" for text in below)
    if number == "1":
        return 0.0, product, minus
    if number.startswith("1 / "):
        return 0.3 * cost, f"{product} / {number[4:]}", minus
    return 0.3 * cost, f"{number} * {product}" if " " not in number else f"({number}) * {product}", minus


def proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """Edits after which the statement's value is the one that is due."""
    solved = search.due_of(step)
    root = root_of(step)
    return next((e for d in _views(solved) if (e := _proposed(search, step, scope, root, d, 3))), []) if isinstance(solved, Due) else []


def _views(solved: Due) -> Iterator[Due]:
    """The value due in all runs, and that in the first one alone. If several values would do,
    what a run leaves undetermined is read by later ones: the first reads what is right.
    """
    yield solved
    if len(solved.shapes) > 1 and solved.seen is not None:
        shape = solved.shapes[0]
        n = math.prod(shape)
        first = {k: v[:1] for k, v in solved.values.items()}
        yield Due(solved.value[:n].reshape(shape), solved.wanted[:n].reshape(shape), [shape], solved.seen[:n], solved.runs[:1], first)


def named_proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """Edits after which the statement's value is the gradient that its variable is named for."""
    root = root_of(step)
    found = [e for solved in due_by_name(search, step, search.named_of(step)) for e in _proposed(search, step, scope, root, solved, 2)]
    return sorted(found, key=lambda e: e.cost)[:40]


def returned_proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """Edits after which the parts of a returned tuple are the gradients of their inputs: these are
    due there, and nothing has to be solved for.
    """
    node, case = step.statement.node, search.case
    if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(case.inputs) or step.calls or len(step.runs) != 1:
        return []
    out: list[Edit] = []
    for i in search.wrong:
        part = node.value.elts[case.graded[i]]
        values = values_of(search, step, part)
        if values is not None and values[0].shape == search.point.right[i].shape:
            solved = Due(np.asarray(values[0], dtype=np.float64), search.point.right[i], [values[0].shape], None, step.runs, search.values)
            out += _proposed(search, step, scope, part, solved, 2)[:10]
    return sorted(out, key=lambda e: e.cost)[:40]


def partial_proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """Edits after which some of the wrong gradients are right."""
    solved = due_for_some(search, step)
    return _proposed(search, step, scope, root_of(step), solved, 2) if solved is not None else []


def deeper_proposals(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """As `proposals`, for the operands in the statement."""
    out: list[Edit] = []
    for node in operands(search, step):
        if search.bench.left() <= 0:
            break
        solved = due(search, step, node)
        if isinstance(solved, Due):
            out += _proposed(search, step, scope, node, solved, 2)
    return sorted(out, key=lambda e: e.cost)[:40]


def _proposed(search: Search, step: Step, scope: Scope, root: Any, solved: Due, deepest: int) -> list[Edit]:
    value, wanted = solved.value, solved.wanted
    unit, statement = step.unit, step.statement
    text = unit.text(root)
    atoms = _atoms(search, step, scope, solved)
    out: list[Edit] = []

    def add(node: Any, new: str, cost: float, what: str) -> None:
        out.append(Edit(unit, statement, [(node, new)], cost, what, node))

    missing = wanted - value
    sums = list(_reductions(search, step, scope, solved))
    shares = [Atom(f"1 / {a.text}", 1 / a.value, a.cost + 0.2) for a in sums if (a.value != 0).all()] + sums
    named = [a for a in atoms if a.cost <= 0.1][:24]
    projections = ((0.3 + a.cost + cost, c, [a, *parts]) for a in named for cost, c, parts in Fit(solved, missing, a.value, sums).products(1))
    for cost, c, parts in itertools.chain(Fit(solved, missing, None, atoms).products(deepest), Fit(solved, missing, None, sums).products(1), projections):
        # A term that is added to itself is a factor.
        if [p.text for p in parts] != [text] and (term := _term(scope, c, parts)) is not None:
            # A sum in the place of an operand is bracketed where it needs to be.
            add(root, f"{text} {'-' if term[2] else '+'} {term[1]}", 2.2 + cost + term[0], f"the term `{'-' if term[2] else ''}{term[1]}` is missing")
    for node, at in _parts(search, step, root, solved):
        target = at[0] + at[1] * missing
        for cost, c, parts in itertools.chain(Fit(solved, target, at[0], atoms).products(2), Fit(solved, target, at[0], shares).products(1)):
            if (term := _term(scope, c, parts)) is not None:
                inner = _factor_text(unit.text(node), node)
                if term[1].startswith("1 / "):
                    new = f"{inner} / {term[1][4:]}"
                else:
                    new = f"{term[1]} * {inner}" if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult) else f"{term[1]} * ({inner})"
                add(node, f"-{new}" if term[2] else new, 2.2 + cost + term[0], f"the factor `{'-' if term[2] else ''}{term[1]}` is missing")
    for node, rest in _inner_factors(search, step, root, solved):
        for cost, c, parts in itertools.chain(*(Fit(solved, rest[1] * missing, rest[0], of).products(1) for of in (atoms, sums))):
            if (term := _term(scope, c, parts)) is not None:
                sign = "-" if term[2] else "+"
                add(node, f"({unit.text(node)} {sign} {term[1]})", 2.25 + cost + term[0], f"the term `{'-' if term[2] else ''}{term[1]}` is missing")
    for extra, (cost, c, parts) in itertools.chain(((0.2, p) for p in Fit(solved, wanted, None, sums).products(1)), ((0.0, p) for p in Fit(solved, wanted, None, atoms).products(2))):
        if (term := _term(scope, c, parts)) is not None:
            add(root, f"{'-' if term[2] else ''}{term[1]}", 3.0 + extra + cost + term[0], "another expression")
    if not out:
        for first, second in _two_terms(Fit(solved, missing, None, [a for a in atoms if a.cost <= 0.3][:40])):
            add(root, f"{text} {first} {second}", 3.4, f"the terms `{first.removeprefix('+ ')} {second}` are missing")
    out.sort(key=lambda e: e.cost)
    return out[:40]


def _two_terms(fit: Fit) -> Iterator[tuple[str, str]]:
    """Two products, each of one value or of two, that are the target together: those whose first
    elements add up are compared as a whole.
    """
    n = len(fit.atoms)
    if n == 0 or fit.size == 0.0 or fit.target.size < 2:
        return
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    texts = [fit.atoms[i].text for i in range(n)] + [f"{fit.atoms[i].text} * {fit.atoms[j].text}" for i, j in pairs]
    rows = np.concatenate([fit.rows, fit.rows[[i for i, _ in pairs]] * fit.rows[[j for _, j in pairs]]])
    rows = fit.due.projected(rows)
    good = np.isfinite(rows).all(1) & (np.abs(rows).max(1) > 1e-9 * fit.size)
    rows, texts = rows[good], [t for t, g in zip(texts, good) if g]
    signed = np.concatenate([rows, -rows])
    order = np.argsort(signed[:, 0])
    firsts = signed[order, 0]
    slack = 1e-7 * fit.size
    low = np.searchsorted(firsts, fit.target[0] - signed[:, 0] - slack)
    high = np.searchsorted(firsts, fit.target[0] - signed[:, 0] + slack)
    for i in np.flatnonzero(high > low):
        for j in order[low[i] : high[i]]:
            if i < j and np.abs(signed[i] + signed[j] - fit.target).max() <= slack:
                a, b = (f"{'+' if k < len(rows) else '-'} {texts[k % len(rows)]}" for k in (i, j))
                yield a, b
                return


def _carried(step: Step) -> list[str]:
    """The variables that a loop carries from one run to the next, at the end of its body: there
    the line of a path may be missing altogether.
    """
    node = step.statement.node
    loops = (n for n in ast.walk(step.unit.node) if isinstance(n, ast.For) and n.body[-1] is node)
    inside = [n for loop in loops for part in loop.body for n in ast.walk(part)]
    carried = [t for n in inside if isinstance(n, (ast.Assign, ast.AugAssign)) and (t := target_of(n)) is not None and isinstance(n.targets[0] if isinstance(n, ast.Assign) else n.target, ast.Name)]
    return [t for t in dict.fromkeys(carried) if any(isinstance(n, ast.Name) and n.id == t and isinstance(n.ctx, ast.Load) for n in inside)]


def _added(search: Search, step: Step, scope: Scope, name: str, solved: Due) -> Iterator[Edit]:
    """Edits that add a term to a variable before a statement."""
    node = step.statement.node
    atoms = _atoms(search, step, scope, solved)
    for cost, c, parts in Fit(solved, solved.wanted, solved.value, atoms).products(2):
        if (term := _term(scope, c, parts)) is not None and not term[2]:
            new = f"{name} = {name} * {term[1]}"
            text = f"{new}\n{step.unit.text(node)}"
            yield Edit(step.unit, step.statement, [], 2.5 + cost + term[0], f"before it `{new}` is missing", node, whole=text)
    missing, sums = solved.wanted - solved.value, list(_reductions(search, step, scope, solved))
    products = ((cost / 2, c, parts) for cost, c, parts in Fit(solved, missing, None, sums).products(1))
    for cost, c, parts in itertools.chain(Fit(solved, missing, None, atoms).products(3), products):
        if (term := _term(scope, c, parts)) is not None:
            new = f"{name} = {name} {'-' if term[2] else '+'} {term[1]}"
            text = f"{new}\n{step.unit.text(node)}"
            yield Edit(step.unit, step.statement, [], 2.6 + cost + term[0], f"before it `{new}` is missing: a path of the gradient of `{name}`", node, whole=text)


def later_places(search: Search, step: Step) -> Iterator[Step]:
    """The statements before which a line may be missing where a statement gives but a part: the
    first that reads its variable, and the last one of its loop, for what the next run reads.
    """
    target, node = target_of(step.statement.node), step.statement.node
    later = sorted((s for s in search.steps if s.unit is step.unit and s.order > step.order and not s.statement.head), key=lambda s: s.order)
    readers = (s for s in later if any(isinstance(n, ast.Name) and n.id == target and isinstance(n.ctx, ast.Load) for n in ast.walk(s.statement.node)))
    loops = [n for n in ast.walk(step.unit.node) if isinstance(n, ast.For) and any(n is node for part in n.body for n in ast.walk(part))]
    last = (s for s in search.steps if loops and s.statement.node is loops[-1].body[-1] and s is not step)
    yield from itertools.chain(itertools.islice(readers, 1), itertools.islice(last, 1))


def insertions(search: Search, step: Step, scope: Scope) -> list[Edit]:
    """A term that is to be added to a variable before a statement: of what was not there yet where
    the variable was assigned.
    """
    node = step.statement.node
    if step.statement.head or isinstance(node, ast.Return):
        return []
    out: list[Edit] = []
    reads = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for name in [*reads, *(n for n in _carried(step) if n not in reads)]:
        made = [s for s in search.steps if s.unit is step.unit and s.order < step.order and target_of(s.statement.node) == name]
        between = [s for s in search.steps if s.unit is step.unit and made and made[-1].order < s.order < step.order]
        if not search.engine.is_float(step.names.get(name)) or not made or not between or all(s.right for s in made[-1:]) and made[-1].is_whole_gradient:
            continue
        solved = due_of_variable(search, step, name)
        for view in _views(solved) if isinstance(solved, Due) else ():
            found = list(_added(search, step, scope, name, view))
            out += found
            if found:
                break
    return sorted(out, key=lambda e: e.cost)[:20]


def _factor_text(text: str, node: Any) -> str:
    product = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult))
    return text if product or isinstance(node, (ast.Name, ast.Call, ast.Subscript)) else f"({text})"


def _parts(search: Search, step: Step, root: Any, solved: Due) -> Iterator[tuple[Any, tuple[Array, float]]]:
    """The value and its terms, each with the sign with which it stands in the value."""
    yield root, (solved.value, 1.0)
    if isinstance(root, ast.BinOp) and isinstance(root.op, (ast.Add, ast.Sub)):
        for node, sign in ((root.left, 1.0), (root.right, -1.0 if isinstance(root.op, ast.Sub) else 1.0)):
            seen = values_of(search, step, node, solved.values)
            if seen is not None and (at := joined(seen)).shape == solved.value.shape:
                yield node, (at, sign)


def _inner_factors(search: Search, step: Step, root: Any, solved: Due) -> Iterator[tuple[Any, tuple[Array, float]]]:
    """The factors of the value's terms: by what each is multiplied, and the sign of its term."""

    def factors(node: Any, power: int) -> Iterator[tuple[Any, int]]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            yield from factors(node.left, power)
            yield from factors(node.right, power if isinstance(node.op, ast.Mult) else -power)
        else:
            yield node, power

    def value(node: Any) -> Array | None:
        if (x := number_of(node)) is not None:
            return np.full(solved.value.shape, float(x))
        seen = values_of(search, step, node, solved.values)
        if seen is None or not all(stretches(v.shape, shape) for v, shape in zip(seen, solved.shapes)):
            return None
        return joined([np.broadcast_to(v, shape) for v, shape in zip(seen, solved.shapes)]).reshape(solved.value.shape)

    for term, (_, sign) in _parts(search, step, root, solved):
        parts = list(factors(term, 1))
        values = [value(node) for node, _ in parts]
        if len(parts) < 2 or any(v is None for v in values):
            continue
        with np.errstate(all="ignore"):
            powers = [v**power for v, (_, power) in zip(values, parts) if v is not None]
            for i, (node, power) in enumerate(parts):
                rest = np.prod([v for j, v in enumerate(powers) if j != i], axis=0)
                if power == 1 and number_of(node) is None and np.isfinite(rest).all() and rest.any():
                    yield node, (rest, sign)


__all__ = ["deeper_proposals", "insertions", "named_proposals", "partial_proposals", "proposals", "returned_proposals"]
