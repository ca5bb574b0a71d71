"""`functional_call` under the name of PyTorch's older module."""

from ...func import functional_call

__all__ = ["functional_call"]
