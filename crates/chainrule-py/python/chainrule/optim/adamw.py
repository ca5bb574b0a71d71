"""`AdamW` under the name of PyTorch's module."""

from ._native import AdamW

__all__ = ["AdamW"]
