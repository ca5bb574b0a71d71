"""`RelaxedBernoulli` under the name of PyTorch's module."""

from .relaxed import RelaxedBernoulli

__all__ = ["RelaxedBernoulli"]
