"""Probability distributions with PyTorch's names, numbers and random streams."""

from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .distribution import Distribution
from .independent import Independent
from .kl import kl_divergence, register_kl
from .normal import LogNormal, MultivariateNormal, Normal
from .uniform import Exponential, Laplace, Uniform

from . import independent, kl, normal, uniform  # isort: skip

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "LogNormal", "MultivariateNormal", "Normal",
    "OneHotCategorical", "Uniform", "independent", "kl", "kl_divergence", "normal", "register_kl", "uniform",
]
