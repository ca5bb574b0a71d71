"""`RMSprop` under the name of PyTorch's module."""

from ._native import RMSprop

__all__ = ["RMSprop"]
