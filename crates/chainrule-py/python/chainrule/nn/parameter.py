"""Parameters, under the name of PyTorch's module."""

from .module import Parameter, UninitializedParameter

__all__ = ["Parameter", "UninitializedParameter"]
