"""Normal distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import linalg
from .._chainrule import Tensor
from .distribution import HALF_LOG_2PI, Distribution, together


class Normal(Distribution):
    """The normal distribution with mean `loc` and standard deviation `scale`:
    `exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi))`.

    ```
    d = cr.distributions.Normal(cr.tensor([0.0, 1.0]), 2.0)
    assert d.sample((3,)).shape == (3, 2) and d.log_prob(cr.zeros(2)).shape == (2,)
    ```
    """

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
        return self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + _c._randn(self._shape(sample_shape), self.loc.dtype, None) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        return -((value - self.loc).square() / (2 * self.scale.square())) - self.scale.log() - HALF_LOG_2PI

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2PI + self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale}


class LogNormal(Distribution):
    """The distribution of `exp(x)` where x is normal with mean `loc` and standard deviation
    `scale`.
    """

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.base = Normal(loc, scale, validate_args)
        self.loc, self.scale = self.base.loc, self.base.scale
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base.rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value > 0, "a value must be above 0")
        log = value.log()
        return self.base.log_prob(log) - log

    def entropy(self) -> Tensor:
        return self.base.entropy() + self.loc

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale}


class MultivariateNormal(Distribution):
    """The normal distribution of vectors: mean `loc`, and a covariance, its inverse
    `precision_matrix`, or its Cholesky factor `scale_tril`.

    ```
    d = cr.distributions.MultivariateNormal(cr.zeros(2), cr.eye(2))
    assert d.sample((3,)).shape == (3, 2) and d.log_prob(cr.zeros(2)).shape == ()
    ```
    """

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if sum(m is not None for m in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise ValueError("MultivariateNormal: give one of covariance_matrix, precision_matrix and scale_tril")
        factor = scale_tril
        if factor is None:
            covariance = covariance_matrix if precision_matrix is None else precision_matrix.inverse()
            factor = covariance.cholesky()  # type: ignore[union-attr]
        n = loc.shape[-1]
        if tuple(factor.shape[-2:]) != (n, n):
            raise ValueError(f"MultivariateNormal: shapes {tuple(loc.shape)} and {tuple(factor.shape)}: the matrix has the size of loc twice")
        batch = (loc[..., 0] + factor[..., 0, 0]).shape
        self.loc, self.scale_tril = loc.expand((*batch, n)), factor.expand((*batch, n, n))
        super().__init__(batch, (n,), validate_args)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance, `L L^T`."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = _c._randn(self._shape(sample_shape), self.loc.dtype, None)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        apart = (value - self.loc).unsqueeze(-1)
        factor = self.scale_tril.expand((*apart.shape[:-2], *self.scale_tril.shape[-2:]))
        distance = linalg.solve(factor, apart).square().sum((-2, -1))
        return -0.5 * distance - self.loc.shape[-1] * HALF_LOG_2PI - self._half_log_det()

    def entropy(self) -> Tensor:
        return self.loc.shape[-1] * (0.5 + HALF_LOG_2PI) + self._half_log_det()

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale_tril": self.scale_tril}
