"""The generator of all under PyTorch's module name."""

from __future__ import annotations

from ._functions import manual_seed
from ._random import default_generator, fork_rng, get_rng_state, initial_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
