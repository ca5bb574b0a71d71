"""Losses, and their common class."""

from ..loss_layers import *  # noqa: F403
from ..loss_layers import __all__ as _all
from ..loss_layers import _Loss, _WeightedLoss

__all__ = [*_all, "_Loss", "_WeightedLoss"]
