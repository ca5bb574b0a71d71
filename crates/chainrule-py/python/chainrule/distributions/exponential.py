"""`Exponential` under the name of PyTorch's module."""

from .uniform import Exponential

__all__ = ["Exponential"]
