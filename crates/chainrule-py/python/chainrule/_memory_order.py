"""Random numbers in the order in which a tensor's elements lie in memory, which is PyTorch's.

PyTorch fills the memory of a tensor from its beginning on: the numbers of `x.t().uniform_()` are
those of `x.uniform_()`, and the mask of `dropout(x.transpose(0, 1))` is drawn for `x`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._chainrule import Tensor

Drawer = Callable[[Sequence[int]], Tensor]


def axes_in_memory(x: Tensor) -> list[int] | None:
    """The axes of `x` from the outermost in memory to the innermost; none where they lie in order.
    """
    if not isinstance(x, Tensor) or x.ndim < 2 or x.is_contiguous() or not x._is_laid():
        return None
    strides = x.stride()
    axes = [axis for axis, size in enumerate(x._dims) if size != 1]
    order = sorted(axes, key=lambda axis: -strides[axis])
    if order == axes or any(strides[axis] == 0 for axis in axes):
        return None
    return order + [axis for axis, size in enumerate(x._dims) if size == 1]


def back(order: Sequence[int]) -> list[int]:
    """The permutation that undoes `order`."""
    return sorted(range(len(order)), key=order.__getitem__)


def drawn_like(x: Tensor, draw: Drawer) -> Tensor:
    """`draw` of the sizes of `x`, one number after the other where `x` has them in memory."""
    order = axes_in_memory(x)
    if order is None:
        return draw(x._dims)
    return draw([x._dims[axis] for axis in order]).permute(back(order))


def in_memory_order(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """`f`, which draws a number for each element, of `x` with its axes as they lie in memory."""
    order = axes_in_memory(x)
    return f(x) if order is None else f(x.permute(order)).permute(back(order))


__all__: list[Any] = []
