"""Sets of values: where a distribution or a transform is defined. `event_dim` is how many of the
last axes are one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._chainrule import Tensor


class Constraint:
    """A set of values, by the function that tells which are in it."""

    def __init__(self, name: str, check: Callable[[Tensor], Any], event_dim: int = 0, is_discrete: bool = False) -> None:
        self._name, self._check = name, check
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value: Tensor) -> Any:
        """The values that are in the set, as booleans."""
        return self._check(value)

    def __repr__(self) -> str:
        return self._name


real = Constraint("real", lambda x: x == x)
positive = Constraint("positive", lambda x: x > 0)
nonnegative = Constraint("nonnegative", lambda x: x >= 0)
unit_interval = Constraint("unit_interval", lambda x: (x >= 0).logical_and(x <= 1))
boolean = Constraint("boolean", lambda x: (x == 0).logical_or(x == 1), is_discrete=True)
nonnegative_integer = Constraint("nonnegative_integer", lambda x: (x >= 0).logical_and(x % 1 == 0), is_discrete=True)
simplex = Constraint("simplex", lambda x: (x >= 0).all(-1).logical_and((x.sum(-1) - 1).abs() < 1e-6), 1)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """The numbers from one to the other."""
    return Constraint(f"interval({lower_bound}, {upper_bound})", lambda x: (x >= lower_bound).logical_and(x <= upper_bound))


def greater_than(lower_bound: Any) -> Constraint:
    """The numbers above this one."""
    return Constraint(f"greater_than({lower_bound})", lambda x: x > lower_bound)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """The constraint for all elements of as many more axes."""
    n = reinterpreted_batch_ndims

    def check(x: Tensor) -> Any:
        found = base_constraint.check(x)
        return found.flatten(found.ndim - n).all(-1) if n else found

    return Constraint(f"independent({base_constraint!r}, {n})", check, base_constraint.event_dim + n, base_constraint.is_discrete)


real_vector = independent(real, 1)

__all__ = [
    "Constraint", "boolean", "greater_than", "independent", "interval", "nonnegative", "nonnegative_integer", "positive", "real", "real_vector",
    "simplex", "unit_interval",
]
