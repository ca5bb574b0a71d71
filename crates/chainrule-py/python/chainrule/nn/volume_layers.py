"""Layers over volumes, bags of embeddings, and pooling undone."""

from __future__ import annotations

from typing import Any

from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from . import functional as F
from .layers import _BatchNorm, _Conv, _ConvTranspose
from .module import Module, Parameter
from .more_layers import _ChannelDropout


class Conv3d(_Conv):
    """Convolution along three axes.

    ```
    assert cr.nn.Conv3d(2, 4, 3, padding=1)(cr.ones(1, 2, 5, 5, 5)).shape == (1, 4, 5, 5, 5)
    ```
    """

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        x, padding = self._padded(input)
        return F.conv3d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d`."""

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        options = self.stride, self.padding, self.output_padding, self.groups, self.dilation
        return F.conv_transpose3d(input, self.weight, self.bias, *options)


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 over the batch and the places of volumes."""


class Dropout3d(_ChannelDropout):
    """Channels of volumes set to 0 with probability `p` in training."""

    function = staticmethod(F.dropout3d)


class AlphaDropout(_ChannelDropout):
    """Dropout for SELU in training: mean 0 and variance 1 stay."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_ChannelDropout):
    """`AlphaDropout` of whole channels."""

    function = staticmethod(F.feature_alpha_dropout)


class RReLU(Module):
    """`x` above 0, else `a x` with `a` drawn between the bounds in training, their mean else."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The rectified input."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class _MaxUnpool(Module):
    function: Any = None

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The elements at their positions, zeros elsewhere."""
        options = self.kernel_size, self.stride, self.padding, output_size
        return type(self).function(input, indices, *options)  # type: ignore[no-any-return]


class MaxUnpool1d(_MaxUnpool):
    """The elements at the positions that `MaxPool1d` took them from, zeros elsewhere."""

    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The elements at the positions that `MaxPool2d` took them from, zeros elsewhere."""

    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """The elements at the positions that `MaxPool3d` took them from, zeros elsewhere."""

    function = staticmethod(F.max_unpool3d)


class EmbeddingBag(Module):
    """Sums, means or largest elements of bags of rows of a table.

    ```
    bags = cr.nn.EmbeddingBag(10, 3, mode="sum")
    assert bags(cr.tensor([1, 2, 4]), cr.tensor([0, 2])).shape == (2, 3)
    ```
    """

    weight: Tensor

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:
        super().__init__()
        if scale_grad_by_freq or sparse:
            raise ArgumentError("EmbeddingBag: there is no scale_grad_by_freq and no sparse gradient")
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type = max_norm, norm_type
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        _m._on(device)
        self.weight = Parameter(_m.empty(num_embeddings, embedding_dim, dtype=dtype) if _weight is None else _weight)
        if _weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the rows anew, from a normal distribution; the row of `padding_idx` is zero."""
        self.weight.data.normal_()
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0.0

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """A row for each bag."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, False, self.mode, False, per_sample_weights,
            self.include_last_offset, self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


__all__ = [
    "AlphaDropout", "BatchNorm3d", "Conv3d", "ConvTranspose3d", "Dropout3d", "EmbeddingBag", "FeatureAlphaDropout", "MaxUnpool1d",
    "MaxUnpool2d", "MaxUnpool3d", "RReLU",
]
