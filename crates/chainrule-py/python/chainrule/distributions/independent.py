"""Several draws taken for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._chainrule import Tensor
from .distribution import Distribution


class Independent(Distribution):
    """The last axes of a distribution's batch as part of one draw: log-probabilities and entropies
    are summed over them.

    ```
    base = cr.distributions.Normal(cr.zeros(5, 3), cr.ones(5, 3))
    d = cr.distributions.Independent(base, 1)
    assert d.batch_shape == (5,) and d.event_shape == (3,)
    assert d.log_prob(cr.zeros(5, 3)).shape == (5,)
    ```
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        batch, n = tuple(base_distribution.batch_shape), reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise ValueError(f"Independent: {n} axes of the batch shape {batch} are wanted")
        at = len(batch) - n
        super().__init__(batch[:at], (*batch[at:], *base_distribution.event_shape), validate_args)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        self.has_rsample = base_distribution.has_rsample

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def summed(self, x: Tensor) -> Tensor:
        """The sum over the axes that are part of one draw."""
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    def log_prob(self, value: Tensor) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.summed(self.base_dist.entropy())

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Independent:
        inner = tuple(self.base_dist.batch_shape)[len(self._batch_shape) :]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims, self._checks)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
