"""`Rprop` under the name of PyTorch's module."""

from ._python import Rprop

__all__ = ["Rprop"]
