"""Distributions with other tails than the normal one; their draws are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .distribution import Distribution, eps_of, together
from .gamma import tiny
from .normal import Normal

EULER = 0.57721566490153286060


class Cauchy(Distribution):
    """Density `1 / (pi scale (1 + ((x - loc) / scale)^2))`: there is no mean."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.scale > 0, "scale must be above 0")

    @property
    def mean(self) -> Tensor:
        return _c._full(self._batch_shape, math.nan, self.loc.dtype)

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        return _c._full(self._batch_shape, math.inf, self.loc.dtype)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = _c._full(self._shape(sample_shape), 0.0, self.loc.dtype).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale}


class Folded(Distribution):
    """The size of a number of a distribution that is symmetric about 0."""

    has_rsample = True

    def __init__(self, base: Cauchy | Normal, validate_args: bool | None) -> None:
        self._base = base
        self.scale: Tensor = base.scale
        super().__init__(self.scale.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._base.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value >= 0, "a value must be 0 or more")
        return self._base.log_prob(value) + math.log(2)

    def entropy(self) -> Tensor:
        return self._base.entropy() - math.log(2)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self._base.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self._base.icdf((value + 1) / 2)

    def _text(self) -> dict[str, Any]:
        return {"scale": self.scale}


class HalfNormal(Folded):
    """The size of a normal number of mean 0 and standard deviation `scale`."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0.0, scale, validate_args), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)


class Gumbel(Distribution):
    """The largest of many: `exp(-exp(-(x - loc) / scale))` is the probability of values up to x."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.scale > 0, "scale must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        return math.pi**2 / 6 * self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        low = tiny(self.loc.dtype)
        u = _c._rand(self._shape(sample_shape), self.loc.dtype, None) * (1 - eps_of(self.loc.dtype) - low) + low
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)

    def cdf(self, value: Tensor) -> Tensor:
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale}
