"""Recurrent layers."""

from ..rnn import *  # noqa: F403
from ..rnn import __all__ as _all

__all__ = [*_all]
