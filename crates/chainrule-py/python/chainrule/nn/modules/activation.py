"""Activations."""

from ..activation_layers import *  # noqa: F403
from ..activation_layers import __all__ as _all
from .._multihead import MultiheadAttention

__all__ = [*_all, "MultiheadAttention"]
