"""Containers."""

from ..container_layers import *  # noqa: F403
from ..container_layers import __all__ as _all

__all__ = [*_all]
