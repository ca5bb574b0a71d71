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
from .normal import LogNormal, MultivariateNormal, Normal
from .tails import Cauchy, Gumbel, HalfNormal
from .uniform import Exponential, Laplace, Uniform

from . import independent, kl, normal, uniform  # isort: skip

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential", "Gamma", "Geometric",
    "Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal", "Multinomial", "MultivariateNormal", "Normal", "OneHotCategorical",
    "Poisson", "StudentT", "Uniform", "independent", "kl", "kl_divergence", "normal", "register_kl", "uniform",
]
