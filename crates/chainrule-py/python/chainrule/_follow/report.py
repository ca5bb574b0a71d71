"""Findings as text: the user's line, its mistake, and the line as it should be."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .case import Case
from .edit import Edit
from .texts import number_of
from .known import Match
from .picture import svg
from .search import Hit
from .several import Found, find
from .solve import Due
from .steps import Step


@dataclass
class Correction:
    """One mistake: where it is, what is there, and what should be."""

    file: str
    line: int
    source: str
    corrected: str
    """The line as it should be; empty where only the place is known."""
    why: str
    caret: tuple[int, int]
    """The columns of the wrong part in `source`."""
    what: str = ""
    """Effect of the correction."""


@dataclass
class Followed:
    """Result of following a backward pass."""

    corrections: list[Correction]
    wrong: list[int]
    error: float
    is_whole: bool
    """Whether the corrections together make all gradients right."""
    counted: int = 0
    picture: str = ""
    """Both programs side by side, as SVG."""

    def __str__(self) -> str:
        return text_of(self)


def follow(case: Case, seconds: float = 1.2) -> Followed | None:
    """The mistakes in a backward pass; None where its gradients are right, or where nothing is
    found.
    """
    found = find(case, seconds)
    if found is None or not (found.hits or found.located):
        return None
    corrections = sorted((_corrected(found, hits[0]) for hits in found.hits), key=lambda c: (c.file, c.line))
    if not corrections and found.located is not None:
        corrections = [_located(found, found.located)]
    return Followed(corrections, found.wrong, found.error, found.is_whole, len(case.graded), svg(found))


def text_of(followed: Followed) -> str:
    """The report, a block for each mistake."""
    blocks = []
    several = len(followed.corrections) > 1
    for i, c in enumerate(followed.corrections, 1):
        head = f"{os.path.basename(c.file)}:{c.line}"
        width = max(len(head), len("corrected")) + 2
        rows = [f"mistake {i} of {len(followed.corrections)}"] if several else []
        first, last = c.caret
        rows.append(f"{head:<{width}}{c.source}")
        rows.append(f"{'':<{width}}{' ' * first}{'^' * max(last - first, 1)} {c.why}")
        if c.corrected:
            rest = "" if several and i < len(followed.corrections) else _rest(followed)
            rows += [f"{'corrected' if j == 0 else '':<{width}}{row}{rest if j == c.corrected.count(chr(10)) else ''}" for j, row in enumerate(c.corrected.split("\n"))]
        blocks.append("\n".join(rows))
    return "\n".join(blocks)


def _rest(followed: Followed) -> str:
    if not followed.is_whole:
        return "    (other gradients are wrong still)"
    size = f"{followed.error:.0e}".replace("e-0", "e-")
    right = f"right to {size}" if followed.error > 0 else "right to the last bit"
    return f"    {right}; all else of the backward is right"


def _corrected(found: Found, hit: Hit) -> Correction:
    edit, unit = hit.edit, hit.step.unit
    outer, site = edit.statement.node, edit.site if edit.site is not None else edit.statement.node
    before = unit.lines[outer.lineno - 1 : outer.end_lineno]
    head, tail = before[0].encode()[: outer.col_offset].decode(), before[-1].encode()[outer.end_col_offset :].decode()
    after = (head + edit.shown() + tail).split("\n")
    old = "".join(before).split("\n")
    at = site.lineno - outer.lineno
    indent = len(old[at]) - len(old[at].lstrip())
    first = len(old[at].encode()[: site.col_offset].decode()) - indent
    end = site.end_col_offset if site.end_lineno == site.lineno else len(old[at].rstrip().encode())
    last = len(old[at].encode()[:end].decode()) - indent
    if len(after) == len(old):
        changed = [new.strip() for new, was in zip(after, old) if new != was] or [after[0].strip()]
    else:
        changed = [row.strip() for row in after if row.strip()]
    return Correction(unit.file, site.lineno, old[at].strip(), "\n".join(changed), _why(found, hit, edit), (first, last), edit.what)


def _located(found: Found, step: Step) -> Correction:
    node, unit = step.statement.node, step.unit
    row = unit.lines[node.lineno - 1].rstrip("\n")
    indent = len(row) - len(row.lstrip())
    end = node.end_col_offset if node.end_lineno == node.lineno else len(row.encode())
    caret = len(row.encode()[: node.col_offset].decode()) - indent, len(row.encode()[:end].decode()) - indent
    solved = found.search.due_of(step)
    match = found.search.known.match(solved.wanted) if isinstance(solved, Due) else None
    due = f": due is {match.quantity.words}" if match is not None and match.exact else ", and all that it reads is right"
    return Correction(unit.file, node.lineno, row.strip(), "", f"gives another value than is due here{due}", caret)


def _why(found: Found, hit: Hit, edit: Edit) -> str:
    """The evidence: what stands there, what is due, and the factor between them if there is one."""
    factor = _factor(hit)
    was, due = found.match_of(edit.site), found.match_of_text(hit, edit)
    times = f"; the result was {ratio(factor)}{_meaning(found, hit, factor)} times the right one" if factor is not None else ""
    if edit.what in ("another variable", "another number", "another expression", ""):
        if was is not None and due is not None and was.exact and due.exact and was.quantity.words != due.quantity.words:
            return f"is {was.quantity.words}; due here is {_that(was, due)}{times}"
        new = edit.pieces[0][1] if edit.pieces else ""
        if due is not None and due.exact and due.quantity.words != f"`{new}`":
            return f"due here is `{new}`, {due.quantity.words}{times}"
        return f"due here is `{new}`{times}" if new else f"is not what is due here{times}"
    return edit.what + times


def _that(was: Match, due: Match) -> str:
    """The second of two quantities, without the words that both have."""
    first = "the gradient of "
    if was.quantity.words.startswith(first) and due.quantity.words.startswith(first):
        return "that of " + due.quantity.words[len(first) :]
    return due.quantity.words


def _factor(hit: Hit) -> float | None:
    """Factor of the statement's result, where that is one number. A single element has one always,
    which tells something only if it is a fraction of small numbers.
    """
    before, after = hit.before, hit.after
    if before is None or after is None or before.shape != after.shape or not before.size:
        return None
    at = int(np.abs(after).argmax())
    with np.errstate(all="ignore"):
        factor = float(before.reshape(-1)[at] / after.reshape(-1)[at])
    if not np.isfinite(factor) or factor in (0.0, 1.0) or np.abs(after * factor - before).max() > 1e-9 * np.abs(before).max():
        return None
    if before.size == 1 and "/" not in ratio(factor) and not factor.is_integer():
        return None
    return factor


def ratio(x: float) -> str:
    """A number as a fraction where it is a small one."""
    near = Fraction(x).limit_denominator(400)
    if near and abs(float(near) - x) <= 1e-9 * abs(x):
        return str(near)
    return f"{x:.6g}"


def _meaning(found: Found, hit: Hit, factor: float) -> str:
    """` = (n - 1) / n`, where the factor is made of what is at hand."""
    texts = found.numbers_of(hit.step).texts(factor)
    shown = ratio(factor)
    if shown.lstrip("-") in ("1/2", "2"):
        # Such factors come from sizes of any kind.
        return ""
    words = next((t for cost, t in texts if cost < 5 and not _plain(t)), None)
    return f" = {words}" if words and words.replace(" ", "") != shown.replace(" ", "") and not shown.lstrip("-").isdigit() or words and shown.lstrip("-") not in ("1", "2") else ""


def _plain(text: str) -> bool:
    try:
        return number_of(ast.parse(text, mode="eval").body) is not None or text.replace("/", "").replace(" ", "").replace("-", "").replace(".", "").isdigit()
    except SyntaxError:
        return False
