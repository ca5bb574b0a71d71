"""The class of shapes."""

from __future__ import annotations

import math


class Size(tuple[int, ...]):
    """A shape: a tuple that prints its name and counts elements."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the sizes."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"chainrule.Size({list(self)})"
