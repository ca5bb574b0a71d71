"""Names of PyTorch that few scripts use: reflections of Householder, histograms over several axes,
recurrent layers as functions, questions of devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from . import _chainrule as _c
from . import _making as _m
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._functions import cat
from .autograd import set_detect_anomaly
from .nn import functional as F
from .random import fork_rng


def geqrf(input: Tensor) -> tuple[Tensor, Tensor]:
    """The reflections of a QR decomposition, below the diagonal of `R`, and their factors."""
    packed, tau = np.linalg.qr(input.detach().numpy(), mode="raw")
    return _c.tensor(np.ascontiguousarray(packed.swapaxes(-2, -1))), _c.tensor(tau)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """`Q @ other`, or `other @ Q`, for the product `Q` of the reflections that `geqrf` gives."""
    n, count = input.shape[-2], tau.shape[-1]
    if other.shape[-2 if left else -1] != n:
        raise ArgumentError(f"ormqr: shapes {tuple(input.shape)} and {tuple(other.shape)} do not fit")
    out = other if left else other.transpose(-2, -1)
    # From the left, Q itself applies the last reflection first.
    order = range(count) if left == transpose else reversed(range(count))
    for i in order:
        below = input[..., i + 1 :, i]
        v = F.pad(cat([_c._full((*below.shape[:-1], 1), 1.0, input.dtype), below], -1), (i, 0)).unsqueeze(-1)
        out = out - tau[..., i, None, None] * v * (v.transpose(-2, -1) @ out)
    return out if left else out.transpose(-2, -1)


class Histogram(NamedTuple):
    """Counts, and the edges of the bins along each axis."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def histogramdd(input: Tensor, bins: Any, *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False) -> Histogram:
    """Counts of points, the rows of `input`, in a grid of bins: their number, one for each axis, or
    the edges.
    """
    axes = input.detach().reshape(-1, input.shape[-1]).unbind(-1)
    given = [bins] * len(axes) if isinstance(bins, int) else list(bins)
    within = [None] * len(axes) if range is None else [(float(low), float(high)) for low, high in zip(range[::2], range[1::2])]
    if len(given) != len(axes) or len(within) != len(axes):
        raise ArgumentError(f"histogramdd: points of {len(axes)} numbers need bins, and a range, for each")
    edges = [b.detach() if isinstance(b, Tensor) else x._histogram(b, r)[1] for x, b, r in zip(axes, given, within)]
    inside = _c._full(axes[0]._dims, True, "bool")
    place = _c._full(axes[0]._dims, 0, "int64")
    for x, e in zip(axes, edges):
        inside = inside & (x >= e[0]) & (x <= e[-1])
        place = place * (e.numel() - 1) + e._searchsorted(x.contiguous(), True).sub(1).clamp(0, e.numel() - 2)
    amounts = _c._full(axes[0]._dims, 1.0, input.dtype) if weight is None else weight.detach().reshape(-1)
    sizes = [e.numel() - 1 for e in edges]
    counts = _c._full((math.prod(sizes),), 0.0, input.dtype).scatter_add(0, place[inside], amounts[inside]).reshape(sizes)
    if density:
        counts = counts / counts.sum()
        for i, e in enumerate(edges):
            counts = counts / (e[1:] - e[:-1]).reshape([-1 if i == j else 1 for j, _ in enumerate(edges)])
    return Histogram(counts, tuple(edges))


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor whose elements do not matter, with its axes in this order in memory, the outermost
    first.
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise ArgumentError(f"empty_permuted: {list(physical_layout)} is no order of {len(size)} axes")
    out = _m.empty([size[i] for i in physical_layout], dtype=dtype, device=device)
    out = out.permute([list(physical_layout).index(i) for i in range(len(size))])
    return out.requires_grad_() if requires_grad else out


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """One function or the other, by a condition."""
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def _recurrent(
    kind: str, input: Tensor, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
) -> Any:
    from . import nn
    from .func import functional_call

    if isinstance(input, Tensor) and isinstance(params, bool):
        raise ArgumentError(f"{kind.lower()}: packed sequences go through nn.{kind}")
    options: dict[str, Any] = {"bias": has_biases, "num_layers": num_layers, "dropout": dropout, "bidirectional": bidirectional, "batch_first": batch_first}
    with fork_rng():
        layer = getattr(nn, kind.partition("_")[0])(params[0].shape[1], params[1].shape[1], **options)
    layer.nonlinearity = kind.partition("_")[2] or None
    names = [name for name, _ in layer.named_parameters()]
    if len(names) != len(params):
        raise ArgumentError(f"{kind.lower()}: {len(params)} parameters, and {len(names)} are expected")
    layer.train(train)
    out, state = functional_call(layer, dict(zip(names, params)), (input, hx))
    return (out, *state) if isinstance(state, tuple) else (out, state)


def lstm(
    input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.LSTM` with these weights, layer by layer as the layer has them."""
    return _recurrent("LSTM", input, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional, batch_first)  # type: ignore[no-any-return]


def gru(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """`nn.GRU` with these weights, layer by layer as the layer has them."""
    return _recurrent("GRU", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)  # type: ignore[no-any-return]


def rnn_tanh(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """`nn.RNN` with these weights, layer by layer as the layer has them."""
    return _recurrent("RNN_tanh", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)  # type: ignore[no-any-return]


def rnn_relu(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """`nn.RNN` of rectifiers with these weights, layer by layer as the layer has them."""
    return _recurrent("RNN_relu", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)  # type: ignore[no-any-return]


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle` under another name."""
    return F.channel_shuffle(input, groups)


def is_distributed(input: Tensor) -> bool:
    """False: a tensor lies in one process."""
    return False


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Whether the first line whose gradient is NaN is looked for."""
    set_detect_anomaly(mode, check_nan)


def get_device_module(device: Any = None) -> ModuleType:
    """The module of questions to the processor."""
    from . import cpu

    return cpu


__all__ = [
    "cond", "empty_permuted", "geqrf", "get_device_module", "gru", "histogramdd", "is_distributed", "lstm", "native_channel_shuffle", "ormqr", "rnn_relu", "rnn_tanh",
    "set_anomaly_enabled",
]
