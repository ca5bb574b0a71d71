"""Layers that put elements around."""

from __future__ import annotations

from collections.abc import Sequence

from .._chainrule import Tensor
from .._errors import ArgumentError
from . import functional as F
from .module import Module


class _Pad(Module):
    axes = 2
    mode = "constant"
    value = 0.0

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self.axes:
            raise ArgumentError(f"{type(self).__name__}: {2 * self.axes} numbers, or one, not {self.padding}")

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements around."""
        if self.mode != "constant" and input.ndim == self.axes + 1:
            return F.pad(input.unsqueeze(0), self.padding, self.mode).squeeze(0)
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}" if "value" in vars(self) else f"{self.padding}"


class ConstantPad1d(_Pad):
    """`value` around the last axis: `padding` before and after each, the last axis first."""

    axes = 1

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ConstantPad2d(_Pad):
    """`value` around the last 2 axes: `padding` before and after each, the last axis first."""

    axes = 2

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ConstantPad3d(_Pad):
    """`value` around the last 3 axes: `padding` before and after each, the last axis first."""

    axes = 3

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ZeroPad1d(_Pad):
    """Zeros around the last axis: `padding` before and after each, the last axis first."""

    axes = 1


class ZeroPad2d(_Pad):
    """Zeros around the last 2 axes: `padding` before and after each, the last axis first."""

    axes = 2


class ZeroPad3d(_Pad):
    """Zeros around the last 3 axes: `padding` before and after each, the last axis first."""

    axes = 3


class ReflectionPad1d(_Pad):
    """The inside of the edge, mirrored around the last axis: `padding` before and after
    each, the last axis first.
    """

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The inside of the edge, mirrored around the last 2 axes: `padding` before and after
    each, the last axis first.
    """

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The inside of the edge, mirrored around the last 3 axes: `padding` before and after
    each, the last axis first.
    """

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The edge repeated around the last axis: `padding` before and after each, the last axis
    first.
    """

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The edge repeated around the last 2 axes: `padding` before and after each, the last axis
    first.
    """

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The edge repeated around the last 3 axes: `padding` before and after each, the last axis
    first.
    """

    axes = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The other end around the last axis: `padding` before and after each, the last axis first."""

    axes = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The other end around the last 2 axes: `padding` before and after each, the last axis
    first.
    """

    axes = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The other end around the last 3 axes: `padding` before and after each, the last axis
    first.
    """

    axes = 3
    mode = "circular"


__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]
