"""Signals."""

from . import windows

__all__ = ["windows"]
