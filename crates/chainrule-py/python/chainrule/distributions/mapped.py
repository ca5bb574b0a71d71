"""Distributions of mapped values, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._chainrule import Tensor
from ..autograd import no_grad
from .categorical import Categorical
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform, sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of `t(x)` where x has the base distribution: `log_prob` takes the logarithm
    of the stretching off.

    ```
    D = cr.distributions
    d = D.TransformedDistribution(D.Normal(cr.zeros(2), 1.0), [D.TanhTransform(cache_size=1)])
    assert d.rsample().abs().max() < 1 and d.log_prob(cr.zeros(2)).shape == (2,)
    ```
    """

    def __init__(self, base_distribution: Distribution, transforms: Transform | list[Transform], validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("TransformedDistribution: a Transform or a list of them is needed")
        whole = ComposeTransform(self.transforms)
        base: Any = base_distribution
        shape, events = (*base.batch_shape, *base.event_shape), len(base.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(f"TransformedDistribution: the base has the shape {shape}, and {whole.domain.event_dim} axes are one value")
        forward = whole.forward_shape(shape)
        wanted = whole.inverse_shape(forward)
        if wanted != shape:
            base = base.expand(wanted[: len(wanted) - events])
        if whole.domain.event_dim > events:
            base = Independent(base, whole.domain.event_dim - events)
        self.base_dist = base
        event = max(whole.codomain.event_dim, events + whole.codomain.event_dim - whole.domain.event_dim)
        super().__init__(forward[: len(forward) - event], forward[len(forward) - event :], validate_args)
        self.has_rsample = base.has_rsample

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._mapped(self.base_dist.sample(sample_shape))  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._mapped(self.base_dist.rsample(sample_shape))  # type: ignore[no-any-return]

    def _mapped(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        events, total, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            events += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), events - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), events - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _rising(self, p: Tensor) -> Tensor:
        """The probability, turned round where the maps fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._rising(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._mapped(self.base_dist.icdf(self._rising(value)))  # type: ignore[no-any-return]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> TransformedDistribution:
        """The same for a larger batch."""
        shape: tuple[int, ...] = (*batch_shape, *self._event_shape)
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        base: Any = self.base_dist
        return TransformedDistribution(base.expand(shape[: len(shape) - len(base.event_shape)]), self.transforms, self._checks)


class MixtureSameFamily(Distribution):
    """A mixture: a component by `mixture_distribution`, and a draw of it. The components are the
    last axis of the batch of `component_distribution`.

    ```
    D = cr.distributions
    d = D.MixtureSameFamily(D.Categorical(cr.ones(3)), D.Normal(cr.tensor([-1.0, 0.0, 1.0]), 0.1))
    assert d.batch_shape == () and d.sample((5,)).shape == (5,)
    ```
    """

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(f"MixtureSameFamily: the mixture is a Categorical, not a {type(mixture_distribution).__name__}")
        batch = tuple(component_distribution.batch_shape)
        if not batch or batch[-1] != mixture_distribution.logits.shape[-1]:
            raise ValueError(f"MixtureSameFamily: {mixture_distribution.logits.shape[-1]} weights for components of batch shape {batch}")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        self._events = len(component_distribution.event_shape)
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def _beside(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._events)

    def _averaged(self, x: Tensor) -> Tensor:
        probs = self.mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *(1,) * self._events))
        return (probs * x).sum(-1 - self._events)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        component = self.component_distribution
        return self._averaged(component.variance) + self._averaged((component.mean - self._beside(self.mean)).square())

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._beside(value)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        each = self.component_distribution.log_prob(self._beside(value))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            axis = len(tuple(sample_shape)) + len(self._batch_shape)
            which = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            at = which.reshape((*which.shape, *(1,) * (self._events + 1)))
            size = list(drawn.shape)
            size[axis] = 1
            return drawn.gather(axis, at.expand(size)).squeeze(axis)


__all__ = ["MixtureSameFamily", "TransformedDistribution"]
