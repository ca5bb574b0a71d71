"""PyTorch's questions for tensors of other libraries, of which functions take none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._chainrule import Tensor


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """No: there are no tensors that functions hand over to."""
    return False


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(inp, Tensor)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The function's result."""
    return public_api(*args, **kwargs)


__all__ = ["handle_torch_function", "has_torch_function", "is_tensor_like"]
