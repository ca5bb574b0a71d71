"""Dropout."""

from ..layers import Dropout, _DropoutNd
from ..more_layers import Dropout1d, Dropout2d
from ..volume_layers import AlphaDropout, Dropout3d, FeatureAlphaDropout

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "_DropoutNd"]
