"""The module as such."""

from ..module import Module, Parameter

__all__ = ["Module", "Parameter"]
