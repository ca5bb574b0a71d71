"""PyTorch's questions for Intel's graphics processors, of which there are none here."""

from __future__ import annotations

from .mps import current_allocated_memory as memory_allocated
from .mps import device_count, empty_cache, is_available, manual_seed, synchronize

manual_seed_all = manual_seed

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "memory_allocated", "synchronize"]
