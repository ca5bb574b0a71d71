"""Distributions of positive numbers and of numbers between 0 and 1 that are maps of uniform draws,
which are PyTorch's for the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .distribution import Distribution, eps_of, together
from .gamma import lgamma, tiny
from .tails import EULER, Cauchy, Folded
from .uniform import Exponential


def _uniform(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Draws between 0 and 1, without both."""
    low = tiny(like.dtype)
    return _c._rand(tuple(shape), like.dtype, None) * (1 - eps_of(like.dtype) - low) + low


class Weibull(Distribution):
    """`P(x > t) = exp(-(t / scale)^concentration)`.

    ```
    d = cr.distributions.Weibull(2.0, 1.0)
    assert d.sample((3,)).shape == (3,) and abs(d.mean.item() - 2.0) < 1e-6
    ```
    """

    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = together(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self._require((self.scale > 0).logical_and(self.concentration > 0), "scale and concentration must be above 0")
        self._inverse = self.concentration.reciprocal()

    @property
    def mean(self) -> Tensor:
        return self.scale * lgamma(1 + self._inverse).exp()

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        a = self.concentration
        return self.scale * ((a - 1) / a).clamp(min=0) ** self._inverse

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (lgamma(1 + 2 * self._inverse).exp() - (2 * lgamma(1 + self._inverse)).exp())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.scale * Exponential(_c._full(self._batch_shape, 1.0, self.scale.dtype)).rsample(sample_shape) ** self._inverse

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value > 0, "a value must be above 0")
        ratio, a = value / self.scale, self.concentration
        return a.log() - self.scale.log() + (a - 1) * ratio.log() - ratio**a

    def entropy(self) -> Tensor:
        return EULER * (1 - self._inverse) + (self.scale * self._inverse).log() + 1

    def cdf(self, value: Tensor) -> Tensor:
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** self._inverse

    def _text(self) -> dict[str, Any]:
        return {"scale": self.scale, "concentration": self.concentration}


class Pareto(Distribution):
    """`P(x > t) = (scale / t)^alpha` from `scale` on."""

    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = together(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self._require((self.scale > 0).logical_and(self.alpha > 0), "scale and alpha must be above 0")

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.scale * (Exponential(self.alpha).rsample(sample_shape)).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value >= self.scale, "a value is at least scale")
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (1 - value) ** (-self.alpha.reciprocal())

    def _text(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "scale": self.scale}


class Kumaraswamy(Distribution):
    """`P(x <= t) = 1 - (1 - t^a)^b` between 0 and 1, for `a = concentration1`,
    `b = concentration0`.
    """

    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        super().__init__(self.concentration0.shape, validate_args=validate_args)
        self._require((self.concentration1 > 0).logical_and(self.concentration0 > 0), "the concentrations must be above 0")

    def _moment(self, n: int) -> Tensor:
        a, b = 1 + n / self.concentration1, self.concentration0
        return (b.log() + lgamma(a) + lgamma(b) - lgamma(a + b)).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    @property
    def mode(self) -> Tensor:
        """The place of the largest density; NaN where it is at an end."""
        a, b = self.concentration1, self.concentration0
        place = (((a - 1) / (a * b - 1)).log() / a).exp()
        return place.masked_fill((a < 1).logical_or(b < 1), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _uniform(self.concentration0, self._shape(sample_shape))
        return (1 - u ** self.concentration0.reciprocal()) ** self.concentration1.reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value <= 1), "a value is between 0 and 1")
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * (-(value**a)).log1p()

    def entropy(self) -> Tensor:
        from .gamma import digamma

        a, b = self.concentration1.reciprocal(), self.concentration0.reciprocal()
        harmonic = digamma(self.concentration0 + 1) + EULER
        return (1 - b) + (1 - a) * harmonic + a.log() + b.log()

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - (1 - value**self.concentration1) ** self.concentration0

    def icdf(self, value: Tensor) -> Tensor:
        return (1 - (1 - value) ** self.concentration0.reciprocal()) ** self.concentration1.reciprocal()

    def _text(self) -> dict[str, Any]:
        return {"concentration1": self.concentration1, "concentration0": self.concentration0}


class HalfCauchy(Folded):
    """The size of a Cauchy number of place 0 and width `scale`."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0.0, scale, validate_args), validate_args)

    @property
    def mean(self) -> Tensor:
        return _c._full(self._batch_shape, math.inf, self.scale.dtype)

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        return self.scale.detach() * 0

    @property
    def variance(self) -> Tensor:
        return self._base.variance


class ContinuousBernoulli(Distribution):
    """Density `c(p) p^x (1 - p)^(1 - x)` for x between 0 and 1, of `probs` or `logits`. Beside
    `p = 1/2`, within `lims`, `c` is its Taylor polynomial.
    """

    has_rsample = True

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("ContinuousBernoulli: give either probs or logits")
        (given,) = together(probs if probs is not None else logits)
        p = given if probs is not None else given.sigmoid()
        eps = eps_of(p.dtype)
        self.probs = p.clamp(eps, 1 - eps)
        self.logits = given if probs is None else self.probs.log() - (-self.probs).log1p()
        self._lims, self._by_probs = lims, probs is not None
        super().__init__(given.shape, validate_args=validate_args)
        self._require((p >= 0).logical_and(p <= 1), "probs must be between 0 and 1")

    def _is_far(self) -> Tensor:
        return (self.probs <= self._lims[0]).logical_or(self.probs > self._lims[1])

    def _apart(self) -> Tensor:
        """The probabilities, moved off 1/2 where that is near."""
        return self.probs.where(self._is_far(), self._lims[0])

    def _log_norm(self) -> Tensor:
        p = self._apart()
        low, high = p.where(p <= 0.5, 0.0), p.where(p >= 0.5, 1.0)
        whole = ((-p).log1p() - p.log()).abs().log() - ((-2 * low).log1p()).where(p <= 0.5, (2 * high - 1).log())
        x = (self.probs - 0.5).square()
        return whole.where(self._is_far(), math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._apart()
        x = self.probs - 0.5
        near = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x
        return (p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())).where(self._is_far(), near)

    @property
    def variance(self) -> Tensor:
        p = self._apart()
        x = (self.probs - 0.5).square()
        near = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return (p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square()).where(self._is_far(), near)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._apart()
        far = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return far.where(self._is_far(), value)

    def cdf(self, value: Tensor) -> Tensor:
        p = self._apart()
        far = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = far.where(self._is_far(), value)
        return inside.where(value > 0, 0.0).where(value < 1, 1.0)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(_c._rand(self._shape(sample_shape), self.probs.dtype, None))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value <= 1), "a value is between 0 and 1")
        x = self.logits
        return value * x - (x.clamp(min=0) + (-x.abs()).exp().log1p()) + self._log_norm()

    def entropy(self) -> Tensor:
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._log_norm() - log0

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs} if self._by_probs else {"logits": self.logits}


__all__ = ["ContinuousBernoulli", "HalfCauchy", "Kumaraswamy", "Pareto", "Weibull"]
