"""PyTorch's functions checked here, and functions from here used there. Needs PyTorch: `pip install chainrule[torch]`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch as _torch

from . import _chainrule as _c
from . import check
from ._chainrule import Tensor
from .autograd import enable_grad, no_grad
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


def _traced_module(module: Any, count: int) -> tuple[Callable[..., Any], list[str]]:
    """As `_with_parameters`, for stand-ins of tensors."""
    module = copy.deepcopy(module).double()
    names = [n for n, p in module.named_parameters() if p.requires_grad]

    def function(*all_of_them: Any) -> Any:
        for name, value in zip(names, all_of_them[count:]):
            owner, _, leaf = name.rpartition(".")
            module.get_submodule(owner)._parameters[leaf] = value
        return module(*all_of_them[:count])

    return function, names


def _reference(fn: Any, plain: Callable[..., Any], inputs: list[Tensor], count: int) -> Callable[..., Tensor] | None:
    """The forward pass of `fn` in our ops, if it can be followed and gives the same values."""
    from ._tracing import Untraceable, traced

    function = _traced_module(fn, count)[0] if isinstance(fn, _torch.nn.Module) else plain
    reference = traced(function)
    try:
        with no_grad():
            ours, theirs = reference(*inputs), to_chainrule(_one(plain(*(to_pytorch(t) for t in inputs))))
        same = ours.shape == theirs.shape and ours.allclose(theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
    except Untraceable:
        return None
    return reference if same else None


def gradcheck(fn: Any, inputs: Any, *, reference: Any = None, seeds: int = 3) -> check.Report:
    """Whether the backward pass of a function of PyTorch, of a `torch.autograd.Function` or of a module is right; and if not, which mistake it makes.

    The inputs are taken in float64; of a module also the parameters. The verdict compares with the gradient of what the forward pass computes,
    which is followed op by op; it names the op and the mistake. Where the forward pass leaves PyTorch's functions, or uses one that is not here,
    a `reference` may be given (a function of chainrule's tensors that computes the same; for a module of its inputs, and then of its parameters);
    without one the numbers are read beside differences.
    """
    inputs_given = inputs
    count = 1 if isinstance(inputs, _torch.Tensor) else len(list(inputs))
    names = [f"input {i}" for i in range(count)]
    plain = fn
    if isinstance(fn, _torch.nn.Module):
        if reference is not None and _takes(reference) == count:
            plain = copy.deepcopy(fn).double()
        else:
            plain, inputs = _with_parameters(fn, inputs)
            names += [n for n, p in fn.named_parameters() if p.requires_grad]
    ours = _doubles(inputs)
    if reference is None:
        reference = _reference(fn, _callable(plain), ours, count)
    lifted = lift(plain)
    if reference is None:
        report = check.explain(lifted, ours, seeds=seeds)
        unnamed = not report.passed and "no known pattern" in report.text
    else:
        report = check.explain(lifted, ours, _named(reference, names), seeds=seeds)
        unnamed = "unidentified" in report.text
    if unnamed:
        again = (check.explain(lifted, ours, _named(f, names), seeds=seeds) for f in _known(lifted, ours))
        report = next((r for r in again if "unidentified" not in r.text), report)
    if report.passed:
        where = "differences of the function" if reference is None else "those of what the forward pass computes"
        return check.Report(True, f"the gradients are right: they agree with {where}")
    return _named_line(report, fn, inputs_given)


def _named_line(report: check.Report, fn: Any, inputs: Any) -> check.Report:
    """The report with the line of the user's backward in which the mistake is, and its correction, where these are found."""
    from ._follow.of_torch import followed

    found = followed(fn, inputs)
    return report.with_lines(found) if found else report


def _takes(reference: Any) -> int | None:
    """How many arguments a function takes, if that is certain."""
    try:
        parameters = inspect.signature(reference).parameters.values()
    except (TypeError, ValueError):
        return None
    return len(parameters) if all(p.kind in (0, 1) and p.default is p.empty for p in parameters) else None


def _named(reference: Callable[..., Tensor], names: list[str]) -> Callable[..., Tensor]:
    """The function with names for its inputs, by which the verdict calls them."""

    def function(*inputs: Tensor) -> Tensor:
        for t, name in zip(inputs, names):
            if t.is_leaf and t.requires_grad:
                t.named(name)
        return reference(*inputs)

    return function


def _known(function: Callable[..., Tensor], inputs: list[Tensor]) -> list[Callable[..., Tensor]]:
    """Ops that are the function of one input, as a whole: a mistake in a formula written out is known by the name of the op."""
    from .nn import functional as F

    candidates: list[Callable[[Tensor], Tensor]] = [F.sigmoid, F.tanh, F.silu, F.gelu, F.softplus, F.logsigmoid, F.mish, F.relu, F.elu, F.softsign]
    candidates += [lambda x, d=d, f=f: f(x, d) for f in (F.softmax, F.log_softmax) for d in range(inputs[0].ndim)]  # type: ignore[misc]
    candidates += [lambda x: F.layer_norm(x, x.shape[-1:]), lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0), lambda x: F.rms_norm(x, x.shape[-1:])]
    if len(inputs) != 1 or not inputs[0].is_floating_point() or not inputs[0].ndim:
        return []
    with no_grad():
        want = function(*inputs)
        return [f for f in candidates if (y := f(*inputs)).shape == want.shape and y.allclose(want, rtol=1e-9, atol=1e-9)]


def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours, of one result or several, as a differentiable function of PyTorch. It can be differentiated once."""
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
