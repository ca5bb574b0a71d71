"""`RelaxedOneHotCategorical` under the name of PyTorch's module."""

from .relaxed import RelaxedOneHotCategorical

__all__ = ["RelaxedOneHotCategorical"]
