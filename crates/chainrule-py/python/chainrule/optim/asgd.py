"""`ASGD` under the name of PyTorch's module."""

from ._python import ASGD

__all__ = ["ASGD"]
