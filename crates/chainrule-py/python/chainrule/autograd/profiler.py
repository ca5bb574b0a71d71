"""PyTorch's profiler under its older name; it measures nothing."""

from ..profiler import profile, record_function

__all__ = ["profile", "record_function"]
