"""Hooks of modules on the way back: the gradients that come to a module, and those it passes on."""

from __future__ import annotations

from typing import Any

from .._chainrule import Tensor, is_grad_enabled
from .._custom import Function


class _Passing(Function):
    """All tensors as they are; `seen` gets their gradients together, and gives those to go on."""

    @staticmethod
    def forward(ctx: Any, seen: Any, *tensors: Any) -> Any:
        ctx.seen = seen
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.seen(grads))


def _passed(seen: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, of which those that have gradients tell them to `seen`."""
    at = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    if not at or not is_grad_enabled():
        return values

    def whole(grads: Any) -> list[Any]:
        # A tensor that wants no gradient counts as one that got none.
        all_of: list[Any] = [v.detach() * 0 if isinstance(v, Tensor) and v.is_floating_point() else None for v in values]
        for i, g in zip(at, grads):
            all_of[i] = g
        found = seen(tuple(all_of))
        return [found[i] for i in at]

    out = list(values)
    for i, t in zip(at, _Passing.apply(whole, *(values[i] for i in at))):
        out[i] = t
    return tuple(out)


def _as_tuple(new: Any) -> tuple[Any, ...]:
    return tuple(new) if isinstance(new, (tuple, list)) else (new,)


class watched:
    """One call of a module that has hooks on the way back."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._up: tuple[Any, ...] | None = None
        self._inputs_flow = False

    def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, whose gradients the hooks see."""
        self._inputs_flow = is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        self._given = len(args)
        return _passed(self._back, args)

    def _back(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self._module.__dict__.get("_backward_hooks", {}).values()):
            new = hook(self._module, grads, self._up)
            if new is not None:
                new = _as_tuple(new)
                if len(new) != len(grads):
                    raise RuntimeError(f"{type(self._module).__name__}: a backward hook gave {len(new)} gradients for {len(grads)} inputs")
                grads = new
        return grads

    def left(self, out: Any) -> Any:
        """The result, whose gradients the hooks see first."""
        if isinstance(out, dict):
            names = list(out)
            return type(out)(zip(names, _passed(self._first, tuple(out.values()))))
        if isinstance(out, (tuple, list)) and not hasattr(out, "_fields"):
            return type(out)(_passed(self._first, tuple(out)))
        return _passed(self._first, (out,))[0]

    def _first(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self._module.__dict__.get("_backward_pre_hooks", {}).values()):
            new = hook(self._module, grads)
            grads = grads if new is None else _as_tuple(new)
        self._up = grads
        # No gradient comes to inputs that want none, and the hooks are called now.
        if not self._inputs_flow:
            self._back((None,) * self._given)
        return grads
