"""One-hot vectors under the name of PyTorch's module."""

from .categorical import OneHotCategorical
from .relaxed import OneHotCategoricalStraightThrough

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]
