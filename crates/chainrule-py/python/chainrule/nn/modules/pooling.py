"""Pools."""

from ..pooling_layers import *  # noqa: F403
from ..pooling_layers import __all__ as _all

__all__ = [*_all]
