"""Data sets and loaders, and checkpoints of activations, under PyTorch's names."""

from . import checkpoint, data

__all__ = ["checkpoint", "data"]
