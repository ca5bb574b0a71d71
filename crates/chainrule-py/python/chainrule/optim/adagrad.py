"""`Adagrad` under the name of PyTorch's module."""

from ._native import Adagrad

__all__ = ["Adagrad"]
