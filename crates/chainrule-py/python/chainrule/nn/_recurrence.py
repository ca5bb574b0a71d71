"""One direction of one recurrent layer over all steps.

The products with the inputs are taken for all steps at once; what is left for each step is one
product with the state, and the gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from ._ops import linear

State = tuple[Tensor, ...]
# A step: the input's share of the gates, and the state; gives the new state, the output first.
Step = Callable[[Tensor, State], State]


def plain_step(nonlinearity: str, weights: Sequence[Any]) -> tuple[Callable[[Tensor], Tensor], Step]:
    """`h' = tanh(W x + b + V h + c)`: the share of the inputs, and the step."""
    w, v, b, c = weights[:4]
    turned = v.t()

    def step(share: Tensor, state: State) -> State:
        out = _c._addmm(share, state[0], turned, 1.0, 1.0)
        return ((out.tanh() if nonlinearity == "tanh" else out.relu()),)

    return (lambda x: linear(x, w, None if b is None else b + c)), step


def lstm_step(weights: Sequence[Any]) -> tuple[Callable[[Tensor], Tensor], Step]:
    """`c' = f c + i g`, `h' = o tanh(c')`, with gates i, f, g, o; `h'` is projected if there is a
    fifth weight.
    """
    w, v, b, c = weights[:4]
    projection = weights[4] if len(weights) > 4 else None
    # Laid out once for all steps.
    turned = v.t().contiguous()

    def step(share: Tensor, state: State) -> State:
        out, cell = _c._lstm_step(share, state[0], state[1], turned)
        return (out if projection is None else linear(out, projection, None)), cell

    return (lambda x: linear(x, w, None if b is None else b + c)), step


def gru_step(weights: Sequence[Any]) -> tuple[Callable[[Tensor], Tensor], Step]:
    """`h' = n + z (h - n)`, `n = tanh(W x + b + r (V h + c))`, with gates r, z."""
    w, v, b, c = weights[:4]
    size = v.shape[1]

    def step(share: Tensor, state: State) -> State:
        h = state[0]
        mine = linear(h, v, c)
        rz = (share[:, : 2 * size] + mine[:, : 2 * size]).sigmoid()
        r, z = rz[:, :size], rz[:, size:]
        n = (share[:, 2 * size :] + r * mine[:, 2 * size :]).tanh()
        return (n + z * (h - n),)

    return (lambda x: linear(x, w, b)), step


def over_steps(x: Tensor, state: State, share: Callable[[Tensor], Tensor], step: Step, backwards: bool) -> tuple[Tensor, State]:
    """The outputs `[steps, batch, size]` for inputs `[steps, batch, size]`, and the last state."""
    shares, outs = share(x), []
    for at in reversed(range(len(x))) if backwards else range(len(x)):
        state = step(shares[at], state)
        outs.append(state[0])
    return _f.stack(outs[::-1] if backwards else outs), state


def over_packed(
    x: Tensor, sizes: list[int], state: State, share: Callable[[Tensor], Tensor], step: Step, backwards: bool
) -> tuple[Tensor, State]:
    """As `over_steps` for packed inputs `[sum of lengths, size]`: at step t the first `sizes[t]`
    sequences go on.
    """
    shares = share(x)._split(sizes, 0)
    first, outs = state, []
    if backwards:
        state = tuple(s[: sizes[-1]] for s in first)
        for one, n in zip(reversed(shares), reversed(sizes)):
            have = state[0].shape[0]
            if n > have:
                state = tuple(_f.cat([s, s0[have:n]]) for s, s0 in zip(state, first))
            state = step(one, state)
            outs.append(state[0])
        return _f.cat(outs[::-1]), state
    ended: list[State] = []
    for one, n in zip(shares, sizes):
        if n < state[0].shape[0]:
            ended.append(tuple(s[n:] for s in state))
            state = tuple(s[:n] for s in state)
        state = step(one, state)
        outs.append(state[0])
    ended.append(state)
    return _f.cat(outs), tuple(_f.cat([part[i] for part in reversed(ended)]) for i in range(len(state)))
