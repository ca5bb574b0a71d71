"""Elements in another order than is due: picked for put back, summed from the other end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .edit import Edit
from .kin import Kin
from .texts import name_of, replaced


class Orders(Kin):
    """Edits of the order of elements."""

    def _placed(self, left: Any, picked: Any, known: bool) -> Iterator[Edit]:
        """Elements that are picked where they are to be put back in their places: the gradient of
        `x[i]` goes to the places `i` of that of `x`.
        """
        index = self.scope.value(picked.slice)
        if not self.scope.engine.is_tensor(index) or self.scope.engine.is_float(index) or self.scope.engine.is_bool(index):
            return
        value, at = self.text(picked.value), self.text(picked.slice)
        if known:
            whole = f"{left.id}[{at}] = {value}"
            yield Edit(self.unit, self.statement, [], 1.6, "the elements are to be put in these places, not picked from them", self.statement.node, whole=whole)
        if self.scope.transpose == ".T":
            yield Edit(self.unit, self.statement, [(picked.slice, f"{at}.argsort()")], 1.9, "the inverse order is due", picked.slice)

    def _unflipped(self, node: Any) -> Iterator[Edit]:
        """A sum from the other end where one from this end is due: `flip(cumsum(flip(x)))`."""
        sums = [n for n in ast.walk(node) if isinstance(n, ast.Call) and name_of(n).startswith("cum")]
        inner = [n for n in ast.walk(node) if n is not node and isinstance(n, ast.Call) and name_of(n) == "flip"]
        if len(sums) != 1 or len(inner) != 1 or inner[0] not in list(ast.walk(sums[0])):
            return
        function: Any = inner[0].func
        method = isinstance(function, ast.Attribute) and self.scope.shape(function.value) is not None
        bare: Any = function.value if method else next(iter(inner[0].args), None)
        if bare is not None:
            text = replaced(self.unit, sums[0], [(inner[0], self.text(bare))])
            yield Edit(self.unit, self.statement, [(node, text)], 1.6, "the sum is to run from the other end", node)
