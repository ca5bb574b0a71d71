"""Functions of neural networks, with PyTorch's names and defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _making as _m
from .._chainrule import Generator, Tensor
from .._errors import ArgumentError
from .._memory_order import in_memory_order
from .._target import TARGET
from ._ops import *  # noqa: F403
from ._ops import cross_entropy as _native_cross_entropy
from ._ops import nll_loss as _native_nll_loss
from ._more_functional import *  # noqa: F403
from ._pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d, adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d, max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
)
from ._resizing import (
    interpolate as interpolate, unfold as unfold, upsample as upsample, upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest,
)
from ._sampling import affine_grid as affine_grid, grid_sample as grid_sample
from ._losses import *  # noqa: F403
from ._volumes import *  # noqa: F403

Sizes = int | Sequence[int]


def _list(x: Sizes) -> list[int]:
    return [x] if isinstance(x, int) else list(x)


def _settled(input: Tensor, out: Tensor, inplace: bool) -> Tensor:
    """The result, which the input becomes if it is wanted in place."""
    return input._assign(out) if inplace else out


def _axis(op: str, input: Tensor, dim: int | None) -> int:
    """The axis; where none is given that which PyTorch takes, with a warning."""
    if dim is not None:
        return dim
    import warnings

    dim = 0 if input.ndim in (0, 1, 3) else 1
    warnings.warn(f"{op}: no dim is given, and {dim} is taken; say which", UserWarning, stacklevel=3)
    return dim


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`exp(x)` divided by its sum along an axis."""
    return input.softmax(_axis("softmax", input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax(-x)`."""
    return (-input).softmax(_axis("softmin", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    return input.log_softmax(_axis("log_softmax", input, dim), dtype)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second."""
    if input.shape[dim] % 2:
        raise ArgumentError(f"glu: shape {tuple(input.shape)}: the axis {dim} must be even")
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with a slope for each channel that is learned."""
    if weight.numel() > 1 and input.ndim > 2:
        weight = weight.reshape((-1,) + (1,) * (input.ndim - 2))
    elif input.ndim == 0:
        weight = weight.reshape(())
    return input.where(input > 0, input * weight)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`x` above the threshold, else `value`."""
    return _settled(input, input.where(input > threshold, value), inplace)


# Linear maps


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x1 @ weight[k] @ x2` for each output `k`."""
    out = _c._einsum("...i,kij,...j->...k", [input1, weight, input2])
    return out if bias is None else out + bias


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class, 0 elsewhere."""
    if num_classes < 0:
        num_classes = int(tensor.max()) + 1 if tensor.numel() else 0
    return tensor._one_hot(num_classes)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Zeros with probability `p`, the rest scaled up. It is the input itself where nothing is
    dropped.
    """
    if p == 0.0 or (not training and 0.0 <= p <= 1.0):
        return input
    return _settled(input, in_memory_order(lambda x: _c._dropout(x, p, training, generator), input), inplace)


# Losses


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """`x` divided by its norm along an axis."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of the difference of rows."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def _of_runs(op: str, weight: Tensor | None) -> bool:
    """Whether the weights of classes may be others in the next run of a compiled function: the
    native op would keep those of the trace.
    """
    if weight is None:
        return False
    if weight.requires_grad and _c.is_grad_enabled():
        raise _c.GradientError(f"{op}: the weight of the classes gets no gradient; give weight.detach()")
    return _c._session_on()


def _weights_of(weight: Tensor, target: Tensor, ignore_index: int, dtype: Any) -> Tensor:
    """The weight of each target, 0 for those that do not count."""
    kept = target != ignore_index
    return weight.detach()._to_dtype(dtype)[target * kept._to_dtype(target.dtype)] * kept._to_dtype(dtype)


def _weighted(losses: Tensor, weights: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return losses.sum() / weights.sum()
    return losses.sum() if reduction == "sum" else losses


def cross_entropy(  # type: ignore[no-redef]
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: None = None, ignore_index: int = -100, reduce: None = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:
    """`-log softmax(x)[y]` for the class y of each sample, or the sum over classes with
    probabilities as targets; `weight` is one number for each class.
    """
    if not _of_runs("cross_entropy", weight) or reduction not in ("mean", "sum", "none"):
        return _native_cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    classes = input.shape[1 if input.ndim > 1 else 0]
    assert weight is not None
    if weight.shape != (classes,):
        raise ArgumentError(f"cross_entropy: shapes {tuple(input.shape)} and {tuple(weight.shape)}: the weight must have one element for each class")
    w = weight.detach()._to_dtype(input.dtype).reshape((-1,) + (1,) * max(input.ndim - 2, 0))
    share = label_smoothing / max(classes, 1)
    if target.is_floating_point():
        given = (target * (1 - label_smoothing) + share) * w
        return _native_cross_entropy(input, given, reduction=reduction)
    weights = _weights_of(weight, target, ignore_index, input.dtype)
    losses = _native_cross_entropy(input, target, ignore_index=ignore_index, reduction="none") * weights
    if label_smoothing:
        axis = 1 if input.ndim > 1 else 0
        kept = (target != ignore_index)._to_dtype(input.dtype)
        losses = losses * (1 - label_smoothing) - (input.log_softmax(axis) * w).sum(axis) * kept * share
    return _weighted(losses, weights, reduction)


def nll_loss(  # type: ignore[no-redef]
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: None = None, ignore_index: int = -100, reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """`-x[y]` for the class y of each sample, where x are logarithms of probabilities."""
    if not _of_runs("nll_loss", weight) or reduction not in ("mean", "sum", "none"):
        return _native_nll_loss(input, target, weight, ignore_index=ignore_index, reduction=reduction)
    assert weight is not None
    if weight.shape != (input.shape[1 if input.ndim > 1 else 0],):
        raise ArgumentError(f"nll_loss: shapes {tuple(input.shape)} and {tuple(weight.shape)}: the weight must have one element for each class")
    weights = _weights_of(weight, target, ignore_index, input.dtype)
    losses = _native_nll_loss(input, target, ignore_index=ignore_index, reduction="none")
    return _weighted(losses * weights, weights, reduction)


# Normalisation


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the batch, or by the running statistics, which training updates.
    """
    if input.ndim == 1 and not input.numel():
        return input.clone()
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: evaluation needs running_mean and running_var")
        return _c._batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    out, mean, var = _c._batch_norm_train(input, weight, bias, eps)
    if running_mean is not None and running_var is not None:
        n = input.numel() // max(1, input.shape[1])
        running_mean._assign(running_mean * (1 - momentum) + mean * momentum)
        running_var._assign(running_var * (1 - momentum) + var * (momentum * n / max(1, n - 1)))
    return out


def instance_norm(
    input: Tensor,
    running_mean: None = None,
    running_var: None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 in each channel of each sample."""
    return _c._instance_norm(input, weight, bias, eps)


# Convolution


def _conv(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int
) -> Tensor:
    pad = None if padding == "same" else [0] if padding == "valid" else _list(padding)  # type: ignore[arg-type]
    batched = input.ndim == axes + 2
    x = input if batched else input.unsqueeze(0)
    out = _c._conv(axes, x, weight, bias, _list(stride), pad, _list(dilation), groups)
    return out if batched else out.squeeze(0)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1
) -> Tensor:
    """Convolution along one axis."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1
) -> Tensor:
    """Convolution along two axes."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv1d`."""
    return _c._conv_transpose(
        1, input, weight, bias, _list(stride), _list(padding), _list(output_padding), groups, _list(dilation)
    )


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv2d`."""
    return _c._conv_transpose(
        2, input, weight, bias, _list(stride), _list(padding), _list(output_padding), groups, _list(dilation)
    )


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Elements added around: pairs (before, after), the last axis first."""
    if len(pad) % 2:
        raise ArgumentError(f"pad: pairs of numbers are needed, got {len(pad)} numbers")
    pairs = [(-1 - i // 2, [pad[i], pad[i + 1]]) for i in range(0, len(pad), 2)]
    return _c._pad(input, pairs, mode, 0.0 if value is None else float(value))


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`softmax(query @ key.T * scale + mask) @ value`. With `enable_gqa` each head of `key` and
    `value` serves several of `query`.
    """
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    if dropout_p > 0.0 and generator is None:
        return _dropped_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
    return _c._attention(query, key, value, attn_mask, dropout_p, is_causal, scale, generator)


def _dropped_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None
) -> Tensor:
    """Step by step, as the mask of PyTorch is one of the weights themselves."""
    if is_causal and attn_mask is not None:
        raise ArgumentError("scaled_dot_product_attention: either attn_mask or is_causal is given, not both")
    if TARGET.device is not None:
        # A device draws other numbers anyway, and never holds the weights.
        return _c._attention(query, key, value, attn_mask, dropout_p, is_causal, scale, None)
    if is_causal:
        attn_mask = _m.ones(query.shape[-2], key.shape[-2], dtype="bool").tril()
    # Half of the scale on either side, as PyTorch has it.
    factor = math.sqrt(1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    weights = (query * factor) @ (key.transpose(-2, -1) * factor)
    if attn_mask is not None:
        weights = weights.masked_fill(attn_mask.logical_not(), -math.inf) if attn_mask.dtype == _c._dtype("bool") else weights + attn_mask
    return dropout(softmax(weights, -1), dropout_p) @ value


native_channel_shuffle = channel_shuffle

from ._later_functional import *  # noqa: E402, F403
