"""Pieces of source text, and what their syntax trees tell."""

from __future__ import annotations

import ast
import re
from typing import Any

from .units import Unit


def bracketed(text: str) -> str:
    return text if text.isidentifier() or text.replace(".", "").isalnum() or not text else f"({text})"


def replaced(unit: Unit, outer: Any, pieces: list[tuple[Any, str]]) -> str:
    """The text of a node with parts of it replaced."""
    rows = [row.encode() for row in unit.lines[outer.lineno - 1 : outer.end_lineno]]
    rows[-1] = rows[-1][: outer.end_col_offset]
    for node, text in sorted(pieces, key=lambda p: (p[0].lineno, p[0].col_offset), reverse=True):
        first, last = node.lineno - outer.lineno, node.end_lineno - outer.lineno
        head, tail = rows[first][: node.col_offset], rows[last][node.end_col_offset :]
        rows[first : last + 1] = [head + text.encode() + tail]
    rows[0] = rows[0][outer.col_offset :]
    return b"".join(rows).decode()


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether one can stand for the other: they can be stretched to each other."""
    return all(x == y or x == 1 or y == 1 for x, y in zip(a[::-1], b[::-1]))


def stretches(a: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a value of one shape can be stretched to another."""
    return len(a) <= len(to) and all(x in (1, y) for x, y in zip(a[::-1], to[::-1]))


def same_but_ones(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return [d for d in a if d != 1] == [d for d in b if d != 1]


def number_of(node: Any) -> float | None:
    """The value of a literal number, with its sign."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and (x := number_of(node.operand)) is not None:
        return -x
    return None


def name_of(call: ast.Call) -> str:
    """The name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def of_texts(node: Any) -> bool:
    """Whether strings are compared: a choice that the user made elsewhere, not a mistake in a
    formula.
    """
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(node))


def is_idle(tree: Any) -> bool:
    """Whether something is multiplied or divided by 1, or added to 0."""
    for n in ast.walk(tree):
        if isinstance(n, ast.AugAssign) and number_of(n.value) in (0, 1):
            return True
        if isinstance(n, ast.BinOp):
            for side in (n.left, n.right):
                x = number_of(side)
                if x == 1 and isinstance(n.op, (ast.Mult, ast.Div, ast.Pow)) and (side is n.right or isinstance(n.op, ast.Mult)) or x == 0 and isinstance(n.op, (ast.Add, ast.Sub)):
                    return True
    return False


def same_text(a: str, b: str) -> bool:
    try:
        return ast.dump(parsed_text(a)) == ast.dump(parsed_text(b))
    except SyntaxError:
        return False


def without_brackets(text: str, original: str) -> str:
    """The text without brackets of no use, apart from those that stood there before."""
    at = 0
    for _ in range(60):
        at = text.find("(", at)
        if at < 0:
            break
        end = _end_of(text, at)
        inner = text[at + 1 : end]
        called = at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_])")
        shorter = text[:at] + inner + text[end + 1 :]
        if end > 0 and not called and f"({inner})" not in original and same_text(text, shorter):
            text = shorter
        else:
            at += 1
    return text


def _end_of(text: str, at: int) -> int:
    """Position of the bracket that closes the one at a place."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return -1


def tail_of(node: ast.Attribute) -> Any:
    """The place of the last name of `a.b`."""
    place = ast.Name(node.attr)
    place.lineno = node.end_lineno or node.lineno
    place.end_lineno = place.lineno
    place.end_col_offset = node.end_col_offset
    place.col_offset = (node.end_col_offset or 0) - len(node.attr.encode())
    return place


def sign_of(op: Any) -> str:
    return {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|"}.get(type(op), "?")


def as_operand(text: str, node: Any) -> str:
    """Text that can stand beside any operator and before a dot."""
    if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) or (text.startswith("(") and _closed(text)):
        return text
    return f"({text})"


def _closed(text: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def text_without(whole: str, part: str) -> str:
    """The rest of a text without one of its parts, to name it."""
    left, _, right = whole.partition(part)
    return (left + right if not left or not right else f"{left}...{right}").strip()


def parsed_text(text: str) -> ast.Module:
    return ast.parse(text)
