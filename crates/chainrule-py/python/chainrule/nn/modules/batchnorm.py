"""Norms over the batch, and their common class."""

from ..layers import BatchNorm1d, BatchNorm2d, _BatchNorm
from ..layers import _BatchNorm as _NormBase
from ..sync_layers import SyncBatchNorm
from ..volume_layers import BatchNorm3d

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "_BatchNorm", "_NormBase"]
