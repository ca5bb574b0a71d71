"""Functions with a reverse rule of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from . import _chainrule as _c
from . import _functions as _f
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError
from .autograd import no_grad


class Context:
    """The context that `forward` leaves for `backward`: tensors by `save_for_backward`, and
    anything else as an attribute.
    """

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        # Tensors that `forward` saw, with what `backward` gets in their place.
        self._known: list[tuple[Any, Any]] = []
        self.needs_input_grad: tuple[bool, ...] = ()
        self._apart: list[Tensor] = []
        self._dirty: list[Tensor] = []
        self._fills = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for `backward`, which finds them in `saved_tensors`."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that `forward` kept: arguments and results with their place on the tape, so
        that `backward` can be differentiated again by them. A leaf is the caller's tensor itself.
        """
        return tuple(next((y for x, y in self._known if x is t), t) for t in self._saved)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Says that these outputs have no gradient."""
        self._apart = list(tensors)

    def mark_dirty(self, *tensors: Any) -> None:
        """Says that these arguments were written in `forward`: the one that is given back becomes
        the result.
        """
        self._dirty = list(tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for outputs without a gradient (the default), or None for
        those that are not differentiable; outputs that nobody used have zeros here.
        """
        self._fills = value


class Function:
    """A function with a reverse rule of its own: subclass it with static methods
    `forward(ctx, ...)` and `backward(ctx, *grads)`.

    `forward` gives a tensor, or several in a tuple, and `backward` gets a gradient for each of
    them; it gives one for each argument of `forward`, None for what has none. Or `forward(...)` has
    no context, and `setup_context(ctx, inputs, output)` keeps what is needed.
    `chainrule.check.gradcheck` tells whether the two agree, and if not, why.

    ```
    class Halves(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return a / 2 + b * 2

    x = cr.ones(3, requires_grad=True)
    y, z = Halves.apply(x)
    (y + z).sum().backward()
    assert x.grad.tolist() == [2.5] * 3
    ```
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """The value; what happens in it is not recorded."""
        raise NotImplementedError("a Function defines forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keeps what `backward` needs, where `forward` has no context."""
        raise NotImplementedError("no setup_context")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of all arguments of `forward`; None for what has none."""
        raise NotImplementedError("a Function defines backward")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The value, recorded with this reverse rule."""
        if any(isinstance(a, ComplexTensor) for a in args):
            raise TypeError(f"{cls.__name__}.apply: complex tensors are not supported; pass view_as_real(z), and take view_as_complex in forward and backward")
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx = Context()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        parts = _Parts(cls.__name__, ctx)
        written: list[tuple[int, Tensor]] = []
        returned: list[int] = []
        seen: list[tuple[int, Tensor, int]] = []

        def run(*inputs: Tensor) -> Tensor:
            all_args = list(args)
            before = [t._writes for t in inputs]
            for i, t in zip(places, inputs):
                all_args[i] = t
            with no_grad():
                if cls.setup_context is Function.setup_context:
                    out = cls.forward(ctx, *all_args)
                else:
                    out = cls.forward(*all_args)
                    cls.setup_context(ctx, tuple(all_args), out)
            seen[:] = [(k, t, args[places[k]]._writes) for k, (t, n) in enumerate(zip(inputs, before)) if t._writes == n]
            written[:] = [(i, t.detach().clone()) for i, t, n in zip(places, inputs, before) if t._writes != n]
            returned[:] = [i for i, t in zip(places, inputs) if t is out and any(t is d for d in ctx._dirty)]
            return parts.joined(out)

        def reverse(cotangent: Tensor, *values: Tensor) -> list[Any]:
            ctx._known = parts.outputs(values[-1])
            for k, t, n in seen:
                x = args[places[k]]
                ctx._known.append((t, x if x.is_leaf and x.requires_grad and x._writes == n else values[k]))
            try:
                grads = cls.backward(ctx, *parts.cotangents(cotangent))
            finally:
                ctx._known = []
            grads = grads if isinstance(grads, (tuple, list)) else (grads,)
            if len(grads) != len(args):
                raise ArgumentError(f"{cls.__name__}.backward gave {len(grads)} gradients for {len(args)} arguments of forward")
            return [grads[i] for i in places]

        made = parts.taken(_c._apply_custom(cls.__name__, run, reverse, [args[i] for i in places]))
        # The caller sees writes of `forward` to its arguments.
        for i, value in written:
            if i in returned:
                return args[i]._assign(made)
            with no_grad():
                args[i].copy_(value)
        return made


