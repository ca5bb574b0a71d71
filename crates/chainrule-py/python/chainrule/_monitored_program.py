"""Looks of a monitor at a compiled function: its program with what is to be seen among the results.

Such a program runs in the place of the plain one, so that a look costs little more than the step.
More results may keep some rule from being applied, and then the last bits could be others. So the
first run of each is done twice from one state, and its results, parameters and all other state are
compared with those of the plain program, bit for bit; if any differ, looks are op by op.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _chainrule as _c
from ._chainrule import Tensor
from ._nest import Place, put_back, taken
from ._reachable import Reachable
from .optim.optimizer import give_again


class _Plan(NamedTuple):
    """The places of what is to be seen among the results."""

    look: _c.MonitorLook
    # Inputs of the model: their place among the results or among the arguments.
    inputs: int | None
    given: int | None


class Beside:
    """The program of one compiled function for one monitor."""

    def __init__(self, monitor: Any, compiled: Any) -> None:
        self._monitor, self._plain = monitor, compiled
        self._seen = type(compiled)(compiled.__wrapped__, *compiled._passes)
        self._seen._traced_by = self._traced
        self._plan: _Plan | None = None
        # Programs whose bits were compared, with their plans; they are held, so that a number of
        # an object stands for one of them.
        self._known: dict[int, tuple[Any, _Plan]] = {}
        self._losses: list[Any] = []
        self._before: list[Any] = []
        self._after: list[Any] = []
        # The native look at the newest of them with its arguments, as nearly all looks are one.
        self._ready: tuple[Any, tuple[Any, ...], tuple[int, int | None]] | None = None
        self.is_usable = True

    # In a trace

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        monitor = self._monitor
        seen: list[Any] = []
        self._losses, self._before, self._after = [], [], []
        monitor._native.collect(seen)
        monitor._tracer = self
        try:
            out = self._plain.__wrapped__(*args, **kwargs)
        finally:
            monitor._tracer = None
            monitor._native.collect(None)
        extras: list[Tensor] = []

        def place(t: Any) -> int | None:
            if t is None:
                return None
            at = next((i for i, known in enumerate(extras) if known is t or known._is_same(t)), len(extras))
            if at == len(extras):
                extras.append(t)
            return at

        given: list[Any] = []
        taken((args, kwargs), given)
        outputs, answers = [], []
        for entry in seen:
            if len(entry) == 2:
                answers.append(entry)
                continue
            name, bounds, t, _, _ = entry
            at = place(t)
            assert at is not None
            outputs.append((name, bounds, at, place(t.grad) if t.requires_grad else None))
        inputs = argument = answer = bounds = None
        for arguments, t in answers:
            if isinstance(t, Tensor) and t.requires_grad:
                x = next((x for x in arguments if isinstance(x, Tensor)), None)
                # An argument is not given back as a result, which would cost the program a copy.
                argument = next((i for i, known in enumerate(given) if known is x), None)
                inputs = place(x) if argument is None else None
                at, gradient = place(t), place(t.grad)
                answer = None if at is None or gradient is None else (at, gradient)
                bounds = next((e[4] for e in seen if len(e) == 5 and e[2] is t and e[3]), None)
        before = [place(g) for g in self._before]
        after = [place(g) for g in self._after]
        losses = [at for t in self._losses if (at := place(t)) is not None]
        self._losses, self._before, self._after = [], [], []
        seen.clear()
        answers.clear()
        self._plan = _Plan(_c.MonitorLook(outputs, (before, after or before), losses, inputs, answer, bounds), inputs, argument)
        return out, extras

    def after_backward(self, loss: Any) -> None:
        """A backward pass of the function is done."""
        self._losses.append(loss)
        self._before = self._gradients()

    def before_step(self) -> None:
        """The function is about to step the optimizer."""
        self._after = self._gradients()

    def _gradients(self) -> list[Any]:
        return list(self._monitor._native.gradient_values())

    # At a look

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A step that is looked at. If it cannot be done so, all is as before and the monitor has
        to do it op by op.
        """
        for traced in self._seen._recent:
            known, watched = self._known.get(id(traced)), traced.guards.watched
            if known is not None and watched is not None:
                tensors = traced.conditions.tensors(watched, args, kwargs)
                if tensors is not None:
                    return self._looked(traced, tensors, known[1], args, kwargs)
        try:
            return self._run(args, kwargs)
        finally:
            give_again()

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool, bool] | None:
        """A look that asks nothing of Python, in one call: the result, whether its loss was a
        spike, and whether the next step is looked at. Nothing where it takes more than that.
        """
        monitor = self._monitor
        ready = self._ready
        if ready is not None:
            found = ready[0](*ready[1], args, kwargs, ready[2], monitor._optimizer)
            if found is not None:
                return found  # type: ignore[no-any-return]
        if monitor._sights is not None and monitor._sights.sees_batches:
            return None
        for traced in self._seen._recent:
            known, watched, place = self._known.get(id(traced)), traced.guards.watched, traced.shape[0]
            if known is None or watched is None or place.__class__ is not Place or _gives_more(traced):
                continue
            plan = known[1]
            at, places = (plan.look, traced.conditions, watched), (place.number, plan.given)
            found = monitor._native.look_at(*at, args, kwargs, places, monitor._optimizer)
            if found is not None:
                self._ready = monitor._native.look_at, at, places
                return found  # type: ignore[no-any-return]
        return None

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            traced, tensors = self._seen._found(args, kwargs)
        except (_c.GradientError, RuntimeError, TypeError, ValueError):
            # The plain program says what is wrong, if it is more than this.
            self.is_usable = False
            return None
        if not traced.conditions.are_apart(tensors):
            self.is_usable = False
            return None
        known = self._known.get(id(traced))
        if known is not None:
            return self._looked(traced, tensors, known[1], args, kwargs)
        plan = self._plan
        if plan is None or traced.eager is not None or traced.refilled or not self._has_same_bits(traced, tensors, args, kwargs):
            self.is_usable = False
            return None
        if not _gives_more(traced):
            # The results of the program are then told as they come.
            numbers = [place.number for place in traced.shape[1]]
            inputs = None if plan.inputs is None else numbers[plan.inputs]
            plan = _Plan(plan.look.renumbered(numbers, traced.views), inputs, plan.given)
        self._known[id(traced)] = traced, plan
        return self._looked(traced, tensors, plan, args, kwargs)

    def _results(self, traced: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The results of the function, and the results of the program that are looked at."""
        if _gives_more(traced):
            return self._seen._run(traced, tensors, args, kwargs)
        traced.conditions.begin()
        values = traced.program.run(tensors)
        values += [path.of(values[i]) for i, path in traced.views]
        out = traced.shape[0]
        return (values[out.number] if out.__class__ is Place else put_back(out, values)), values

    def _has_same_bits(self, traced: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> bool:
        monitor = self._monitor
        with monitor._timed:
            kept, reached = monitor._kept(), Reachable(self._plain.__wrapped__, (args, kwargs))
            # The state that was given out goes back to the native side, which programs step.
            self._seen._tell_rates()
            out = self._seen._run(traced, tensors, args, kwargs)[0]
            first = _bits(out), _bits(monitor._kept())
            monitor._put_back(kept)
            reached.put_back()
            out = self._plain._call(*args, **kwargs)
            second = _bits(out), _bits(monitor._kept())
            monitor._put_back(kept)
            reached.put_back()
            self._seen._tell_rates()
        return first == second

    def _looked(self, traced: Any, tensors: list[Tensor], plan: _Plan, args: Any, kwargs: Any) -> Any:
        monitor, native = self._monitor, self._monitor._native
        native.begin_look()
        out, extras = self._results(traced, tensors, args, kwargs)
        x = None if plan.given is None else tensors[plan.given]
        native.see_results(plan.look, extras, x)
        sights = monitor._sights
        if sights is not None and sights.sees_batches:
            x = x if plan.inputs is None else extras[plan.inputs]
            if x is not None:
                with monitor._timed:
                    sights.see_batch(x)
        return out


def _gives_more(traced: Any) -> bool:
    """Whether a call gives or changes more than the results of the program and views of them."""
    return bool(traced.written or traced.graded or traced.given)


def _bits(x: Any) -> Any:
    """Bits of all tensors in a nest, and the rest of it."""
    if isinstance(x, Tensor):
        x = x.detach().contiguous()
        kept = x.float() if x.dtype.name == "bfloat16" else x
        return tuple(x.shape), x.dtype.name, kept.numpy().tobytes()
    if isinstance(x, dict):
        return [(key if isinstance(key, (int, str)) else None, _bits(value)) for key, value in x.items()]
    if isinstance(x, (list, tuple)):
        return [_bits(y) for y in x]
    return x if isinstance(x, (int, float, str, bool, bytes)) or x is None else repr(x)
