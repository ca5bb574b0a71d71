"""Convolutions, and their common class."""

from ..layers import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from ..layers import _Conv as _ConvNd
from ..layers import _ConvTranspose as _ConvTransposeNd
from ..volume_layers import Conv3d, ConvTranspose3d

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "_ConvNd", "_ConvTransposeNd"]
