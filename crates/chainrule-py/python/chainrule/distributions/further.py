"""Angles, ratios, matrices, and vectors whose covariance is nearly diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .. import _making as _m
from .. import linalg, special
from .._chainrule import Tensor
from ..autograd import no_grad
from .distribution import HALF_LOG_2PI, Distribution, together
from .gamma import Chi2, Gamma, digamma, lgamma, tiny
from .mapped import TransformedDistribution
from .normal import Normal
from .more_transforms import StickBreakingTransform


class VonMises(Distribution):
    """Angles around `loc`: density `exp(k cos(x - loc)) / (2 pi I0(k))` for `k = concentration`.

    ```
    d = cr.distributions.VonMises(0.0, 4.0)
    assert d.sample((5,)).abs().max() <= 3.1416
    ```
    """

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = together(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.concentration > 0, "concentration must be above 0")

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The circular variance, `1 - I1(k) / I0(k)`."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape, dtype = self._shape(sample_shape), self.loc.dtype
            loc, k = self.loc._to_dtype("float64"), self.concentration._to_dtype("float64")
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # Near 0 the ratio loses its digits, and its series is exact.
            r = ((1 + rho.square()) / (2 * rho)).where(k > 1e-5, 1 / k + k).expand(shape)
            x = _c._full(shape, 0.0, "float64")
            waits = x == 0
            while bool(waits.any()):
                u1, u2, u3 = _c._rand((3, *shape), "float64", None)
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                taken = (c * (2 - c) - u2 > 0).logical_or((c / u2).log() + 1 - c >= 0)
                x = ((u3 - 0.5).sign() * f.acos()).where(taken, x)
                waits = waits.logical_and(taken.logical_not())
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi)._to_dtype(dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.concentration
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - special.i0e(k).log() - k

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "concentration": self.concentration}


class InverseGamma(Distribution):
    """The distribution of `1 / x` where x is `Gamma(concentration, rate)`."""

    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.base = Gamma(concentration, rate, validate_args)
        self.concentration, self.rate = self.base.concentration, self.base.rate
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return (self.rate / (a - 1)).where(a > 1, math.inf)

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return (self.rate.square() / ((a - 1).square() * (a - 2))).where(a > 2, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws with gradients by concentration and rate."""
        return self.base.rsample(sample_shape).reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value > 0, "a value must be above 0")
        return self.base.log_prob(value.reciprocal()) - 2 * value.log()

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + lgamma(a) - (1 + a) * digamma(a)

    def _text(self) -> dict[str, Any]:
        return {"concentration": self.concentration, "rate": self.rate}


