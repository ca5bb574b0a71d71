"""`Laplace` under the name of PyTorch's module."""

from .uniform import Laplace

__all__ = ["Laplace"]
