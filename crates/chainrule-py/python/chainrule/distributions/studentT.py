"""`StudentT` under the name of PyTorch's module."""

from .gamma import StudentT

__all__ = ["StudentT"]
