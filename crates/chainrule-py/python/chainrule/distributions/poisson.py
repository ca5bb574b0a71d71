"""`Poisson` under the name of PyTorch's module."""

from .counts import Poisson

__all__ = ["Poisson"]
