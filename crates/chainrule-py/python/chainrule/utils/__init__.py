"""Data sets and loaders, and checkpoints of activations, under PyTorch's names."""

from . import _pytree as _pytree
from . import checkpoint, data, dlpack, tensorboard

__all__ = ["checkpoint", "data", "dlpack", "tensorboard"]
