"""Transformers."""

from ..transformer import *  # noqa: F403
from ..transformer import __all__ as _all

__all__ = [*_all]
