"""Code beside a loss: gradients that somebody computes by hand, from the values of a forward pass
that ran already. Both passes are known at this one point.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .case import Case, Point, Quantity
from .engine_chainrule import Chainrule
from .functions import Kept
from .report import Followed, follow


MOST = 60
"""The most values of a module, or of a dictionary, that are looked at."""


@dataclass
class _OfLoss(Case):
    """The case at the point at which the forward pass ran."""

    only: Point = field(default_factory=lambda: Point([], [], None, [], 1.0))

    values: list[tuple[str, Any]] = field(default_factory=list)
    """Values of the forward pass in the module of the code, with their texts."""

    def at_hand(self) -> list[tuple[str, Any]]:
        return self.values

    def point(self, seed: int, quantities: bool = False) -> Point:
        return self.only

    def far(self) -> list[Point]:
        return []

    def resized(self) -> list[Point]:
        return []

    def run_forward(self, inputs: list[Any]) -> tuple[list[Any], Any]:
        return [], Kept()


def _at_hand(code: Callable[[], Any]) -> dict[str, Tensor]:
    """The tensors that code reads from outside itself, by their names."""
    seen = inspect.getclosurevars(inspect.unwrap(code))
    return {n: v for n, v in {**seen.globals, **seen.nonlocals}.items() if isinstance(v, Tensor)}


def _of_forward(loss: Tensor, code: Callable[[], Any]) -> dict[str, Tensor]:
    """The values behind the loss that stand in the code's module, also as elements of a dictionary
    (`P["gain"]`), by their texts: what a line should read may be read nowhere yet.
    """
    space: dict[str, Any] = getattr(inspect.unwrap(code), "__globals__", {})
    found = {n: v for n, v in space.items() if isinstance(v, Tensor) and not n.startswith("__")}
    for n, group in space.items():
        if isinstance(group, dict) and not n.startswith("__") and len(group) <= MOST:
            found |= {f'{n}["{key}"]': v for key, v in group.items() if isinstance(v, Tensor) and isinstance(key, str)}
    found = {n: v for n, v in list(found.items())[:MOST] if v.requires_grad and v.is_floating_point()}
    gradients = _c._grad([loss], list(found.values()), [None], True)
    return {n: v for (n, v), g in zip(found.items(), gradients) if g is not None}


def _quantities(loss: Tensor, named: dict[str, Tensor]) -> list[Quantity]:
    """These values with their gradients, as far as they are behind the loss."""
    engine, found = Chainrule(), list[Quantity]()
    on_tape = {n: t for n, t in named.items() if t.requires_grad and t.is_floating_point()}
    gradients = _c._grad([loss], list(on_tape.values()), [None], True)
    for (name, t), g in zip(on_tape.items(), gradients):
        found.append(Quantity(f"`{name}`", engine.array(t), False, name))
        if g is not None:
            found.append(Quantity(f"the gradient of `{name}`", engine.array(g), True, name))
    return found


def followed(loss: Tensor, code: Callable[[], Mapping[str, Any]], targets: dict[str, Tensor], seconds: float = 1.2) -> Followed | None:
    """The mistakes in code that gives the gradients of tensors behind a loss, by their names.
    `targets` stand for these tensors, without their elements.
    """
    engine, names = Chainrule(), list(targets)
    gradients = _c._grad([loss], [targets[n] for n in names], [None], True)
    right = [np.zeros(tuple(targets[n].shape)) if g is None else engine.array(g) for n, g in zip(names, gradients)]
    sizes = [float(np.abs(r).max(initial=0.0)) for r in right]
    scale = max(sizes, default=0.0) or 1.0
    inputs = [targets[n].detach() for n in names]
    beside = _of_forward(loss, code)
    known = _quantities(loss, beside | _at_hand(code))
    known += [Quantity(f"the gradient of `{n}`", r, True, n) for n, r in zip(names, right)]
    point = Point(inputs, [], Kept(), right, scale, [s or scale for s in sizes], known)

    def backward(_: Any, __: list[Any]) -> list[Any]:
        given = code()
        return [given.get(n) for n in names]

    case = _OfLoss(engine, "the code", inputs, names, lambda _: ([], Kept()), backward, only=point, values=[(n, v.detach()) for n, v in beside.items()])
    if loss.dtype.name != "float64":
        case.tolerance = 2e-5
    try:
        return follow(case, seconds)
    except Exception:
        # The code runs in ways in which it need not run; its gradients have been judged without it.
        return None
