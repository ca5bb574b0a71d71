"""PyTorch's functions checked here, and functions from here used there. Needs PyTorch:
`pip install chainrule[torch]`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch as _torch

from . import _chainrule as _c
from . import check
from ._chainrule import Tensor
from ._lift import Case, lift, one, to_chainrule, to_pytorch
from ._torchcheck import Checked, few_threads, tensors_beside
from ._torchcheck import gradcheck as _judge
from ._torchmonitor import monitor as monitor
from .autograd import enable_grad, no_grad
from .io import from_torch, to_torch


def _traced_module(case: Case) -> Callable[..., Any]:
    """The case for stand-ins of tensors."""
    module = case.fn
    count = len(case.places)

    def function(*floats: Any) -> Any:
        arguments = case.inputs(floats[:count])
        for name, value in zip(case.parameters, floats[count:]):
            owner, _, leaf = name.rpartition(".")
            module.get_submodule(owner)._parameters[leaf] = value
        return module(*arguments)

    return function


def _reference(found: Checked) -> Callable[..., Tensor] | None:
    """The forward pass in our ops, if it can be followed and gives the same values."""
    from ._tracing import Untraceable, traced

    case = copy.copy(found.case)
    case.fn = copy.deepcopy(case.fn) if case.module else case.fn
    reference = traced(_traced_module(case) if case.module else lambda *floats: case.fn(*case.inputs(floats)))
    try:
        with no_grad():
            ours, theirs = reference(*found.ours), to_chainrule(one(found.function(*found.values)))
        same = ours.shape == theirs.shape and ours.allclose(theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
    except Untraceable:
        return None
    return reference if same else None


def gradcheck(fn: Any, inputs: Any, *, reference: Any = None, order: int = 1, seeds: int = 3) -> check.Report:
    """Whether the backward pass of a function of PyTorch, of a `torch.autograd.Function` or of a
    module is right; and if not, which mistake it makes.

    It is checked by all float inputs, and of a module by its parameters; integers (targets, token
    ids), flags and whatever else is among the inputs stay as they are. It runs in float64, and then
    as it was given, in float32 or bfloat16: what rounding explains is not wrong. `order=2` checks
    the gradients of the gradients too. The report's `outcome` is "right", "wrong" or "uncertain";
    it counts as true if it is right.

    Differences of the function judge. If they disagree, a path through which no gradient flows
    (`detach`, `.data`, `.item()`, `no_grad`) is told with its line and what is lost; else the
    verdict compares with the gradient of what the forward pass computes, which is followed op by
    op, and names the op and the mistake. If the forward pass leaves PyTorch's functions, or uses
    one that is not here, a `reference` may be given (a function of chainrule's tensors that
    computes the same; for a module of its inputs, and then of its parameters); without one the
    numbers are read beside differences.
    """
    given, lines = reference, list[Any]()

    def name_it(found: Checked, beside: bool) -> check.Report | None:
        names, ours = found.case.names, tensors_beside(found.values) if beside else found.ours
        function, reference = found.function, given if given is not None else _reference(found)
        if found.case.module and given is not None and _takes(given) == len(found.case.places):
            count, rest = len(found.case.places), found.values[len(found.case.places) :]
            function, ours, names = lambda *floats: found.function(*floats, *rest), ours[:count], names[:count]
        if not lines and not found.is_lawless:
            lines.append(_followed(fn, inputs))
        # With the lines known, the numbers have no more to say than what the catalogue calls
        # it.
        known = any(f.is_whole and any(c.corrected for c in f.corrections) for f in lines[0]) if lines else False
        return _explained(lift(function), ours, reference, names, seeds, known)

    with few_threads(fn, inputs):
        return _named_line(_judge(fn, inputs, order, seeds, name_it), fn, inputs, lines)


def _followed(fn: Any, inputs: Any) -> list[Any]:
    from ._follow.of_torch import followed

    return list(followed(fn, inputs))


def _named_line(report: check.Report, fn: Any, inputs: Any, lines: list[Any]) -> check.Report:
    """The report with the line of the user's backward in which the mistake is, and its correction,
    where these are found.
    """
    from ._follow.of_torch import beyond, lost

    if report.outcome == "right" and (names := lost(fn, inputs)):
        said = ", ".join(f"`{name}`" for name in names)
        report = check.Report(False, f"the gradients are wrong: of {said}, which is so small that differences cannot see it", "wrong")
    if report.outcome == "right" and (names := beyond(fn, inputs)):
        said = ", ".join(f"`{name}`" for name in names)
        report = check.Report(False, f"the gradients are wrong: of {said}, at larger inputs than those given, where bounds are reached that these do not reach", "wrong")
    if report.outcome != "wrong" or report.text.startswith("the gradients are not those of the function"):
        return report  # a path without a gradient has been told with its line
    if "is random" in report.text:
        return report  # what comes out otherwise each time cannot be followed
    found = lines[0] if lines else _followed(fn, inputs)
    return report.with_lines(found, "not linear" in report.text) if found else report


def _explained(
    lifted: Callable[..., Tensor], ours: list[Tensor], reference: Callable[..., Tensor] | None, names: list[str], seeds: int, known: bool
) -> check.Report | None:
    """The verdict of the forward pass, or of the numbers alone, on the gradients."""
    from ._tracing import Untraceable

    try:
        if reference is None and known:
            return None
        if reference is None:
            report = check.explain(lifted, ours, seeds=seeds)
            unnamed = not report.passed and "no known pattern" in report.text
        else:
            report = check.Report(*_c._explain(lifted, _named(reference, names), ours, not known))
            unnamed = "unidentified" in report.text or "no classic mistake" in report.text
        if unnamed:
            again = (check.Report(*_c._explain(lifted, _named(f, names), ours, False)) for f in _known(lifted, ours))
            report = next((r for r in again if "unidentified" not in r.text), report)
    except (ValueError, RuntimeError, Untraceable):
        return None  # the inputs are too large to be read, or the reference computes something else there
    return report


def _takes(reference: Any) -> int | None:
    """The number of arguments of a function, if that is certain."""
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
    """Ops that are the function of one input, as a whole: a mistake in a formula written out is
    known by the name of the op.
    """
    from .nn import functional as F

    candidates: list[Callable[[Tensor], Tensor]] = [F.sigmoid, F.tanh, F.silu, F.gelu, F.softplus, F.logsigmoid, F.mish, F.relu, F.elu, F.softsign]
    candidates += [lambda x: F.gelu(x, approximate="tanh"), F.hardswish, F.leaky_relu]
    candidates += [lambda x, d=d, f=f: f(x, d) for f in (F.softmax, F.log_softmax) for d in range(inputs[0].ndim)]  # type: ignore[misc]
    candidates += [lambda x: F.layer_norm(x, x.shape[-1:]), lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0), lambda x: F.rms_norm(x, x.shape[-1:])]
    if len(inputs) != 1 or not inputs[0].is_floating_point() or not inputs[0].ndim:
        return []
    with no_grad():
        want = function(*inputs)
        return [f for f in candidates if (y := f(*inputs)).shape == want.shape and y.allclose(want, rtol=1e-9, atol=1e-9)]


def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours, of one result or several, as a differentiable function of PyTorch. It can
    be differentiated once.
    """
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


__all__: Sequence[str] = ["from_torch", "gradcheck", "lift", "monitor", "to_chainrule", "to_pytorch", "to_torch", "wrap"]
