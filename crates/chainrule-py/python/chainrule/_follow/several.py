"""One mistake or two: the search from end to end."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .bench import Bench, silent, target_of
from .case import Case
from .edit import Edit
from .known import Match
from .scalars import Numbers
from .search import Hit, Search
from .steps import Step
from .texts import as_operand


@dataclass
class Found:
    """Result of the search."""

    case: Case
    wrong: list[int]
    steps: list[Step]
    hits: list[list[Hit]] = field(default_factory=list)
    """For each mistake its corrections, the best first."""
    located: Step | None = None
    """The step, if only its line is known."""
    error: float = 0.0
    runs: int = 0
    is_whole: bool = True
    search: Any = None

    def match_of(self, node: Any) -> Match | None:
        """The value of an expression."""
        v = (self.search.values.get(getattr(node, "number", -1)) or [None])[0]
        match: Match | None = self.search._match(v)
        return match

    def match_of_text(self, hit: Hit, edit: Edit) -> Match | None:
        """The variable that an edit puts there."""
        match: Match | None = self.search._match(hit.step.names.get(edit.pieces[0][1])) if edit.pieces else None
        return match

    def numbers_of(self, step: Step) -> Numbers:
        """The numbers at hand in a statement."""
        numbers: Numbers = self.search.scope(step).numbers
        return numbers


@contextmanager
def after(search: Search, hit: Hit) -> Iterator[Search | None]:
    """The search that goes on with one edit made; None where that changes the lines."""
    text = hit.edit.text()
    if "\n" in text and hit.edit.whole is not None:
        text = "; ".join(text.split("\n"))
    unit = hit.step.unit.edited(hit.step.statement.node, text, search.numbers)
    if unit is None:
        yield None
        return
    with unit.running(unit.compiled(lambda node: node)):
        new = copy.copy(search)
        new.units = [unit if u is hit.step.unit else u for u in search.units]
        new._tried, new._scopes, new._mentioned, new._given, new._steep, new._bracketed = {}, {}, None, None, None, None
        new._codes, new._due, new._attributes, new._rows = {}, {}, None, None
        new.bench = Bench(search.case, search.point, new.units, search.hook, max(search.bench.left(), 1.0), search.bench.outside)
        new.base = search.case.gradients(search.point)
        new.wrong = new._wrong(new.base, new.point)
        new.start()
        new.record()
        new.localise()
        yield new


def _promising(search: Search) -> list[Hit]:
    """Edits that bring some of the gradients right, or a value to the quantity that its variable is
    named for; one of each statement.
    """
    before = len(search.base) - len(search.wrong)
    best: dict[int, Hit] = {}
    for h in search.partial:
        gain = len(h.right) - before
        if gain <= 0 and not (h.local is not None and h.cost < 3.5):
            continue
        # A value that is what its variable is named for is worth more than gradients that a
        # factor happens to make right.
        h.worth = h.cost - 0.5 * gain + (0.5 if gain <= 0 else -0.7 if h.local is not None else 0.0)
        key = id(h.step)
        if key not in best or h.worth < best[key].worth:
            best[key] = h
    return sorted(best.values(), key=lambda h: h.worth)


def _is_sure(search: Search, hit: Hit) -> bool:
    """Whether half a correction may be shown: where its statement reads what is right and gives
    what is not, and does not give what its variable is named for but with the edit, or stands in
    a likely place. Some gradient must come right by it.
    """
    gains = len(hit.right) > len(search.base) - len(search.wrong)
    named = hit.local is not None and hit.local.exact and hit.step.known and hit.step.is_named is False and not hit.step.reads_misnamed
    return gains and (hit.step.rank < LIKELY or named)


def _two(search: Search, found: Found, depth: int) -> bool:
    """Several mistakes, one after the other: an edit that brings something right is kept, and the
    search goes on from there.
    """
    for first in _promising(search)[:4]:
        if search.bench.left() <= 0:
            break
        with after(search, first) as rest:
            if rest is None:
                continue
            hits = rest.one(high=LIKELY)
            if not hits or hits[0].cost > LARGE:
                hits = rest.one(low=LIKELY, hits=hits)
            if not hits and depth > 1 and _two(rest, found, depth - 1):
                found.hits.insert(0, search.measured([first]))
                return True
            if hits:
                found.hits = [search.measured([first]), rest.measured(hits)]
                found.error = hits[0].error
                return True
    return False


LIKELY = 0.28
"""The rank below which a statement is likely the mistaken one: it reads what is right, and gives
what is not.
"""


def at_its_maker(search: Search, hits: list[Hit]) -> list[Hit]:
    """A factor that is missing on a part of a sum, as on `dx` in `dx = dx + ...`, belongs to the
    line that makes the part, if nothing else reads it: the correction of that line, where it is
    right.
    """
    step, edit = hits[0].step, hits[0].edit
    name, pieces = getattr(edit.site, "id", None), edit.pieces
    if name is None or target_of(step.statement.node) != name or len(pieces) != 1 or pieces[0][0] is not edit.site or "factor" not in edit.what:
        return hits
    inside = [s for s in search.steps if s.unit is step.unit and s.order < step.order]
    made = [s for s in inside if isinstance(s.statement.node, ast.Assign) and target_of(s.statement.node) == name]
    maker = max(made, key=lambda s: s.order, default=None)
    reads = [s for s in inside if maker is not None and maker.order < s.order and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(s.statement.node))]
    if maker is None or reads:
        return hits
    value = maker.statement.node.value
    text = re.sub(rf"\b{name}\b", lambda _: as_operand(step.unit.text(value), value), pieces[0][1])
    with search.any_cost():
        found = search.try_edits(maker, [Edit(step.unit, maker.statement, [(value, text)], edit.cost, edit.what, value)])
    return [*found, *hits]


LARGE = 1.8
"""The cost above which a correction in a likely statement is laid beside small ones in others."""


def _plain_pair(search: Search, found: Found, seconds: float) -> bool:
    """Two mistakes, of which one is in a statement that surely is wrong and in which no value can
    make all gradients right.
    """
    search.again(high=0.12)
    search.bench.extend(0.5 * seconds)
    return any(h.step.rank < 0.12 for h in _promising(search)) and _two(search, found, 1)


def _likely(search: Search, seconds: float) -> list[Hit]:
    """The corrections of likely statements. Small ones come first, of the next statements too: what
    costs more than one that is found is not tried.
    """
    hits = search.one(high=LIKELY, small=True)
    if not hits or hits[0].cost > LARGE:
        hits = search.one(low=LIKELY, high=0.45, hits=hits, small=True)
    search.bench.extend(0.8 * seconds)
    return search.one(high=LIKELY, hits=hits, small=False)


def find(case: Case, seconds: float = 1.2) -> Found | None:
    """The mistakes in a backward pass; None where its gradients are right or nothing can be said.
    """
    with silent(), case.engine.apart():
        search = Search(case, seconds)
        found = Found(case, search.wrong, [])
        if not search.wrong or not search.units:
            return found if search.wrong else None
        search.record()
        if not search.wrong:
            return None
        found.wrong = search.wrong
        search.localise()
        # Recording has a time of its own, which the search does not pay.
        search.bench.extend(0.8 * seconds)
        search.start()
        found.search, found.steps = search, search.steps
        sources = search.sources()
        hits = search.one(among=sources) if sources else []
        # An edit that explains several statements at once, at all sizes, has no rival in them.
        settled = bool(hits) and not hits[0].is_chance
        if not settled:
            hits = _likely(search, seconds)
        if not hits:
            # One small edit anywhere comes before two.
            search.bench.extend(0.6 * seconds)
            hits = search.one(low=LIKELY, small=True)
        if not hits and _plain_pair(search, found, seconds):
            found.runs = search.bench.runs
            return found
        search.bench.extend(1.5 * seconds)
        if not hits or hits[0].cost > LARGE and not settled:
            # Values of the right name, or of the forward pass, are no rivals of a likely one.
            hits = search.one(low=LIKELY, high=1.0 if hits and not hits[0].is_chance else 9.0, hits=hits)
        if hits:
            hits = at_its_maker(search, hits)
            found.hits.append(search.measured(hits))
            found.error = hits[0].error
        else:
            search.bench.extend(0.6 * seconds)
            search.again()
            search.bench.extend(0.6 * seconds)
            if not _two(search, found, 2):
                # Half a correction is shown only where its statement reads what is right and gives
                # what is not.
                first = next((h for h in _promising(search) if _is_sure(search, h) and search.confirms(h)), None)
                if first is not None:
                    found.hits, found.is_whole, found.error = [search.measured([first])], False, 0.0
                else:
                    found.located = search.located()
        found.runs = search.bench.runs
    return found
