"""Tensors filled with random numbers of a range or a spread, in place: PyTorch's, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._memory_order import drawn_like

# With fewer elements PyTorch draws normal numbers one by one, in f64.
FEW = 16


def _affine(x: Tensor, scale: float, shift: float) -> Tensor:
    """`x * scale + shift`, rounded once: the processor multiplies and adds in one instruction."""
    if x.dtype.name == "float32":
        a, b = float(np.float32(scale)), float(np.float32(shift))
        return (x._to_dtype("float64") * a + b)._to_dtype("float32")
    if _c._session_on() or not x.numel():
        return x * scale + shift
    return _c.tensor(_fused(x.numpy(), np.float64(scale), np.float64(shift)), x.dtype)


def _fused(x: Any, scale: Any, shift: Any) -> Any:
    """The product and the sum with their rounding errors, which are added at the end."""
    with np.errstate(all="ignore"):
        big = np.float64(2**27 + 1)
        high, top = big * x - (big * x - x), big * scale - (big * scale - scale)
        low, rest = x - high, scale - top
        product = x * scale
        lost = ((high * top - product) + high * rest + low * top) + low * rest
        out = product + shift
        part = out - product
        lost = lost + ((product - (out - part)) + (shift - part))
        return np.where(np.isfinite(lost), out + lost, out)


def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:
    """Uniform numbers from `a` to `b`, in place; those of PyTorch for the same seed."""
    u = drawn_like(self, lambda dims: _c._rand(dims, self.dtype, generator))
    if (a, b) == (0, 1):
        return self._assign(u)
    width = float(np.float32(b) - np.float32(a)) if self.dtype.name == "float32" else float(b) - float(a)
    return self._assign(_affine(u, width, float(a)))


def singly(dims: Sequence[int], mean: float, std: float, generator: Any) -> Tensor:
    """Normal numbers in float64, in pairs one after the other: as PyTorch draws few of them, and
    those of a tensor whose elements do not lie in order.
    """
    many = math.prod(dims)
    drawn = [_c._randn((min(8, many - i),), "float64", generator) for i in range(0, many, 8)]
    return _affine(_c._cat(drawn, 0).reshape(tuple(dims)), std, mean) if drawn else _c._full(tuple(dims), mean, "float64")


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Normal numbers of this mean and standard deviation, in place; those of PyTorch for the same
    seed.
    """
    if not std >= 0:
        raise ArgumentError(f"normal_: std must be 0 or more, it is {std}")
    if self.numel() >= FEW and not self.is_contiguous():
        return self._assign(drawn_like(self, lambda dims: singly(dims, float(mean), float(std), generator))._to_dtype(self.dtype))
    if (mean, std) == (0, 1):
        return self._assign(drawn_like(self, lambda dims: _c._randn(dims, self.dtype, generator)))
    if self.dtype.name == "float32" and self.numel() < FEW:
        few = drawn_like(self, lambda dims: _c._randn(dims, "float64", generator))
        return self._assign((few * float(std) + float(mean))._to_dtype("float32"))
    return self._assign(_affine(drawn_like(self, lambda dims: _c._randn(dims, self.dtype, generator)), float(std), float(mean)))


def attach() -> None:
    """Gives the native class the methods of this module."""
    setattr(Tensor, "uniform_", uniform_)
    setattr(Tensor, "normal_", normal_)
