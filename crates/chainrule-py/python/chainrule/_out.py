"""`out=`: the tensor, or tensors, that a function writes its result to."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _chainrule as _c
from ._chainrule import Tensor


F = TypeVar("F", bound=Callable[..., Any])

# Functions that make tensors, in the dtype of `out`.
MAKING = {"eye", "linspace", "logspace", "randint", "randperm"}


def put(op: str, found: Any, out: Any) -> Any:
    """Writes what an op found to `out`, in its dtype; an `out` of another shape gets that of the
    result.
    """
    if out is None:
        return found
    if isinstance(found, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(found):
            raise TypeError(f"{op}: out is a tuple of {len(found)} tensors, one for each result")
        parts = [put(op, part, to) for part, to in zip(found, out)]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}: out is a tensor, not {type(out).__name__}")
    if _c.is_grad_enabled() and (found.requires_grad or out.requires_grad):
        raise _c.GradientError(f"{op}: out= has no gradient, and an argument or out requires one: write out = {op}(...), or use no_grad")
    if out.shape == found.shape:
        return out._assign(found)
    if found.is_floating_point() and not out.is_floating_point():
        raise TypeError(f"{op}: the result is of {found.dtype.name}, and out of {out.dtype.name}")
    if out.numel():
        why = f"{op}: out has shape {tuple(out.shape)} and elements, and becomes {tuple(found.shape)}: give one of that shape, or an empty one"
        warnings.warn(why, UserWarning, stacklevel=3)
    out._recast(found._to_dtype(out.dtype))
    return out


def with_out(function: F) -> F:
    """The function, which leaves its argument `out` to this decorator."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "out" not in kwargs:
            return function(*args, **kwargs)
        out = kwargs.pop("out")
        if isinstance(out, Tensor) and kwargs.get("dtype") is None and name in MAKING:
            kwargs["dtype"] = out.dtype
        return put(name, function(*args, **kwargs), out)

    return cast(F, call)
