"""`Dirichlet` under the name of PyTorch's module."""

from .gamma import Dirichlet

__all__ = ["Dirichlet"]
