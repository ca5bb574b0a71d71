"""`Variable` under the name of PyTorch's module."""

from .._legacy import Variable

__all__ = ["Variable"]
