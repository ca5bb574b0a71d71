"""Paths through which no gradient flows: `detach`, `.data`, `.item()`, `no_grad` in a function of
PyTorch, with their lines and what they lose.

The function runs under a mode that sees each call. A place where a tensor loses its history is a
cut. Healing one means to run the function again with the history kept there: the difference of the
two gradients is what flows through that path. A number that was taken out cannot be put back: the
value is then moved a little in place, and the change of the result, times the gradient of the
value, is the same.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

import torch as _torch

from ._lift import one
from ._watch import Cut, Watch, watched

# Losses below this part of a gradient are rounding; by differences of the function, those below the
# second.
_LEAST, _LEAST_BY_DIFFERENCES = 1e-9, 1e-6
# Values are moved element by element, as long as they are few; by this part of their size.
_FEW, _STEP = 64, 1e-5


def text_of(cut: Cut) -> str:
    """A cut, for a report."""
    source = linecache.getline(cut.file, cut.line).strip()
    text = f"no gradient flows through `{cut.kind}` at {cut.file}:{cut.line}" + (f"\n    {source}" if source else "")
    if cut.straight_through:
        text += "\n    this is a straight-through estimator, x + (q(x) - x).detach(): its gradient is that of x, not the derivative of the result"
    return "\n    ".join([text, *cut.losses])


def healed(function: Callable[..., Any], cuts: Sequence[Cut]) -> Callable[..., Any]:
    """The function with its history kept at these cuts."""

    def run(*inputs: Any) -> Any:
        with watched(Watch([cut.key for cut in cuts])):
            return function(*inputs)

    run.__name__ = getattr(function, "__name__", "function")
    return run


def gradients(function: Callable[..., Any], values: Sequence[Any], v: Any) -> list[Any]:
    """The gradients of `<v, function>` by all values; zeros where no path leads to one."""
    leaves = [t.clone().requires_grad_() for t in values]
    with _torch.enable_grad():
        out = one(function(*leaves))
    found = _torch.autograd.grad(out, leaves, v.to(out.dtype), allow_unused=True) if out.requires_grad else [None] * len(leaves)
    return [_torch.zeros_like(t) if g is None else g for g, t in zip(found, leaves)]


def cuts_of(function: Callable[..., Any], values: Sequence[Any], names: Sequence[str]) -> list[Cut]:
    """The cuts through which some of a gradient would flow, with what each loses; those that lose
    nothing are left out.
    """
    watch = Watch([])
    leaves = [t.clone().requires_grad_() for t in values]
    with watched(watch), _torch.enable_grad():
        out = one(function(*leaves))
    v = _torch.randn(out.shape, dtype=out.dtype, generator=_torch.Generator().manual_seed(1))
    without = gradients(function, values, v)
    found = []
    for cut in watch.cuts.values():
        try:
            lost = [h - g for g, h in zip(without, gradients(healed(function, [cut]), values, v))]
        except Exception:  # a value that was taken out as an array, or changed in place, cannot keep its history
            lost = []
        cut.losses = _losses(without, lost, names, _LEAST)
        if not cut.losses:
            try:
                moved = _by_moving(function, leaves, watch, cut, v)
            except RuntimeError:  # it was overwritten since
                moved = None
            cut.losses = [] if moved is None else _losses(without, moved, names, _LEAST_BY_DIFFERENCES)
            if moved is None:
                cut.losses = ["what it loses is not known: the function does not run with the path kept there"]
            cut.heals = False
        if cut.losses:
            found.append(cut)
    return found


def _losses(without: Sequence[Any], lost: Sequence[Any], names: Sequence[str], least: float) -> list[str]:
    all_of = (_loss(g, lost, name, least) for g, lost, name in zip(without, lost, names))
    return [text for text in all_of if text]


def _by_moving(function: Callable[..., Any], leaves: Sequence[Any], watch: Watch, cut: Cut, v: Any) -> list[Any] | None:
    """The gradient through a cut, by moving the values there: nothing is known if they are many."""
    sources = [(i, t) for i, (at, t) in enumerate(watch.taken) if at is cut and t.requires_grad]
    if sum(t.numel() for _, t in sources) > _FEW:
        return None
    total = [_torch.zeros_like(t) for t in leaves]
    for call, t in sources:
        for j in range(t.numel()):
            step = _STEP * max(abs(float(t.detach().reshape(-1)[j])), 1e-3)
            slope = float((_moved(function, leaves, call, j, step) - _moved(function, leaves, call, j, -step)).mul(v).sum()) / (2 * step)
            if slope:
                own = _torch.autograd.grad(t.reshape(-1)[j], leaves, retain_graph=True, allow_unused=True)
                total = [s if g is None else s + slope * g for s, g in zip(total, own)]
    return total


def _moved(function: Callable[..., Any], leaves: Sequence[Any], call: int, element: int, step: float) -> Any:
    watch = Watch([], (call, element, step))
    with watched(watch), _torch.enable_grad():
        return one(function(*(t.detach().clone().requires_grad_() for t in leaves))).detach()


def _loss(without: Any, lost: Any, name: str, least: float) -> str:
    """The loss of one gradient, or nothing."""
    with_it, apart = without + lost, lost.abs()
    size = max(float(without.abs().max()), float(with_it.abs().max())) if apart.numel() else 0.0
    if not size or float(apart.max()) <= least * size:
        return ""
    at = tuple(int(i) for i in _torch.unravel_index(apart.argmax(), apart.shape))
    whole = float(with_it.norm())
    share = float(apart.norm()) / whole if whole > 1e-9 * float(apart.norm()) else 99.0
    part = f", {share:.0%} of it" if share <= 10 else ""
    return f"the gradient of {name} loses {float(apart.norm()):.3g}{part}: it is {float(without[at]):.6g} at {list(at)}, and {float(with_it[at]):.6g} with that path"
