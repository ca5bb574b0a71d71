"""Losses of sequences and margins, bags of embeddings, and dropout that keeps means: composed of
ops.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .. import _shapes as _s
from .._chainrule import Tensor
from .._errors import ArgumentError, _NotInPrograms
from .._memory_order import drawn_like
from ._more_functional import _feature_dropout, _reduced
from ._ops import embedding

# The stand-in for the logarithm of 0: a number, so that differences of two have a slope.
_NEVER = -1e30


def _lengths(op: str, lengths: Any, batch: int) -> Tensor:
    found = lengths.detach().long() if isinstance(lengths, Tensor) else _c.tensor([int(n) for n in lengths])
    found = found.reshape(-1)
    if found.numel() != batch:
        raise ArgumentError(f"{op}: {found.numel()} lengths for a batch of {batch}")
    return found


def _number(op: str, x: Tensor) -> int:
    """An element as a number of Python. A function in whose trace it cannot be known is run as it
    is.
    """
    try:
        return int(x)
    except ArgumentError as error:
        if _c._session_on():
            raise _NotInPrograms(f"compile: {op} goes by the elements of a tensor, which a program cannot") from error
        raise


def _padded(targets: Tensor, lengths: Tensor, batch: int) -> Tensor:
    """Targets of a batch as rows, where they come one after the other."""
    if targets.ndim == 2:
        return targets
    longest = _number("ctc_loss", lengths.max()) if batch else 0
    ends = lengths.cumsum(0)
    if _number("ctc_loss", ends[-1]) > targets.numel():
        raise ArgumentError(f"ctc_loss: {targets.numel()} targets, and the lengths add up to {int(ends[-1])}")
    at = (ends - lengths).unsqueeze(1) + _c._arange(0, longest, 1, "int64")
    return targets[at.clamp(max=max(targets.numel() - 1, 0))] if targets.numel() else targets.reshape(batch, 0)


def _log_add(parts: list[Tensor]) -> Tensor:
    return _f.stack(parts).logsumexp(0)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability that the steps `[steps, batch, classes]` spell the
    targets, blanks and
    repetitions left out.

    `targets` are rows of a batch, or all one after the other. 'mean' divides by the lengths of the
    targets first. The gradient is
    that of the formula; PyTorch's is the one that a `log_softmax` before it makes of it, and behind
    a `log_softmax` both are equal.
    """
    x = log_probs if log_probs.ndim == 3 else log_probs.unsqueeze(1)
    if x.ndim != 3 or not 0 <= blank < x.shape[2]:
        raise ArgumentError(f"ctc_loss: log_probs of shape {tuple(log_probs.shape)}, blank={blank}: [steps, batch, classes] and one of these are needed")
    steps, batch, classes = x.shape
    ins, outs = _lengths("ctc_loss", input_lengths, batch), _lengths("ctc_loss", target_lengths, batch)
    if batch and (_number("ctc_loss", ins.max()) > steps or _number("ctc_loss", ins.min()) < 0 or _number("ctc_loss", outs.min()) < 0):
        raise ArgumentError(f"ctc_loss: input_lengths are from 0 to {steps}, and target_lengths from 0")
    rows = _padded(targets.reshape(1, -1) if log_probs.ndim == 2 and targets.ndim == 1 else targets, outs, batch).long()
    if rows.shape[0] != batch or (batch and _number("ctc_loss", outs.max()) > rows.shape[1]):
        raise ArgumentError(f"ctc_loss: targets of shape {tuple(targets.shape)}: a row of at least the longest target for each of {batch} is needed")
    losses = -_spelled(x, rows, ins, outs, blank)
    never = losses.detach() > -_NEVER / 2
    losses = losses.masked_fill(never, 0.0 if zero_infinity else math.inf)
    if reduction == "mean":
        losses = losses / outs.clamp(min=1)._to_dtype(losses.dtype)
    out = _reduced("ctc_loss", losses, reduction)
    return out.squeeze(0) if reduction == "none" and log_probs.ndim == 2 else out


