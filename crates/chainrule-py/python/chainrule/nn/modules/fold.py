"""Blocks of images, under the name of PyTorch's module."""

from ..more_layers import Unfold
from ..pooling_layers import Fold

__all__ = ["Fold", "Unfold"]
