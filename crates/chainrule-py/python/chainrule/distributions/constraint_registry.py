"""Transforms onto the values that a constraint allows, under the name of PyTorch's module."""

from .more_transforms import biject_to, transform_to

__all__ = ["biject_to", "transform_to"]
