"""The module as such, and hooks of all modules."""

from .._everywhere import register_module_forward_hook, register_module_forward_pre_hook
from ..module import Module, Parameter

__all__ = ["Module", "Parameter", "register_module_forward_hook", "register_module_forward_pre_hook"]
