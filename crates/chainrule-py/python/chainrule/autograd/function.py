"""`Function` under the name of PyTorch's module."""

from .._custom import Context as FunctionCtx
from .._custom import Function, once_differentiable

InplaceFunction = Function

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
