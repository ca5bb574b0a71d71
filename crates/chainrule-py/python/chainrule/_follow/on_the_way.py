"""Gradients of what a forward pass computes on its way, where there is no tape: by differences,
with other values in the place of those that its expressions give.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .case import Array, Case, Quantity
from .differences import slope
from .record import Hook, hooked, watched
from .units import Unit, called, unit_of

if TYPE_CHECKING:
    from .engine import Engine

MOST = 700
"""The most elements of which differences are taken."""


def _places(unit: Unit) -> Iterator[tuple[int, Any]]:
    """The expressions whose gradients are asked for: what statements assign, then what is read."""
    for s in unit.statements:
        root = None if s.head else getattr(s.node, "value", None)
        for part in root.elts if isinstance(root, ast.Tuple) else [root]:
            if part is not None and not isinstance(part, ast.Name):
                yield 0, part
    for n in ast.walk(unit.node):
        if isinstance(n, (ast.Name, ast.Subscript)) and isinstance(n.ctx, ast.Load):
            yield 1, n


def slopes_on_the_way(engine: Engine, case: Case, inputs: list[Any], above: list[Any]) -> list[Quantity]:
    """Values of the forward pass, each followed by its gradient, and parts of gradients: for each
    expression, in each of its runs.
    """
    (functions,) = called(lambda: case.run_forward(inputs))
    numbers = itertools.count()
    units = [u for f in functions if (u := unit_of(f, numbers)) is not None]
    hook = Hook(engine.keep)
    with hooked(units, [watched(u) for u in units], hook):
        case.run_forward(inputs)
        hook.recording = False
        places = sorted((place for u in units for place in _places(u)), key=lambda p: p[0])
        left, found = MOST, list[Quantity]()
        for kind, node in places:
            for run, value in enumerate(hook.values.get(node.number, [])):
                if not engine.is_float(value) or not 0 < value.size <= left:
                    continue
                left -= value.size
                slopes = _slopes(engine, case, inputs, above, hook, (node.number, run, value))
                if slopes is not None and not kind:
                    found.append(Quantity("a value of the forward pass", engine.array(value), False))
                if slopes is not None:
                    words = "a part of a gradient" if kind else "the gradient of a value of the forward pass"
                    found.append(Quantity(words, slopes, True))
    asked = {node.number for _, node in places}
    made: list[Any] = [n for u in units for n in ast.walk(u.node) if isinstance(n, (ast.BinOp, ast.Call))]
    rest = (v for n in made if n.number not in asked for v in hook.values.get(n.number, []))
    found += [Quantity("a value of the forward pass", engine.array(v), False) for v in itertools.islice((v for v in rest if engine.is_float(v) and v.size), MOST)]
    return found


def _slopes(engine: Engine, case: Case, inputs: list[Any], above: list[Any], hook: Hook, place: tuple[int, int, Any]) -> Array | None:
    """The slope by each element of one value in one run of its expression."""
    number, run, value = place
    plain = engine.array(value)
    out = np.zeros(plain.shape)

    def at(k: int, step: float) -> float:
        moved = np.array(plain)
        moved.reshape(-1)[k] += step
        hook.place, hook.turn = number, 0
        hook.other = lambda v, turn: engine.tensor(moved, value) if turn == run else v
        try:
            return engine.value(case, inputs, above)
        finally:
            hook.place = -1

    for k in range(plain.size):
        size = max(1.0, abs(float(plain.reshape(-1)[k])))
        try:
            out.reshape(-1)[k] = slope(partial(at, k), size)
        except Exception:
            # Outside of the domain of what follows.
            return None
    return out if np.isfinite(out).all() else None
