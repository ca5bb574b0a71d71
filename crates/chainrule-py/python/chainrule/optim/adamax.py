"""`Adamax` under the name of PyTorch's module."""

from ._python import Adamax

__all__ = ["Adamax"]
