"""Versions, of chainrule and of what it is not built with."""

from __future__ import annotations

from ._chainrule import __version__

cuda: str | None = None
hip: str | None = None
debug = False
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]
