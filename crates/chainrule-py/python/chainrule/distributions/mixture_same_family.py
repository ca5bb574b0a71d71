"""`MixtureSameFamily` under the name of PyTorch's module."""

from .mapped import MixtureSameFamily

__all__ = ["MixtureSameFamily"]
