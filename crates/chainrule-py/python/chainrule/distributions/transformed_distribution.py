"""`TransformedDistribution` under the name of PyTorch's module."""

from .mapped import TransformedDistribution

__all__ = ["TransformedDistribution"]
