"""Distributions of positive numbers and of shares: Gamma, Beta, Dirichlet, and Student's t.

Draws for a seed, and their gradients by the parameters, are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .. import _functions as _f
from .. import special
from .._chainrule import Generator, Tensor
from .._errors import _NotInPrograms
from ..autograd import no_grad
from ._implicit import DirichletDraws, GammaDraws
from .distribution import Distribution, together

lgamma, digamma = special.gammaln, special.digamma


def drawn(law: str, first: Tensor, second: Tensor | None = None, generator: Generator | None = None) -> Tensor:
    """A draw of the law for each element of its parameters, in the dtype of the first of them."""
    if _c._session_on():
        raise _NotInPrograms(f"compile: a draw of the {law} law takes as many random numbers as it needs: draw before the compiled function")
    found: Tensor = _c._law_draws(law, first.detach(), None if second is None else second.detach(), generator)
    return found._to_dtype(first.dtype)


def standard_gamma(concentration: Tensor, shape: Any) -> Tensor:
    """Draws of the gamma law with rate 1, with gradients by its shape."""
    a = concentration.expand(shape)
    draws = drawn("gamma", a).clamp(min=tiny(a.dtype))
    return GammaDraws.apply(a, draws) if a.requires_grad else draws


def tiny(dtype: Any) -> float:
    """The smallest normal number: draws are not 0, whose logarithm is infinite."""
    return float(np.finfo(np.float64 if dtype.name == "float64" else np.float32).tiny)


def below_one(dtype: Any) -> float:
    """The distance from 1 to the largest number below it."""
    return 2.0**-53 if dtype.name == "float64" else 2.0**-24


def _at_least(x: Tensor) -> Tensor:
    """Draws that are not 0; the gradient flows as if nothing were cut."""
    return x + (x.detach().clamp(min=tiny(x.dtype)) - x.detach())


class Gamma(Distribution):
    """Density `rate^a x^(a - 1) exp(-rate x) / gamma(a)` for `a = concentration`.

    ```
    a = cr.tensor(2.0, requires_grad=True)
    d = cr.distributions.Gamma(a, 0.5)
    assert d.mean.item() == 4.0 and d.sample((3,)).shape == (3,)
    d.rsample((100,)).mean().backward()
    assert a.grad.item() > 0
    ```
    """

    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)
        self._require((self.concentration > 0).logical_and(self.rate > 0), "concentration and rate must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws with gradients by concentration and rate."""
        return _at_least(standard_gamma(self.concentration, self._shape(sample_shape)) / self.rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value >= 0, "a value must be 0 or more")
        a = self.concentration
        return special.xlogy(a, self.rate) + special.xlogy(a - 1, value) - self.rate * value - lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1 - a) * digamma(a)

    def _text(self) -> dict[str, Any]:
        return {"concentration": self.concentration, "rate": self.rate}


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal numbers."""

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = together(df)
        super().__init__(0.5 * df, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        """The number of squares."""
        return self.concentration * 2

    def _text(self) -> dict[str, Any]:
        return {"df": self.df}


class Dirichlet(Distribution):
    """Shares that add up to 1: density in proportion to the product of `x_i^(c_i - 1)`, where c are
    the concentrations along the last axis.
    """

    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("Dirichlet: shape (): the last axis is that of the shares")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)
        self._require(concentration > 0, "concentration must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        whole = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (whole - self.concentration) / (whole.square() * (whole + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws with gradients by the concentrations."""
        c = self.concentration.expand(self._shape(sample_shape))
        with no_grad():
            parts = drawn("gamma", c.double())
            shares = (parts / parts.sum(-1, keepdim=True))._to_dtype(c.dtype).clamp(tiny(c.dtype), 1 - below_one(c.dtype))
        return DirichletDraws.apply(c, shares) if c.requires_grad else shares

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).all(-1).logical_and((value.sum(-1) - 1).abs() < 1e-6), "a value is shares that add up to 1")
        c = self.concentration
        return special.xlogy(c - 1, value).sum(-1) + lgamma(c.sum(-1)) - lgamma(c).sum(-1)

    def entropy(self) -> Tensor:
        c, k = self.concentration, self.concentration.shape[-1]
        whole = c.sum(-1)
        return lgamma(c).sum(-1) - lgamma(whole) - (k - whole) * digamma(whole) - ((c - 1) * digamma(c)).sum(-1)

    def _text(self) -> dict[str, Any]:
        return {"concentration": self.concentration}


class Beta(Distribution):
    """Numbers between 0 and 1: density in proportion to `x^(a - 1) (1 - x)^(b - 1)`.

    ```
    d = cr.distributions.Beta(2.0, 6.0)
    assert d.mean.item() == 0.25 and 0 < d.sample().item() < 1
    ```
    """

    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)
        self._dirichlet = Dirichlet(_f.stack([self.concentration1, self.concentration0], -1), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b).square() * (a + b + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws with gradients by both concentrations."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value <= 1), "a value is from 0 to 1")
        return self._dirichlet.log_prob(_f.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    def _text(self) -> dict[str, Any]:
        return {"concentration1": self.concentration1, "concentration0": self.concentration0}


class StudentT(Distribution):
    """Student's t: a normal number divided by the root of a mean of `df` squares of others, times
    `scale`, plus `loc`.
    """

    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)
        self._require((self.df > 0).logical_and(self.scale > 0), "df and scale must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        many = self.df.where(self.df > 2, 3.0)
        out = (self.scale.square() * many / (many - 2)).masked_fill(self.df <= 2, math.inf)
        return out.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws with gradients by all three parameters."""
        shape = self._shape(sample_shape)
        normal = _c._randn(tuple(shape), self.df.dtype, None)
        squares = _at_least(2 * standard_gamma(0.5 * self.df, shape))
        return self.loc + self.scale * (normal * (squares / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        y, half = (value - self.loc) / self.scale, 0.5 * self.df
        log_z = self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi)) + lgamma(half) - lgamma(half + 0.5)
        return -(half + 0.5) * (y.square() / self.df).log1p() - log_z

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        beta = lgamma(half) + math.lgamma(0.5) - lgamma(half + 0.5)
        return self.scale.log() + (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + 0.5 * self.df.log() + beta

    def _text(self) -> dict[str, Any]:
        return {"df": self.df, "loc": self.loc, "scale": self.scale}
