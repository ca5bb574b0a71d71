"""Observers of compiled functions and of optimizers."""

from __future__ import annotations

from typing import Any

# Those that are told of each call of a compiled function; the last one runs it.
ACTIVE: list[Any] = []

# Those that are called with an optimizer of the native side before and after each of its steps.
STEPPING: list[Any] = []
STEPPED: list[Any] = []
