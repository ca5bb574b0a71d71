"""Switches of PyTorch's compiler, which is not there; `chainrule.compile` needs none of them."""

from __future__ import annotations

from .backends import Backend
from .compiler import disable, is_compiling, reset

config = Backend(suppress_errors=False, cache_size_limit=8, verbose=False)

__all__ = ["config", "disable", "is_compiling", "reset"]
