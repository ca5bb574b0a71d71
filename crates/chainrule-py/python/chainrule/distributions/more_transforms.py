"""Maps of several numbers at once, and the map onto a set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .. import _making as _m
from .._chainrule import Tensor
from ..nn.functional import pad, softplus
from . import constraints
from .distribution import eps_of
from .transforms import AffineTransform, ComposeTransform, ExpTransform, IndependentTransform, SigmoidTransform, Transform, identity_transform


class AbsTransform(Transform):
    """`y = |x|`; the inverse gives the positive number."""

    bijective = False
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class SoftmaxTransform(Transform):
    """Shares of the exponentials; the inverse gives logarithms."""

    bijective = False
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(Transform):
    """n numbers as n + 1 shares: each takes its part, by a sigmoid, of what the ones before left.

    ```
    t = cr.distributions.StickBreakingTransform()
    y = t(cr.tensor([0.0, 1.0]))
    assert y.shape == (3,) and abs(y.sum().item() - 1) < 1e-6
    ```
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _offset(self, n: int, like: Tensor) -> Tensor:
        """The logarithm of how many shares are still to come, so that zeros give equal shares."""
        return _c._arange(n, 0, -1, "int64")._to_dtype(like.dtype).log()

    def _call(self, x: Any) -> Any:
        z = (x - self._offset(x.shape[-1], x)).sigmoid()
        left = (1 - z).cumprod(-1)
        return pad(z, [0, 1], value=1.0) * pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Any) -> Any:
        first = y[..., :-1]
        left = (1 - first.cumsum(-1)).clamp(min=2.0**-1022 if y.dtype.name == "float64" else 2.0**-126)
        return first.log() - left.log() + self._offset(first.shape[-1], first)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x.shape[-1], x)
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix, with exponentials on the diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """`L L^T` for the factor of `LowerCholeskyTransform`."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(y.cholesky())


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers as the Cholesky factor of a matrix of n correlations."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _size(self, n: int) -> int:
        size = int(round((0.25 + 2 * n) ** 0.5 + 0.5))
        if size * (size - 1) // 2 != n:
            raise ValueError(f"CorrCholeskyTransform: {n} numbers are those below the diagonal of no matrix")
        return size

    def _call(self, x: Any) -> Any:
        x = x.tanh().clamp(-1 + eps_of(x.dtype), 1 - eps_of(x.dtype))
        r = _below(x, self._size(x.shape[-1]))
        left = (1 - r.square()).cumprod(-1).sqrt()
        # The rest behind the elements before, times the share of each; the diagonal takes it.
        r = r + _m.eye(r.shape[-1], dtype=x.dtype)
        return (r * pad(left[..., :-1], [1, 0], value=1.0)).tril()

    def _inverse(self, y: Any) -> Any:
        left = (1 - y.square().cumsum(-1)).clamp(min=eps_of(y.dtype)) ** 0.5
        r = y / pad(left[..., :-1], [1, 0], value=1.0)
        rows, cols = _places(y.shape[-1])
        t = r[..., rows, cols]
        return t.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        n = y.shape[-1]
        left = (1 - y.square().cumsum(-1)).clamp(min=2.0**-1022 if y.dtype.name == "float64" else 2.0**-126)
        rows, cols = _places(n)
        rows, cols = rows[cols < rows - 1], cols[cols < rows - 1]
        stick = 0.5 * left[..., rows, cols].log().sum(-1)
        return stick - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n = self._size(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)


def _places(n: int) -> tuple[Tensor, Tensor]:
    """Rows and columns below the diagonal, row by row."""
    rows, cols = [i for i in range(n) for _ in range(i)], [j for i in range(n) for j in range(i)]
    return _c.tensor(rows, "int64"), _c.tensor(cols, "int64")


def _below(x: Tensor, n: int) -> Tensor:
    """A matrix with these numbers below the diagonal, row by row."""
    rows, cols = _places(n)
    flat = _c._full((*x._dims[:-1], n * n), 0.0, x.dtype)
    at = (rows * n + cols).expand(x._dims)
    return flat.scatter(-1, at, x).reshape((*x._dims[:-1], n, n))


class ReshapeTransform(Transform):
    """Another shape of an event."""

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(f"ReshapeTransform: {self.in_shape} and {self.out_shape} have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _c._full(tuple(x.shape[: x.ndim - len(self.in_shape)]), 0.0, x.dtype)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.in_shape)], *self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.out_shape)], *self.in_shape)


class CumulativeDistributionTransform(Transform):
    """`y = P(x' <= x)` of a distribution."""

    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


class StackTransform(Transform):
    """A map for each slice along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    def _each(self, name: str, *xs: Any) -> Any:
        slices = zip(*(x.unbind(self.dim) for x in xs))
        return _f.stack([getattr(t, name)(*x) for t, x in zip(self.transforms, slices, strict=True)], self.dim)

    def _call(self, x: Any) -> Any:
        return self._each("__call__", x)

    def _inverse(self, y: Any) -> Any:
        return self._each("_back", y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._each("log_abs_det_jacobian", x, y)


class CatTransform(Transform):
    """A map for each part along an axis; the parts have the `lengths`, 1 if nothing is said."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    def _each(self, name: str, *xs: Any) -> Any:
        parts = zip(*(x.split(self.lengths, self.dim) for x in xs))
        return _f.cat([getattr(t, name)(*x) for t, x in zip(self.transforms, parts, strict=True)], self.dim)

    def _call(self, x: Any) -> Any:
        return self._each("__call__", x)

    def _inverse(self, y: Any) -> Any:
        return self._each("_back", y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._each("log_abs_det_jacobian", x, y)


class ConstraintRegistry:
    """The maps from all real numbers onto sets of values."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Transform] | None = None) -> Any:
        """Makes `factory(constraint)` the map onto a set."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        self._made[constraint.kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        if constraint.kind not in self._made:
            raise NotImplementedError(f"there is no map onto {constraint!r}; register one")
        return self._made[constraint.kind](constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _above(c: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(c.lower_bound, 1)])


def _under(c: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(c.upper_bound, -1)])


def _between(c: Any) -> Transform:
    if (c.lower_bound, c.upper_bound) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda c: identity_transform)
    _registry.register(constraints.positive, lambda c: ExpTransform())
    _registry.register(constraints.nonnegative, lambda c: ExpTransform())
    _registry.register(constraints.greater_than(0.0), _above)
    _registry.register(constraints.greater_than_eq(0.0), _above)
    _registry.register(constraints.less_than(0.0), _under)
    _registry.register(constraints.interval(0.0, 1.0), _between)
    _registry.register(constraints.unit_interval, lambda c: SigmoidTransform())
    _registry.register(constraints.corr_cholesky, lambda c: CorrCholeskyTransform())
    _registry.register(constraints.lower_cholesky, lambda c: LowerCholeskyTransform())
    _registry.register(constraints.positive_definite, lambda c: PositiveDefiniteTransform())
biject_to.register(constraints.simplex, lambda c: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: SoftmaxTransform())
biject_to.register(constraints.real_vector, lambda c: IndependentTransform(biject_to(c.base_constraint), c.event_dim))
transform_to.register(constraints.real_vector, lambda c: IndependentTransform(transform_to(c.base_constraint), c.event_dim))

__all__ = [
    "AbsTransform", "CatTransform", "ConstraintRegistry", "CorrCholeskyTransform", "CumulativeDistributionTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform", "biject_to", "transform_to",
]
