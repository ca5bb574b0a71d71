"""Parameters, under the name of PyTorch's module."""

from .module import Parameter

__all__ = ["Parameter"]
