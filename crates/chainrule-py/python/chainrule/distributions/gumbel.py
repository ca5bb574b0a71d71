"""`Gumbel` under the name of PyTorch's module."""

from .tails import Gumbel

__all__ = ["Gumbel"]
