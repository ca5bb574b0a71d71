"""`GradScaler` under the name of PyTorch's module of it."""

from . import GradScaler

__all__ = ["GradScaler"]
