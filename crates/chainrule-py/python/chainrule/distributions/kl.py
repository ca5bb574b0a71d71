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
from .counts import Poisson
from .distribution import Distribution
from .gamma import Beta, Dirichlet, Gamma, digamma, lgamma
from .independent import Independent
from .normal import LogNormal, MultivariateNormal, Normal
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


__all__ = ["kl_divergence", "register_kl"]
