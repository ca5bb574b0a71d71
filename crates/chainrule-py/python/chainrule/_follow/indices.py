"""Edits of indices and slices: another place, another axis, a step earlier or later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .edit import Edit
from .orders import Orders
from .texts import as_operand, fits, number_of


class Indices(Orders):
    """Edits of what stands in square brackets."""

    def _edit(self, node: Any, text: str, cost: float, what: str, due: str = "") -> Edit:
        return Edit(self.unit, self.statement, [(node, text)], cost, what, node, due)

    def _whole(self, text: str, cost: float, what: str, site: Any = None) -> Edit:
        return Edit(self.unit, self.statement, [], cost, what, site, whole=text)

    def _exchanged(self, parts: list[Any], cost: float) -> Iterator[Edit]:
        for i, a in enumerate(parts):
            for b in parts[i + 1 :]:
                if self.text(a) != self.text(b) and not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred):
                    what = f"`{self.text(a)}` and `{self.text(b)}` are exchanged"
                    yield Edit(self.unit, self.statement, [(a, self.text(b)), (b, self.text(a))], cost, what, a)

    def _index(self, node: Any) -> Iterator[Edit]:
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        tensors = [p for p in parts if self.scope.engine.is_tensor(self.scope.value(p)) or isinstance(self.scope.value(p), (list, range))]
        for p in parts:
            if isinstance(p, ast.Slice):
                yield from self._slice(p)
                for other in tensors:
                    if p.lower is None and p.upper is None:
                        v = self.scope.value(other)
                        n = next((k for k, x in self.scope.names.items() if isinstance(x, int) and len(v) == x and k.isidentifier()), f"len({self.text(other)})")
                        yield self._edit(p, f"range({n})", 1.1, "one element of each row is meant, not whole columns")
        if len(parts) > 1:
            yield from self._exchanged(parts, 1.5)
        for other in self.scope.indices:
            # The index of another array of this form, all of its bounds at once.
            if isinstance(index, ast.Tuple) and other != self.text(index) and other.count(",") == self.text(index).count(","):
                yield self._edit(node, f"{self.text(node.value)}[{other}]", 1.5, f"`[{other}]` is due")
        slices = [p for p in parts if isinstance(p, ast.Slice) and p.step is None and (p.lower is not None or p.upper is not None)]
        for by, sign in ((1, "+"), (-1, "-")):
            moved = [self._moved_slice(p, by, sign) for p in slices]
            if moved and all(m is not None for m in moved):
                yield Edit(self.unit, self.statement, [(p, m or "") for p, m in zip(slices, moved)], 1.5, "the part begins and ends one further" if by > 0 else "the part begins and ends one before", node)
        parts_of_index: Iterator[Any] = ast.walk(index)
        for n in parts_of_index:
            # In a target the index alone is read; a target's own sites are not among those of the
            # statement.
            if isinstance(getattr(node, "ctx", None), ast.Store) and isinstance(n, ast.expr):
                x, v = number_of(n), self.scope.value(n)
                if isinstance(x, int):
                    yield self._edit(n, str(x + 1), 1.2, "the index is off by one")
                    yield self._edit(n, str(x - 1), 1.2, "the index is off by one")
                elif isinstance(v, int) and not isinstance(v, bool):
                    for step in ("- 1", "+ 1"):
                        yield self._edit(n, f"{as_operand(self.text(n), n)} {step}", 1.2, "the index is off by one")
                    if isinstance(n, ast.BinOp):
                        yield self._edit(n, self.text(n.left), 1.1, "the index is off")
                    for name, other in self.scope.names.items():
                        if isinstance(other, int) and name != self.text(n):
                            yield self._edit(n, name, 1.3, "another index")
                elif self.scope.engine.is_tensor(v):
                    for name, other in self.scope.names.items():
                        if self.scope.engine.is_tensor(other) and name != self.text(n) and fits(tuple(other.shape), tuple(v.shape)):
                            yield self._edit(n, name, 1.3, "another index")

    def _moved_slice(self, node: Any, by: int, sign: str) -> str | None:
        """A slice that begins and ends one further or one before; None where it begins at the first
        one already.
        """

        def bound(at: Any) -> str:
            x = number_of(at)
            return str(int(x) + by) if x is not None else f"{self.text(at)} {sign} 1"

        if node.lower is None and by < 0 or number_of(node.lower) == 0 and by < 0:
            return None
        first = "1" if node.lower is None else bound(node.lower)
        return f"{'' if first == '0' else first}:{'' if node.upper is None or number_of(node.upper) == -1 and by > 0 else bound(node.upper)}"

    def _slice(self, node: Any) -> Iterator[Edit]:
        mine = self.text(node) if hasattr(node, "lineno") else ":"
        others = [":", "1:", ":-1", *self.scope.slices]
        for other in others:
            if other != mine:
                yield self._edit(node, other, 1.2 if other in self.scope.slices else 1.4, f"`{other}` for `{mine}`")
        if node.step is None and (node.lower is None) != (node.upper is None):
            rest = f":{self.text(node.lower)}" if node.upper is None else f"{self.text(node.upper)}:"
            if rest not in others:
                yield self._edit(node, rest, 1.3, f"`{rest}` for `{mine}`: the other part is due")
        for bound in (node.lower, node.upper):
            if bound is not None and number_of(bound) is None:
                for step in ("- 1", "+ 1"):
                    yield self._edit(bound, f"{as_operand(self.text(bound), bound)} {step}", 1.3, "a bound is off by one")
