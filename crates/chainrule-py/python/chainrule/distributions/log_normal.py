"""`LogNormal` under the name of PyTorch's module."""

from .normal import LogNormal

__all__ = ["LogNormal"]
