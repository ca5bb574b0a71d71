"""Recurrent layers and cells, with PyTorch's names, weights and order of gates."""

from __future__ import annotations

import math
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from . import functional as F
from ._recurrence import State, gru_step, lstm_step, over_packed, over_steps, plain_step
from .module import Module, Parameter
from .utils.rnn import PackedSequence

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """The common part of recurrent layers: weights by layer and direction, and the way over the
    steps.

    The weights of layer k are `weight_ih_lk [gates * hidden, input]`,
    `weight_hh_lk [gates * hidden, hidden]`, `bias_ih_lk`, `bias_hh_lk` and, with a projection,
    `weight_hr_lk`; those of the other direction end in `_reverse`. At the beginning they are
    uniform in `±1 / sqrt(hidden)`.
    """

    kind = "RNN"
    nonlinearity = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if hidden_size <= 0 or num_layers <= 0 or not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: hidden_size and num_layers are positive and dropout is a probability, got {hidden_size}, {num_layers}, {dropout}")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"{name}: proj_size is from 0, for none, to below hidden_size, got {proj_size} and {hidden_size}")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, float(dropout), bidirectional, proj_size
        _m._on(device)
        gates, out = GATES[self.kind] * hidden_size, proj_size or hidden_size
        self._names: list[list[str]] = []
        for layer in range(num_layers):
            for way in range(1 + bidirectional):
                given = input_size if layer == 0 else out * (1 + bidirectional)
                end = f"_l{layer}" + ("_reverse" if way else "")
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, given), "weight_hh": (gates, out)}
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                for part, shape in shapes.items():
                    setattr(self, part + end, Parameter(_m.empty(*shape, dtype=dtype)))
                self._names.append([part + end for part in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew, uniform in `±1 / sqrt(hidden)`."""
        for p in self.parameters():
            _draw(p, 1.0 / math.sqrt(self.hidden_size))

    def flatten_parameters(self) -> None:
        """Nothing: weights need no order in memory here."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def _step(self, weights: list[Any]) -> Any:
        ready = weights if self.bias else [*weights[:2], None, None, *weights[2:]]
        if self.kind == "LSTM":
            return lstm_step(ready)
        return gru_step(ready) if self.kind == "GRU" else plain_step(self.nonlinearity, ready)

    def _over_layers(self, x: Tensor, sizes: list[int] | None, state: State) -> tuple[Tensor, State]:
        """All layers and directions: the output of the last layer, and the last states
        `[layers * directions, batch, size]`.
        """
        ways, last = 1 + self.bidirectional, []
        for layer in range(self.num_layers):
            outs = []
            for way in range(ways):
                number = layer * ways + way
                share, step = self._step(self.all_weights[number])
                first = tuple(s[number] for s in state)
                if sizes is None:
                    out, end = over_steps(x, first, share, step, way == 1)
                else:
                    out, end = over_packed(x, sizes, first, share, step, way == 1)
                outs.append(out)
                last.append(end)
            x = outs[0] if ways == 1 else _f.cat(outs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, tuple(_f.stack([end[i] for end in last]) for i in range(len(state)))

    def _begin(self, x: Tensor, batch: int, given: State | None, is_batched: bool) -> State:
        """The state before the first step, zeros if none is given."""
        name, rows = type(self).__name__, self.num_layers * (1 + self.bidirectional)
        sizes = [self.proj_size or self.hidden_size, self.hidden_size][: 2 if self.kind == "LSTM" else 1]
        if given is None:
            return tuple(_c._full((rows, batch, n), 0.0, x.dtype) for n in sizes)
        for what, t, n in zip(("h_0", "c_0"), given, sizes):
            want = (rows, batch, n) if is_batched else (rows, n)
            if tuple(t.shape) != want:
                raise RuntimeError(f"{name}: {what} has shape {tuple(t.shape)}, and for this input it has {want}")
        return given if is_batched else tuple(t.unsqueeze(1) for t in given)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The outputs of the last layer for all steps, and the last state of each layer.

        `input` is `[steps, batch, input]`, `[batch, steps, input]` with `batch_first`, `[steps,
        input]`, or packed; `hx` is the state before the first step.
        """
        name, packed = type(self).__name__, isinstance(input, PackedSequence)
        x: Tensor = input.data if packed else input
        if not packed and x.ndim not in (2, 3):
            raise ArgumentError(f"{name}: shape {tuple(x.shape)}: the input has 3 axes, or 2 without a batch")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: shape {tuple(x.shape)}: the last size of the input is {x.shape[-1]}, and input_size is {self.input_size}")
        is_batched = packed or x.ndim == 3
        if not packed:
            x = x.unsqueeze(1) if not is_batched else x.transpose(0, 1) if self.batch_first else x
            if not x.shape[0]:
                raise RuntimeError(f"{name}: shape {tuple(input.shape)}: a sequence has at least one step")
        sizes = input.batch_sizes.tolist() if packed else None
        given = None if hx is None else tuple(hx) if self.kind == "LSTM" else (hx,)
        order = input.sorted_indices if packed else None
        if order is not None and given is not None:
            given = tuple(t.index_select(1, order) for t in given)
        state = self._begin(x, sizes[0] if sizes else x.shape[1], given, is_batched)
        out: Any
        out, last = self._over_layers(x, sizes, state)
        if packed:
            out = input._replace(data=out)
            if input.unsorted_indices is not None:
                last = tuple(t.index_select(1, input.unsorted_indices) for t in last)
        elif not is_batched:
            out, last = out.squeeze(1), tuple(t.squeeze(1) for t in last)
        elif self.batch_first:
            out = out.transpose(0, 1)
        return out, (last if self.kind == "LSTM" else last[0])

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        parts += [f"proj_size={self.proj_size}"] if self.proj_size else []
        parts += [f"num_layers={self.num_layers}"] if self.num_layers != 1 else []
        parts += ["bias=False"] if not self.bias else []
        parts += [f"{k}={v}" for k in ("batch_first", "dropout", "bidirectional") if (v := getattr(self, k))]
        return ", ".join(parts)


def _draw(p: Tensor, bound: float) -> None:
    """Uniform numbers within the bound, in place."""
    p.data.uniform_(-bound, bound)


class RNN(RNNBase):
    """`h_t = tanh(W x_t + b + V h_{t-1} + c)`, or `relu` in place of `tanh` as `nonlinearity` says.

    ```
    rnn = cr.nn.RNN(3, 4, num_layers=2, batch_first=True)
    out, h = rnn(cr.randn(2, 5, 3))
    assert out.shape == (2, 5, 4) and h.shape == (2, 2, 4)
    ```
    """

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if len(args) > 3:
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        if kwargs.get("proj_size"):
            raise ArgumentError("RNN: proj_size is for LSTM")
        super().__init__(*args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """`c_t = f c_{t-1} + i g`, `h_t = o tanh(c_t)`, with gates i, f, o by `sigmoid` and g by `tanh`
    of `W x_t + b + V h_{t-1} + c`.

    The state is `(h, c)`. With `proj_size` h is projected to that size.

    ```
    lstm = cr.nn.LSTM(3, 4, bidirectional=True)
    out, (h, c) = lstm(cr.randn(5, 2, 3))
    assert out.shape == (5, 2, 8) and h.shape == c.shape == (2, 2, 4)
    ```
    """

    kind = "LSTM"


class GRU(RNNBase):
    """`h_t = (1 - z) n + z h_{t-1}`, `n = tanh(W x_t + b + r (V h_{t-1} + c))`, with gates r, z by
    `sigmoid`.

    ```
    gru = cr.nn.GRU(3, 4)
    out, h = gru(cr.randn(5, 2, 3))
    assert out.shape == (5, 2, 4) and h.shape == (1, 2, 4)
    ```
    """

    kind = "GRU"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("proj_size"):
            raise ArgumentError("GRU: proj_size is for LSTM")
        super().__init__(*args, **kwargs)


class _Cell(Module):
    """One step of a recurrent layer."""

    kind = "RNN"
    nonlinearity = "tanh"
    weight_ih: Tensor
    weight_hh: Tensor

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        _m._on(device)
        gates = GATES[self.kind] * hidden_size
        self.weight_ih = Parameter(_m.empty(gates, input_size, dtype=dtype))
        self.weight_hh = Parameter(_m.empty(gates, hidden_size, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(_m.empty(gates, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew, uniform in `±1 / sqrt(hidden)`."""
        for p in self.parameters():
            _draw(p, 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The state after the step."""
        name, is_batched = type(self).__name__, input.ndim == 2
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: shape {tuple(input.shape)}: the input is [batch, {self.input_size}] or [{self.input_size}]")
        x = input if is_batched else input.unsqueeze(0)
        count = 2 if self.kind == "LSTM" else 1
        state: State
        if hx is None:
            state = tuple(_c._full((x.shape[0], self.hidden_size), 0.0, x.dtype) for _ in range(count))
        else:
            given = tuple(hx) if count == 2 else (hx,)
            want = (*input.shape[:-1], self.hidden_size)
            if any(tuple(t.shape) != want for t in given):
                raise RuntimeError(f"{name}: the state has shapes {[tuple(t.shape) for t in given]}, and for this input {want}")
            state = given if is_batched else tuple(t.unsqueeze(0) for t in given)
        weights = [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        if self.kind == "LSTM":
            share, step = lstm_step(weights)
        else:
            share, step = gru_step(weights) if self.kind == "GRU" else plain_step(self.nonlinearity, weights)
        out = step(share(x), state)
        out = out if is_batched else tuple(t.squeeze(0) for t in out)
        return out if count == 2 else out[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of `RNN`: `[batch, input]` and the state `[batch, hidden]` give the next state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: Any = None
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNNCell: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(_Cell):
    """One step of `LSTM`: `[batch, input]` and `(h, c)` give the next `(h, c)`."""

    kind = "LSTM"


class GRUCell(_Cell):
    """One step of `GRU`: `[batch, input]` and the state `[batch, hidden]` give the next state."""

    kind = "GRU"


RNNCellBase = _Cell

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]
