"""`Binomial` under the name of PyTorch's module."""

from .counts import Binomial

__all__ = ["Binomial"]
