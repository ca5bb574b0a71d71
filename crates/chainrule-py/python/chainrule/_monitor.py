"""The monitor: watches a loop of training as it is, and says what goes wrong in it."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from . import _chainrule as _c
from ._chainrule import Tensor
from ._clock import Clock
from ._curvature import largest_curvature
from ._finding import Finding
from ._monitored_program import Beside
from ._observers import ACTIVE, STEPPED, STEPPING
from ._random import get_rng_state, set_rng_state
from ._reachable import Reachable, gradient
from ._sights import Sights
from ._snapshot import restore, snapshot
from ._variables import caller_line, parameters_by_name
from .autograd import no_grad
from .nn import activation_layers as activations
from .nn.module import Module
from .optim._native import Native

# The share of the time that looks may take where no distance of them is given, and the seconds of
# the processor that they may take whatever comes: on a busy machine a look waits for its turn, and
# that is no reason to see less of a short training.
_SHARE = 0.015
_FREE = 0.03
# The first look with what costs several passes; others are the double, and so on.
_RARE = 16
# Looks at first that ask for all settings, and every how many later ones do; of looks at each step
# it is as many times fewer.
_OFTEN = 8
# Answers of the native side about a part of a step: it is not looked at, or the native side tells
# of the look itself.
_CALM = 1
_LOOK = 2
# Steps to the next look from which on it is worth to take out what wraps them.
_FAR = 4
# Steps of other parameters after which the loss is taken for one of several trainings.
_ELSEWHERE = 3
_SETTINGS = ("momentum", "dampening", "eps", "weight_decay")
Self = TypeVar("Self", bound="Monitor")


class Monitor:
    """Made by `monitor`. Watches while its `with` block runs.

    The loop is seen at `backward` and at the optimizer's `step`, which stay as they are; tensors
    are looked at in sampled steps. Without an optimizer each backward pass is a step.
    """

    _tensor: Any = Tensor
    # Whether a step of the optimizer that is not looked at is only counted, and whether the native
    # side may do so alone.
    _counts_steps = True
    _counts_alone = True
    # Whether most looks, of those whatever they cost, are told of by the native side alone.
    _has_plain_looks = True
    _bounds: Mapping[Any, tuple[int, int]] = {activations.Tanh: (-1, 1), activations.Sigmoid: (0, 1)}
    # Least and largest result of other modules, as far as the last one decides what can be said.
    _ranges: Mapping[str, tuple[float, float]] = {"ReLU": (0.0, math.inf), "Softplus": (0.0, math.inf), "Softmax": (0.0, 1.0)}

    def __init__(self, model: Any, optimizer: Any = None, *, every: int | None = None, _depth: int = 1) -> None:
        self._native = _c.Monitor(100 if every is None else every, _OFTEN if every is not None and self._has_plain_looks else None)
        self._share = _SHARE if every is None else None
        self._began, self._timed = time.perf_counter(), Clock(self._share is not None)
        self._optimizers, self._elsewhere = 1, 0
        self._sights: Sights | None = None
        self._model, self._optimizer = model, optimizer
        self._has_calm_steps = self._counts_steps and optimizer is not None
        self._parameters = parameters_by_name(model, optimizer, sys._getframe(_depth + 1), self._tensor)
        self._hold()
        self._passes = 0
        self._has_stepped = False
        self._is_probing = False
        self._was_due = False
        # Nothing is to be done before a compiled function but the look at it.
        self._is_settled = False
        self._lines: dict[str, str] = {}
        self._undo: list[Callable[[], Any]] = []
        # Functions that take the wrappers of backward passes and steps out.
        self._wrappers: list[Callable[[], Any]] = []
        self._counted: _c.CountedSteps | None = None
        # Compiled functions, whether they hold a whole step, and what is seen of one beside.
        self._whole: dict[int, bool] = {}
        self._beside: dict[int, Beside] = {}
        self._tracer: Beside | None = None

    # For the user

    def findings(self) -> list[Finding]:
        """Findings, the surest first; empty where nothing is known to be wrong."""
        out = []
        for kind, place, since, evidence, consequence, fix, confidence in self._native.findings():
            where = "backward" if kind in ("not_zeroed", "no_gradient", "not_finite") else "step"
            line = self._lines.get(where, self._lines.get("backward", ""))
            out.append(Finding(kind, place, since, dict(evidence), consequence, fix, confidence, line))
        if self._optimizer is not None and self._passes >= 3 and self._native.steps() == 0:
            counted = {"backward passes": float(self._passes), "steps": 0.0}
            text = "gradients arrive, but no step uses them"
            out.insert(0, Finding("not_updated", "", 0, counted, text, "call optimizer.step() after backward()", 0.95, self._lines.get("backward", "")))
        return out

    def validated(self, loss: float | Any) -> None:
        """Tells the loss on examples that the model does not learn from."""
        self._native.validated(float(loss))

    def report(self, path: str | Path, title: str = "Training report") -> None:
        """Writes curves, layers over time, histograms and findings as one HTML file."""
        Path(path).write_text(self._native.html(title), encoding="utf-8")

    def tensorboard(self, folder: str | Path, graph: Any = None) -> Path:
        """Writes what was seen as an event file of TensorBoard into `folder`: losses, rates, norms,
        histograms and findings, and the graph of the loss that is given as `graph` before its
        backward pass. Gives the path of the file.
        """
        return Path(self._native.tensorboard(Path(folder), graph))

    @property
    def measures(self) -> dict[str, float]:
        """Measures of the training as a whole: `smoothness` of the loss, `noise_scale` of its
        gradients, `curvature` beside `stable_curvature` (2 / rate), `seconds` of a step, `bytes` of
        tensors.
        """
        return dict(self._native.measures())

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._native.steps()

    def __enter__(self: Self) -> Self:
        self._attach()
        return self

    def __exit__(self, *args: object) -> None:
        self._count_no_more()
        self._end_by_hand()
        while self._undo:
            self._undo.pop()()
        self._native.end()

    # Attaching

    def _attach(self) -> None:
        for other in ACTIVE:
            if isinstance(other, Monitor):
                other._count_no_more()
        self._undo.append(self._unwrap)
        self._is_settled = False
        self._wrap()
        self._watch_modules()
        ACTIVE.append(self)
        self._undo.append(lambda: ACTIVE.remove(self))

    def _wrap(self) -> None:
        self._watch_backward()
        if self._optimizer is not None:
            self._watch_steps()

    def _unwrap(self) -> None:
        while self._wrappers:
            self._wrappers.pop()()

    def _watch_backward(self) -> None:
        owner, original = self._tensor, self._tensor.backward
        monitor = self

        begin, note = self._native.begin_pass, self._native.note_gradients

        def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
            if monitor._has_calm_steps and not monitor._is_probing and (stage := begin(self, monitor._has_stepped)):
                monitor._passes += 1
                monitor._has_stepped = False
                out = original(self, *args, **kwargs)
                monitor._answer_questions()
                if stage == _LOOK:
                    note()
                return out
            if monitor._is_tracing():
                if monitor._tracer is None:
                    return original(self, *args, **kwargs)
                out = original(self, *args, **kwargs)
                monitor._tracer.after_backward(self)
                return out
            monitor._before_backward(self)
            out = original(self, *args, **kwargs)
            monitor._after_backward()
            return out

        owner.backward = backward
        self._wrappers.append(lambda: setattr(owner, "backward", original))

    def _watch_modules(self) -> None:
        if callable(getattr(self._model, "named_modules", None)):
            self._sights = Sights(self, self._model)
            self._undo += self._sights.attach()

    def _watch_steps(self) -> None:
        # A loop may make its optimizer anew: each that has one of these parameters counts.
        owner = type(self._optimizer)
        original = owner.step
        monitor = self

        begin = self._native.begin_step

        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if optimizer is monitor._optimizer and monitor._has_calm_steps and not monitor._is_probing and (stage := begin()):
                out = original(optimizer, *args, **kwargs)
                monitor._has_stepped = True
                monitor._end_look() if stage == _LOOK else monitor._pass_over()
                return out
            if monitor._is_tracing() or not monitor._steps_here(optimizer):
                if monitor._tracer is not None and monitor._steps_here(optimizer):
                    monitor._tracer.before_step()
                elif monitor._tracer is None:
                    monitor._note_elsewhere()
                return original(optimizer, *args, **kwargs)
            monitor._before_step(optimizer)
            out = original(optimizer, *args, **kwargs)
            monitor._after_step()
            return out

        has_own = "step" in vars(owner)
        owner.step = step
        self._wrappers.append(lambda: setattr(owner, "step", original) if has_own else delattr(owner, "step"))

    def _note_elsewhere(self) -> None:
        """Counts a step of parameters that are not watched: those of the other net of a game, which
        moves the loss as well.
        """
        self._elsewhere += 1
        if self._elsewhere == _ELSEWHERE:
            self._native.setting("other_optimizers", 1.0)

    def _steps_here(self, optimizer: Any) -> bool:
        if optimizer is self._optimizer:
            return True
        known = {id(p) for p in self._parameters.values()}
        return any(id(p) in known for group in getattr(optimizer, "param_groups", ()) for p in group["params"])

    # Time

    def _put_off(self) -> None:
        """The next look waits until its time is earned, or until there are twice as many steps:
        first looks that cost much leave no long time unseen.
        """
        looks = self._native.looked()
        often = _OFTEN if looks <= _OFTEN * _OFTEN else _OFTEN * _OFTEN
        if self._share is None and looks > _OFTEN and looks % often:
            return
        spent = self._timed.spent + self._native.spent()
        steps = self._native.steps()
        each = (time.perf_counter() - self._began - spent) / max(steps, 1)
        self._native.resources(each)
        if self._share is None:
            return
        if self._timed.is_counting:
            if spent * self._timed.share < _FREE:
                return
            self._timed.is_counting = False
        earned = int(spent * (1 + 1 / looks) / self._share / max(each, 1e-9))
        self._native.rest_until(min(earned, 2 * steps))

    # The events of a step

    def _before_backward(self, loss: Any) -> None:
        self._end_by_hand()
        if self._is_rare() and self._native.is_due():
            self._see_curvature(loss)
        if self._is_probing:
            self._note_loss(loss)
        else:
            self._passes += 1
            self._begin_backward(loss)
        self._has_stepped = False
        if "backward" not in self._lines:
            self._lines["backward"] = caller_line()

    def _is_rare(self) -> bool:
        """Whether the next look takes in what costs several passes: the 16th, the 32nd and so on,
        or each eightfold one where no share of the time bounds looks.
        """
        looks = self._native.looks() + 1
        if looks < _RARE or looks & (looks - 1):
            return False
        return self._share is not None or ((looks // _RARE).bit_length() - 1) % 3 == 0

    def _see_curvature(self, loss: Any) -> None:
        """Asks the graph of the loss for the largest curvature, as long as nobody but the monitor
        hears of its passes.
        """
        if self._native.hooks() or math.prod(loss.shape) != 1 or (self._sights is not None and self._sights.has_hooks()):
            return
        with self._timed:
            if self._sights is not None:
                self._sights.sleep(True)
            try:
                largest = largest_curvature(loss, [p for p in self._parameters.values() if p.requires_grad])
            except (RuntimeError, NotImplementedError):
                # Not every function has a second derivative.
                largest = None
            finally:
                if self._sights is not None:
                    self._sights.sleep(False)
            if largest is not None:
                self._native.curvature(largest)

    def _answer_questions(self) -> None:
        sights = self._sights
        if sights is not None and (sights.is_evaluating or sights.questions) and not self._is_probing:
            sights.after_backward()

    def _after_backward(self) -> None:
        self._answer_questions()
        self._note_gradients()
        if self._optimizer is None and self._native.is_due():
            self._was_due = self._see_before_step()

    def _before_step(self, optimizer: Any) -> None:
        if optimizer is not self._optimizer:
            self._optimizers, self._optimizer = self._optimizers + 1, optimizer
            self._hold()
        looks = self._native.looks()
        if (looks < _OFTEN or looks % (_OFTEN * _OFTEN if self._share is None else _OFTEN) == 0) and self._native.is_due():
            if "step" not in self._lines:
                self._lines["step"] = caller_line()
            with self._timed:
                self._see_settings(optimizer)
                self._hold()
        self._was_due = self._see_before_step()

    def _see_settings(self, optimizer: Any) -> None:
        for group in getattr(optimizer, "param_groups", ())[:1]:
            found = {name: group[name] for name in _SETTINGS if name in group}
            betas = group.get("betas")
            if isinstance(betas, (list, tuple)) and len(betas) >= 2:
                found.update(beta1=betas[0], beta2=betas[1])
            for name, value in found.items():
                if isinstance(value, (int, float)):
                    self._native.setting(name, float(value))
        self._native.setting("optimizers", float(self._optimizers))

    def _after_step(self) -> None:
        self._has_stepped = True
        if not self._is_probing:
            self._finish_step()

    def _end_by_hand(self) -> None:
        """Without an optimizer a step has ended when the next begins."""
        if self._optimizer is None and not self._is_probing and self._native.last_loss() is not None:
            self._has_stepped = True
            self._finish_step()

    def _finish_step(self, out: Any = None) -> float | None:
        """Ends a step; `out` is what a compiled function gave that made it."""
        loss, is_spike, is_due = self._end_step(out)
        if is_spike and self._sights is not None:
            self._sights.see_spike()
        if self._was_due:
            self._put_off()
            is_due = is_due if self._share is None else self._native.is_due()
        self._was_due = False
        if self._has_calm_steps and self._sights is not None:
            self._sights.attend(is_due)
        return loss

    def _end_step(self, out: Any) -> tuple[float | None, bool, bool]:
        """The loss, whether it was a spike, and whether the next step is looked at."""
        return self._native.end_step(self._optimizer, out, self._was_due)

    def _end_look(self, out: Any = None) -> None:
        """Ends a step that was looked at and asks nothing more."""
        self._looked_alone(*self._native.end_look(self._optimizer, out))

    def _looked_alone(self, is_spike: bool, is_due: bool) -> None:
        if self._sights is not None and (is_spike or not is_due):
            if is_spike:
                self._sights.see_spike()
            self._sights.attend(is_due)
        if is_due and self._counts_alone and self._counted is None:
            self._count()

    def _pass_over(self, out: Any = None) -> None:
        """Ends a step that was not looked at."""
        self._passed(*self._native.pass_over(self._optimizer, out))

    def _passed(self, is_spike: bool, is_due: bool) -> None:
        if self._sights is not None and (is_spike or is_due):
            if is_spike:
                self._sights.see_spike()
            self._sights.attend(is_due)
        if not is_due and self._counted is None:
            self._count()

    # Steps between looks, and looks that ask nothing of Python: the native side tells of them where
    # passes and steps are made

    def _count(self) -> None:
        """Takes the wrappers out until the next look that needs them, if it is far or the next one
        does not, and nothing else needs them.
        """
        if not self._counts_alone or ACTIVE != [self] or not isinstance(self._optimizer, Native):
            return
        looks = self._native.stage() == _LOOK
        if not looks and self._native.steps_to_look() < _FAR:
            return
        if self._sights is not None and self._sights.questions:
            return
        self._unwrap()
        if type(self._optimizer).step is not Native.step:
            # A class of the user has a step of its own.
            self._counts_alone = False
            return self._wrap()
        self._counted = _c.CountedSteps(self._native, self._optimizer, self._wake, self._other_step, looks)
        if looks:
            STEPPING.append(self._counted.before)
        STEPPED.append(self._counted)

    def _count_no_more(self) -> None:
        counted, self._counted = self._counted, None
        if counted is not None:
            if counted.before in STEPPING:
                STEPPING.remove(counted.before)
            STEPPED.remove(counted)
            passes, self._has_stepped = counted.stop()
            self._passes += passes
            self._wrap()

    def follow_passes(self) -> None:
        """Each backward pass is to be seen from now on."""
        self._counts_alone = False
        self._count_no_more()

    def _wake(self, is_spike: bool, is_due: bool) -> None:
        """After a counted step that was a spike, or with which looks begin, end or ask for more."""
        if is_due:
            self._count_no_more()
        self._passed(is_spike, is_due)
        if not is_due and self._sights is not None:
            self._sights.attend(False)

    def _other_step(self, optimizer: Any) -> None:
        """A step of another optimizer between those that are counted."""
        if not isinstance(optimizer, type(self._optimizer)):
            return
        if not self._steps_here(optimizer):
            return self._note_elsewhere()
        self._count_no_more()
        self._before_step(optimizer)
        self._after_step()

    # Parameters: here by handles that the native side holds

    def _hold(self) -> None:
        self._native.hold(list(self._parameters.items()))
        self._native.hold_stepped(self._stepped())

    def _stepped(self) -> list[Any]:
        return [p for group in getattr(self._optimizer, "param_groups", ()) for p in group["params"]]

    def _begin_backward(self, loss: Any) -> None:
        self._native.before_backward(loss, self._has_stepped)

    def _note_loss(self, loss: Any) -> None:
        self._native.note_loss(loss)

    def _see_before_step(self) -> bool:
        """Sees parameters and gradients before the update, if the step is looked at; whether it
        is.
        """
        return self._native.before_step()

    def _note_gradients(self) -> None:
        self._native.note_gradients()

    def _sight(self, name: str, module: Any, bounds: Any, is_leaf: bool) -> Any:
        """The hook of a module."""
        return self._native.sight(name, bounds, is_leaf, bounds or self._ranges.get(type(module).__name__))

    def _hook(self, t: Any, hook: Callable[[Any], None]) -> None:
        self._native.hook(t, hook)

    def _whole_sight(self, sights: Sights, has_modes: bool) -> Any:
        return self._native.whole_sight(has_modes, sights.whole)

    def _rate(self) -> float | None:
        return self._native.rate(self._optimizer)

    # Our tensors and compiled functions

    def _gradient(self, p: Any) -> Any:
        return gradient(p)

    def _ours(self, t: Any) -> Tensor:
        return t.detach()  # type: ignore[no-any-return]

    def _is_tracing(self) -> bool:
        return _c._session_on()

    def _is_recording(self) -> bool:
        return _c.is_grad_enabled()

    def _not_recording(self) -> Any:
        return no_grad()

    def _random_state(self) -> Any:
        return get_rng_state()

    def _set_random_state(self, state: Any) -> None:
        set_rng_state(state)

    def _loader(self) -> Any:
        from .utils.data import DataLoader

        return DataLoader

    def around(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a compiled function: as a program, which gives at looks what is to be seen, or
        with a step op by op beside it.
        """
        key = id(compiled)
        # Steps that the native side tells of alone, of functions that were seen before.
        stage = self._native.stage() if self._is_settled else None
        if stage == _CALM and self._has_calm_steps and self._whole.get(key, False):
            out = compiled._call(*args, **kwargs)
            self._pass_over(out)
            return out
        beside = self._beside.get(key)
        if stage == _LOOK and beside is not None and beside.is_usable:
            found = beside.look(args, kwargs)
            if found is not None:
                out, is_spike, is_due = found
                if is_spike or not is_due:
                    self._looked_alone(is_spike, is_due)
                return out
        # Programs step where no optimizer tells of it.
        self._counts_alone = False
        self._count_no_more()
        if self._sights is not None:
            self._sights.stay()
        self._is_settled = True
        is_due = self._native.is_due()
        if is_due and self._whole.get(key, True):
            is_plain = self._native.is_plain()
            if beside is not None and beside.is_usable and (is_plain or not self._is_rare()):
                out = beside.run(args, kwargs)
                if beside.is_usable:
                    if is_plain:
                        self._end_look(out)
                        return out
                    self._was_due = True
                    self._finish_step(out)
                    return out
            with self._timed:
                self._whole[key] = self._probe(compiled, args, kwargs)
            if beside is None and self._whole[key]:
                self._beside[key] = Beside(self, compiled)
        out = compiled._call(*args, **kwargs)
        # One that is first seen between looks says itself whether it made a step.
        if self._whole.get(key, False) or (key not in self._whole and self._has_stepped_in(compiled)):
            self._whole[key] = True
            self._was_due = is_due
            self._finish_step(out)
        return out

    def _has_stepped_in(self, compiled: Any) -> bool:
        """Whether the newest call of a compiled function was a program that steps the optimizer."""
        traced, optimizer = compiled._last, self._optimizer
        return traced is not None and traced.eager is None and any(steps is optimizer for steps in traced.steps)

    def _probe(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Runs the function op by op and takes all back; whether it made a step."""
        stepped, self._is_probing, self._has_stepped = self._has_stepped, True, False
        kept, reached = self._kept(), Reachable(compiled.__wrapped__, (args, kwargs))
        try:
            compiled.__wrapped__(*args, **kwargs)
            is_whole = self._has_stepped
        finally:
            self._is_probing, self._has_stepped = False, stepped
            self._native.forget_losses()
            self._put_back(kept)
            reached.put_back()
        return is_whole

    def _kept(self) -> Any:
        """All that a step changes, to be put back."""
        tensors = [*self._parameters.values()]
        if isinstance(self._model, Module):
            known = {id(p) for p in tensors}
            tensors += [t for t in (*self._model.parameters(), *self._model.buffers()) if id(t) not in known]
        grads = [(p, None if (g := self._gradient(p)) is None else snapshot(g)) for p in self._parameters.values()]
        optimizer = None if self._optimizer is None else self._optimizer._kept()
        return snapshot(tensors), grads, optimizer, get_rng_state()

    def _put_back(self, kept: Any) -> None:
        values, grads, optimizer, rng = kept
        set_rng_state(rng)
        restore(values)
        for p, g in grads:
            p.grad = None if g is None else restore(g)
        if optimizer is not None:
            self._optimizer._put_back(optimizer)


def monitor(model: Any, optimizer: Any = None, *, every: int | None = None) -> Monitor:
    """Watches a loop of training: `with cr.monitor(model, optimizer) as m:` around it.

    `model` is a module, or a list or dictionary of parameters, which have the names of the caller's
    variables; `optimizer` is what steps it, and without one each backward pass counts as a step.
    Tensors are looked at often at the beginning, and then so that looks take 1.5 % of the time;
    `every=n` looks at every `n`th step whatever it costs. The loop is the same to the bit.
    `m.findings()` are a list of `Finding`, and `m.report("report.html")` writes the whole as a
    page.

    ```
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=100.0)
    x, y = cr.randn(32, 3), cr.randn(32, 1)
    with cr.monitor(model, optimizer) as m:
        for _ in range(20):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
    assert m.findings()[0].kind in ("rate_too_high", "not_finite")
    ```
    """
    return Monitor(model, optimizer, every=every)
