"""The formula of central differences."""

from __future__ import annotations

from collections.abc import Callable

STEP = 3e-3
WEIGHTS = (45.0, -9.0, 1.0)
"""The first step of a difference whose error falls with the sixth power of the step, and the
weights of one, two and three steps in 60 times the first.
"""
FINER = (1.0, 1 / 30, 1 / 1000)
"""The parts of the step that are tried until two formulas agree: across a kink they do not."""
NEAR, NOISE = 1e-6, 1e-8
"""The distance of the two formulas that is allowed, relative to the slope and to the values."""


def slope(at: Callable[[float], float], size: float) -> float:
    """The slope at 0 of a function of the distance from a number of this size."""
    found, apart = float("nan"), float("inf")
    for finer in FINER:
        step = STEP * size * finer
        ends = [(at(k * step), at(-k * step)) for k in (1, 2, 3)]
        one, two, three = (right - left for right, left in ends)
        sixth = (WEIGHTS[0] * one + WEIGHTS[1] * two + WEIGHTS[2] * three) / (60 * step)
        gap = abs(sixth - (8 * one - two) / (12 * step))
        if found != found or gap < apart:
            found, apart = sixth, gap
        if gap <= NEAR * abs(sixth) + NOISE * (abs(ends[0][0]) + abs(ends[0][1])):
            break
    return found
