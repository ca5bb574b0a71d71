"""The softmax of many classes, under the name of PyTorch's module."""

from ..adaptive_layers import AdaptiveLogSoftmaxWithLoss

__all__ = ["AdaptiveLogSoftmaxWithLoss"]
