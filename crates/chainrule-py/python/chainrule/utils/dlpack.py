"""Tensors as capsules of DLPack, and back."""

from __future__ import annotations

from typing import Any

from .._chainrule import Tensor
from ..dlpack import from_dlpack as from_dlpack


def to_dlpack(tensor: Tensor) -> Any:
    """A copy of the elements as a capsule, which can be read once."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