class _Parts:
    """Several outputs of a function as one tensor, and back. Outputs that have no gradient stay
    beside it.
    """

    def __init__(self, name: str, ctx: Context) -> None:
        self._name, self._ctx = name, ctx
        self._alone = True
        self._outs: list[Any] = []
        self._places: list[int] = []

    def joined(self, out: Any) -> Tensor:
        """The output itself, or all that have gradients in a row."""
        self._alone = isinstance(out, Tensor)
        self._outs = [out] if self._alone else list(out)
        self._places = [i for i, t in enumerate(self._outs) if isinstance(t, Tensor) and t.is_floating_point() and not self._is_apart(t)]
        if self._alone and self._places:
            return self._outs[0]  # type: ignore[no-any-return]
        flowing = [self._outs[i] for i in self._places]
        if len({t.dtype for t in flowing}) > 1:
            raise TypeError(f"{self._name}.forward gave tensors of {' and '.join(t.dtype.name for t in flowing)}; all that have gradients are of one dtype")
        return _f.cat([t.reshape(-1) for t in flowing]) if flowing else _c._full((0,), 0.0, None)

    def _is_apart(self, t: Tensor) -> bool:
        return any(t is a for a in self._ctx._apart)

    def cotangents(self, cotangent: Tensor) -> list[Any]:
        """The gradients of all outputs; zeros where there is none."""
        if self._alone:
            return [cotangent]
        fills = self._ctx._fills
        out: list[Any] = [t * 0 if fills and isinstance(t, Tensor) else None for t in self._outs]
        at = 0
        for i in self._places:
            n = math.prod(self._outs[i].shape)
            out[i] = cotangent[at : at + n].reshape(self._outs[i].shape)
            at += n
        return out

    def outputs(self, row: Tensor) -> list[tuple[Any, Any]]:
        """The outputs that have gradients, each with its part of the recorded result."""
        made = self.taken(row)
        return [(self._outs[i], made if self._alone else made[i]) for i in self._places]

    def taken(self, row: Tensor) -> Any:
        """The outputs as `forward` gave them."""
        if self._alone and self._places:
            return row
        at = 0
        outs = [t.detach() if isinstance(t, Tensor) else t for t in self._outs]
        for i in self._places:
            shape = self._outs[i].shape
            n = math.prod(shape)
            outs[i] = row[at : at + n].reshape(shape)
            at += n
        return outs[0] if self._alone else tuple(outs)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reverse rule that is not differentiated again: its gradients are constants, and where they
    depend on a gradient from outside, a second derivative is an error.
    """

    @functools.wraps(function)
    def run(ctx: Any, *cotangents: Any) -> Any:
        with no_grad():
            grads = function(ctx, *cotangents)
        linked = [t for t in cotangents if isinstance(t, Tensor) and t.requires_grad]
        if not _c.is_grad_enabled() or not linked:
            return grads
        if isinstance(grads, (tuple, list)):
            return tuple(_only_once(g, linked[0]) for g in grads)
        return _only_once(grads, linked[0])

    return run


def _only_once(value: Any, link: Tensor) -> Any:
    """A value whose gradient is an error."""
    if not isinstance(value, Tensor):
        return value

    def refuse(*_: Any) -> Any:
        raise _c.GradientError("once_differentiable: the reverse rule is differentiated a second time, and it says that it cannot be")

    return _c._apply_custom("once_differentiable", lambda _: value.detach().clone(), refuse, [link])


__all__ = ["Context", "Function", "once_differentiable"]
