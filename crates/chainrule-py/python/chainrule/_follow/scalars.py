"""Numbers in terms of the sizes and constants in scope."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Any

NEAR = 1e-9
MINUS = "~"
"""Begins an expression whose value is negative: that of its size has the other sign."""


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= NEAR * max(abs(a), abs(b), 1e-300)


class _Table:
    """Expressions with their costs, found by their values."""

    def __init__(self, forms: list[tuple[float, float, str]]) -> None:
        self._forms = sorted((f for f in forms if f[1] > 0 and math.isfinite(f[1])), key=lambda f: f[1])
        self._values = [v for _, v, _ in self._forms]

    def of(self, size: float) -> list[tuple[float, str]]:
        """The expressions for a number."""
        first, last = bisect_left(self._values, size * (1 - 2 * NEAR)), bisect_right(self._values, size * (1 + 2 * NEAR))
        return [(cost, text) for cost, v, text in self._forms[first:last] if _near(size, v)]


class Numbers:
    """Expressions for numbers, the plainest first: sizes, constants of the program, and what is
    made of one or two of them.
    """

    def __init__(self, names: dict[str, float], sizes: dict[str, int], constants: list[float]) -> None:
        self._atoms: list[tuple[str, float, bool]] = []
        seen: list[float] = []

        def add(text: str, value: float, plain: bool = True) -> None:
            if value and math.isfinite(value) and not any(_near(value, s) for s in seen):
                seen.append(value)
                self._atoms.append((text, float(value), plain))

        for text, value in names.items():
            add(text, value)
        for text, size in sizes.items():
            if size > 2:
                add(text, size, False)
        for value in constants:
            add(_plain(abs(value)), abs(value))
        self.constants = [v for _, v, _ in self._atoms]

    def texts(self, value: float) -> list[tuple[float, str]]:
        """Expressions for a number with their costs, the plainest first; none if it is no such
        number.
        """
        if not math.isfinite(value):
            return []
        sign, size = ("-" if value < 0 else ""), abs(value)
        found: list[tuple[float, str]] = []
        for small in (0, 1, 2, 3, 4, 6, 8):
            if _near(size, small) or size == small == 0:
                found.append((0 if small < 3 else 0.5 if small == 3 else 1.5, str(small)))
        for small in (2, 3, 4, 6, 8):
            if _near(size * small, 1):
                found.append((0.5 if small == 2 else 1.2, "0.5" if small == 2 else "0.25" if small == 4 else f"1 / {small}"))
        for three in ((3, 2), (2, 3), (3, 4)):
            if _near(size * three[1], three[0]):
                found.append((3.0, f"{three[0]} / {three[1]}"))
        found += self._singles.of(size)
        if not found:
            found += self._pairs.of(size)
        if not found and _near(size, float(f"{size:.4g}")):
            found.append((5, _plain(float(f"{size:.4g}"))))
        found.sort(key=lambda f: (f[0], len(f[1])))
        other = "" if sign else "-"
        return [(cost, other + text[1:] if text.startswith(MINUS) else sign + text) for cost, text in found]

    @cached_property
    def _singles(self) -> _Table:
        """The numbers that are made of one atom."""
        out: list[tuple[float, float, str]] = []
        for text, atom, plain in self._atoms:
            a, brackets = abs(atom), text if re.fullmatch(r"[\w.]+(\[-?\d+\]|\(\))?", text) else f"({text})"
            own = MINUS + brackets if atom < 0 else brackets
            minus = MINUS if atom < 0 else ""
            out += [(0.5, a, own) if plain else (1, a, own), (1 if plain else 2, 1 / a, f"{minus}1 / {brackets}"), (3, 2 * a, f"{minus}2 * {brackets}"), (3, a / 2, f"{own} / 2"), (3, 2 / a, f"{minus}2 / {brackets}"), (3, 1 / (2 * a), f"{minus}1 / (2 * {brackets})")]
            if atom < 0:
                brackets = f"abs({text})"
            out += [(3, math.sqrt(a), f"{brackets} ** 0.5"), (3, 1 / math.sqrt(a), f"1 / {brackets} ** 0.5"), (3, a * a, f"{brackets} ** 2"), (3, 1 / (a * a), f"1 / {brackets} ** 2")]
            if a > 1 and a == int(a):
                out += [(2, a - 1, f"({brackets} - 1)"), (2, 1 / (a - 1), f"1 / ({brackets} - 1)"), (2, (a - 1) / a, f"({brackets} - 1) / {brackets}"), (2, a / (a - 1), f"{brackets} / ({brackets} - 1)")]
            else:
                out += [(2, 1 - a, f"(1 - {brackets})"), (2, 1 + a, f"(1 + {brackets})"), (3, 1 / (1 - a) if a != 1 else 0.0, f"1 / (1 - {brackets})")]
        return _Table(out)

    @cached_property
    def _pairs(self) -> _Table:
        """The numbers that are made of two atoms."""
        out: list[tuple[float, float, str]] = []
        # Two sizes make nearly every small fraction; that would be no evidence.
        atoms = [(f"abs({t})" if v < 0 else t if t.isidentifier() or _is_number(t) else f"({t})", abs(v)) for t, v, plain in self._atoms if plain]
        for i, (a, x) in enumerate(atoms):
            for j, (b, y) in enumerate(atoms):
                if i < j:
                    out += [(4, x * y, f"{a} * {b}"), (4, 1 / (x * y) if x * y else 0.0, f"1 / ({a} * {b})")]
                if i != j:
                    out.append((4, x / y, f"{a} / {b}"))
        return _Table(out)

    def words(self, value: float) -> str:
        """`7/8 = (n - 1) / n`, for a factor."""
        texts = self.texts(value)
        shown = _plain(float(f"{value:.6g}"))
        if not texts or texts[0][1] == shown:
            return shown
        return f"{shown} = {texts[0][1]}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e9 else repr(float(value))


def numbers_at_hand(names: dict[str, Any], constants: list[float], is_tensor: Any) -> Numbers:
    """The numbers among variables, the sizes of the tensors, and constants of the source."""
    plain = {n: float(v) for n, v in names.items() if isinstance(v, (int, float)) and not isinstance(v, bool) and n.isidentifier() or isinstance(v, (int, float)) and "." in n}
    sizes: dict[str, int] = {}
    for n, v in names.items():
        if is_tensor(v) and n.isidentifier():
            for i, d in enumerate(v.shape):
                sizes.setdefault(f"{n}.shape[{i}]", int(d))
            sizes.setdefault(f"{n}.numel()", int(np_prod(v.shape)))
    return Numbers(plain, dict(sorted(sizes.items(), key=lambda s: "numel" in s[0])), constants)


def np_prod(shape: Any) -> int:
    """The number of elements of a shape."""
    n = 1
    for d in shape:
        n *= int(d)
    return n