class FisherSnedecor(Distribution):
    """The ratio of two `Chi2` numbers, each by its degrees of freedom."""

    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = together(df1, df2)
        self._above, self._below = Gamma(self.df1 * 0.5, self.df1, validate_args), Gamma(self.df2 * 0.5, self.df2, validate_args)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        n = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return n / (n - 2)

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        n = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * n.square() * (self.df1 + n - 2) / (self.df1 * (n - 2).square() * (n - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws with gradients by both degrees of freedom."""
        above, below = self._above.rsample(sample_shape), self._below.rsample(sample_shape)
        return (above / below.clamp(min=tiny(below.dtype))).clamp(min=tiny(above.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require(value > 0, "a value must be above 0")
        ratio, a, b = self.df1 / self.df2, self.df1 * 0.5, self.df2 * 0.5
        ways = lgamma(a + b) - lgamma(a) - lgamma(b)
        return ways + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()

    def _text(self) -> dict[str, Any]:
        return {"df1": self.df1, "df2": self.df2}


class LogisticNormal(TransformedDistribution):
    """Shares whose logarithms, by stick breaking, are normal: one more of them than of `loc`."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self.base_dist.loc  # type: ignore[no-any-return]

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self.base_dist.scale  # type: ignore[no-any-return]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with the covariance `W W^T + diag(d)`, for
    `W = cov_factor [..., n, rank]` and `d = cov_diag [..., n]`.

    ```
    d = cr.distributions.LowRankMultivariateNormal(cr.zeros(3), cr.ones(3, 1), cr.ones(3))
    assert d.variance.tolist() == [2, 2, 2] and d.rsample((4,)).shape == (4, 3)
    ```
    """

    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            shapes = ", ".join(str(tuple(t.shape)) for t in (loc, cov_factor, cov_diag))
            raise ValueError(f"LowRankMultivariateNormal: shapes {shapes}: [..., n], [..., n, rank] and [..., n] are needed")
        batch = _f.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand((*batch, n)), cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, n, cov_factor.shape[-1]))
        super().__init__(batch, (n,), validate_args)
        self._require(self.cov_diag > 0, "cov_diag must be above 0")
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        # The matrix 1 + W^T D^-1 W has the size of the rank, and the determinant of the whole by D.
        capacitance = scaled @ self.cov_factor + _m.eye(cov_factor.shape[-1], dtype=loc.dtype)
        self._scaled, self._tril = scaled, capacitance.cholesky()

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self.covariance_matrix.inverse()

    @property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self.covariance_matrix.cholesky()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        w = _c._randn((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype, None)
        d = _c._randn(shape, self.loc.dtype, None)
        return self.loc + (self.cov_factor @ w.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * d

    def _half_log_det(self) -> Tensor:
        return self._tril.diagonal(0, -2, -1).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        apart = value - self.loc
        first = (apart.square() / self.cov_diag).sum(-1)
        part = (self._scaled @ apart.unsqueeze(-1))
        factor = self._tril.expand((*part.shape[:-2], *self._tril.shape[-2:]))
        second = linalg.solve(factor, part).square().sum((-2, -1))
        return -0.5 * (first - second) - self.loc.shape[-1] * HALF_LOG_2PI - self._half_log_det()

    def entropy(self) -> Tensor:
        return self.loc.shape[-1] * (0.5 + HALF_LOG_2PI) + self._half_log_det()

    def _text(self) -> dict[str, Any]:
        return {"loc": self.loc, "cov_factor": self.cov_factor, "cov_diag": self.cov_diag}


class Wishart(Distribution):
    """The distribution of `sum_i x_i x_i^T` of `df` normal vectors with this covariance, which may
    be given by its inverse or its Cholesky factor.
    """

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if sum(m is not None for m in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise ValueError("Wishart: give one of covariance_matrix, precision_matrix and scale_tril")
        factor = scale_tril
        if factor is None:
            covariance = covariance_matrix if precision_matrix is None else precision_matrix.inverse()
            factor = covariance.cholesky()  # type: ignore[union-attr]
        n = factor.shape[-1]
        batch = factor.shape[:-2] if not isinstance(df, Tensor) else _f.broadcast_shapes(df.shape, factor.shape[:-2])
        self.df = (df if isinstance(df, Tensor) else _c._full((), float(df), factor.dtype)).expand(tuple(batch))
        self.scale_tril = factor.expand((*batch, n, n))
        super().__init__(batch, (n, n), validate_args)
        self._require(self.df > n - 1, f"df must be above {n - 1}, the size of the matrix without 1")

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance of the vectors."""
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """The place of the largest density."""
        n = self.scale_tril.shape[-1]
        factor = (self.df - n - 1).masked_fill(self.df <= n + 1, math.nan)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = v.diagonal(0, -2, -1)
        return self.df[..., None, None] * (v.square() + d.unsqueeze(-1) * d.unsqueeze(-2))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws by Bartlett's way: roots of `Chi2` numbers on the diagonal, normal ones below."""
        with no_grad():
            n = self.scale_tril.shape[-1]
            freedom = self.df.unsqueeze(-1) - _c._arange(0, n, 1, "int64")._to_dtype(self.df.dtype)
            roots = Chi2(freedom).sample(sample_shape).sqrt()
            below = _c._randn(self._shape(sample_shape), self.df.dtype, None).tril(-1)
            half = self.scale_tril @ (below + roots.diag_embed())
            return half @ half.mT

    def log_prob(self, value: Tensor) -> Tensor:
        n, nu = self.scale_tril.shape[-1], self.df
        half = self.scale_tril.diagonal(0, -2, -1).log().sum(-1)
        whole = self.scale_tril.expand((*value.shape[:-2], n, n)) if value.ndim > self.scale_tril.ndim else self.scale_tril
        trace = linalg.solve(whole @ whole.mT, value).diagonal(0, -2, -1).sum(-1)
        log_det = linalg.slogdet(value)[1]
        return -nu * (n * math.log(2.0) / 2 + half) - special.multigammaln(nu / 2, n) + (nu - n - 1) / 2 * log_det - trace / 2

    def entropy(self) -> Tensor:
        n, nu = self.scale_tril.shape[-1], self.df
        half = self.scale_tril.diagonal(0, -2, -1).log().sum(-1)
        digammas = sum((digamma((nu - i) / 2) for i in range(n)), 0.0 * nu)
        size = (n + 1) * (n * math.log(2.0) / 2 + half)
        return size + special.multigammaln(nu / 2, n) - (nu - n - 1) / 2 * digammas + nu * n / 2

    def _text(self) -> dict[str, Any]:
        return {"df": self.df, "scale_tril": self.scale_tril}


__all__ = ["FisherSnedecor", "InverseGamma", "LogisticNormal", "LowRankMultivariateNormal", "VonMises", "Wishart"]
