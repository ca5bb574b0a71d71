"""Pixels for channels, under the name of PyTorch's module."""

from ..more_layers import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
