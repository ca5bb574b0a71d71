"""Distances, under the name of PyTorch's module."""

from ..loss_layers import CosineSimilarity, PairwiseDistance

__all__ = ["CosineSimilarity", "PairwiseDistance"]
