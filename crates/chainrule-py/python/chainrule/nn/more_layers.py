"""Further layers: sizes of images, norms of samples, dropout of channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from ..autograd import no_grad
from . import _more_functional as M
from . import functional as F
from .layers import _BatchNorm, _draw, _DropoutNd, _empty
from .module import Module, Parameter


class Upsample(Module):
    """Images (or signals) in another `size`, or `scale_factor` times as large, in a mode of
    `interpolate`.

    ```
    assert cr.nn.Upsample(scale_factor=2)(cr.ones(1, 3, 4, 4)).shape == (1, 3, 8, 8)
    ```
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The images in the other size."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        what = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` with mode 'nearest'."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample` with mode 'bilinear' whose corners stay where they are."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """`[..., C r^2, H, W]` as `[..., C, H r, W r]`."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The images."""
        return M.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """`[..., C, H r, W r]` as `[..., C r^2, H, W]`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The channels."""
        return M.pixel_unshuffle(input, self.downscale_factor)


class Unfold(Module):
    """The windows of images as columns: `[batch, channels * window, windows]`."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Unflatten(Module):
    """One axis as several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """The input with more axes."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _ChannelDropout(_DropoutNd):
    function: Any = None

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(f"{type(self).__name__}: p is a probability, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels of zeros."""
        return type(self).function(input, self.p, self.training, self.inplace)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(_ChannelDropout):
    """Channels of `[batch, channels, length]` set to 0 with probability `p` in training."""

    function = staticmethod(M.dropout1d)


class Dropout2d(_ChannelDropout):
    """Channels of `[batch, channels, height, width]` set to 0 with probability `p` in training."""

    function = staticmethod(M.dropout2d)


class _InstanceNorm(_BatchNorm):
    """Mean 0 and variance 1 in each channel of each sample."""

    spatial = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        batched = input.ndim == self.spatial + 2
        if not batched and input.ndim != self.spatial + 1:
            raise ArgumentError(f"{type(self).__name__}: shape {tuple(input.shape)}: {self.spatial + 2} axes, or {self.spatial + 1} without a batch")
        x = input if batched else input.unsqueeze(0)
        if x.shape[1] != self.num_features:
            raise ArgumentError(f"{type(self).__name__}: shape {tuple(input.shape)}: {x.shape[1]} channels, and num_features is {self.num_features}")
        if self.running_mean is not None and not self.training:
            out = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        else:
            self._track(x)
            out = F.instance_norm(x, None, None, self.weight, self.bias, True, 0.1, self.eps)
        return out if batched else out.squeeze(0)

    def _track(self, x: Tensor) -> None:
        """Moves the statistics towards the means over the samples of those of this batch."""
        mean, var = self.running_mean, self.running_var
        if mean is None or var is None or not self.track_running_stats:
            return
        if self.momentum is None:
            raise ArgumentError(f"{type(self).__name__}: momentum=None is not there; give a number")
        axes = list(range(2, x.ndim))
        with no_grad():
            mean.lerp_(x.mean(axes).mean(0), self.momentum)
            var.lerp_(x.var(axes).mean(0), self.momentum)


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 in each channel of each signal."""

    spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Mean 0 and variance 1 in each channel of each image."""


class InstanceNorm3d(_InstanceNorm):
    """Mean 0 and variance 1 in each channel of each volume."""

    spatial = 3


class PReLU(Module):
    """`x` above 0, `weight * x` below; the slope is learned, one for all or one for each channel.
    """

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = _empty(num_parameters, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The slope is `init`."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The activation."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Bilinear(Module):
    """`x1^T weight[k] x2 + bias[k]` for each output k."""

    weight: Tensor
    bias: Any

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = _empty(out_features, in1_features, in2_features, dtype=dtype)
        self.register_parameter("bias", _empty(out_features, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and biases anew, uniform in `±1 / sqrt(in1_features)`."""
        bound = 1 / math.sqrt(self.in1_features)
        _draw(bound, self.weight)
        _draw(bound, self.bias)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The form."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class Softmax2d(Module):
    """The softmax over the channels, the third axis from the right."""

    def forward(self, input: Tensor) -> Tensor:
        """Probabilities."""
        return input.softmax(-3)


class LocalResponseNorm(Module):
    """Each channel divided by the squares of those around it."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return M.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of pictures under an older name."""


class DataParallel(Module):
    """The module itself: there is one device. Its parameters have the names that PyTorch's wrapper
    gives them.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        return self.module(*args, **kwargs)


__all__ = [
    "Bilinear", "CrossMapLRN2d", "DataParallel", "Dropout1d", "Dropout2d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LocalResponseNorm", "PReLU", "PixelShuffle",
    "PixelUnshuffle", "Softmax2d", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]
