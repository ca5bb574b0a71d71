"""Methods that write a tensor, or give its handle another place in its memory."""

from __future__ import annotations

import math
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError


def _reshaping(name: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        view = getattr(self, name)(*args, **kwargs)
        return self if view is self else self._become_view(view)

    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"`{name}`, and the handle is the view from now on; others of the same memory stay as they are."
    return method


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Gives the handle another shape: of its first elements if that has fewer, else with memory of
    its own, whose elements behind the old ones are 0.
    """
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if self.requires_grad:
        raise _c.GradientError("resize_: a tensor that requires a gradient keeps its shape")
    n, own = math.prod(shape), self.numel()
    if not self.is_contiguous():
        raise ArgumentError("resize_: the elements do not lie in row-major order, and PyTorch would take them as they lie: write x.data = x.contiguous() first")
    if n <= own:
        view = self if self.ndim == 1 else self.view(-1)
        return self._become_view((view if n == own else view[:n]).view(shape))
    flat = self.reshape(-1)
    more = _c._cat([flat, _c._full((n - own,), 0.0, self.dtype)], 0)
    self._recast(more.reshape(shape).clone())
    return self


def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    return resize_(self, *other.shape)


def set_(self: Tensor, source: Any = None) -> Tensor:
    """Gives the handle the memory of another tensor, or none."""
    self.data = _c._full((0,), 0.0, self.dtype) if source is None else source
    return self


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Writes the elements of another tensor, which are broadcast and take the dtype of this one."""
    if isinstance(src, Tensor) and not src.is_contiguous() and src.shape == self.shape:
        # The elements lie in this tensor's order, so that its flat view stays a view.
        src = src.contiguous()
    return self._assign_cut(src)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Writes a number to all elements."""
    if isinstance(value, Tensor) and value.ndim:
        raise ArgumentError(f"fill_: shape {tuple(value.shape)}: one number is filled in; copy_ writes several")
    return self._assign_cut(value)


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Writes `callable(x, y)` for the elements of this tensor and another, one by one."""
    pairs = zip(self.reshape(-1).tolist(), tensor.expand_as(self).reshape(-1).tolist())
    return self._assign_cut(_c.tensor([callable(x, y) for x, y in pairs], self.dtype).reshape(self.shape))


def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """`index_put`, which is written to the tensor."""
    return self._assign(self.index_put(indices, values, accumulate))


def retain_grad(self: Tensor) -> None:
    _native_retain(self)
    self._retains = True  # type: ignore[attr-defined]


_native_retain = Tensor.retain_grad

# Ops without a writing form in the table of ops.
WRITING = (
    "cumsum cumprod logit igamma igammac polygamma addmm addmv addbmm baddbmm addr sinc sgn ldexp acosh asinh atanh arccos arccosh arcsin "
    "arcsinh arctan arctanh deg2rad rad2deg i0 gcd lcm heaviside hypot nextafter copysign float_power xlogy conj_physical negative fix "
    "masked_scatter index_reduce scatter_reduce renorm"
).split()


def _base(self: Tensor) -> Tensor | None:
    root, _ = self._shown()
    return None if root is self else root


def attach() -> None:
    """Gives the native class the methods of this module."""
    from ._methods import _in_place

    retain_grad.__doc__ = _native_retain.__doc__
    for name in ("unsqueeze", "squeeze", "t", "transpose", "swapaxes", "swapdims"):
        setattr(Tensor, name + "_", _reshaping(name))
    for method in (resize_, resize_as_, set_, copy_, fill_, map_, index_put_, retain_grad):
        setattr(Tensor, method.__name__, method)
    for name in WRITING:
        if hasattr(Tensor, name) and not hasattr(Tensor, name + "_"):
            setattr(Tensor, name + "_", _in_place(name))
    setattr(Tensor, "retains_grad", property(lambda self: bool(getattr(self, "_retains", False)), doc="Whether backward keeps its gradient, though it is no leaf."))
    setattr(Tensor, "_base", property(_base, doc="The tensor whose memory a view shows, or None."))
    setattr(Tensor, "_is_view", lambda self: _base(self) is not None)
