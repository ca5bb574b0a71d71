"""PyTorch's functions checked here, and functions from here used there. Needs PyTorch: `pip install chainrule[torch]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch as _torch

from . import _chainrule as _c
from . import check
from ._chainrule import Tensor
from .io import from_torch, to_torch


def to_chainrule(t: Any, requires_grad: bool = False) -> Tensor:
    """PyTorch's tensor as ours, with memory of its own."""
    return _c.tensor(t.detach().cpu().numpy(), None, requires_grad)


def to_pytorch(t: Tensor) -> Any:
    """Our tensor as PyTorch's, with memory of its own."""
    return _torch.from_numpy(t.detach().numpy().copy())


def _callable(fn: Any) -> Callable[..., Any]:
    return fn.apply if isinstance(fn, type) and issubclass(fn, _torch.autograd.Function) else fn  # type: ignore[attr-defined, no-any-return, unused-ignore]


def lift(fn: Any) -> Callable[..., Tensor]:
    """A function of PyTorch as one of ours: its backward pass is the one that PyTorch runs, a user's own included."""
    function = _callable(fn)
    name = getattr(fn, "__name__", type(fn).__name__)

    def forward(*inputs: Tensor) -> Tensor:
        with _torch.no_grad():
            return to_chainrule(function(*(to_pytorch(t) for t in inputs)))

    def backward(cotangent: Tensor, *rest: Tensor) -> list[Any]:
        leaves = [to_pytorch(t).requires_grad_(t.is_floating_point()) for t in rest[:-1]]
        with _torch.enable_grad():
            out = function(*leaves)
        wanted = [t for t in leaves if t.requires_grad]
        grads = iter(_torch.autograd.grad(out, wanted, to_pytorch(cotangent), allow_unused=True))
        return [None if (g := next(grads) if t.requires_grad else None) is None else to_chainrule(g) for t in leaves]

    def lifted(*inputs: Tensor) -> Tensor:
        return _c._apply_custom(name, forward, backward, list(inputs))

    return lifted


def _doubles(inputs: Any) -> list[Tensor]:
    given = [inputs] if isinstance(inputs, _torch.Tensor) else list(inputs)
    return [to_chainrule(t.double() if t.is_floating_point() else t) for t in given]


def gradcheck(fn: Any, inputs: Any, *, reference: Any = None, seeds: int = 3) -> check.Report:
    """Whether the backward pass of a function of PyTorch, of a `torch.autograd.Function` or of a module is right; and if not, which mistake it makes.

    The inputs are taken in float64. With a `reference` (a function of chainrule's tensors that computes the same) the verdict names the op and the
    mistake; without one it reads the numbers.
    """
    if isinstance(fn, _torch.nn.Module):
        fn = fn.double()
    ours = lift(fn)
    tensors = _doubles(inputs)
    report = check.explain(ours, tensors, reference, seeds=seeds)
    if report.passed:
        return check.Report(True, "the gradients are right: they agree with differences of the function")
    return report


def wrap(f: Callable[..., Tensor]) -> Callable[..., Any]:
    """A function of ours as a differentiable function of PyTorch."""

    class Wrapped(_torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            floats = [t.is_floating_point() and ctx.needs_input_grad[i] for i, t in enumerate(inputs)]
            leaves = [to_chainrule(t, needs) for t, needs in zip(inputs, floats)]
            from .autograd import enable_grad

            with enable_grad():
                ctx.out = f(*leaves)
            ctx.leaves, ctx.floats = leaves, floats
            return to_pytorch(ctx.out)

        @staticmethod
        @_torch.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            wanted = [t for t, needs in zip(ctx.leaves, ctx.floats) if needs]
            found = iter(_c._grad([ctx.out], wanted, [to_chainrule(grads[0])], False))
            return tuple(None if not needs or (g := next(found)) is None else to_pytorch(g) for needs in ctx.floats)

    def wrapped(*inputs: Any) -> Any:
        return Wrapped.apply(*inputs)

    wrapped.__name__ = getattr(f, "__name__", "wrapped")
    return wrapped


__all__: Sequence[str] = ["from_torch", "gradcheck", "lift", "to_chainrule", "to_pytorch", "to_torch", "wrap"]
