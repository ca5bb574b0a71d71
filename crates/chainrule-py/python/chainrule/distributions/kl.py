"""The divergence of one distribution from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import linalg
from .._chainrule import Tensor
from ..nn import functional as F
from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .counts import Binomial, Geometric, Poisson
from .distribution import Distribution
from .further import LowRankMultivariateNormal
from .gamma import Beta, Dirichlet, Gamma, digamma, lgamma
from .independent import Independent
from .mapped import TransformedDistribution
from .normal import LogNormal, MultivariateNormal, Normal
from .shaped import Pareto
from .tails import EULER, Cauchy, Gumbel, HalfNormal
from .transforms import sum_rightmost
from .uniform import Exponential, Laplace, Uniform

_KNOWN: dict[tuple[type, type], Callable[..., Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator: the function is the divergence of distributions of these types."""

    def keep(function: Any) -> Any:
        _KNOWN[type_p, type_q] = function
        return function

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """`E_p[log p - log q]`, in closed form.

    ```
    p, q = cr.distributions.Normal(0.0, 1.0), cr.distributions.Normal(1.0, 1.0)
    assert cr.distributions.kl_divergence(p, q).item() == 0.5
    ```
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _KNOWN:
                return _KNOWN[a, b](p, q)
    raise NotImplementedError(f"kl_divergence: none is known of {type(p).__name__} from {type(q).__name__}; register_kl adds one")


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    out: Tensor = 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())
    return out


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return kl_divergence(p.base, q.base)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = each.masked_fill((q.probs == 0).expand(each.shape), math.inf)
    return each.masked_fill((p.probs == 0).expand(each.shape), 0.0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return kl_divergence(p._classes, q._classes)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0.0)
    zero = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    return one + zero.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0.0)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    out = ((q.high - q.low) / (p.high - p.low)).log()
    return out.masked_fill((q.low > p.low).logical_or(q.high < p.high), math.inf)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    out: Tensor = ratio - ratio.log() - 1
    return out


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate).log() + lgamma(b) - lgamma(a) + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    whole = a.sum(-1)
    sizes = lgamma(whole) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return sizes + ((a - b) * (digamma(a) - digamma(whole).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    n = p.loc.shape[-1]
    factor = linalg.solve(q.scale_tril, p.scale_tril).square().sum((-2, -1))
    apart = linalg.solve(q.scale_tril, (q.loc - p.loc).unsqueeze(-1)).square().sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (factor + apart - n)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(f"kl_divergence: {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims} axes are part of one draw")
    return p.summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    whole = (MultivariateNormal(d.loc, scale_tril=d.scale_tril) for d in (p, q))
    return _multivariate(*whole)  # type: ignore[no-any-return]


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    kinds = [[type(t) for t in d.transforms] for d in (p, q)]
    if kinds[0] != kinds[1] or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the distributions are mapped in different ways")
    more = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), more)  # type: ignore[no-any-return]


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("kl_divergence: a Binomial with more throws from one with fewer")
    each = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return each.masked_fill((p.total_count > q.total_count).expand(each.shape), math.inf)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p._base, q._base)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, a, b = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    return -ratio.log() - a + b + ratio * EULER + (a + lgamma(1 + ratio) - b).exp() - (1 + EULER)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio, a = q.rate / p.rate, q.concentration
    return -a * ratio.log() + ratio + lgamma(a) + a * EULER - (1 + EULER)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width, middle = p.high - p.low, (p.high + p.low) / 2
    log = (math.sqrt(2 * math.pi) * q.scale / width).log()
    return log + (width.square() / 12 + (middle - q.loc).square()) / (2 * q.scale.square())


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    spread = q.scale.square()
    ratio = p.scale.square() / spread
    log = 0.5 * (2 * ratio / math.pi).log()
    return -log + ratio + 0.5 * (p.loc - q.loc).square() / spread - 1


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    scales, shapes = p.scale / q.scale, q.alpha / p.alpha
    out: Tensor = q.alpha * scales.log() - shapes.log() + shapes - 1
    return out.masked_fill((p.scale < q.scale).expand(out.shape), math.inf)


__all__ = ["kl_divergence", "register_kl"]
