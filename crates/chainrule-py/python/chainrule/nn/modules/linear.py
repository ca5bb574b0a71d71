"""Linear maps."""

from ..layers import Identity, Linear
from ..more_layers import Bilinear

__all__ = ["Bilinear", "Identity", "Linear"]
