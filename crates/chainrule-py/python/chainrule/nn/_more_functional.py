"""Further functions of neural networks: dropout of whole channels, pixels and channels exchanged,
losses of pairs and triplets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _chainrule as _c
from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from .._legacy import exponential_


def _feature_dropout(op: str, axes: int, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Whole channels set to 0; the mask is PyTorch's."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"{op}: p is a probability, got {p}")
    if input.ndim not in (axes + 1, axes + 2):
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: {axes + 2} axes, or {axes + 1} without a batch")
    if not training or p == 0.0:
        return input
    batched = input.ndim == axes + 2
    shape = (*input.shape[: 1 + batched], *[1] * axes)
    if p == 1.0:
        out = input * 0.0
    else:
        kept = _c._rand(shape, "float64", None) < 1 - p
        out = input * (kept._to_dtype(input.dtype) / (1 - p))
    return input._assign(out) if inplace else out


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of `[batch, channels, length]` set to 0 with probability `p`, the rest scaled up."""
    return _feature_dropout("dropout1d", 1, input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of `[batch, channels, height, width]` set to 0 with probability `p`, the rest scaled
    up.
    """
    if input.ndim == 3:
        # A batch of vectors to PyTorch, and its channels are the last but one axis.
        return _feature_dropout("dropout2d", 1, input, p, training, inplace)
    return _feature_dropout("dropout2d", 2, input, p, training, inplace)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """`[..., C r^2, H, W]` as `[..., C, H r, W r]`: r^2 channels become squares of r by r pixels.
    """
    r, (c, h, w) = upscale_factor, input.shape[-3:]
    if c % (r * r):
        raise ArgumentError(f"pixel_shuffle: shape {tuple(input.shape)}: {c} channels are no multiple of {r} squared")
    lead = tuple(input.shape[:-3])
    x = input.reshape(math.prod(lead), c // (r * r), r, r, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """`[..., C, H r, W r]` as `[..., C r^2, H, W]`, the inverse of `pixel_shuffle`."""
    r, (c, h, w) = downscale_factor, input.shape[-3:]
    if h % r or w % r:
        raise ArgumentError(f"pixel_unshuffle: shape {tuple(input.shape)}: height and width are no multiples of {r}")
    lead = tuple(input.shape[:-3])
    x = input.reshape(math.prod(lead), c, h // r, r, w // r, r).permute(0, 1, 3, 5, 2, 4)
    return x.reshape(*lead, c * r * r, h // r, w // r)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A draw from the classes that gradients flow through: `softmax((logits + g) / tau)` with
    Gumbel noise g; `hard` gives one-hot vectors.
    """
    noise: Tensor = -exponential_(_m.empty(tuple(logits.shape), dtype=logits.dtype)).log()
    soft: Tensor = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    one: Tensor = soft.detach() * 0.0
    one = one.scatter(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return one - soft.detach() + soft


def _reduced(op: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"{op}: reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """`max(0, -y (x1 - x2) + margin)`: x1 is to be above x2 where y is 1, below where it is -1."""
    return _reduced("margin_ranking_loss", (-target * (input1 - input2) + margin).clamp(min=0), reduction)


def _distance(x: Tensor, y: Tensor, p: float, eps: float) -> Tensor:
    return (x - y + eps).norm(p, -1)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Tensor:
    """`max(0, |a - p| - |a - n| + margin)`; with `swap` the negative's distance is the smaller of
    those from anchor and positive.
    """
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(_distance(positive, negative, p, eps))
    return _reduced("triplet_margin_loss", (near - far + margin).clamp(min=0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """`log(1 + exp(-y x))` for targets 1 and -1."""
    return _reduced("soft_margin_loss", (-target * input).softplus(1.0, 1e9), reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The mean over the classes of `-(y log s(x) + (1 - y) log s(-x))`, s the sigmoid."""
    loss = -(target * input.logsigmoid() + (1 - target) * (-input).logsigmoid())
    loss = loss if weight is None else loss * weight
    return _reduced("multilabel_soft_margin_loss", loss.mean(-1), reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """`(log var + (x - y)^2 / var) / 2`, and with `full` `log(2 pi) / 2` more."""
    var = var if isinstance(var, Tensor) else _c._full(input._dims, float(var), input.dtype)
    if var.ndim == input.ndim - 1 and tuple(var.shape) == tuple(input.shape[:-1]):
        var = var.unsqueeze(-1)
    # The bound has no slope of its own: the variance keeps its gradient there.
    var = var + (var.detach().clamp(min=eps) - var.detach())
    loss = 0.5 * (var.log() + (input - target).square() / var)
    return _reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`exp(x) - y x`, or `x - y log(x + eps)` without `log_input`; `full` adds Stirling's
    `y log y - y + log(2 pi y) / 2` where y is above 1.
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        y = target.where(target > 1, 1.0)
        loss = loss + (y * y.log() - y + 0.5 * (2 * math.pi * y).log()).masked_fill(target <= 1, 0.0)
    return _reduced("poisson_nll_loss", loss, reduction)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`x` beyond `lambd` on either side, else 0."""
    return input.masked_fill((input >= -lambd).logical_and(input <= lambd), 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`x` moved towards 0 by `lambd`, and 0 within it."""
    return (input - lambd).clamp(min=0) + (input + lambd).clamp(max=0)


def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`."""
    return input - input.tanh()


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """`x / (k + alpha * mean of the squares of `size` channels around)^beta`."""
    square = input.square().transpose(1, -1)
    padded = _c._pad(square, [(-1, [size // 2, (size - 1) // 2])], "constant", 0.0)
    around = padded.unfold(-1, size, 1).mean(-1).transpose(1, -1)
    return input / (around * alpha + k).pow(beta)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[..., Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:
    """`max(0, d(a, p) - d(a, n) + margin)` for a distance d of one's own."""
    d: Any = distance_function or (lambda x, y: _distance(x, y, 2.0, 1e-6))
    near, far = d(anchor, positive), d(anchor, negative)
    far = far.minimum(d(positive, negative)) if swap else far
    return _reduced("triplet_margin_with_distance_loss", (near - far + margin).clamp(min=0), reduction)


def _in_place(name: str) -> Callable[..., Tensor]:
    """An activation that writes its result into its input, under PyTorch's name for that."""

    def function(input: Tensor, *args: Any, **options: Any) -> Tensor:
        from . import functional

        return getattr(functional, name)(input, *args, inplace=True, **options)  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name + "_"
    function.__doc__ = f"`{name}`, and the input becomes the result."
    return function


relu_, leaky_relu_, elu_, celu_, selu_, hardtanh_, threshold_ = map(_in_place, "relu leaky_relu elu celu selu hardtanh threshold".split())

__all__ = [
    "celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "selu_", "threshold_",
    "dropout1d", "dropout2d", "gaussian_nll_loss", "gumbel_softmax", "hardshrink", "local_response_norm", "margin_ranking_loss",
    "multilabel_soft_margin_loss", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "soft_margin_loss", "softshrink", "tanhshrink",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]
