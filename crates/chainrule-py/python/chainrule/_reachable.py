"""All that a function can reach: what a trial of it may write, and has to be taken back."""

from __future__ import annotations

import inspect
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._refilled import Containers
from ._snapshot import restore, snapshot
from .autograd import no_grad
from .optim.optimizer import Optimizer

# Objects that are looked at; more are data that no step writes to.
_MOST = 20_000
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)


class Reachable:
    """All that a call can write to by its arguments, its variables and fields of objects: tensors
    with their gradients, states of optimizers, generators of random numbers.
    """

    def __init__(self, function: Callable[..., Any], args: Any) -> None:
        found = _found([function, args])
        self._tensors = [(t, t._writes, _value(t)) for t in found if isinstance(t, Tensor)]
        self._grads = [(t, g, None if g is None else snapshot(g)) for t, _, _ in self._tensors if t.is_leaf and t.requires_grad for g in [gradient(t)]]
        self._optimizers = [(o, o._kept()) for o in found if isinstance(o, Optimizer)]
        self._generators = [(g, g.get_state()) for g in found if isinstance(g, _c.Generator)]
        self._args = Containers(args)

    def put_back(self) -> None:
        """Takes all writes back."""
        with no_grad():
            for t, writes, value in self._tensors:
                # Steps of an optimizer do not count as writes.
                if t._writes != writes or (t.is_leaf and t.requires_grad):
                    t.copy_(value)
        for t, g, kept in self._grads:
            if gradient(t) is not g:
                t.grad = g
            if kept is not None:
                restore(kept)
        for optimizer, state in self._optimizers:
            optimizer._put_back(state)
        for generator, state in self._generators:
            generator.set_state(state)
        self._args.put_back()


def gradient(p: Tensor) -> Tensor | None:
    """The gradient; None where a program has used it up."""
    try:
        return p.grad  # type: ignore[no-any-return]
    except _c.GradientError:
        return None


def _value(t: Tensor) -> Tensor:
    """The value as it is now, in the same memory until somebody writes."""
    kept = _c._full((), 0.0, None)
    kept._recast(t)
    return kept


def _found(roots: list[Any]) -> list[Any]:
    """The tensors, optimizers and generators that are reached."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = list(roots)
    while waiting and len(seen) < _MOST:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, _LEAVES):
            continue
        seen.add(id(x))
        if isinstance(x, (Tensor, Optimizer, _c.Generator)):
            found.append(x)
        if not isinstance(x, (Tensor, _c.Generator)):
            waiting += _parts(x)
    return found


def _parts(x: Any) -> Iterable[Any]:
    if isinstance(x, Mapping):
        return list(x.values())
    if isinstance(x, (list, tuple, set, frozenset, deque)):
        return list(x)
    if isinstance(x, types.MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, types.FunctionType):
        try:
            read = inspect.getclosurevars(x)
        except (TypeError, ValueError):
            return []
        return [*read.nonlocals.values(), *read.globals.values(), *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    return list(getattr(x, "__dict__", {}).values())
