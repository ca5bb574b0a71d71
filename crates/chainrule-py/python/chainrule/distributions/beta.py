"""`Beta` under the name of PyTorch's module."""

from .gamma import Beta

__all__ = ["Beta"]
