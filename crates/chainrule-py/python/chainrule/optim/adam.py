"""`Adam` under the name of PyTorch's module."""

from ._native import Adam

__all__ = ["Adam"]
