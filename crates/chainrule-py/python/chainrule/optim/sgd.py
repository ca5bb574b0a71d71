"""`SGD` under the name of PyTorch's module."""

from ._native import SGD

__all__ = ["SGD"]