def _spelled(x: Tensor, rows: Tensor, ins: Tensor, outs: Tensor, blank: int) -> Tensor:
    """The logarithm of the probability of each target: all paths that spell it so far, step by
    step.
    """
    steps, batch, classes = x.shape
    count = rows.shape[1]
    labels = _c._full((batch, 2 * count + 1), blank, "int64")
    if count:
        labels[:, 1::2] = rows.clamp(0, classes - 1)
    width = 2 * count + 1
    place = _c._arange(0, width, 1, "int64")
    # A label may follow the one before without a blank between them where the two differ.
    skips = _c._full((batch, width), False, "bool")
    if count > 1:
        skips[:, 3::2] = rows[:, 1:] != rows[:, :-1]
    there = x.gather(2, labels.expand(steps, batch, width)).clamp(min=_NEVER)
    alpha = there[0].masked_fill((place > 1).expand(batch, width), _NEVER) if steps else _c._full((batch, width), _NEVER, x.dtype)
    beyond = ins == 0
    if steps and bool(beyond.any()):
        alpha = alpha.where(beyond.logical_not().unsqueeze(1), _nothing_spelled(batch, width, x.dtype))
    for t in range(1, steps):
        one = _c._pad(alpha, [(-1, [1, 0])], "constant", _NEVER)[:, :width]
        two = _c._pad(alpha, [(-1, [2, 0])], "constant", _NEVER)[:, :width].masked_fill(skips.logical_not(), _NEVER)
        new = (_log_add([alpha, one, two]) + there[t]).clamp(min=_NEVER)
        alpha = new.where((ins > t).unsqueeze(1), alpha)
    last = alpha.gather(1, (2 * outs).unsqueeze(1)).squeeze(1)
    before = alpha.gather(1, (2 * outs - 1).clamp(min=0).unsqueeze(1)).squeeze(1).masked_fill(outs == 0, _NEVER)
    return _log_add([last, before])


