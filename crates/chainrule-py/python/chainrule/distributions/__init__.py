"""Probability distributions with PyTorch's names and numbers. Draws are PyTorch's for the same
seed, but those of Gamma and its kin, Poisson and Binomial, which are NumPy's.
"""

from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .counts import Binomial, Geometric, Multinomial, Poisson
from .distribution import Distribution
from .gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from .independent import Independent
from .kl import kl_divergence, register_kl
from .mapped import MixtureSameFamily, TransformedDistribution
from .normal import LogNormal, MultivariateNormal, Normal
from .tails import Cauchy, Gumbel, HalfNormal
from .transforms import (
    AffineTransform, ComposeTransform, ExpTransform, IndependentTransform, PowerTransform, SigmoidTransform, SoftplusTransform, TanhTransform, Transform,
)
from .uniform import Exponential, Laplace, Uniform

from . import constraints, independent, kl, normal, transforms, uniform  # isort: skip

__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ComposeTransform", "Dirichlet", "Distribution",
    "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal", "Independent", "IndependentTransform", "Laplace", "LogNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "PowerTransform", "SigmoidTransform",
    "SoftplusTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "constraints", "independent", "kl",
    "kl_divergence", "normal", "register_kl", "transforms", "uniform",
]
