"""Types of arguments, for annotations."""

from __future__ import annotations

import builtins

from ._chainrule import Generator, Tensor
from ._devices import device
from ._size import Size

Device = device | str | int | None
Number = builtins.int | builtins.float | builtins.bool
"""A number of Python."""

__all__ = ["Device", "Generator", "Number", "Size", "Tensor"]
