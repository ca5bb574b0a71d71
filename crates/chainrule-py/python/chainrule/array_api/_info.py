"""Capabilities of the namespace."""

from __future__ import annotations

from typing import Any

from .. import _chainrule as _c
from .._complex._dtype import complex64, complex128, of_part
from ._dtypes import SIGNED, UNSIGNED, bool_, check_device, float32, float64, int64, isdtype


class Info:
    """Capabilities of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Features and limits."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        """The processor."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """The processor only."""
        return ("cpu",)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Default dtypes of new arrays."""
        check_device(device)
        return {"real floating": _c.get_default_dtype(), "complex floating": of_part(_c.get_default_dtype()), "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """All dtypes, or those of some kinds."""
        check_device(device)
        every: dict[str, Any] = {d.name: d for d in [bool_, *SIGNED, *UNSIGNED, float32, float64]}
        every |= {"complex64": complex64, "complex128": complex128}
        return every if kind is None else {name: d for name, d in every.items() if isdtype(d, kind)}


def __array_namespace_info__() -> Info:
    """Capabilities of this namespace."""
    return Info()
