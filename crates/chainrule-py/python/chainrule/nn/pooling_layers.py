"""Layers that look at windows: pooling, and windows added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .._chainrule import Tensor
from . import functional as F
from .activation_layers import _Options

Sizes = int | Sequence[int]


class _Pool(_Options):
    """A pool, whose text is PyTorch's."""

    def _has_window(self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def extra_repr(self) -> str:
        names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode") if "dilation" in vars(self) else ("kernel_size", "stride", "padding")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


def _window(layer: Any) -> tuple[Sizes, Sizes | None, Sizes]:
    return layer.kernel_size, layer.stride, layer.padding


class _MaxPool(_Pool):
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self._has_window(kernel_size, stride, padding)
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        """The largest."""
        return self._function(input, *_window(self), self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class _AvgPool(_Pool):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self._has_window(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return self._function(input, *_window(self), self.ceil_mode, self.count_include_pad, self.divisor_override)


class _AdaptiveAvgPool(_Options):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return self._function(input, self.output_size)


class _AdaptiveMaxPool(_Options):
    _function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        """The largest."""
        return self._function(input, self.output_size, self.return_indices)


class _LPPool(_Options):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        return self._function(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class MaxPool1d(_MaxPool):
    """The largest of each window of a signal; with `return_indices` also where it stands."""

    _function = staticmethod(F.max_pool1d)


class AvgPool1d(_AvgPool):
    """The mean of each window of a signal."""

    _function = staticmethod(F.avg_pool1d)

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return self._function(input, *_window(self), self.ceil_mode, self.count_include_pad)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of as many windows of a signal as wanted."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest of as many windows of a signal as wanted; with `return_indices` also where
    they stand.
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest of each window of an image; with `return_indices` also where it stands."""

    _function = staticmethod(F.max_pool2d)


class AvgPool2d(_AvgPool):
    """The mean of each window of an image, or its sum over `divisor_override`."""

    _function = staticmethod(F.avg_pool2d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of as many windows of an image as wanted; None keeps a size."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest of as many windows of an image as wanted; with `return_indices` also where
    they stand.
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest of each window of a volume; with `return_indices` also where it stands."""

    _function = staticmethod(F.max_pool3d)


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume, or its sum over `divisor_override`."""

    _function = staticmethod(F.avg_pool3d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of as many windows of a volume as wanted; None keeps a size."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest of as many windows of a volume as wanted; with `return_indices` also where
    they stand.
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class LPPool1d(_LPPool):
    """The p-norm of each window of a signal."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window of an image."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window of a volume."""

    _function = staticmethod(F.lp_pool3d)


class Fold(_Options):
    """Columns of windows, `[batch, channels * window, windows]`, added up at their places in
    images.
    """

    def __init__(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation, self.padding, self.stride = output_size, kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The images."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class ChannelShuffle(_Options):
    """The channels `[groups, n]` in the order of `[n, groups]`."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """The channels in another order."""
        return F.channel_shuffle(input, self.groups)


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "ChannelShuffle", "Fold", "LPPool1d", "LPPool2d", "LPPool3d",
    "MaxPool1d", "MaxPool2d", "MaxPool3d",
]
