"""Norms over the axes of an element."""

from ..layers import GroupNorm, LayerNorm, RMSNorm
from ..more_layers import LocalResponseNorm

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
