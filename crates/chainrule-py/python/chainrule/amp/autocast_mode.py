"""`autocast` under the name of PyTorch's module of it."""

from .._autocast import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