def _nothing_spelled(batch: int, width: int, dtype: Any) -> Tensor:
    out = _c._full((batch, width), _NEVER, dtype)
    out[:, 0] = 0.0
    return out


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes i but the right one y of `w[y] max(0, margin - x[y] + x[i])^p`."""
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p is 1 or 2, not {p}")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    y = target.reshape(-1, 1)
    gap = (margin - x.gather(1, y) + x).clamp(min=0)
    gap = gap if p == 1 else gap.square()
    gap = gap if weight is None else gap * weight[y]
    loss = gap.masked_fill(_c._arange(0, x.shape[1], 1, "int64") == y, 0.0).sum(1) / x.shape[1]
    return _reduced("multi_margin_loss", loss if input.ndim == 2 else loss.squeeze(0), reduction)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The sum over the right classes y and the wrong ones i of `max(0, 1 - x[y] + x[i])`, over the
    number of classes.

    A row of `target` names the right classes up to the first -1.
    """
    if target.shape != input.shape:
        raise ArgumentError(f"multilabel_margin_loss: shapes {tuple(input.shape)} and {tuple(target.shape)} differ")
    x, y = (input, target) if input.ndim == 2 else (input.reshape(1, -1), target.reshape(1, -1))
    named = (y >= 0)._to_dtype("int64").cumprod(1).bool()
    at = y.clamp(min=0)
    right = _c._full(x._dims, 0, "int64").scatter_add(1, at, named.long()) > 0
    gap = (1 - x.gather(1, at).unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    gap = gap.masked_fill(named.logical_not().unsqueeze(2).logical_or(right.unsqueeze(1)), 0.0)
    loss = gap.sum((1, 2)) / max(x.shape[1], 1)
    return _reduced("multilabel_margin_loss", loss if input.ndim == 2 else loss.squeeze(0), reduction)


def shorten_rows(ids: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Makes the rows of these numbers at most as long as `max_norm`, in the table."""
    used = ids.unique()
    weight.detach().index_copy_(0, used, weight.detach()[used].renorm(norm_type, 0, max_norm))


def averaged_gradient(ids: Tensor, rows: Tensor) -> Tensor:
    """The rows of a table; the gradient of each is divided by how often its number is there."""
    if rows.requires_grad:
        _, inverse, counts = ids.unique(return_inverse=True, return_counts=True)
        often = counts[inverse]._to_dtype(rows.dtype).unsqueeze(-1)
        rows.register_hook(lambda g: g / often)
    return rows.view_as(rows)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or largest elements of bags of rows: a row of `input` is a bag, or a vector
    of which `offsets` are the beginnings.
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"embedding_bag: mode is 'sum', 'mean' or 'max', not {mode!r}")
    if scale_grad_by_freq:
        raise ArgumentError("embedding_bag: scale_grad_by_freq is not there")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f"embedding_bag: per_sample_weights are for the mode 'sum', not {mode!r}")
    if (input.ndim == 2) == (offsets is not None) or input.ndim not in (1, 2):
        raise ArgumentError(f"embedding_bag: input of shape {tuple(input.shape)}: rows without offsets, or a vector with them")
    ids = input.reshape(-1).long()
    if offsets is None:
        bags = input.shape[0]
        bag = _c._arange(0, bags, 1, "int64").repeat_interleave(input.shape[1])
    else:
        starts = offsets.long()
        bags = len(starts) - int(include_last_offset)
        bag = starts[:bags]._searchsorted(_c._arange(0, ids.numel(), 1, "int64"), True) - 1
    if max_norm is not None:
        shorten_rows(ids, weight, max_norm, norm_type)
    if padding_idx is not None:
        kept = (ids != padding_idx % weight.shape[0]).nonzero().reshape(-1)
        ids, bag = ids[kept], bag[kept]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)[kept]
    rows = embedding(ids, weight)
    zeros = _c._full((bags, weight.shape[1]), 0.0, weight.dtype)
    if mode == "max":
        return _s.index_reduce(zeros, 0, bag, rows, "amax", include_self=False)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    out = zeros.index_add(0, bag, rows)
    if mode == "mean":
        count = _c._full((bags,), 0, "int64").index_add(0, bag, _c._full((ids.numel(),), 1, "int64"))
        out = out / count.clamp(min=1)._to_dtype(out.dtype).unsqueeze(1)
    return out


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """`x` above 0, else `a x` with `a` drawn between the bounds; their mean without training."""
    if training:
        below = input.detach() <= 0
        # Only what is below 0 draws, in float64, as in PyTorch.
        drawn = _c._rand((_number("rrelu", below.sum()),), "float64", None) * (upper - lower) + lower
        out = input * _c._full(input._dims, 1.0, input.dtype).masked_scatter(below, drawn._to_dtype(input.dtype))
    else:
        out = input.where(input > 0, input * ((lower + upper) / 2))
    return input._assign(out) if inplace else out


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of `[batch, channels, depth, height, width]` set to 0 with probability `p`, the rest
    scaled up.
    """
    return _feature_dropout("dropout3d", 3, input, p, training, inplace)


def _alpha(op: str, input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    """Elements set to what SELU has far below 0, and all scaled so that mean 0 and variance 1 stay.
    """
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"{op}: p is a probability, got {p}")
    if not training or p == 0.0 or not input.numel():
        return input
    if p == 1.0:
        return input * 0.0
    alpha = 1.7580993408473766
    scale = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    if shape == tuple(input.shape):
        drawn = drawn_like(input, lambda dims: _c._rand(dims, "float64", None))
    else:
        drawn = _c._rand(shape, "float64", None)
    kept = (drawn < 1 - p)._to_dtype(input.dtype)
    out = input * (kept * scale) + ((kept - 1) * (alpha * scale) + alpha * scale * p)
    return input._assign(out) if inplace else out


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for SELU: what is dropped becomes `-1.758`, and all is scaled so that mean and
    variance stay.
    """
    return _alpha("alpha_dropout", input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _alpha("feature_alpha_dropout", input, shape, p, training, inplace)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows, each pair once."""
    if input.ndim != 2:
        raise ArgumentError(f"pdist: shape {tuple(input.shape)}: a matrix is needed")
    i, j = _s.triu_indices(input.shape[0], input.shape[0], 1)
    return (input[i] - input[j]).norm(p, -1)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels `[groups, n]` in the order of `[n, groups]`."""
    channels = input.shape[1]
    if groups < 1 or channels % groups:
        raise ArgumentError(f"channel_shuffle: shape {tuple(input.shape)}: {channels} channels are no {groups} groups")
    shape = tuple(input.shape)
    return input.reshape(shape[0], groups, channels // groups, *shape[2:]).transpose(1, 2).reshape(shape)


__all__ = [
    "alpha_dropout", "channel_shuffle", "ctc_loss", "dropout3d", "embedding_bag", "feature_alpha_dropout",
    "multi_margin_loss", "multilabel_margin_loss", "pdist", "rrelu",
]
