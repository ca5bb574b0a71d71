"""PyTorch's functions checked here, and functions from here used there. Needs PyTorch: `pip install chainrule[torch]`."""

from __future__ import annotations

import copy
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


def _one(out: Any) -> Any:
    """Several results as the row of all their elements."""
    if isinstance(out, _torch.Tensor):
        return out
    return _torch.cat([t.reshape(-1) for t in out if isinstance(t, _torch.Tensor) and t.is_floating_point()])


def lift(fn: Any) -> Callable[..., Tensor]:
    """A function of PyTorch as one of ours: its backward pass is the one that PyTorch runs, a user's own included."""
    called = _callable(fn)

    def function(*inputs: Any) -> Any:
        return _one(called(*inputs))

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


def _with_parameters(module: Any, inputs: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A module as a function of its inputs and its parameters, in float64; the module itself stays as it is."""
    module = copy.deepcopy(module).double()
    names = [n for n, p in module.named_parameters() if p.requires_grad]
    given = [inputs] if isinstance(inputs, _torch.Tensor) else list(inputs)

    def function(*all_of_them: Any) -> Any:
        parameters = dict(zip(names, all_of_them[len(given) :]))
        return _torch.func.functional_call(module, parameters, all_of_them[: len(given)])

    function.__name__ = type(module).__name__
    return function, [*given, *(module.get_parameter(n).detach() for n in names)]


def gradcheck(fn: Any, inputs: Any, *, reference: Any = None, seeds: int = 3) -> check.Report:
    """Whether the backward pass of a function of PyTorch, of a `torch.autograd.Function` or of a module is right; and if not, which mistake it makes.

    The inputs are taken in float64; of a module also the parameters. With a `reference` (a function of chainrule's tensors that computes the same
    from the inputs) the verdict names the op and the mistake; without one it reads the numbers.
    """
    if isinstance(fn, _torch.nn.Module):
        fn, inputs = _with_parameters(fn, inputs) if reference is None else (copy.deepcopy(fn).double(), inputs)
    report = check.explain(lift(fn), _doubles(inputs), reference, seeds=seeds)
    if report.passed:
        return check.Report(True, "the gradients are right: they agree with differences of the function")
    return report


def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours, of one result or several, as a differentiable function of PyTorch. It can be differentiated once."""
    from .autograd import enable_grad

    class Wrapped(_torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.floats = [t.is_floating_point() and ctx.needs_input_grad[i] for i, t in enumerate(inputs)]
            ctx.leaves = [to_chainrule(t, needs) for t, needs in zip(inputs, ctx.floats)]
            with enable_grad():
                out = f(*ctx.leaves)
            ctx.out = [out] if isinstance(out, Tensor) else list(out)
            results = tuple(to_pytorch(t) for t in ctx.out)
            return results[0] if isinstance(out, Tensor) else results

        @staticmethod
        @_torch.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            wanted = [t for t, needs in zip(ctx.leaves, ctx.floats) if needs]
            known = [(t, to_chainrule(g)) for t, g in zip(ctx.out, grads) if t.requires_grad]
            found = iter(_c._grad([t for t, _ in known], wanted, [g for _, g in known], False))
            return tuple(None if not needs or (g := next(found)) is None else to_pytorch(g) for needs in ctx.floats)

    def wrapped(*inputs: Any) -> Any:
        return Wrapped.apply(*inputs)

    wrapped.__name__ = getattr(f, "__name__", "wrapped")
    return wrapped


__all__: Sequence[str] = ["from_torch", "gradcheck", "lift", "to_chainrule", "to_pytorch", "to_torch", "wrap"]
