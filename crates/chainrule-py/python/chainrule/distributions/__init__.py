"""Probability distributions with PyTorch's names and numbers, draws for a seed among them."""

from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .counts import Binomial, Geometric, Multinomial, Poisson
from .distribution import Distribution
from .further import FisherSnedecor, InverseGamma, LogisticNormal, LowRankMultivariateNormal, VonMises, Wishart
from .gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from .independent import Independent
from .kl import kl_divergence, register_kl
from .lkj import LKJCholesky
from .mapped import MixtureSameFamily, TransformedDistribution
from .more_transforms import (
    AbsTransform, CatTransform, CorrCholeskyTransform, CumulativeDistributionTransform, LowerCholeskyTransform, PositiveDefiniteTransform, ReshapeTransform,
    SoftmaxTransform, StackTransform, StickBreakingTransform, biject_to, transform_to,
)
from .normal import LogNormal, MultivariateNormal, Normal
from .relaxed import NegativeBinomial, OneHotCategoricalStraightThrough, RelaxedBernoulli, RelaxedOneHotCategorical
from .shaped import ContinuousBernoulli, HalfCauchy, Kumaraswamy, Pareto, Weibull
from .tails import Cauchy, Gumbel, HalfNormal
from .transforms import (
    AffineTransform, ComposeTransform, ExpTransform, IndependentTransform, PowerTransform, SigmoidTransform, SoftplusTransform, TanhTransform, Transform, identity_transform,
)
from .uniform import Exponential, Laplace, Uniform

from . import (  # isort: skip
    bernoulli, beta, binomial, categorical, constraint_registry, constraints, dirichlet, exponential, gamma, gumbel, half_normal, independent, kl, laplace, log_normal,
    mixture_same_family, multivariate_normal, normal, one_hot_categorical, poisson, relaxed_bernoulli, relaxed_categorical, studentT, transformed_distribution,
    transforms, uniform, utils,
)

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform",
    "Exponential", "FisherSnedecor", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "LowerCholeskyTransform",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart", "biject_to", "constraints", "identity_transform", "independent", "kl", "kl_divergence", "normal", "register_kl",
    "transform_to", "transforms", "uniform",
    "beta", "binomial", "constraint_registry", "dirichlet", "exponential", "gumbel", "half_normal", "laplace", "log_normal", "mixture_same_family", "multivariate_normal", "one_hot_categorical", "poisson", "relaxed_bernoulli", "relaxed_categorical", "studentT", "transformed_distribution", "utils", "bernoulli", "categorical", "gamma",
]

from .supports import attach as _attach  # noqa: E402

_attach(globals())
