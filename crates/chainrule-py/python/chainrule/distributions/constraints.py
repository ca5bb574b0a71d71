"""Sets of values: where a distribution or a transform is defined. `event_dim` is how many of the
last axes are one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._chainrule import Tensor


class Constraint:
    """A set of values, by the function that tells which are in it."""

    def __init__(self, name: str, check: Callable[[Tensor], Any], event_dim: int = 0, is_discrete: bool = False, **bounds: Any) -> None:
        self._name, self._check, self.kind = name, check, name.split("(")[0]
        self.event_dim, self.is_discrete = event_dim, is_discrete
        self.lower_bound, self.upper_bound = bounds.get("lower"), bounds.get("upper")
        self.base_constraint = bounds.get("base")

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
    return Constraint(f"interval({lower_bound}, {upper_bound})", lambda x: (x >= lower_bound).logical_and(x <= upper_bound), lower=lower_bound, upper=upper_bound)


def greater_than(lower_bound: Any) -> Constraint:
    """The numbers above this one."""
    return Constraint(f"greater_than({lower_bound})", lambda x: x > lower_bound, lower=lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """The numbers from this one on."""
    return Constraint(f"greater_than_eq({lower_bound})", lambda x: x >= lower_bound, lower=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """The numbers below this one."""
    return Constraint(f"less_than({upper_bound})", lambda x: x < upper_bound, upper=upper_bound)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """The numbers from one to the other, without that."""
    return Constraint(f"half_open_interval({lower_bound}, {upper_bound})", lambda x: (x >= lower_bound).logical_and(x < upper_bound), lower=lower_bound, upper=upper_bound)


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    """The whole numbers from one to the other."""

    def check(x: Tensor) -> Any:
        return (x % 1 == 0).logical_and(x >= lower_bound).logical_and(x <= upper_bound)

    return Constraint(f"integer_interval({lower_bound}, {upper_bound})", check, is_discrete=True, lower=lower_bound, upper=upper_bound)


def _is_lower(x: Tensor) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


def _is_symmetric(x: Tensor) -> Any:
    return x.isclose(x.mT, atol=1e-6).flatten(-2).all(-1)


def _is_lower_cholesky(x: Tensor) -> Any:
    return _is_lower(x).logical_and((x.diagonal(0, -2, -1) > 0).all(-1))


def _is_definite(x: Tensor) -> Any:
    from .. import linalg

    return _is_symmetric(x).logical_and((linalg.eigvalsh(x) > 0).all(-1))


def _has_unit_rows(x: Tensor) -> Any:
    return ((x.square().sum(-1) - 1).abs() < 10 * x.shape[-1] * 1e-6).all(-1)


positive_integer = Constraint("positive_integer", lambda x: (x >= 1).logical_and(x % 1 == 0), is_discrete=True)
one_hot = Constraint("one_hot", lambda x: ((x == 0).logical_or(x == 1)).all(-1).logical_and(x.sum(-1) == 1), 1, True)
lower_triangular = Constraint("lower_triangular", _is_lower, 2)
lower_cholesky = Constraint("lower_cholesky", _is_lower_cholesky, 2)
corr_cholesky = Constraint("corr_cholesky", lambda x: _is_lower_cholesky(x).logical_and(_has_unit_rows(x)), 2)
symmetric = Constraint("symmetric", _is_symmetric, 2)
positive_definite = Constraint("positive_definite", _is_definite, 2)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """The constraint for all elements of as many more axes."""
    n = reinterpreted_batch_ndims

    def check(x: Tensor) -> Any:
        found = base_constraint.check(x)
        return found.flatten(found.ndim - n).all(-1) if n else found

    return Constraint(f"independent({base_constraint!r}, {n})", check, base_constraint.event_dim + n, base_constraint.is_discrete, base=base_constraint)


def cat(cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> Constraint:
    """Constraints of parts along an axis, one after the other."""
    sizes = [1] * len(cseq) if lengths is None else list(lengths)

    def check(x: Tensor) -> Any:
        from .._functions import cat as joined

        return joined([c.check(part) for c, part in zip(cseq, x.split(sizes, dim))], dim)

    return Constraint(f"cat({list(cseq)!r})", check, max(c.event_dim for c in cseq), any(c.is_discrete for c in cseq))


def stack(cseq: Sequence[Constraint], dim: int = 0) -> Constraint:
    """Constraints of the slices along an axis, one for each."""

    def check(x: Tensor) -> Any:
        from .._functions import stack as piled

        return piled([c.check(part) for c, part in zip(cseq, x.unbind(dim))], dim)

    inner = max(c.event_dim for c in cseq)
    return Constraint(f"stack({list(cseq)!r})", check, inner + (dim + inner < 0), any(c.is_discrete for c in cseq))


real_vector = independent(real, 1)

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "less_than", "lower_cholesky", "lower_triangular", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
    "positive_integer", "real", "real_vector", "simplex", "stack", "symmetric", "unit_interval",
]
