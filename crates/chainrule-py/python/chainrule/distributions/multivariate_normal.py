"""`MultivariateNormal` under the name of PyTorch's module."""

from .normal import MultivariateNormal

__all__ = ["MultivariateNormal"]
