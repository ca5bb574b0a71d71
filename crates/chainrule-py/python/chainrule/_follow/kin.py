"""Edits by what is like a statement: another statement of the function, another activation."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import Any

from .edit import Edit
from .pairs import Pairs
from .texts import as_operand, number_of


def _differing(a: str, b: str) -> tuple[str, str] | None:
    """The parts in which two names differ, if one such part is in each."""
    first = len(os.path.commonprefix([a, b]))
    last = len(os.path.commonprefix([a[first:][::-1], b[first:][::-1]]))
    old, new = a[first : len(a) - last], b[first : len(b) - last]
    return (old, new) if old and new else None


def _is_one_less(node: Any) -> str | None:
    """The variable `y` of `1 - y`."""
    plain = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and number_of(node.left) == 1
    return node.right.id if plain and isinstance(node.right, ast.Name) else None


class Kin(Pairs):
    """The edits of one statement that are made after another one."""

    def like_its_kin(self) -> Iterator[Edit]:
        """The statement written as another one of the function is, with its own variables: `dq` as
        `dk` is made, and `q` in the place of `k`.
        """
        node = self.statement.node
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            return
        mine = node.targets[0].id
        for other in self.unit.statements:
            kin = other.node
            if kin is node or not isinstance(kin, ast.Assign) or len(kin.targets) != 1 or not isinstance(kin.targets[0], ast.Name) or kin.lineno != kin.end_lineno:
                continue
            theirs, text = kin.targets[0].id, self.text(kin.value)
            if theirs == mine or (parts := _differing(theirs, mine)) is None:
                continue
            old, new = parts
            at_hand = set(self.scope.names)

            def own(m: re.Match[str], old: str = old, new: str = new, theirs: str = theirs, at_hand: set[str] = at_hand) -> str:
                turned = m[0].replace(old, new, 1)
                return mine if m[0] == theirs else turned if turned in at_hand else m[0]

            word = r"(?<![\w.])[A-Za-z_]\w*"
            yield Edit(self.unit, self.statement, [(node.value, re.sub(word, own, text))], 1.7, f"due is the same as for `{theirs}`", node.value)

            def other_way(m: re.Match[str], old: str = old, new: str = new, at_hand: set[str] = at_hand, own: Any = own) -> str:
                turned = m[0].replace(new, old, 1)
                return turned if old not in m[0] and turned in at_hand else str(own(m))

            # Two that belong together each have the other's part.
            swapped = re.sub(word, other_way, text)
            yield Edit(self.unit, self.statement, [(node.value, swapped)], 1.75, f"due is the same as for `{theirs}`, with `{old}` and `{new}` exchanged", node.value)

    def slopes(self, node: Any) -> Iterator[Edit]:
        """The slope of one activation for that of another, by its result."""
        if isinstance(node.op, ast.Mult) and _is_one_less(node.right) == self.text(node.left):
            yield Edit(self.unit, self.statement, [(node, f"(1 - {self.text(node.left)} ** 2)")], 1.5, "the slope of a tanh is due, not of a sigmoid", node)
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mult) and _is_one_less(node.right) == self.text(node.left.right):
            y, rest = self.text(node.left.right), self.text(node.left.left)
            yield Edit(self.unit, self.statement, [(node, f"{rest} * (1 - {y} ** 2)")], 1.5, "the slope of a tanh is due, not of a sigmoid", node)
        square = node.right if isinstance(node.op, ast.Sub) and number_of(node.left) == 1 else None
        if isinstance(square, ast.BinOp):
            same = isinstance(square.op, ast.Mult) and self.text(square.left) == self.text(square.right)
            if same or isinstance(square.op, ast.Pow) and number_of(square.right) == 2:
                y = as_operand(self.text(square.left), square.left)
                yield Edit(self.unit, self.statement, [(node, f"{y} * (1 - {y})")], 1.5, "the slope of a sigmoid is due, not of a tanh", node)
