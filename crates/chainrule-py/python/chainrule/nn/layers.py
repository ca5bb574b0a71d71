"""Layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError, _NotInPrograms
from . import functional as F
from ._losses import averaged_gradient, shorten_rows
from .module import Module, Parameter


def _bound(fan: int) -> float:
    """The largest weight at the beginning, `1 / sqrt(fan)`, rounded as PyTorch's way to it rounds.
    """
    return math.sqrt(3.0) * (math.sqrt(2.0 / (1.0 + math.sqrt(5.0) ** 2)) / math.sqrt(fan)) if fan else 0.0


def _empty(*size: int, dtype: Any = None) -> Tensor:
    """A parameter, which `reset_parameters` fills."""
    return Parameter(_m.empty(*size, dtype=dtype))


def _draw(bound: float, parameter: Tensor | None) -> None:
    """Uniform numbers in ±`bound`."""
    if parameter is not None:
        parameter.data.uniform_(-bound, bound)


def _fill(parameter: Tensor | None, value: float) -> None:
    if parameter is not None:
        parameter.data.fill_(value)


class Linear(Module):
    """`x @ weight.T + bias`."""

    weight: Tensor
    bias: Any

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _empty(out_features, in_features, dtype=dtype)
        self.register_parameter("bias", _empty(out_features, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and biases anew, uniform in `±1 / sqrt(in_features)`."""
        _draw(_bound(self.in_features), self.weight)
        _draw(1.0 / math.sqrt(self.in_features) if self.in_features else 0.0, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The map."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A table of vectors, looked up by index.

    With `max_norm` the rows that are looked up are shortened to it first, in the table; with
    `scale_grad_by_freq` a row's gradient is divided by how often it was looked up.
    """

    weight: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(f"Embedding: padding_idx {padding_idx} is outside of {num_embeddings} rows")
        padding_idx = padding_idx % num_embeddings if padding_idx is not None else None
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if _weight is not None:
            self.weight = Parameter(_weight, not _freeze)
            return
        _m._on(device)
        self.weight = _empty(num_embeddings, embedding_dim, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the rows anew, from a normal distribution; the row of `padding_idx` is zero."""
        self.weight.data.normal_()
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:
        """A table of these rows, which are not trained unless `freeze=False`."""
        if embeddings.ndim != 2:
            raise ArgumentError(f"from_pretrained: shape {tuple(embeddings.shape)}: a matrix of rows is needed")
        rows, size = embeddings.shape
        return cls(rows, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def forward(self, input: Tensor) -> Tensor:
        """The rows."""
        if self.max_norm is not None:
            shorten_rows(input, self.weight, self.max_norm, self.norm_type)
        rows = F.embedding(input, self.weight, self.padding_idx)
        return averaged_gradient(input, rows) if self.scale_grad_by_freq else rows

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}" + ("" if self.max_norm is None else f", max_norm={self.max_norm}")


class _Conv(Module):
    weight: Tensor
    bias: Any
    axes = 2
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kernel = [kernel_size] * self.axes if isinstance(kernel_size, int) else list(kernel_size)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, tuple(kernel)
        self.stride, self.dilation, self.groups, self.padding_mode = self._each(stride), self._each(dilation), groups, padding_mode
        self.padding: Any = padding if isinstance(padding, str) else self._each(padding)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular") or (padding_mode != "zeros" and isinstance(padding, str)):
            raise ArgumentError(f"{type(self).__name__}: padding_mode is 'zeros', or with numbers as padding 'reflect', 'replicate' or 'circular'")
        if in_channels % groups or out_channels % groups:
            raise ArgumentError(f"{type(self).__name__}: {in_channels} and {out_channels} channels are no multiples of {groups} groups")
        shape = [in_channels, out_channels // groups] if self.transposed else [out_channels, in_channels // groups]
        self.weight = _empty(*shape, *kernel, dtype=dtype)
        self.register_parameter("bias", _empty(out_channels, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and biases anew, uniform in `±1 / sqrt(fan)`, for the `fan` weights of an
        output.
        """
        fan = math.prod(self.weight._dims[1:])
        _draw(_bound(fan), self.weight)
        _draw(1.0 / math.sqrt(fan) if fan else 0.0, self.bias)

    def _each(self, x: Any) -> tuple[int, ...]:
        """A size for each axis."""
        return (x,) * self.axes if isinstance(x, int) else tuple(x)

    def _padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input with what is around it, where that is no zeros, and the padding that is left.
        """
        if self.padding_mode == "zeros":
            return input, self.padding
        around = [int(n) for p in reversed(self.padding) for n in (p, p)]
        if input.ndim == self.axes + 1:
            return F.pad(input.unsqueeze(0), around, self.padding_mode).squeeze(0), 0
        return F.pad(input, around, self.padding_mode), 0

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        usual = {"padding": 0, "dilation": 1, "output_padding": 0}
        for name, number in usual.items():
            value = getattr(self, name, (number,) * self.axes)
            text += "" if value == (number,) * self.axes else f", {name}={value}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        text += "" if self.bias is not None else ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class Conv1d(_Conv):
    """Convolution along one axis."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        x, padding = self._padded(input)
        return F.conv1d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Convolution along two axes."""

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        x, padding = self._padded(input)
        return F.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _ConvTranspose(_Conv):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(f"{type(self).__name__}: padding_mode is 'zeros'")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype=dtype)
        self.output_padding = self._each(output_padding)


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d`."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        return F.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _BatchNorm(Module):
    _version = 2
    weight: Any
    bias: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum, self.track_running_stats = num_features, eps, momentum, track_running_stats
        self.affine = affine
        self.register_parameter("weight", Parameter(_m.ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(_m.zeros(num_features, dtype=dtype)) if affine else None)
        track = track_running_stats
        self.register_buffer("running_mean", _m.zeros(num_features, dtype=dtype) if track else None)
        self.register_buffer("running_var", _m.ones(num_features, dtype=dtype) if track else None)
        self.register_buffer("num_batches_tracked", _c.tensor(0) if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets the statistics: mean 0, variance 1, no batch."""
        for t, value in ((self.running_mean, 0.0), (self.running_var, 1.0), (self.num_batches_tracked, 0)):
            if t is not None:
                t.fill_(value)

    def reset_parameters(self) -> None:
        """Forgets the statistics; the scale is 1 and the shift 0."""
        self.reset_running_stats()
        _fill(self.weight, 1.0)
        _fill(self.bias, 0.0)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
        # States from before the count of batches have none.
        key = prefix + "num_batches_tracked"
        old = local_metadata.get("version", 1) < 2
        if old and self.num_batches_tracked is not None and key not in state_dict:
            state_dict = {**state_dict, key: self.num_batches_tracked.detach()}
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        momentum = self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            if momentum is None:
                if _c._session_on():
                    raise _NotInPrograms("compile: a norm with momentum=None divides by how many batches it saw, which a program cannot know")
                momentum = 1.0 / float(self.num_batches_tracked)
        # Statistics that are not tracked any more stay, and are those of an evaluation.
        training = self.training or self.running_mean is None
        updated = self.track_running_stats or not training
        mean, var = (self.running_mean, self.running_var) if updated else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, training, momentum or 0.0, self.eps)

    def extra_repr(self) -> str:
        affine = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, {affine}, track_running_stats={self.track_running_stats}"


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 over the batch."""


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 over the batch and the places."""


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axes."""

    weight: Any
    bias: Any

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        affine = elementwise_affine
        self.register_parameter("weight", Parameter(_m.ones(*self.normalized_shape, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(_m.zeros(*self.normalized_shape, dtype=dtype)) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The scale is 1 and the shift 0."""
        _fill(self.weight, 1.0)
        _fill(self.bias, 0.0)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Mean square 1 over the last axes."""

    weight: Any

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", Parameter(_m.ones(*self.normalized_shape, dtype=dtype)) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The scale is 1."""
        _fill(self.weight, 1.0)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Mean 0 and variance 1 in groups of channels."""

    weight: Any
    bias: Any

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", Parameter(_m.ones(num_channels, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(_m.zeros(num_channels, dtype=dtype)) if affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The scale is 1 and the shift 0."""
        _fill(self.weight, 1.0)
        _fill(self.bias, 0.0)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _DropoutNd(Module):
    """Zeros at random, of single elements or of whole channels."""

    p: float
    inplace: bool


class Dropout(_DropoutNd):
    """Zeros with probability `p` in training."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(f"Dropout: p is a probability, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with holes."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Flatten(Module):
    """Several axes as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The flat input."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Identity(Module):
    """The input as it is."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "Dropout", "Embedding", "Flatten", "GroupNorm",
    "Identity", "LayerNorm", "Linear", "RMSNorm",
]
