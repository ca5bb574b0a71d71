"""The two programs side by side, as a picture: the quantities of the right passes, and the lines of
the user's backward that have their values.
"""

from __future__ import annotations

import ast
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .search import Hit
    from .several import Found
    from .steps import Step

ROW, LEFT, WIDTH, RIGHT = 24, 20, 250, 400
INK, PALE, WRONG, FINE = "#222", "#8a8a8a", "#c0392b", "#2e7d32"


def _short(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _text(x: float, y: float, text: str, colour: str = INK, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}"{more}>{escape(text)}</text>'


def _quantity(step: Step) -> str | None:
    """The quantity that a line's result is, if it is one, exactly."""
    matches = {m.quantity.words for m in step.results if m is not None and m.exact}
    return matches.pop() if len(matches) == 1 and step.right else None


def _tells(step: Step) -> bool:
    """Whether a line computes one value that can be told from others."""
    node = step.statement.node
    several = isinstance(node, ast.Return) or isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    return bool(step.results) and not several


def _due(found: Found, hit: Hit) -> str | None:
    """The quantity that a mistaken line should compute."""
    match = found.search.known.match(hit.after) if hit.after is not None else None
    return match.quantity.words if match is not None and match.exact else None


def _joined(left: float, right: float, stroke: str) -> str:
    return f'<line x1="{LEFT + WIDTH}" y1="{left - 4}" x2="{RIGHT - 12}" y2="{right - 4}" {stroke}/>'


def svg(found: Found) -> str:
    """An SVG: a line is joined with the quantity that it computes; one without is right only if the
    mistake is not in it.
    """
    mistaken = {h[0].step.statement.node.lineno: h[0] for h in found.hits}
    steps = sorted((s for s in found.steps if s.statement.line in mistaken or _tells(s)), key=lambda s: s.order)
    due = {line: _due(found, h) for line, h in mistaken.items()}
    words = list(dict.fromkeys(w for s in steps for w in (_quantity(s), due.get(s.statement.line)) if w is not None))
    height = ROW * (max(len(words), len(steps)) + 3)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{height}" viewBox="0 0 900 {height}" font-family="monospace" font-size="13">',
        f'<rect width="900" height="{height}" fill="white"/>',
        _text(LEFT, ROW, "the right passes", PALE),
        _text(RIGHT, ROW, "your backward, line by line", PALE),
    ]
    places = {w: ROW * (2 + i) for i, w in enumerate(words)}
    out += [_text(LEFT, y, _short(w.replace("`", ""), 34)) for w, y in places.items()]
    for i, step in enumerate(steps):
        y = ROW * (2 + i)
        hit, wanted = mistaken.get(step.statement.line), due.get(step.statement.line)
        word = _quantity(step)
        if wanted is not None:
            out.append(_joined(places[wanted], y, f'stroke="{WRONG}" stroke-dasharray="4 3"'))
        elif word is not None:
            out.append(_joined(places[word], y, f'stroke="{FINE}"'))
        colour = WRONG if hit is not None else INK if word is not None else PALE
        line = step.unit.text(step.statement.node)
        out.append(_text(RIGHT, y, f"{step.statement.line:>4}  {_short(line, 52)}", colour, ' font-weight="bold"' if hit is not None else ""))
    out.append(_text(LEFT, height - ROW / 2, "green: the same values; grey: a value of its own; red: the mistake, and what is due there", PALE))
    return "\n".join([*out, "</svg>", ""])
