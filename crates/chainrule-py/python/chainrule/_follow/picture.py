"""The two programs side by side, as a picture: the quantities of the right passes, and the lines of the user's backward that have their values."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """What a line's result is, if it is one quantity, exactly."""
    matches = {m.quantity.words for m in step.results if m is not None and m.exact}
    return matches.pop() if len(matches) == 1 and step.right else None


def svg(found: Found) -> str:
    """An SVG: a line is joined with the quantity that it computes; one without is right only if the mistake is not in it."""
    steps = sorted((s for s in found.steps if s.results or any(h[0].step is s for h in found.hits)), key=lambda s: s.order)
    mistaken = {id(h[0].step.statement): h[0] for h in found.hits}
    words = list(dict.fromkeys(w for s in steps if (w := _quantity(s)) is not None))
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
        hit = mistaken.get(id(step.statement))
        word = _quantity(step)
        if word is not None:
            out.append(f'<line x1="{LEFT + WIDTH}" y1="{places[word] - 4}" x2="{RIGHT - 12}" y2="{y - 4}" stroke="{FINE}" stroke-width="1"/>')
        colour = WRONG if hit is not None else INK if word is not None else PALE
        line = step.unit.text(step.statement.node)
        out.append(_text(RIGHT, y, f"{step.statement.line:>4}  {_short(line, 52)}", colour, ' font-weight="bold"' if hit is not None else ""))
    out.append(_text(LEFT, height - ROW / 2, "green: the same values; grey: a value of its own; red: the mistake", PALE))
    return "\n".join([*out, "</svg>", ""])
