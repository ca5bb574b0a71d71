"""Distributions of uniform numbers and of functions of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .distribution import Distribution, eps_of, together


class Uniform(Distribution):
    """Numbers from `low` up to `high`, with density `1 / (high - low)`."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        self._require(self.low < self.high, "low must be below high")

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.low + _c._rand(self._shape(sample_shape), self.low.dtype, None) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= self.low).logical_and(value <= self.high), "a value is from low to high")
        inside = (self.low <= value).logical_and(self.high > value)._to_dtype(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def _text(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}


class Exponential(Distribution):
    """Waiting times: density `rate exp(-rate x)`."""

    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)
        self._require(self.rate > 0, "rate must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    stddev = mean

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _c._rand(self._shape(sample_shape), "float64", None)
        return (-(1 - u).log())._to_dtype(self.rate.dtype) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value >= 0, "a value must be 0 or more")
        return self.rate.log() - self.rate * value

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def _text(self) -> dict[str, Any]:
        return {"rate": self.rate}


class Laplace(Distribution):
    """Density `exp(-|x - loc| / scale) / (2 scale)`."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.scale > 0, "scale must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        low = eps_of(self.loc.dtype) - 1
        u = _c._rand(self._shape(sample_shape), self.loc.dtype, None) * (1 - low) + low
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        x = value - self.loc
        return 0.5 - 0.5 * x.sign() * (-x.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        x = value - 0.5
        return self.loc - self.scale * x.sign() * (-2 * x.abs()).log1p()

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale}
