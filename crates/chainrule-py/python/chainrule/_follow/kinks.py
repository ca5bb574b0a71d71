"""Inputs at a kink, where several slopes are right: such a case is judged beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .case import Array, Case

SAMPLES = 12
"""Points around a kink at which the slopes are taken that may stand at it."""


def at_kink(engine: Any, case: Case, inputs: list[Any], above: list[Any], along: dict[int, Array]) -> bool:
    """Whether the slope from the right and that from the left differ, however small the step."""
    here = engine.value(case, inputs, above)

    def slopes(step: float) -> tuple[float, float]:
        right, left = (engine.value(case, engine.stepped(inputs, along, s * step), above) for s in (1, -1))
        return (right - here) / step, (here - left) / step

    with np.errstate(all="ignore"):
        wide, narrow = slopes(1e-5), slopes(1e-6)
        jump, size = abs(narrow[0] - narrow[1]), abs(narrow[0]) + abs(narrow[1])
        # The jump of a smooth function shrinks with the step.
        return jump > 1e-4 * size + 1e-8 and jump > 0.5 * abs(wide[0] - wide[1])


def beside_kinks(case: Case) -> Case:
    """The case itself; or, where its inputs lie at a kink and its backward takes another slope
    there, one of which a neighbour has, the case at inputs near by.
    """
    engine = case.engine
    with engine.apart():
        point = case.point(0)
        found = case.gradients(point)
        if all(e <= case.tolerance for e in case.errors(point, found)) or not _lies_at_kink(case, point):
            return case
        lowest, highest = [np.array(r) for r in point.right], [np.array(r) for r in point.right]
        for seed in range(SAMPLES):
            near = engine.stepped(point.inputs, _drawn(case, 40 + seed), 1e-7)
            right, _ = engine.reference(case, near, point.above, False)
            lowest = [np.minimum(a, b) for a, b in zip(lowest, right)]
            highest = [np.maximum(a, b) for a, b in zip(highest, right)]
    for low, high, given, size in zip(lowest, highest, found, point.sizes):
        slack = 1e-5 * size
        if given.shape != low.shape or not bool(((given >= low - slack) & (given <= high + slack)).all()):
            return case
    return replace(case, inputs=[engine.moved(x, 5, i) for i, x in enumerate(case.inputs)], at_kink=True)


def _drawn(case: Case, seed: int) -> dict[int, Array]:
    """A direction among the inputs that have gradients."""
    draw = np.random.default_rng(seed)
    return {i: np.asarray(draw.standard_normal(tuple(case.inputs[i].shape))) for i in case.graded}


def _lies_at_kink(case: Case, point: Any) -> bool:
    return any(at_kink(case.engine, case, point.inputs, point.above, _drawn(case, seed)) for seed in (5, 6))
