"""One edit of a statement, and the values at hand where it runs."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .chains import Link
from .scalars import Numbers
from .texts import bracketed, replaced, same_text, without_brackets
from .units import Statement, Unit


def in_numpy(text: str) -> str:
    """The text with the names that NumPy has for methods of tensors."""
    text = text.replace("keepdim=", "keepdims=").replace(".unsqueeze(-1)", "[..., None]")
    text = text.replace(".numel()", ".size").replace(".clamp(", ".clip(")
    return re.sub(r"([A-Za-z_][\w.]*)\.(tanh|exp|log|sqrt|sin|cos|abs|sign)\(\)", r"np.\2(\1)", text)


@dataclass
class Edit:
    """Pieces of a statement's text replaced."""

    unit: Unit
    statement: Statement
    pieces: list[tuple[Any, str]]
    cost: float
    what: str
    site: Any = None
    """The expression that was wrong."""
    due: str = ""
    """The corrected text, in words."""
    whole: str | None = None
    """The text of the whole statement, where it is more than pieces."""

    def text(self, bare: bool = False) -> str:
        """The statement's text with the edit."""
        if self.whole is not None:
            return self.whole
        text = replaced(self.unit, self.statement.node, [(n, t if bare or isinstance(n, ast.Slice) else bracketed(t)) for n, t in self.pieces])
        for turn in (".T", ".mT", ".t()"):
            # Turned twice is as it was.
            text = re.sub(rf"\(([\w.]+){re.escape(turn)}\){re.escape(turn)}|([\w\])]){re.escape(turn)}{re.escape(turn)}", r"\1\2", text)
        return in_numpy(text) if self.unit.has_arrays else text

    def shown(self) -> str:
        """The text without the brackets that it does not need."""
        full, bare = self.text(), self.text(bare=True)
        return without_brackets(bare if same_text(full, bare) else full, self.unit.text(self.statement.node))


@dataclass
class Scope:
    """The variables and expressions in scope of a statement."""

    engine: Any
    names: dict[str, Any]
    values: dict[int, list[Any]]
    numbers: Numbers
    constants: list[float]
    bounds: list[float]
    """The numbers that either pass compares with, and its constants."""
    functions: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    slices: list[str] = field(default_factory=list)
    transpose: str = ".T"
    kinds: dict[str, bool] = field(default_factory=dict)
    """Variables that are gradients, and values of the forward pass; others are neither."""
    donors: list[tuple[str, Any]] = field(default_factory=list)
    """Expressions of both passes that could stand here, with their values."""
    chains: list[list[Link]] = field(default_factory=list)
    """The rows of reshapes and orders of axes that either pass makes."""
    slopes: list[tuple[str, Any]] = field(default_factory=list)
    """Slopes of what the forward pass computes, with their values."""
    indices: list[str] = field(default_factory=list)
    """The indices of either pass that have several axes."""

    def value(self, node: Any) -> Any:
        seen = self.values.get(getattr(node, "number", -1))
        return seen[0] if seen else None

    def shape(self, node: Any) -> tuple[int, ...] | None:
        v = self.value(node)
        return tuple(v.shape) if self.engine.is_tensor(v) else None

    def written(self, number: float) -> list[tuple[float, str]]:
        """Expressions of either pass that are a number, with their costs: it was worked out
        there."""
        found = []
        for text, v in self.donors:
            if isinstance(v, (int, float)) and not isinstance(v, bool) and v and len(text) < 40 and not text.isidentifier():
                if abs(v - number) <= 1e-9 * abs(number):
                    found.append((0.3, text))
                elif abs(v * number - 1) <= 1e-9:
                    found.append((0.4, f"1 / {bracketed(text)}"))
        return found[:2]

    def size(self, text: str, number: int) -> str:
        """The text of a size, if it is that here, too; else another one, or the number: a variable
        of the forward pass may have another name here.
        """
        if self._is_size(text, number):
            return text
        others = [t for t, v in self.donors if type(v) is int and v == number and len(t) < 20]
        alike = difflib.get_close_matches(text, others, 3, 0.6) if not text.isdigit() else []
        return next((t for t in alike if self._is_size(t, number)), str(number))

    def _is_size(self, text: str, number: int) -> bool:
        """Whether a text is this number here."""
        try:
            # A size is arithmetic of numbers and of sizes.
            here = eval(text, {"__builtins__": {"len": len}}, dict(self.names))
        except Exception:
            return False
        return isinstance(here, int) and here == number

    def indexed(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Elements and parts of variables (`hs[t]`, `p[1]`) that either pass reads somewhere, with
        their shapes; masks are none of them.
        """
        found = ((text, v) for text, v in self.donors if text.endswith("]") and "(" not in text and ":" not in text and self.engine.is_float(v))
        yield from ((text, tuple(v.shape)) for text, v in list(found)[:24])

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for name, v in self.names.items():
            if self.engine.is_tensor(v):
                yield name, tuple(v.shape)
