"""Printing of tensors: the layout of PyTorch, so that printed results can be compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._chainrule import Tensor


class Look:
    """The settings of printing."""

    precision = 4
    threshold: float = 1000
    edge = 3
    width = 80
    scientific: bool | None = None


LOOK = Look()
_PROFILES: dict[str, tuple[int, float, int, int]] = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:
    """Printing of tensors: digits behind the point (4), the number of elements from which on the
    middle is left out (1000), those shown at each end then (3), and characters of a line (80).

    `profile` is 'default', 'short' or 'full'; `sci_mode` says whether numbers have exponents, and
    None leaves it to the numbers.

    ```
    cr.set_printoptions(precision=2)
    assert repr(cr.tensor([1.0, 0.12345])) == "tensor([1.00, 0.12])"
    cr.set_printoptions(profile="default")
    ```
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile is 'default', 'short' or 'full', not {profile!r}")
        LOOK.precision, LOOK.threshold, LOOK.edge, LOOK.width = _PROFILES[profile]
    for name, value in (("precision", precision), ("threshold", threshold), ("edge", edgeitems), ("width", linewidth)):
        if value is not None:
            if value < 0:
                raise ValueError(f"set_printoptions: numbers are not negative, got {value}")
            setattr(LOOK, name, value)
    LOOK.scientific = sci_mode


class _Format:
    """One width and one notation for all elements that are shown."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.floating = floating
        self.whole = True
        self.scientific = False
        self.width = 1
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        finite = [abs(v) for v in values if math.isfinite(v) and v != 0.0]
        if not finite:
            self.width = max((len(self._text(v)) for v in values), default=1)
            return
        large, small = max(finite), min(finite)
        self.whole = all(v == math.ceil(v) for v in finite)
        if self.whole:
            self.scientific = large / small > 1000.0 and large > 1.0e8 or large > 1.0e8
        else:
            self.scientific = large / small > 1000.0 or large > 1.0e8 or small < 1.0e-4
        if LOOK.scientific is not None:
            self.scientific = LOOK.scientific
        self.width = max(len(self._text(v)) for v in values)

    def _text(self, v: Any) -> str:
        if not self.floating:
            return str(v)
        if self.scientific:
            return f"{v:.{LOOK.precision}e}"
        if self.whole:
            return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
        return f"{v:.{LOOK.precision}f}"

    def __call__(self, v: Any) -> str:
        return self._text(v).rjust(self.width)


def _cut(n: int, short: bool) -> list[int | None]:
    """The positions to show along an axis; None stands for those left out."""
    if short and n > 2 * LOOK.edge:
        return [*range(LOOK.edge), None, *range(n - LOOK.edge, n)]
    return list(range(n))


def _shown(a: Any, short: bool) -> list[Any]:
    if a.ndim == 0:
        return [a.item()]
    return [v for i in _cut(a.shape[0], short) if i is not None for v in _shown(a[i], short)]


def _body(a: Any, fmt: _Format, indent: int, short: bool) -> str:
    if a.ndim == 0:
        return str(fmt(a.item()))
    places = _cut(a.shape[0], short)
    if a.ndim == 1:
        per_line = max(1, (LOOK.width - indent) // (fmt.width + 2))
        words = [" ..." if i is None else fmt(a[i].item()) for i in places]
        lines = [", ".join(words[k : k + per_line]) for k in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if i is None else _body(a[i], fmt, indent + 1, short) for i in places]
    between: str = "," + "\n" * (a.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def text(t: Tensor) -> str:
    """The tensor as `repr` shows it."""
    half = t.dtype.name in ("float16", "bfloat16")
    a = (t.detach().float() if half else t.detach()).numpy()
    floating = t.is_floating_point()
    short = a.size > LOOK.threshold
    notes: list[str] = []
    if a.size == 0:
        body = "[]"
        if a.ndim != 1:
            notes.append(f"size={tuple(a.shape)}")
    else:
        body = _body(a, _Format(_shown(a, short), floating), len("tensor("), short)
    from ._chainrule import get_default_dtype

    plain = t.dtype == get_default_dtype() or (a.size > 0 and t.dtype.name in ("int64", "bool"))
    if not plain:
        notes.append(f"dtype={t.dtype!r}")
    if t._op is not None:
        notes.append(f"grad_fn=<{t._op}>")
    elif t.requires_grad:
        notes.append("requires_grad=True")
    return with_notes(f"tensor({body}", notes)


def with_notes(out: str, notes: list[str]) -> str:
    """The text with its notes, each on a new line where the last is full."""
    for note in notes:
        last = len(out) - out.rfind("\n") - 1
        out += (",\n       " if last + len(note) + 2 > LOOK.width else ", ") + note
    return out + ")"
