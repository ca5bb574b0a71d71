"""The values of distributions, and those of their parameters."""

from __future__ import annotations

from typing import Any

from . import constraints as _c
from .distribution import Distribution

_LOC_SCALE = {"loc": _c.real, "scale": _c.positive}
_PROBS = {"probs": _c.unit_interval, "logits": _c.real}
_CLASSES = {"probs": _c.simplex, "logits": _c.real_vector}
_MATRIX = {"loc": _c.real_vector, "covariance_matrix": _c.positive_definite, "precision_matrix": _c.positive_definite, "scale_tril": _c.lower_cholesky}
# The values, or None where they depend on the parameters; and the values of each parameter.
_KNOWN: dict[str, tuple[Any, dict[str, Any]]] = {
    "Bernoulli": (_c.boolean, _PROBS),
    "Beta": (_c.unit_interval, {"concentration1": _c.positive, "concentration0": _c.positive}),
    "Binomial": (None, {"total_count": _c.nonnegative_integer, **_PROBS}),
    "Categorical": (None, _CLASSES),
    "Cauchy": (_c.real, _LOC_SCALE),
    "Chi2": (_c.nonnegative, {"df": _c.positive}),
    "Dirichlet": (_c.simplex, {"concentration": _c.independent(_c.positive, 1)}),
    "Exponential": (_c.nonnegative, {"rate": _c.positive}),
    "Gamma": (_c.nonnegative, {"concentration": _c.positive, "rate": _c.positive}),
    "Geometric": (_c.nonnegative_integer, _PROBS),
    "Gumbel": (_c.real, _LOC_SCALE),
    "HalfCauchy": (_c.nonnegative, {"scale": _c.positive}),
    "HalfNormal": (_c.nonnegative, {"scale": _c.positive}),
    "InverseGamma": (_c.positive, {"concentration": _c.positive, "rate": _c.positive}),
    "Kumaraswamy": (_c.unit_interval, {"concentration1": _c.positive, "concentration0": _c.positive}),
    "LKJCholesky": (_c.corr_cholesky, {"concentration": _c.positive}),
    "Laplace": (_c.real, _LOC_SCALE),
    "LogNormal": (_c.positive, _LOC_SCALE),
    "LowRankMultivariateNormal": (_c.real_vector, {"loc": _c.real_vector, "cov_diag": _c.independent(_c.positive, 1)}),
    "MultivariateNormal": (_c.real_vector, _MATRIX),
    "NegativeBinomial": (_c.nonnegative_integer, {"total_count": _c.greater_than_eq(0), **_PROBS}),
    "Normal": (_c.real, _LOC_SCALE),
    "OneHotCategorical": (_c.one_hot, _CLASSES),
    "Pareto": (None, {"alpha": _c.positive, "scale": _c.positive}),
    "Poisson": (_c.nonnegative_integer, {"rate": _c.nonnegative}),
    "RelaxedBernoulli": (_c.unit_interval, _PROBS),
    "RelaxedOneHotCategorical": (_c.simplex, _CLASSES),
    "StudentT": (_c.real, {"df": _c.positive, **_LOC_SCALE}),
    "Uniform": (None, {"low": _c.real, "high": _c.real}),
    "VonMises": (_c.real, {"loc": _c.real, "concentration": _c.positive}),
    "Weibull": (_c.positive, {"scale": _c.positive, "concentration": _c.positive}),
    "Wishart": (_c.positive_definite, {"df": _c.greater_than(0), **{k: v for k, v in _MATRIX.items() if k != "loc"}}),
}


def _depends(d: Any) -> Any:
    """The values of a distribution by its parameters."""
    kinds: dict[str, Any] = {
        "Binomial": lambda: _c.integer_interval(0, d.total_count),
        "Categorical": lambda: _c.integer_interval(0, d._num_events - 1),
        "Pareto": lambda: _c.greater_than_eq(d.scale),
        "Uniform": lambda: _c.interval(d.low, d.high),
        "Independent": lambda: _c.independent(d.base_dist.support, d.reinterpreted_batch_ndims),
        "MixtureSameFamily": lambda: d.component_distribution.support,
        "TransformedDistribution": lambda: d.transforms[-1].codomain if d.transforms else d.base_dist.support,
    }
    for cls in type(d).__mro__:
        if cls.__name__ in kinds:
            return kinds[cls.__name__]()
    raise NotImplementedError(f"{type(d).__name__} has no support")


def _support(self: Any) -> Any:
    for cls in type(self).__mro__:
        known = _KNOWN.get(cls.__name__, (None, {}))[0]
        if known is not None:
            return known
        if cls.__name__ in _KNOWN:
            break
    return _depends(self)


def attach(classes: dict[str, Any]) -> None:
    """Gives distributions `support` and `arg_constraints`."""
    setattr(Distribution, "support", property(_support, doc="The values that can be drawn."))
    setattr(Distribution, "arg_constraints", {})
    for name, (_, parameters) in _KNOWN.items():
        setattr(classes[name], "arg_constraints", parameters)
