"""Data sets and loaders, and checkpoints of activations, under PyTorch's names."""

from . import checkpoint, data, tensorboard

__all__ = ["checkpoint", "data", "tensorboard"]
