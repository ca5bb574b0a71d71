"""Linear maps."""

from ..layers import Identity, Linear
from ..more_layers import Bilinear


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear`: nothing is quantized."""


__all__ = ["Bilinear", "Identity", "Linear", "NonDynamicallyQuantizableLinear"]
