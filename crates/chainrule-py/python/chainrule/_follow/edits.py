"""Small edits of one statement, the smallest first: what somebody may have meant who wrote it.

No edit knows of a particular mistake. They are the ways in which one expression can be another of
the kind: another variable that fits, another axis, another sign, another number, a part more or
less. Whether one of them is due is for the run of the edited backward to say.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import math
from collections.abc import Iterator
from typing import Any

from .chains import rearranged
from .edit import Edit, Scope
from .indices import Indices
from .texts import as_operand, fits, is_idle, name_of, number_of, of_texts, parsed_text, replaced, same_but_ones, sign_of, tail_of, text_without
from .units import Statement, Unit


_TWINS = {
    "sum": ["mean"], "mean": ["sum"], "sin": ["cos"], "cos": ["sin"], "tanh": ["sigmoid"], "sigmoid": ["tanh"], "argmax": ["argmin"], "argmin": ["argmax"],
    "triu": ["tril"], "tril": ["triu"], "maximum": ["minimum"], "minimum": ["maximum"], "amax": ["amin", "sum"], "max": ["min"], "min": ["max"], "sinh": ["cosh"],
    "cosh": ["sinh"], "index_copy": ["index_add"], "index_copy_": ["index_add_"], "scatter": ["scatter_add"], "scatter_": ["scatter_add_"], "zeros_like": ["ones_like"],
    "ones_like": ["zeros_like"], "softmax": ["log_softmax"], "log_softmax": ["softmax"], "log": ["log1p"], "log1p": ["log"], "sqrt": ["rsqrt", "square"],
    "rsqrt": ["sqrt"], "square": ["sqrt"], "abs": ["sign"], "sign": ["abs"], "relu": ["sign"], "cumsum": ["cumprod"], "softplus": ["sigmoid"], "floor": ["round"], "sub_": ["add_"],
    "add_": ["sub_"], "mul": ["div"], "div": ["mul"], "var": ["std"], "std": ["var"], "inverse": ["t"], "less": ["greater"], "ge": ["gt"], "gt": ["ge", "lt"], "le": ["lt"], "lt": ["le", "gt"],
}  # fmt: skip
_AXES = {"sum", "mean", "amax", "amin", "max", "min", "softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "flip", "prod", "norm", "unsqueeze", "squeeze", "var", "std", "cat", "stack", "roll",
         "chunk", "split", "unbind", "select", "narrow", "index_select", "index_add", "index_add_", "gather", "scatter_add", "scatter_add_", "repeat_interleave", "softmin", "argmax", "diff"}  # fmt: skip
_SMOOTH = ["tanh", "sigmoid", "exp", "log", "sqrt", "sin", "cos", "relu", "abs", "sign"]
_SWAPS: dict[type, list[tuple[str, float]]] = {
    ast.Add: [("-", 1.0)], ast.Sub: [("+", 1.0)], ast.Mult: [("/", 1.0), ("-", 3.0), ("+", 3.0)], ast.Div: [("*", 1.0)], ast.Pow: [("*", 3.0)], ast.MatMult: [("*", 3.0)],
    ast.BitAnd: [("|", 1.0)], ast.BitOr: [("&", 1.0)],
}  # fmt: skip
_COMPARED = {ast.Gt: [">=", "<", "<="], ast.Lt: ["<=", ">", ">="], ast.GtE: [">", "<=", "<"], ast.LtE: ["<", ">=", ">"], ast.Eq: ["!="], ast.NotEq: ["=="]}


class Edits(Indices):
    """The edits of one statement."""

    def __init__(self, unit: Unit, statement: Statement, scope: Scope) -> None:
        self.unit, self.statement, self.scope = unit, statement, scope
        self.calls = {id(n.func) for n in ast.walk(statement.node) if isinstance(n, ast.Call)}
        # Arrays whose sizes alone are read: a transposition there is another axis of them.
        self.measured = {id(n.value) for n in ast.walk(statement.node) if isinstance(n, ast.Attribute) and n.attr in ("shape", "size", "ndim")}

    def sites(self) -> list[Any]:
        """The expressions of the statement that are read, outer ones first."""
        node = self.statement.node
        keep = (ast.expr,)
        signed = {id(n.operand) for n in ast.walk(node) if isinstance(n, ast.UnaryOp) and number_of(n) is not None}
        tests = [n.test for n in ast.walk(node) if isinstance(n, ast.IfExp) and self.unit.is_setting(n.test)]
        settings = {id(n) for test in tests for n in ast.walk(test)}
        return [n for n in ast.walk(node) if id(n) not in signed and id(n) not in settings and isinstance(n, keep) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load) and id(n) not in self.calls]

    def all(self, most: float = math.inf) -> list[Edit]:
        """All edits that cost less than `most`, the smallest first."""
        found = [*self._statement(), *self._walked()]
        for node in self.sites():
            found += self._expression(node)
        found += self.all_pairs()
        found += self.like_its_kin()
        idle = is_idle(parsed_text(self.unit.text(self.statement.node)))
        base, seen, out = ast.dump(parsed_text(self.unit.text(self.statement.node))), set(), []
        for e in sorted((e for e in found if e.cost < most), key=lambda e: e.cost):
            try:
                parsed = parsed_text(e.text())
                tree = ast.dump(parsed)
            except SyntaxError:
                continue
            if tree != base and tree not in seen:
                seen.add(tree)
                if self._is_alias(e):
                    e.cost += 0.5
                if is_idle(parsed) and not idle:
                    e.cost += 0.6
                out.append(e)
        return sorted(out, key=lambda e: e.cost)

    def _is_alias(self, edit: Edit) -> bool:
        """Whether nothing is left of the statement but another name for a variable: then more
        likely it is used in the wrong place.
        """
        node = self.statement.node
        if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Name) or len(edit.pieces) != 1:
            return False
        return edit.pieces[0][0] is node.value and edit.pieces[0][1].isidentifier()

    def donated(self) -> list[Edit]:
        """Other expressions of the forward or the backward pass in the place of one here."""
        out = []
        for node in self.sites():
            v = self.scope.value(node)
            shape = self.scope.shape(node)
            mine = self.text(node)
            for text, other in self.scope.donors:
                if text == mine or isinstance(v, bool) or v is None:
                    continue
                number = isinstance(v, (int, float)) and (isinstance(other, (int, float)) or self.scope.engine.is_tensor(other) and tuple(other.shape) == ())
                tensor = shape is not None and self.scope.engine.is_tensor(other) and tuple(other.shape) == shape
                if number or tensor:
                    # The more of it there is here already, the smaller the edit.
                    alike = difflib.SequenceMatcher(None, mine, text).ratio()
                    out.append(self._edit(node, text, 2.0 + 0.8 * (1 - alike) + 0.004 * len(text), f"`{text}` is due here"))
        return sorted(out, key=lambda e: e.cost)[:150]

    # -- whole statements

    def _statement(self) -> Iterator[Edit]:
        node, text = self.statement.node, self.text
        if isinstance(node, ast.AugAssign):
            target, value = text(node.target), text(node.value)
            others = {ast.Add: ["=", "-="], ast.Sub: ["+=", "="], ast.Mult: ["/=", "="], ast.Div: ["*=", "="]}.get(type(node.op), [])
            for op in others:
                yield self._whole(f"{target} {op} {value}", 1.5 if op == "=" else 1.0, f"`{op}` for `{sign_of(node.op)}=`", node)
            if isinstance(node.target, ast.Subscript):
                yield from self._scattered(node.target, f"-({value})" if isinstance(node.op, ast.Sub) else value)
            yield self._whole("pass", 1.9, "the statement is one too many", node)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            left, value = node.targets[0], text(node.value)
            if isinstance(left, (ast.Name, ast.Subscript)):
                known = isinstance(left, ast.Subscript) or self._is_held(text(left))
                if known:
                    for op in ("+=", "-="):
                        # Only a sum is written so: a sign alone is written as one.
                        yield self._whole(f"{text(left)} {op} {value}", 1.5 if op == "+=" else 1.9, f"`{op}` for `=`: what was there before is lost", node)
                    cost = 1.9 if isinstance(left, ast.Subscript) else 2.3 + self._chosen()
                    yield self._whole("pass", cost, "the statement is one too many", node)
                if isinstance(left, ast.Name) and isinstance(node.value, ast.Subscript):
                    yield from self._placed(left, node.value, known)
                if isinstance(left, ast.Name) and known:
                    name = text(left)
                    yield self._whole(f"{name} = {name} + ({value})", 1.6, "what was there before is lost", node)
            if isinstance(left, ast.Subscript):
                yield from self._scattered(left, value)
            if isinstance(left, ast.Tuple):
                yield from self._exchanged(left.elts, 1.9)
        if isinstance(node, ast.Expr):
            yield self._whole("pass", 1.9, "the statement is one too many", node)
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            changed = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(changed, ast.Subscript):
                yield from self._index(changed)

    def _walked(self) -> Iterator[Edit]:
        """The sequence of a loop, the other way round."""
        node, owner = self.statement.node, self.statement.owner
        if not self.statement.head or not isinstance(owner, ast.For):
            return
        text = self.text(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield self._edit(node, f"reversed({text})", 1.4, "the order is the other way round")
        elif isinstance(node, ast.Call) and name_of(node) in ("zip", "enumerate"):
            yield self._edit(node, f"reversed(list({text}))", 1.5, "the order is the other way round")

    def _chosen(self) -> float:
        """More, where the statement is all that a branch has which was chosen from outside the
        function: nobody chooses a branch to do nothing.
        """
        for owner in ast.walk(self.unit.node):
            if isinstance(owner, ast.If) and self.unit.is_setting(owner.test) and any([n.number for n in rows] == [self.statement.node.number] for rows in (owner.body, owner.orelse)):  # type: ignore[attr-defined]
                return 0.4
        return 0.0

    def _target(self) -> str:
        """The variable that the statement assigns."""
        node = self.statement.node
        return self.text(node.targets[0]) if isinstance(node, ast.Assign) else ""

    def _is_held(self, name: str) -> bool:
        """Whether a variable has a tensor or a number before the statement: a sum may begin with
        `0.0`.
        """
        held = self.scope.names.get(name)
        return isinstance(held, (int, float)) and not isinstance(held, bool) or bool(self.scope.engine.is_tensor(held))

    def _scattered(self, target: Any, value: str) -> Iterator[Edit]:
        """An assignment by an index in which a place may occur several times."""
        index = target.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if all(self.scope.engine.is_tensor(self.scope.value(p)) for p in parts):
            inner = ", ".join(self.text(p) for p in parts)
            name = self.text(target.value)
            say = "an index that occurs several times gets the sum of its parts, not the last of them"
            if self.unit.has_arrays:
                at = f"({inner})" if len(parts) > 1 else inner
                yield self._whole(f"np.add.at({name}, {at}, {value})", 1.2, say, target)
                return
            yield self._whole(f"{name}.index_put_(({inner},), {value}, accumulate=True)", 1.2, say, target)

    # -- expressions

    def _expression(self, node: Any) -> Iterator[Edit]:
        shape = self.scope.shape(node)
        if (x := number_of(node)) is not None:
            yield from self._constant(node, x)
            return
        if isinstance(node, ast.Constant):
            yield from self._literal(node)
            return
        if shape is not None:
            yield from self._other_variable(node, shape)
            if id(node) not in self.measured:
                yield from self._turned(node, shape)
        value = self.scope.value(node)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield from self._other_number(node, value)
        if isinstance(value, slice):
            for name, v in self.scope.names.items():
                if isinstance(v, slice) and name != self.text(node):
                    yield self._edit(node, name, 1.1, "another slice")
        if isinstance(node, ast.BinOp):
            yield from self._operator(node)
        if isinstance(node, ast.UnaryOp):
            yield self._edit(node, self.text(node.operand), 1.0, "the sign is one too many" if isinstance(node.op, ast.USub) else f"`{self.text(node)[0]}` is one too many")
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and not of_texts(node):
            for op in _COMPARED.get(type(node.ops[0]), []):
                yield self._edit(node, f"{self.text(node.left)} {op} {self.text(node.comparators[0])}", 1.2, f"`{op}` is due in the comparison")
            if shape is not None:
                for c in self.scope.bounds:
                    for op, bound in (("<", c), (">", c), ("<", -c), (">", -c)):
                        yield self._edit(node, f"({self.text(node)}) & ({self.text(node.left)} {op} {bound!r})", 1.9, f"the bound {bound!r} is missing")
        if isinstance(node, ast.Name) and shape:
            for c in self.scope.bounds[:6]:
                yield self._edit(node, f"{node.id}.clamp({-abs(c)!r}, {abs(c)!r})", 2.4, f"the bound {abs(c)!r} is missing")
        if isinstance(node, ast.Call):
            yield from self._call(node, shape)
        if isinstance(node, ast.Subscript):
            yield from self._index(node)
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) <= 12:
            yield from self._exchanged(node.elts, 1.5)
        if isinstance(node, ast.IfExp) and not of_texts(node.test):
            yield self._edit(node, f"{self.text(node.orelse)} if {self.text(node.test)} else {self.text(node.body)}", 1.5, "the two cases are exchanged")
        yield from self._hoisted(node, shape)

    def _hoisted(self, node: Any, shape: tuple[int, ...] | None) -> Iterator[Edit]:
        """A part in the place of the whole: whatever else is in it is one too many."""
        if shape is None or isinstance(node, (ast.Name, ast.Tuple, ast.List)):
            return
        for child in ast.walk(node):
            if child is not node and isinstance(child, ast.expr) and id(child) not in self.calls and (inner := self.scope.shape(child)) is not None and fits(inner, shape):
                trailing = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and child is node.func.value
                if trailing:
                    yield self._edit(node, self.text(child), 1.2 if name_of(node) not in ("sum", "mean") else 1.4, f"`{text_without(self.text(node), self.text(child))}` is one too many")
                    continue
                rest = text_without(self.text(node), self.text(child))
                depth = self.text(node).count("(") - self.text(child).count("(")
                yield self._edit(node, self.text(child), 1.3 + 0.2 * max(depth, 0) + 0.01 * len(rest), f"`{rest}` is one too many" if rest else "a part too many")

    def _other_variable(self, node: Any, shape: tuple[int, ...]) -> Iterator[Edit]:
        mine = self.text(node)
        cost = 1.0 if isinstance(node, ast.Name) else 1.8
        for name, other in self.scope.tensors():
            if name == mine or node is getattr(self.statement.node, "value", None) and name == self._target():
                continue
            if fits(other, shape):
                yield self._edit(node, name, cost + self._strange(mine, name) + (0.0 if other == shape else 0.3 if same_but_ones(other, shape) else 0.9), "another variable")
            elif len(other) == 2 and fits(other[::-1], shape):
                yield self._edit(node, name + self.scope.transpose, cost + 1.2, "another variable")
            elif len(other) == len(shape) + 1 and self._count(other) == self._count(shape) or sorted(d for d in other if d > 1) == sorted(d for d in shape if d > 1):
                yield self._edit(node, f"{name}.reshape({mine}.shape)", cost + 2.0, "another variable")
        for i, d in enumerate(shape):
            for name, other in self.scope.tensors():
                # A step of a sequence for another one's, by the same index.
                if isinstance(node, ast.Subscript) and name != self.text(node.value) and i == 0 and other == self.scope.shape(node.value):
                    yield self._edit(node.value, name, 1.0, "another variable")

    def _strange(self, mine: str, name: str) -> float:
        """Cost of a variable in the place of another one: less the more they are alike, in name and
        in kind."""
        kinds = self.scope.kinds
        other_kind = 0.15 if mine in kinds and name in kinds and kinds[mine] != kinds[name] else 0.0
        return other_kind + 0.1 * (1 - difflib.SequenceMatcher(None, mine, name).ratio())

    @staticmethod
    def _count(shape: tuple[int, ...]) -> int:
        n = 1
        for d in shape:
            n *= d
        return n

    def _turned(self, node: Any, shape: tuple[int, ...]) -> Iterator[Edit]:
        text = as_operand(self.text(node), node)
        if len(shape) == 2:
            yield self._edit(node, text + self.scope.transpose, 1.1 if isinstance(node, ast.Name) else 1.6, "the transposed one is due")
        if len(shape) >= 3:
            yield self._edit(node, f"{text}.transpose(-1, -2)", 1.4, "the transposed one is due")
            yield self._edit(node, f"{text}.transpose(0, 1)", 1.8, "the transposed one is due")
        if len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1:
            yield self._edit(node, f"({text} + {text}{self.scope.transpose})", 1.9, "the transposed one is to be added")
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and number_of(node.left) == 2:
                one = as_operand(self.text(node.right), node.right)
                yield self._edit(node, f"({one} + {one}{self.scope.transpose})", 1.4, "the transposed one is to be added, which is twice as much only of what is symmetric")
        for d in range(len(shape)):
            yield self._edit(node, f"{text}.flip({d})", 3.2, f"the order along axis {d} is due the other way round")
            for f in ("sum", "mean"):
                for keep in (", keepdim=True", ""):
                    yield self._edit(node, f"{text}.{f}({d}{keep})", 2.6 if f == "sum" else 3.0, f"the {f} over axis {d} is due")
        if len(shape) > 1:
            yield self._edit(node, f"{text}.sum()", 3.0, "the sum is due")
        for f in _SMOOTH:
            yield self._edit(node, f"{text}.{f}()", 2.8, f"`{f}` of it is due")
        for d in range(len(shape)) if len(shape) < 3 else ():
            yield self._edit(node, f"{text}.cumsum({d})", 2.5, f"the running sum along axis {d} is due")
            if not self.unit.has_arrays:
                yield self._edit(node, f"{text}.flip({d}).cumsum({d}).flip({d})", 2.6, f"the running sum along axis {d} is due, from its end")
        yield self._edit(node, f"1 / {text}", 2.6, "one over it is due")
        yield self._edit(node, f"1 - {text}", 2.6, "one minus it is due")
        yield self._edit(node, f"{text} ** 2", 2.4, "its square is due")
        yield self._edit(node, f"{text} ** 0.5", 2.6, "its root is due")
        value = self.scope.value(node)
        if str(getattr(value, "dtype", "")).endswith("bool"):
            yield self._edit(node, f"~{text}", 1.2, "the mask is the other way round")
        for mask in self.scope.masks:
            kept = self.scope.names.get(mask)
            if kept is not None and fits(tuple(kept.shape), shape) and mask != self.text(node):
                if str(kept.dtype).endswith("bool"):
                    yield self._edit(node, f"{text}.masked_fill({mask}, 0)", 2.4, f"the mask `{mask}` is forgotten")
                    yield self._edit(node, f"{text}.masked_fill(~{mask}, 0)", 2.5, f"the mask `{mask}` is forgotten")

    def _constant(self, node: Any, x: float) -> Iterator[Edit]:
        if isinstance(node, ast.UnaryOp):
            yield self._edit(node, self.text(node.operand), 0.9, f"{-x!r} for {x!r}: the sign")
        others: list[tuple[float, float]] = []
        if isinstance(x, int):
            others += [(x + 1, 1.2), (x - 1, 1.2), (-x, 1.3)]
        others += [(v, 1.8 if v == 1 else 1.4) for v in (0, 1, 2, 3, 0.5, -0.5, -1, -1.5, -2, 1.5, 0.25, 4)]
        others += [(-x, 1.0), (2 * x, 1.4), (x / 2, 1.4), (x - 1, 1.3), (x + 1, 1.5), (x * x, 2.4)]
        others += [(c, 1.3) for c in self.scope.constants]
        if x:
            others.append((1 / x, 1.8))
        seen = set()
        named = [v for v in self.scope.names.values() if isinstance(v, (int, float))]
        others = [(v, cost + 0.3 if any(v == n for n in named) else cost) for v, cost in others]
        for value, cost in others:
            if isinstance(value, float) and value.is_integer() and (isinstance(x, int) or abs(value) < 5):
                value = int(value)
            if isinstance(value, int) and abs(value) > max(1000, 100 * abs(x)):
                # As a size it would fill the memory.
                continue
            if repr(value) not in seen and value != x and (isinstance(value, int) or not self._is_argument(node)):
                seen.add(repr(value))
                yield self._edit(node, repr(value), cost + (0.3 if self._is_argument(node) else 0.0), f"{value!r} for {x!r}")
        if node is getattr(self.statement.node, "value", None):
            for name, _ in self.scope.tensors():
                yield self._edit(node, name, 1.9, f"`{name}` for {x!r}")
                if x != 1:
                    yield self._edit(node, f"-{name}" if x == -1 else f"{x!r} * {name}", 2.1, f"the factor `{name}` is missing")
        target = getattr(self.statement.node, "targets", [None])[0]
        if isinstance(target, ast.Subscript) and not any(n is node for n in ast.walk(target)) and not self._is_argument(node):
            for name, shape in self.scope.tensors():
                for d in range(len(shape) if name.isidentifier() and len(shape) > 1 else 0):
                    total = f"{'-' if x < 0 else ''}{name}.sum({d})"
                    yield self._edit(node, total, 2.2, f"`{total}` for {x!r}")
        if not isinstance(x, int) or abs(x) < 100:
            for name, v in self.scope.names.items():
                if isinstance(v, (int, float)) and not isinstance(v, bool):
                    yield self._edit(node, name, 1.35, f"`{name}` for {x!r}")

    def _is_argument(self, node: Any) -> bool:
        """Whether a whole number is an argument of a call, as axes and sizes are."""
        return isinstance(number_of(node), int) and any(node in n.args for n in ast.walk(self.statement.node) if isinstance(n, ast.Call))

    def _literal(self, node: Any) -> Iterator[Edit]:
        if isinstance(node.value, bool):
            yield self._edit(node, repr(not node.value), 1.1, f"{not node.value} for {node.value}")
        if isinstance(node.value, str) and "->" in node.value and len(node.value) < 40:
            yield from self._einsum(node)

    def _einsum(self, node: Any) -> Iterator[Edit]:
        left, right = node.value.split("->")
        parts = [*left.split(","), right]
        for i, part in enumerate(parts):
            for a in range(len(part)):
                for b in range(a + 1, len(part)):
                    if part[a].isalpha() and part[b].isalpha():
                        turned = part[:a] + part[b] + part[a + 1 : b] + part[a] + part[b + 1 :]
                        new = [*parts[:i], turned, *parts[i + 1 :]]
                        yield self._edit(node, repr(",".join(new[:-1]) + "->" + new[-1]), 1.3, "the axes are in another order")
                if i < len(parts) - 1 and part[a].isalpha():
                    for other in sorted({c for c in node.value if c.isalpha()} - {part[a]}):
                        new = [*parts[:i], part[:a] + other + part[a + 1 :], *parts[i + 1 :]]
                        yield self._edit(node, repr(",".join(new[:-1]) + "->" + new[-1]), 1.8, "another axis is summed over")

    def _other_number(self, node: Any, x: float) -> Iterator[Edit]:
        if isinstance(node, ast.Call) and not isinstance(x, (int, float)):
            return
        mine = as_operand(self.text(node), node)
        cost = 1.05 if isinstance(node, ast.Name) else 1.5
        for name, v in self.scope.names.items():
            if isinstance(v, (int, float)) and not isinstance(v, bool) and name != self.text(node):
                yield self._edit(node, name, cost, "another number")
        if isinstance(x, int) and node is getattr(self.statement.node, "value", None):
            yield from self._count_of_axes(node, x)
        if isinstance(x, int) or float(x).is_integer():
            for step in ("- 1", "+ 1"):
                yield self._edit(node, f"{mine} {step}", 2.0 if isinstance(node, (ast.Subscript, ast.Call)) else 1.2, f"`{self.text(node)} {step}` is due")
        yield self._edit(node, f"-{mine}", 1.3, "the sign is wrong")
        if x > 0:
            yield self._edit(node, f"{mine} ** 0.5", 1.8, "its root is due")
            yield self._edit(node, f"1 / {mine}", 1.8, "one over it is due")
            yield self._edit(node, f"{mine} ** 2", 1.8, "its square is due")
        yield self._edit(node, f"2 * {mine}", 1.9, "twice as much is due")
        yield self._edit(node, f"{mine} / 2", 1.9, "half of it is due")
        if isinstance(node, ast.BinOp):
            yield self._edit(node, self.text(node.left), 0.95, "")
            yield self._edit(node, self.text(node.right), 1.3, "")

    def _count_of_axes(self, node: Any, x: int) -> Iterator[Edit]:
        """Another number of elements: of some axes of a tensor together."""
        seen = {x}
        for name, shape in self.scope.tensors():
            for n in range(1, len(shape) + 1 if len(shape) > 1 and name.isidentifier() else 0):
                for axes in itertools.combinations(range(len(shape)), n):
                    count = self._count(tuple(shape[i] for i in axes))
                    if count not in seen and count > 1 and len(seen) < 40:
                        seen.add(count)
                        yield self._edit(node, " * ".join(f"{name}.shape[{i}]" for i in axes), 1.6 + 0.05 * n, f"the size of {'axis' if n == 1 else 'the axes'} {', '.join(map(str, axes))} is due")

    def _operator(self, node: Any) -> Iterator[Edit]:
        yield from self.slopes(node)
        a, b = as_operand(self.text(node.left), node.left), as_operand(self.text(node.right), node.right)
        for op, cost in _SWAPS.get(type(node.op), []):
            yield self._edit(node, f"{a} {op} {b}", cost, f"`{op}` for `{sign_of(node.op)}`")
        if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult, ast.Pow)):
            # `1 - x` is seldom meant the other way round.
            literal = number_of(node.left) is not None or number_of(node.right) is not None
            yield self._edit(node, f"{b} {sign_of(node.op)} {a}", 1.35 if literal else 1.2, "the operands are exchanged")
        if isinstance(node.op, ast.Pow) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, (ast.Add, ast.Sub)):
            inner = node.left
            yield self._edit(node, f"{self.text(inner.left)} {sign_of(inner.op)} {as_operand(self.text(inner.right), inner.right)} ** {b}", 1.3, "the power belongs to one term only")
            if number_of(inner.left) != 1:
                yield self._edit(node, f"{as_operand(self.text(inner.left), inner.left)} ** {b} {sign_of(inner.op)} {self.text(inner.right)}", 1.3, "the power belongs to one term only")
        if isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Pow):
            yield self._edit(node, f"({self.text(node.left)} {sign_of(node.op)} {self.text(node.right.left)}) ** {self.text(node.right.right)}", 1.4, "the power is that of the whole")
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield self._edit(node, f"-{a} + {b}" if isinstance(node.op, ast.Add) else f"-{a} - {b}", 1.3, f"the sign of `{self.text(node.left)}`")
        if isinstance(node.op, ast.MatMult):
            t = self.scope.transpose
            yield self._edit(node, f"({b} @ {a}){t}", 2.0, "the transposed product is due")
            yield self._edit(node, f"{b}{t} @ {a}{t}", 2.2, "the operands are exchanged")
            yield self._edit(node, f"{b}{t} @ {a}", 2.0, "the operands are exchanged")
            yield self._edit(node, f"{b} @ {a}{t}", 2.0, "the operands are exchanged")
        if isinstance(node.op, (ast.Mult, ast.Div)) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, (ast.Add, ast.Sub)):
            # A factor that belongs to one term only.
            inner, sign, op = node.left, sign_of(node.left.op), sign_of(node.op)
            yield self._edit(node, f"{self.text(inner.left)} {sign} {as_operand(self.text(inner.right), inner.right)} {op} {b}", 2.2, "the factor belongs to one term only")
            yield self._edit(node, f"{as_operand(self.text(inner.left), inner.left)} {op} {b} {sign} {self.text(inner.right)}", 2.2, "the factor belongs to one term only")
        if isinstance(node.op, (ast.Add, ast.Sub)):
            for term, at_left in ((node.left, True), (node.right, False)):
                # ... and a factor of one term that belongs to both.
                if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
                    other, op = (node.right if at_left else node.left), sign_of(term.op)
                    for part, factor in ((term.left, term.right), (term.right, term.left)):
                        if op == "*" or factor is term.right:
                            first, second = (part, other) if at_left else (other, part)
                            both = f"({self.text(first)} {sign_of(node.op)} {as_operand(self.text(second), second)})"
                            yield self._edit(node, f"{both} {op} {as_operand(self.text(factor), factor)}", 2.2, "the factor belongs to both terms")

    def _call(self, node: Any, shape: tuple[int, ...] | None) -> Iterator[Edit]:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
        for twin in _TWINS.get(name, []):
            if isinstance(function, ast.Attribute):
                inner = replaced(self.unit, node, [(tail_of(function), twin)])
                yield Edit(self.unit, self.statement, [(node, inner)], 1.2, f"`{twin}` for `{name}`", node)
        positional = [a for a in node.args if not isinstance(a, ast.Starred)]
        if 1 < len(positional) <= 4:
            yield from self._exchanged(positional, 1.4)
        if name.startswith("cum") and isinstance(function, ast.Attribute) and name not in ("cumulative_trapezoid",):
            at = next((a for a in [*positional, *(k.value for k in node.keywords)] if number_of(a) is not None), None)
            if at is not None:
                d, receiver = self.text(at), as_operand(self.text(function.value), function.value)
                inner = self.text(node)[len(self.text(function.value)) :]
                if not isinstance(function.value, ast.Name) or function.value.id not in ("torch", "np"):
                    yield self._edit(node, f"{receiver}.flip({d}){inner}.flip({d})", 1.6, "the sum is to run from the other end")
        if name == "flip":
            yield from self._unflipped(node)
        if name in ("cat", "concatenate") and shape is not None and len(positional) == 2 and isinstance(positional[0], (ast.List, ast.Tuple)):
            like = next((n for n, its in self.scope.tensors() if its == shape and n.isidentifier()), "")
            stack = replaced(self.unit, node, [(tail_of(function), "stack")]) if isinstance(function, ast.Attribute) and like else None
            for axis in range(len(shape) + 1) if stack else ():
                outer = f"{stack[: stack.rindex(self.text(positional[1]))]}{axis})" if stack else ""
                yield self._edit(node, f"{outer}.reshape({like}.shape)", 1.9, "the parts are interleaved, not one after the other")
        if name == "reversed" and len(positional) == 1:
            yield self._edit(node, self.text(positional[0]), 1.2, "the order is the other way round")
        if name == "range":
            yield self._edit(node, f"reversed({self.text(node)})", 1.5, "the order is the other way round")
        if name in ("where",) and len(positional) == 3:
            yield self._edit(positional[1], self.text(positional[2]), 2.0, "")
            yield self._edit(positional[2], self.text(positional[1]), 2.0, "")
        if name in ("view", "reshape", "permute", "expand") and len(positional) > 1:
            yield from self._exchanged(positional, 1.3)
        if name in ("view", "reshape", "flatten") and isinstance(function, ast.Attribute):
            rank = len(self.scope.shape(function.value) or ())
            yield from self._rearranged(node, shape)
            receiver, rest = self.text(function.value), self.text(node)[len(self.text(function.value)) :]
            for i in range(rank if rank > 2 else 0):
                for j in range(i + 1, rank):
                    yield self._edit(node, f"{receiver}.transpose({i}, {j}){rest}", 1.9, f"the axes {i} and {j} are to be exchanged before")
        if name in _AXES:
            yield from self._axes(node, positional)
            yield from self._regrouped(node, positional)
        if name in ("sum", "mean") and not node.args and not node.keywords and isinstance(function, ast.Attribute):
            base = self.scope.shape(function.value) or ()
            for axis in range(len(base) if len(base) > 1 else 0):
                yield self._edit(node, f"{self.text(node)[:-1]}{axis})", 1.2, f"axis {axis} is due, not all of them")
        if name in ("sum", "mean", "amax", "var") and not any(k.arg in ("keepdim", "keepdims") for k in node.keywords) and node.args:
            inner = self.text(node)[:-1].rstrip().rstrip(",")
            yield self._edit(node, f"{inner}, keepdim=True)", 1.2, "the axis is to be kept")
        if name in ("clamp", "masked_fill", "half", "float", "bfloat16", "to", "detach", "round", "type") and isinstance(function, ast.Attribute) and shape is not None:
            yield self._edit(node, self.text(function.value), 1.1, f"`.{name}(...)` is one too many")
        if name == "zeros_like" and positional:
            for other, _ in self.scope.tensors():
                yield self._edit(node, f"{other}.clone()", 2.5, "")

    def _rearranged(self, node: Any, shape: tuple[int, ...] | None) -> Iterator[Edit]:
        """A reshape with an order of axes before it, as either pass has one, or its inverse."""
        have, inner = self.scope.shape(node.func.value), node.func.value
        if have is None or shape is None:
            return
        receiver, last = as_operand(self.text(inner), inner), self.text(node)[len(self.text(inner)) :]
        for text in rearranged(receiver, have, shape, last, self.scope.chains, self.unit.has_arrays, self.scope.size):
            yield self._edit(node, text, 1.9, "the axes are to be put in order before, not the elements read in another one")

    def _regrouped(self, node: Any, positional: list[Any]) -> Iterator[Edit]:
        """`x.view(a, b).sum(d)` with the sizes in another order, and the sum over another axis with
        it.
        """
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if not isinstance(inner, ast.Call) or name_of(inner) not in ("view", "reshape", "unflatten") or len(positional) != 1 or number_of(positional[0]) is None:
            return
        sizes, axis = list(inner.args), int(number_of(positional[0]) or 0)
        for i, a in enumerate(sizes):
            for b in sizes[i + 1 :]:
                if self.text(a) != self.text(b):
                    for d in range(len(sizes)):
                        if d != axis % len(sizes):
                            yield Edit(self.unit, self.statement, [(a, self.text(b)), (b, self.text(a)), (positional[0], str(d))], 1.8, "the sizes are in another order, and so is the axis", node)

    def _axes(self, node: Any, positional: list[Any]) -> Iterator[Edit]:
        base = self.scope.shape(node.func.value) if isinstance(node.func, ast.Attribute) else None
        first = self.scope.shape(positional[0]) if positional else None
        rank = len(base or first or (1, 1, 1))
        given = [a for a in positional if number_of(a) is not None] + [k.value for k in node.keywords if k.arg in ("dim", "axis")]
        for at in given[:1]:
            for d in range(-1, rank):
                yield self._edit(at, str(d), 1.0, f"axis {d} is due")
            for n in (2, 3):
                for axes in itertools.combinations(range(rank), n):
                    yield self._edit(at, f"({', '.join(map(str, axes))})", 1.8, f"the axes {axes} are due")
        for at in [*positional, *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]:
            if isinstance(at, ast.Tuple):
                for a in range(rank):
                    yield self._edit(at, str(a), 1.6, f"axis {a} is due")
                    for b in range(a + 1, rank):
                        yield self._edit(at, f"({a}, {b})", 1.2, f"the axes {a} and {b} are due")
                        for c in range(b + 1, rank):
                            yield self._edit(at, f"({a}, {b}, {c})", 1.4, "")
