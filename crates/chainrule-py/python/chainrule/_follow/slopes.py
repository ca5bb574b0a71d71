"""The slopes of what a forward pass computes element by element, as text: what a backward pass
multiplies with, where its author took the slope of another function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .texts import name_of, number_of

Rule = Callable[[str, str], str]
"""The slope of a function by the text of its argument, and by its own text."""

_RULES: dict[str, Rule] = {
    "tanh": lambda u, y: f"(1 - {y} ** 2)",
    "sigmoid": lambda u, y: f"{y} * (1 - {y})",
    "exp": lambda u, y: y,
    "log": lambda u, y: f"(1 / {u})",
    "sqrt": lambda u, y: f"(0.5 / {y})",
    "softplus": lambda u, y: f"{u}.sigmoid()",
    "relu": lambda u, y: f"({u} > 0)",
    "abs": lambda u, y: f"{u}.sign()",
    "sin": lambda u, y: y.replace("sin", "cos"),
    "cos": lambda u, y: f"(-{y.replace('cos', 'sin')})",
    "square": lambda u, y: f"2 * {u}",
    "logsigmoid": lambda u, y: f"(1 - {u}.sigmoid())",
    "silu": lambda u, y: f"{u}.sigmoid() * (1 + {u} * (1 - {u}.sigmoid()))",
    "gelu": lambda u, y: f"(0.5 * (1 + ({u} / 2 ** 0.5).erf()) + {u} * (-{u} ** 2 / 2).exp() / (2 * 3.141592653589793) ** 0.5)",
    "log1p": lambda u, y: f"(1 / (1 + {u}))",
    "expm1": lambda u, y: f"{u}.exp()",
}


_VIEWS = {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "contiguous"}
"""Methods that leave the elements and their order as they are."""


class _Unknown(Exception):
    """The slope of a part is none of these."""


def _closed(text: str) -> str:
    return text if text.replace("_", "").replace(".", "").isalnum() or text.startswith("(") and text.endswith(")") and text.count("(") == 1 else f"({text})"


def _product(*factors: str) -> str:
    if "0" in factors:
        return "0"
    return " * ".join(_closed(f) if " + " in f or " - " in f else f for f in factors if f != "1") or "1"


def _sum(a: str, sign: str, b: str) -> str:
    if b == "0":
        return a
    if a == "0":
        return b if sign == "+" else f"-{_closed(b)}"
    return f"{a} {sign} {_closed(b) if sign == '-' and (' + ' in b or ' - ' in b) else b}"


def _slope(node: Any, x: str) -> str:
    """The derivative of an expression by a variable; of others it takes no notice."""
    text = ast.unparse(node)
    if isinstance(node, ast.Name):
        return "1" if node.id == x else "0"
    if number_of(node) is not None or not any(isinstance(n, ast.Name) and n.id == x for n in ast.walk(node)):
        return "0"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _sum("0", "-", _slope(node.operand, x))
    if isinstance(node, ast.BinOp):
        return _of_operator(node, x)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name_of(node) in _VIEWS:
        return _slope(node.func.value, x)
    if isinstance(node, ast.Call) and name_of(node) in _RULES:
        method = isinstance(node.func, ast.Attribute) and not node.args
        inner = node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[0] if len(node.args) == 1 and not node.keywords else None
        if inner is not None:
            return _product(_RULES[name_of(node)](_closed(ast.unparse(inner)), text), _slope(inner, x))
    raise _Unknown


def _of_operator(node: ast.BinOp, x: str) -> str:
    a, b = ast.unparse(node.left), ast.unparse(node.right)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return _sum(_slope(node.left, x), "+" if isinstance(node.op, ast.Add) else "-", _slope(node.right, x))
    if isinstance(node.op, ast.Mult):
        return _sum(_product(_slope(node.left, x), _closed(b)), "+", _product(_closed(a), _slope(node.right, x)))
    if isinstance(node.op, ast.Div):
        first, second = _slope(node.left, x), _slope(node.right, x)
        of_first = f"{_closed(first)} / {_closed(b)}" if first != "0" else "0"
        return _sum(of_first, "-", f"{_product(_closed(a), second)} / {_closed(b)} ** 2" if second != "0" else "0")
    power = number_of(node.right)
    if isinstance(node.op, ast.Pow) and power is not None:
        lower = _closed(a) if power == 2 else f"{_closed(a)} ** {power - 1}"
        return _product(repr(power), lower, _slope(node.left, x))
    raise _Unknown


def slopes(node: Any, most: int = 160) -> list[tuple[str, set[str]]]:
    """The derivatives of an expression by each variable in it, with the names that they read."""
    found = []
    for x in dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
        try:
            text = _slope(node, x)
        except _Unknown:
            continue
        if text not in ("0", "1") and not text.isidentifier() and len(text) <= most:
            found.append((text, {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}))
    return found
