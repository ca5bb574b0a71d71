"""Functions that can be followed: a `Function` with a forward and a backward of its own, or two
functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .case import Case


class Kept:
    """The `ctx` of a `Function`, outside any tape."""

    def __init__(self, needs: tuple[bool, ...] = ()) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    @property
    def to_save(self) -> Any:
        return self.saved_tensors

    def mark_non_differentiable(self, *_: Any) -> None:
        """Nothing to do without a tape."""

    mark_dirty = set_materialize_grads = mark_non_differentiable


def _many(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def of_function(engine: Any, function: Any, inputs: Sequence[Any]) -> Case:
    """The case of a `Function` (PyTorch's, or of the same form) at these arguments."""
    newer = getattr(function, "setup_context", None)
    base = next((getattr(c, "setup_context", None) for c in function.__mro__[1:] if c.__module__.startswith(("torch", "chainrule."))), None)
    split = newer is not None and newer is not base

    def forward(given: list[Any]) -> tuple[list[Any], Any]:
        kept = Kept(tuple(engine.is_float(x) for x in given))
        if split:
            out = function.forward(*given)
            function.setup_context(kept, tuple(given), out)
        else:
            out = function.forward(kept, *given)
        return _many(out), kept

    def backward(kept: Any, above: list[Any]) -> Sequence[Any]:
        return _many(function.backward(kept, *above))

    try:
        target = function.forward
        names = [p.name for p in inspect.signature(target).parameters.values() if p.kind in (0, 1)]
        names = names if split else names[1:]
    except (TypeError, ValueError):
        names = []
    given = [engine.double(x) for x in inputs]
    names += [f"input {i}" for i in range(len(names), len(given))]
    return Case(engine, function.__name__, given, names, forward, backward)


def of_forward_and_backward(engine: Any, forward: Callable[..., Any], backward: Callable[..., Any], inputs: Sequence[Any]) -> Case:
    """The case of a function of tensors, and of one that gives the gradients of these by the
    gradient that comes in, and the tensors.
    """

    def run(given: list[Any]) -> tuple[list[Any], Any]:
        kept = Kept()
        kept.saved_tensors = tuple(given)
        return _many(forward(*given)), kept

    def back(kept: Any, above: list[Any]) -> Sequence[Any]:
        return _many(backward(*above, *kept.saved_tensors))

    given = [engine.double(x) for x in inputs]
    try:
        names = [p.name for p in inspect.signature(forward).parameters.values() if p.kind in (0, 1)]
    except (TypeError, ValueError):
        names = []
    names += [f"input {i}" for i in range(len(names), len(given))]
    return Case(engine, getattr(backward, "__name__", "backward"), given, names, run, back)
