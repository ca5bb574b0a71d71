"""Tensors as capsules of DLPack, and back."""

from __future__ import annotations

from ..dlpack import from_dlpack as from_dlpack
from ..dlpack import to_dlpack as to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
