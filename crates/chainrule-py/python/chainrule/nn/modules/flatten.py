"""Other shapes, under the name of PyTorch's module."""

from ..layers import Flatten
from ..more_layers import Unflatten

__all__ = ["Flatten", "Unflatten"]
