"""Observers of compiled functions."""

from __future__ import annotations

from typing import Any

# Those that are told of each call of a compiled function; the last one runs it.
ACTIVE: list[Any] = []
