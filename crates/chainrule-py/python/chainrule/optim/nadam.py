"""`NAdam` under the name of PyTorch's module."""

from ._python import NAdam

__all__ = ["NAdam"]
