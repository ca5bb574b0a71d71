"""Sights of a monitor at the calls of the model itself: inputs, outputs with their gradients,
modes, and whether batches differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ._chainrule import Tensor, WholeSight
from ._variables import scopes

# Looks at one and the same batch after which it is said to be always that one.
_SAME = 6
# Numbers of a batch that are compared.
_SAMPLE = 64
# Examples for which the model is asked twice.
_ASKED = 8
# Batches of a list that is taken for those of the data, and not for parts of it.
_BATCHES = 4
_MODES = ("Dropout", "BatchNorm")


class Sights:
    """The hooks on a model for one monitor, whose `_native` part they tell."""

    def __init__(self, monitor: Any, model: Any) -> None:
        self._monitor, self._native, self._model = monitor, monitor._native, model
        self._first: tuple[Any, tuple[Any, ...]] | None = None
        self._looks = 0
        # Whether all looks so far saw the same inputs.
        self.sees_batches = True
        self._has_rest = False
        self._is_asking = False
        self._has_asked = False
        self._inputs: Any = None
        self._is_text: bool | None = None
        self.questions: list[Callable[[], None]] = []
        self.is_evaluating = False
        # Modules with their hooks, and what takes out those that are in.
        self._hooks: list[tuple[Any, Any]] = []
        self._handles: list[Any] = []
        self._stays = False
        self._leaf: Any = None
        self._of_whole: Any = None
        self._loaders: dict[int, tuple[Any, int]] = {}
        self._modules = list(model.named_modules())
        self._has_modes = [m for _, m in self._modules if any(kind in type(m).__name__ for kind in _MODES)]
        rates = [float(m.p) for _, m in self._modules if "Dropout" in type(m).__name__ and isinstance(getattr(m, "p", None), float)]
        if rates:
            self._native.setting("dropout", max(rates))

    def attach(self) -> Iterator[Callable[[], Any]]:
        """Puts the hooks in; gives what takes them out."""
        monitor = self._monitor
        for name, module in self._modules:
            bounds = next((b for kind, b in monitor._bounds.items() if isinstance(module, kind)), None)
            self._hooks.append((module, monitor._sight(name or "output", module, bounds, not list(module.children()))))
        self._of_whole = monitor._whole_sight(self, bool(self._has_modes))
        self._hooks.append((self._model, self._of_whole))
        self._put_in(self._hooks)
        yield lambda: self._take_out(0)
        yield from self._watch_loaders()

    def _put_in(self, hooks: list[tuple[Any, Any]]) -> None:
        self._handles += [module.register_forward_hook(hook) for module, hook in hooks]

    def _take_out(self, first: int) -> None:
        """The hooks from that one on."""
        while len(self._handles) > first:
            self._handles.pop().remove()

    def attend(self, is_due: bool) -> None:
        """The hooks of single modules are there for a step that is looked at; that of the whole
        comes after them.
        """
        if self._stays or is_due == (len(self._handles) > 1):
            return
        self._take_out(0)
        self._put_in(self._hooks if is_due else self._hooks[-1:])

    def stay(self) -> None:
        """The hooks stay: a compiled function is traced anew when those of its modules change."""
        if not self._stays:
            self.attend(True)
            self._stays = True

    # Each module

    def hook(self, name: str, bounds: Any, is_leaf: bool) -> Callable[..., None]:
        """The hook of a module, where the native side has none."""
        monitor = self._monitor

        def hook(module: Any, args: Any, out: Any) -> None:
            if not self._sees(out) or not (module.training and self._native.is_due()):
                return
            with monitor._timed:
                if is_leaf:
                    # A weak link would do, but not all tensors have one.
                    self._leaf = (out, type(module).__name__, bounds)
                self._native.output(name, monitor._ours(out), bounds)
                if out.requires_grad:
                    out.register_hook(lambda g: self._came_back(name, g))

        return hook

    def _sees(self, out: Any) -> bool:
        return not self._is_asking and isinstance(out, self._monitor._tensor) and out.is_floating_point() and not self._monitor._is_tracing()

    def _came_back(self, name: str, g: Any) -> None:
        if self._is_asking:
            return
        with self._monitor._timed:
            self._native.output_gradient(name, self._monitor._ours(g))

    # The model as a whole

    def whole(self, module: Any, args: Any, out: Any) -> None:
        """The hook of the model."""
        if not self._sees(out):
            return
        recorded = bool(out.requires_grad)
        if self._has_modes:
            # Part of a model may rest in evaluation mode by intent.
            rests = not module.training and not any(m.training for m in self._has_modes)
            self._evaluates(recorded and rests)
            if not recorded and module.training and all(m.training for m in self._has_modes) and not self._monitor._is_recording():
                self._native.wrong_mode(False)
        x = next((a for a in args if isinstance(a, self._monitor._tensor)), None)
        if x is None or not x.shape:
            return
        if not recorded:
            self._has_rest = self._has_rest or self._first is None or tuple(x.shape) != self._first[1][0]
            return
        self._inputs = x if x.is_floating_point() else None
        if not self._native.is_due():
            return
        with self._monitor._timed:
            self.see_inputs(x)
            if len(args) == 1 and not self._has_asked:
                self._has_asked = True
                if not self._counts_places_first(x, out):
                    self.questions.append(lambda: self._ask_for_examples(x, len(out)))
            if self._native.passes_over_answer():
                self._leaf = None
            else:
                bounds = self._range_of(out)
                self._monitor._hook(out, lambda g: self._answered(x, out, g, bounds))
            if self._has_asked and not self.sees_batches and isinstance(self._of_whole, WholeSight):
                self._of_whole.rest()

    def _counts_places_first(self, x: Any, out: Any) -> bool:
        """Whether the first axis may be that of places: a layer takes it so, and each place has an
        answer.
        """
        takes = any(getattr(m, "batch_first", True) is False for _, m in self._modules)
        return takes and (len(x.shape) < 3 or len(out.shape) > 2 or x.shape[0] == x.shape[1])

    def _evaluates(self, is_evaluating: bool) -> None:
        if is_evaluating:
            # The backward pass of it has to be seen.
            self._monitor.follow_passes()
        self.is_evaluating = is_evaluating
        if isinstance(self._of_whole, WholeSight):
            self._of_whole.evaluates(is_evaluating)

    def see_inputs(self, x: Any) -> None:
        """The inputs of a pass that is looked at."""
        if x.is_floating_point():
            self._native.inputs(self._monitor._ours(x))
        if self.sees_batches:
            self.see_batch(x)

    def _range_of(self, out: Any) -> Any:
        """The bounds of the last module, where it gave the answer."""
        if isinstance(out, Tensor):
            return self._native.range_of(out)
        leaf, self._leaf = self._leaf, None
        name, bounds = (leaf[1], leaf[2]) if leaf is not None and leaf[0] is out else ("", None)
        return bounds or self._monitor._ranges.get(name)

    def _answered(self, x: Any, out: Any, g: Any, bounds: Any) -> None:
        loss = self._native.last_loss()
        if loss is None or self._is_asking:
            return
        with self._monitor._timed:
            ours = self._monitor._ours
            self._native.answer(loss, ours(out), ours(g), bounds)
            if self._is_text is None:
                self._is_text = self._is_language(x, out, g)
                if self._is_text:
                    self.questions.append(lambda: self._ask_for_places(x.detach()))

    def after_backward(self) -> None:
        """The pass is done: a model that trained in evaluation mode did so, and the model may be
        asked again."""
        if self.is_evaluating:
            self._evaluates(False)
            self._native.wrong_mode(True)
        # The graph is done with: what the model keeps may be put back.
        questions, self.questions = self.questions, []
        for ask in questions:
            with self._monitor._timed:
                ask()

    def sleep(self, is_asleep: bool) -> None:
        """Whether passes are no part of the training, so that hooks rest."""
        self._is_asking = is_asleep
        self._native.sleep(is_asleep)

    def modules(self) -> list[Any]:
        """The modules of the model."""
        return [m for _, m in self._modules]

    def has_hooks(self) -> bool:
        """Whether modules have hooks of the user that more passes would call."""
        return any(vars(m).get(kind) for _, m in self._modules for kind in ("_backward_hooks", "_backward_pre_hooks"))

    def see_spike(self) -> None:
        """The inputs of the newest pass, whose loss was a spike."""
        inputs = self._of_whole.inputs() if isinstance(self._of_whole, WholeSight) else None
        inputs = self._inputs if inputs is None else inputs
        if inputs is not None and inputs.is_floating_point():
            self._native.inputs(self._monitor._ours(inputs))

    # Batches

    def see_batch(self, x: Any) -> None:
        """Whether the inputs are those of the first look."""
        flat = x.detach().reshape(-1)
        # A distance without a common factor with the columns meets all of them.
        distance = max(1, len(flat) // _SAMPLE)
        while math.gcd(distance, max(1, x.shape[-1])) > 1:
            distance += 1
        sample = (tuple(x.shape), tuple(flat[::distance].tolist()))
        if self._first is None:
            self._first = (x, sample)
        first = self._first[0]
        is_same = repr(sample) == repr(self._first[1])
        self._looks += 1
        # Most numbers of a batch may be zero in each, so that a sample does not tell.
        if is_same and self._looks <= _SAME and x is not first:
            is_same = bool((x == first).all())
        if not is_same:
            self.sees_batches = False
            self._native.same_batch(None)
        elif self._looks == _SAME:
            self._native.same_batch(self._of_more(x))
        elif self._has_rest:
            # The rest of the data is what the model is measured on.
            self._native.same_batch(None)

    def _of_more(self, x: Any) -> tuple[int, int] | None:
        """Rows of the batch and of the data that it is a part of, if more are in reach."""
        rows = int(x.shape[0])
        for loader, passes in self._loaders.values():
            batches, data = _length(loader), _length(getattr(loader, "dataset", None))
            if passes >= _SAME - 1 and batches > 1:
                return rows, data or rows * batches
        frames = list(scopes())
        for scope in frames:
            for value in list(scope.values()):
                if type(value).__name__ == "DataLoader" and _length(value) > 1 and id(value) not in self._loaders and self._first is not None and x is self._first[0]:
                    return rows, _length(getattr(value, "dataset", None)) or rows * _length(value)
        lists = [len(value) for scope in frames for value in list(scope.values()) if _is_list_of_batches(value, x)]
        if lists and not self._has_rest:
            return rows, max(lists) * rows
        if self._has_rest or (self._first is not None and x is self._first[0]):
            return None
        for scope in frames:
            for value in list(scope.values()):
                if self._holds(value, x) and int(value.shape[0]) > 2 * rows:
                    return rows, int(value.shape[0])
        return None

    def _holds(self, value: Any, x: Any) -> bool:
        """Whether a tensor has the first and the last row of the batch among more."""
        if not isinstance(value, self._monitor._tensor) or value is x or tuple(value.shape[1:]) != tuple(x.shape[1:]) or value.dtype != x.dtype:
            return False
        if not value.shape or value.shape[0] <= 2 * x.shape[0] or x.shape[0] < 1:
            return False
        flat, probe = value.detach().reshape(value.shape[0], -1), x.detach().reshape(x.shape[0], -1)
        if bool((flat == flat[:1]).all()):
            return False
        return all(bool((flat == probe[at]).all(-1).any()) for at in (0, -1))

    def _watch_loaders(self) -> Iterator[Callable[[], Any]]:
        kind = self._monitor._loader()
        if kind is None:
            return
        original = kind.__iter__

        def begin(loader: Any) -> Any:
            self._loaders[id(loader)] = (loader, self._loaders.get(id(loader), (loader, 0))[1] + 1)
            return original(loader)

        kind.__iter__ = begin
        yield lambda: setattr(kind, "__iter__", original)

    # Questions to the model

    def _ask_for_examples(self, x: Any, rows: int) -> None:
        """One input is changed, and the answers to the others must stay as they are."""
        if x.shape[0] < _ASKED or rows != x.shape[0]:
            return
        few = x.detach()[:_ASKED].clone()
        changed = few.clone()
        changed[2] = few[3]
        answers = self._asked(few, changed)
        if answers is None or answers[0].shape[0] != _ASKED or bool((few[2] == few[3]).all()):
            return
        # Places taken for examples move later ones alone, where a layer looks back.
        others = [0, 1, *range(3, _ASKED)]
        share = _moved(answers[0][others], answers[1][others])
        if share > 1e-4:
            self._native.depends(False, share)

    def _is_language(self, x: Any, out: Any, g: Any) -> bool:
        """Whether the targets, as the gradient of a cross-entropy shows them, are the tokens that
        follow."""
        if x.is_floating_point() or len(x.shape) != 2 or x.shape[1] < 4 or math.prod(out.shape[:-1]) != math.prod(x.shape):
            return False
        y = g.detach().reshape(*x.shape, out.shape[-1]).argmin(-1)
        return bool((y[:, :-1] == x[:, 1:]).float().mean() > 0.9)

    def _ask_for_places(self, x: Any) -> None:
        """A later token is changed, and the answers at the places before must stay as they are."""
        few = x[:_ASKED].clone()
        at = few.shape[1] // 2
        changed = few.clone()
        changed[:, at] = few[:, at - 1]
        answers = self._asked(few, changed)
        if answers is None or bool((few == changed).all()):
            return
        before, after = (a.reshape(*few.shape, a.shape[-1])[:, :at] for a in answers)
        share = _moved(before, after)
        if share > 1e-5:
            self._native.depends(True, share)

    def _asked(self, *inputs: Any) -> list[Any] | None:
        """Answers in evaluation mode; the model is left as it was."""
        monitor = self._monitor
        kept = [(m, dict(vars(m))) for _, m in self._modules]
        buffers = [(b, b.detach().clone()) for b in self._model.buffers()]
        state = monitor._random_state()
        self.sleep(True)
        try:
            with monitor._not_recording():
                self._model.eval()
                return [self._model(x).detach() for x in inputs]
        except Exception:  # noqa: BLE001 -- a model of the user may refuse fewer rows with any error; then nothing is asked
            return None
        finally:
            for m, attributes in kept:
                for name in [name for name in vars(m) if name not in attributes]:
                    del m.__dict__[name]
                m.__dict__.update(attributes)
            with monitor._not_recording():
                for b, value in buffers:
                    if bool((b != value).any()):
                        b.copy_(value)
            monitor._set_random_state(state)
            self.sleep(False)


def _length(of: Any) -> int:
    try:
        return len(of)
    except TypeError:
        return 0


def _is_list_of_batches(value: Any, x: Any) -> bool:
    """Whether a list has tuples of tensors, the inputs of one of them these, and others of their
    shape.
    """
    if not isinstance(value, (list, tuple)) or len(value) < _BATCHES:
        return False
    if not all(isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], type(x)) for batch in value):
        return False
    shapes = [tuple(batch[0].shape) for batch in value]
    return any(batch[0] is x for batch in value) and shapes.count(tuple(x.shape)) >= len(value) - 1


def _moved(a: Any, b: Any) -> float:
    """The largest difference beside the largest number."""
    if not math.prod(a.shape):
        return 0.0
    size = float(a.abs().max().item())
    share = float((a - b).abs().max().item()) / (size + 1e-12)
    return share if math.isfinite(share) else 0.0
