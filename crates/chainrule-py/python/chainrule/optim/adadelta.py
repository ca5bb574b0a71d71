"""`Adadelta` under the name of PyTorch's module."""

from ._python import Adadelta

__all__ = ["Adadelta"]
