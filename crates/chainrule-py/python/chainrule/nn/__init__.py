"""Modules, layers and losses."""

from . import functional, init, utils
from .layers import *  # noqa: F403
from .layers import __all__ as _layers
from .module import Module, Parameter

__all__ = [*_layers, "Module", "Parameter", "functional", "init", "utils"]
