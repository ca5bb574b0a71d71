"""Relaxations of coins and classes, whose draws have gradients; and counts before failures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from ..autograd import no_grad
from .categorical import Categorical, OneHotCategorical
from .counts import _OfCoins
from .distribution import Distribution, clamped, eps_of, together
from .gamma import drawn, lgamma


class RelaxedBernoulli(Distribution):
    """`sigmoid((logits + log u - log(1 - u)) / temperature)` for uniform u: a coin as the
    temperature goes to 0.

    ```
    d = cr.distributions.RelaxedBernoulli(cr.tensor(0.5), cr.tensor([0.1, 0.9]))
    assert d.rsample((3,)).shape == (3, 2)
    ```
    """

    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("RelaxedBernoulli: give either probs or logits")
        (given,) = together(probs if probs is not None else logits)
        near = clamped(given) if probs is not None else given
        self.temperature = temperature
        self.probs = given if probs is not None else given.sigmoid()
        self.logits = near.log() - (-near).log1p() if probs is not None else given
        super().__init__(given.shape, validate_args=validate_args)

    def _logit_sample(self, sample_shape: Sequence[int]) -> Tensor:
        p = clamped(self.probs.expand(self._shape(sample_shape)))
        u = clamped(_c._rand(p._dims, p.dtype, None))
        out: Tensor = (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature
        return out

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = self._logit_sample(sample_shape).sigmoid()
        return x.clamp(min=2.0**-1022 if x.dtype.name == "float64" else 2.0**-126, max=1.0 - eps_of(x.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value <= 1), "a value is between 0 and 1")
        tiny = 2.0**-1022 if value.dtype.name == "float64" else 2.0**-126
        y = value.clamp(min=tiny, max=1.0 - eps_of(value.dtype))
        x = y.log() - (-y).log1p()
        apart = self.logits - x * self.temperature
        of_logit = _log(self.temperature) + apart - 2 * apart.exp().log1p()
        out: Tensor = of_logit + _softplus(-x) + _softplus(x)
        return out

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs}


def _softplus(x: Tensor) -> Tensor:
    return x.clamp(min=0) + (-x.abs()).exp().log1p()


def _log(x: Any) -> Any:
    return x.log() if isinstance(x, Tensor) else math.log(x)


class RelaxedOneHotCategorical(Distribution):
    """`softmax((logits + gumbel) / temperature)`: one class as the temperature goes to 0."""

    has_rsample = True

    def __init__(self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._classes = Categorical(probs, logits, validate_args)
        self.temperature, self.probs, self.logits = temperature, self._classes.probs, self._classes.logits
        super().__init__(self._classes.batch_shape, self.logits.shape[-1:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = clamped(_c._rand(self._shape(sample_shape), self.logits.dtype, None))
        scores: Tensor = (self.logits - (-u.log()).log()) / self.temperature
        return (scores - scores.logsumexp(-1, keepdim=True)).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        n, log = self.logits.shape[-1], value.log()
        score = self.logits - log * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        out: Tensor = score + math.lgamma(n) + (n - 1) * _log(self.temperature) - log.sum(-1)
        return out

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs}


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical`, whose draws pass gradients on to the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            found = self.sample(sample_shape)
        return found + (self.probs - self.probs.detach())


class NegativeBinomial(_OfCoins):
    """The number of successes before `total_count` failures, by the probability of success."""

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = self._is_given(probs, logits)
        self.total_count, _ = together(total_count, given)
        self.probs, self.logits = (t.expand(self.total_count.shape) for t in (self.probs, self.logits))
        super().__init__(self.total_count.shape, validate_args=validate_args)
        self._require((self.probs >= 0).logical_and(self.probs < 1), "probs must be from 0 to below 1")

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The most probable count."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shared = drawn("gamma", self.total_count.detach().expand(self._shape(sample_shape)))
        return drawn("poisson", shared / (-self.logits.detach()).exp())

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value == value.floor()), "a value is a whole number from 0 up")
        n, x = self.total_count, self.logits
        ways = lgamma(n + value) - lgamma(value + 1) - lgamma(n)
        return n * -_softplus(x) + value * -_softplus(-x) + ways.masked_fill((n + value == 0).expand(ways.shape), 0.0)


__all__ = ["NegativeBinomial", "OneHotCategoricalStraightThrough", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
