"""Data sets and loaders, and checkpoints of activations, under PyTorch's names."""

from . import _pytree as _pytree
from . import benchmark, checkpoint, data, dlpack, hooks, model_zoo, tensorboard

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "model_zoo", "tensorboard"]
