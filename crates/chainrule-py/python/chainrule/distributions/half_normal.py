"""`HalfNormal` under the name of PyTorch's module."""

from .tails import HalfNormal

__all__ = ["HalfNormal"]
