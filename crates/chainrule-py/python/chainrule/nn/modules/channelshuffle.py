"""Channels in another order, under the name of PyTorch's module."""

from ..pooling_layers import ChannelShuffle

__all__ = ["ChannelShuffle"]
