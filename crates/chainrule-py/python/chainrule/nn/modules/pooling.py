"""Pools."""

from ..pooling_layers import *  # noqa: F403
from ..pooling_layers import __all__ as _all
from ..pooling_layers import _AvgPool as _AvgPoolNd
from ..pooling_layers import _MaxPool as _MaxPoolNd

__all__ = [*_all, "_AvgPoolNd", "_MaxPoolNd"]
