"""`RAdam` under the name of PyTorch's module."""

from ._python import RAdam

__all__ = ["RAdam"]
