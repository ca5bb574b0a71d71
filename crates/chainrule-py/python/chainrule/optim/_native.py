"""Optimizers whose steps are native."""

from __future__ import annotations

import operator
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError, _NotInPrograms
from .._observers import STEPPED, STEPPING
from ..autograd import no_grad
from .optimizer import IGNORED, LIVE, Optimizer, Parameters, options_of, with_grad


class Native(Optimizer):
    """An optimizer whose steps are native, and part of compiled functions."""

    kind = ""
    # Entries of a parameter's state in PyTorch's order; others of the native side are not shown.
    _slots: tuple[str, ...] = ()

    def _begin(self) -> None:
        self._native: list[Any] = []
        self._native_made: list[Any] = []
        self._native_looked: list[tuple[Any, ...]] = []
        # Whether a parameter is given more than once.
        self._native_again: list[bool] = []
        # The parameters that the native side was made with.
        self._native_params: list[list[Tensor]] = []
        # The state as it was given out, with the number of writes to each tensor, and the native
        # side.
        self._native_given: tuple[dict[Any, Any], dict[Any, Any], list[Any]] | None = None
        # The number of the object with the state that was given out before a program, its marks,
        # and the numbers of steps. The object is not held here, so that those who have it show.
        self._native_late: tuple[int, dict[Any, Any], list[dict[str, int]]] | None = None
        # Momentum that was switched off.
        self._native_aside: dict[Tensor, Any] = {}
        # The state of parameters that are in no group any more.
        self._native_left: dict[Tensor, dict[str, Any]] = {}
        # The state as it was given out so far.
        self._native_kept: dict[Any, Any] = defaultdict(dict)

    @property
    def state(self) -> Any:
        """The state of each parameter that was stepped. Writes to it count from the next step on,
        and steps are seen in it.
        """
        if _c._session_on():
            return self._known()
        if self._native_given is None:
            self._give(self._native_kept)
        return self._native_kept

    @state.setter
    def state(self, value: Any) -> None:
        self._take(value if value is self._native_kept else dict(value))

    def _shown(self) -> Any:
        return self.state

    def _is_held(self) -> bool:
        """Whether somebody else has the state that was given out, or a part of it."""
        return _references(self._native_kept) > ALONE

    def _give(self, given: dict[Any, Any]) -> None:
        """Gives the state out, in the dictionaries and tensors in which it was given before."""
        known = self._known()
        for p in [p for p, own in given.items() if own and p not in known]:
            del given[p]
        with no_grad():
            for p, found in known.items():
                own = given.setdefault(p, {})
                for name in [name for name in own if name not in found]:
                    del own[name]
                for name, new in found.items():
                    old = own.get(name)
                    own[name] = _written(old, new)
        self._native_given = (given, _marks(given), list(self._native))
        # Programs hold the native side, and have to ask first.
        self._native[:] = [None] * len(self._native)

    def _known(self) -> dict[Any, Any]:
        return {p: shown for p, found in self._remembered() if (shown := self._in_order(found))}

    def _in_order(self, found: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter as it is shown."""
        out = {name: found[name] for name in self._slots if name in found}
        if "step" in out:
            # PyTorch counts in floats.
            out["step"] = out["step"]._to_dtype("float64" if _c.get_default_dtype().name == "float64" else "float32")
        return out

    def _take_back(self) -> None:
        """Takes over what was written to the state that was given out."""
        if self._native_given is not None:
            (given, marks, self._native[:]), self._native_given = self._native_given, None
            if _marks(given) != marks:
                self._take(given)

    def _remembered(self) -> list[tuple[Tensor, dict[str, Any]]]:
        """The state of each parameter that was stepped, in the order of the groups."""
        self._take_back()
        pool = self._pool()
        grouped = {p: pool[p] for group in self.param_groups for p in group["params"] if p in pool}
        return list((grouped | pool).items())

    def _pool(self) -> dict[Tensor, dict[str, Any]]:
        """The state of each parameter, whichever group it is in or was in."""
        out = dict(self._native_left)
        for native, params in zip(self._native, self._native_params):
            for name, t in native.state_dict():
                _, _, rest = name.partition(".")
                number, _, slot = rest.partition(".")
                if slot:
                    out.setdefault(params[int(number)], {})[slot] = t
        return out

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self._take_back()
        super().add_param_group(param_group)
        try:
            self._renew()
        except Exception:
            self.param_groups.pop()
            self._resize(len(self.param_groups))
            raise

    def _new(self, group: dict[str, Any]) -> _c.Optimizer:
        lr = float(group["lr"])
        # A rate of 0 is one on the way: it is told before each step.
        kind = self.kind
        if "decoupled_weight_decay" in group:
            kind = "AdamW" if group["decoupled_weight_decay"] else "Adam"
        return _c.Optimizer(kind, _stepped_of(group), lr if lr != 0 else 1.0, group)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        if any(self._native_kept.values()):
            self._give(self._native_kept)

    def _take(self, state: dict[Any, Any]) -> None:
        if state is not self._native_kept:
            self._native_kept = defaultdict(dict)
            for p, found in state.items():
                if isinstance(found, dict):
                    self._native_kept[p] = {name: value for name, value in found.items() if isinstance(value, Tensor)}
        if self._native_given is not None:
            self._native[:], self._native_given = self._native_given[2], None
        made = []
        for group in self.param_groups:
            new = self._new(group)
            entries = [(name, t) for name, t in new.state_dict() if not name.startswith("state.")]
            for i, p in enumerate(_unique(group)):
                entries += self._entries(i, group, state.get(p, {}))
            new.load_state_dict(entries)
            made.append(entries)
        # All of it fits. Programs hold the native side, which stays the same where it can.
        self._renew()
        for native, entries in zip(self._native, made):
            native.load_state_dict(entries)
        grouped = {id(p) for group in self.param_groups for p in group["params"]}
        self._native_left = {p: _counted(found) for p, found in state.items() if isinstance(p, Tensor) and id(p) not in grouped and found}

    def _entries(self, i: int, group: dict[str, Any], state: dict[str, Any]) -> list[tuple[str, Any]]:
        """The native entries of parameter `i` with this state. A count of 0 beside what a fresh
        state has is a fresh one.
        """
        state = {name: value for name, value in state.items() if value is not None}
        start = {"sum": float(group.get("initial_accumulator_value", 0.0))}
        if "step" in state and int(state["step"]) == 0 and all(bool((v == start.get(k, 0.0)).all()) for k, v in state.items() if k != "step"):
            return []
        return [(f"state.{i}.{name}", value) for name, value in _counted(state).items()] if state else []

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "state": [(p, dict(found)) for p, found in self._remembered()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        remembered = state.pop("state")
        self.__dict__.update(state)
        self._begin()
        LIVE.add(self)
        self._take(dict(remembered))

    def _renew(self) -> None:
        """Makes the native side anew for groups whose settings or parameters were changed, or whose
        parameters were given other values; what it remembers of each parameter goes on, in
        whichever group it is now.
        """
        self._take_back()
        pool = None
        if len(self._native) != len(self.param_groups):
            pool = self._pool()
            self._resize(len(self.param_groups))
        for i, group in enumerate(self.param_groups):
            native = self._native[i]
            # Most steps change nothing: the same objects are there.
            looked = self._native_looked[i]
            if len(group) == len(looked) and all(map(operator.is_, group.values(), looked)) and _holds(native, group):
                continue
            settings = _settings(group)
            self._native_looked[i] = (None,) if any(isinstance(v, list) for k, v in group.items() if k != "params") else tuple(group.values())
            if settings == self._native_made[i] and _holds(native, group):
                continue
            pool = self._pool() if pool is None else pool
            self._native[i] = self._renewed(i, group, settings, pool)
            self._native_made[i], self._native_again[i] = settings, _is_again(group)
            self._native_params[i] = _unique(group)[:]
        if pool is not None:
            grouped = {id(p) for group in self.param_groups for p in group["params"]}
            self._native_left = {p: found for p, found in pool.items() if id(p) not in grouped}

    def _resize(self, n: int) -> None:
        """Makes a place for each group; new ones hold nothing yet."""
        more = n - len(self._native)
        empty: tuple[tuple[list[Any], Any], ...] = (
            (self._native, None), (self._native_made, None), (self._native_looked, (None,)), (self._native_again, False), (self._native_params, []),
        )
        for places, nothing in empty:
            places[n:] = [nothing] * more

    def _renewed(self, i: int, group: dict[str, Any], settings: dict[str, Any], pool: dict[Tensor, dict[str, Any]]) -> _c.Optimizer:
        """The native side of a group, with what is remembered of its parameters."""
        new = self._new(group)
        state = [(f"state.{j}.{slot}", t) for j, p in enumerate(_unique(group)) for slot, t in pool.get(p, {}).items()]
        if not any(name.endswith(".step") for name, _ in state):
            return new
        try:
            new.load_state_dict([*new.state_dict(), *self._with_momentum(i, state)])
        except ValueError as error:
            old = self._native_made[i] or {}
            what = ", ".join(k for k in settings if settings[k] != old.get(k)) or "the parameters of a group, or the dtype of one,"
            raise ValueError(
                f"{type(self).__name__}: {what} changed after the first step, and what is remembered does not fit ({error}); make a new optimizer"
            ) from error
        return new

    def _with_momentum(self, i: int, state: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The state for the group's momentum as it is now. Buffers of a momentum that was switched
        off wait for it; where there is none, SGD begins with the gradient.
        """
        group = self.param_groups[i]
        if "momentum" not in group:
            return state
        params, aside = _unique(group), self._native_aside
        if not group["momentum"]:
            for name, t in state:
                if name.endswith(".momentum_buffer"):
                    aside[params[int(name.split(".")[1])]] = t
            return [(name, t) for name, t in state if not name.endswith(".momentum_buffer")]
        known = {name.rpartition(".")[0] for name, _ in state if name.endswith(".momentum_buffer")}
        for place in sorted({name.rpartition(".")[0] for name, _ in state if name.startswith("state.")} - known):
            buffer = aside.pop(params[int(place.split(".")[1])], None)
            if buffer is not None:
                state = [*state, (f"{place}.momentum_buffer", buffer)]
            elif self.kind == "SGD":
                state = [(name, t) for name, t in state if not name.startswith(f"{place}.")]
        return state

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of the parameters that have gradients."""
        if self._has_step_hooks():
            if _c._session_on():
                raise _NotInPrograms(f"compile: {type(self).__name__} has hooks of its steps, which a program would not call again: call its step() after the compiled function")
            return self._stepped(Native.step, () if closure is None else (closure,), {})
        loss = None if closure is None else with_grad(closure)
        shown = self._native_given is not None and not _c._session_on()
        self._renew()
        shown = shown and self._is_held()
        if _c._session_on():
            if any(group.get("maximize") for group in self.param_groups):
                raise _NotInPrograms(f"compile: {type(self).__name__} with maximize=True: minimise the negative instead")
            if any(self._native_again):
                raise _NotInPrograms(f"compile: {type(self).__name__}: a parameter is given twice: give it once")
            if any(isinstance(group["lr"], Tensor) for group in self.param_groups):
                raise _NotInPrograms(f"compile: {type(self).__name__}: a learning rate is a tensor: give a number")
            _c._session_stepped(self, [p for group in self.param_groups for p in group["params"]])
        if STEPPING and not _c._session_on():
            for told in list(STEPPING):
                told(self)
        for group, native, again in zip(self.param_groups, self._native, self._native_again):
            if group.get("maximize"):
                _uphill(group["params"], native, float(group["lr"]))
            else:
                native.step(float(group["lr"]))
            if again:
                _again(group, native)
        if shown:
            self._give(self._native_kept)
        if STEPPED and not _c._session_on():
            for told in list(STEPPED):
                told(self)
        return loss

    step._is_traced = True  # type: ignore[attr-defined]

    def _put_back(self, kept: Any) -> None:
        self._native_kept = kept[0].held
        super()._put_back(kept)
        self._give(self._native_kept)

    def _tell_rates(self) -> None:
        """Gives the native side the learning rates, which programs read from there."""
        given = self._native_given
        self._renew()
        if given is not None:
            self._native_late = id(given[0]), given[1], self._counts()
        for group, native in zip(self.param_groups, self._native):
            native.set_lr(float(group["lr"]))

    def _give_again(self) -> None:
        late, self._native_late = self._native_late, None
        if late is None or self._native_given is not None or not self._is_held():
            return
        given, marks, counts = late
        if counts == self._counts() and given == id(self._native_kept):
            # No program stepped it. Another optimizer that has the same tensors may have written to
            # them, which the marks tell.
            self._native_given = (self._native_kept, marks, list(self._native))
            self._native[:] = [None] * len(self._native)
        else:
            self._give(self._native_kept)

    def _counts(self) -> list[dict[str, int]]:
        """The number of steps of each parameter."""
        return [{name: int(t.item()) for name, t in native.state_dict() if name.endswith(".step")} for native in self._native]


def _written(old: Any, new: Any) -> Any:
    """The new value, in the tensor that has the old one where it fits."""
    if not isinstance(old, Tensor) or (old._dims, old.dtype) != (new._dims, new.dtype) or old.requires_grad:
        return new
    try:
        return old._assign(new)
    except ArgumentError:
        # It has the memory of an array.
        return new


def _references(state: dict[Any, Any]) -> int:
    """The most references to the state, to the dictionary of a parameter, or to a tensor of it."""
    most = sys.getrefcount(state)
    for found in state.values():
        most = max(most, sys.getrefcount(found))
        for value in found.values():
            if isinstance(value, Tensor):
                most = max(most, sys.getrefcount(value))
    return most


class _Probe:
    """The references to a state that nobody else has."""

    def __init__(self) -> None:
        self._native_kept = {0: {"": _c._full((), 0.0, None)}}

    def count(self) -> int:
        return _references(self._native_kept)


ALONE = _Probe().count()
# The parameter of a group without one, which never has a gradient.
NOBODY = _c._full((), 0.0, None).requires_grad_()


def _marks(state: dict[Any, Any]) -> dict[Any, Any]:
    """The marks by which a write to the state is seen: its tensors, and the writes to each."""
    return {id(p): {k: (id(v), v._writes) if isinstance(v, Tensor) else v for k, v in found.items()} for p, found in state.items()}


def _unique(group: dict[str, Any]) -> list[Tensor]:
    """The parameters of a group, each once."""
    params: list[Tensor] = group["params"]
    return params if len(set(map(id, params))) == len(params) else list({id(p): p for p in params}.values())


def _stepped_of(group: dict[str, Any]) -> list[Tensor]:
    """The parameters of a group for the native side, which takes at least one."""
    return _unique(group) or [NOBODY]


def _counted(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a parameter with its count of steps, whole."""
    return {**{k: v for k, v in state.items() if v is not None}, "step": _c.tensor(int(state.get("step", 1)), "int64")}


def _is_again(group: dict[str, Any]) -> bool:
    return len(_unique(group)) < len(group["params"])


def _holds(native: _c.Optimizer | None, group: dict[str, Any]) -> bool:
    """Whether the native side steps the parameters of the group, as they are."""
    return native is not None and (native.holds(group["params"]) or native.holds(_stepped_of(group)))


def _uphill(params: list[Tensor], native: _c.Optimizer, lr: float) -> None:
    """A step by the negative gradients."""
    grads = [p.grad for p in params]
    try:
        for p, g in zip(params, grads):
            p.grad = None if g is None else -g.detach()
        native.step(lr)
    finally:
        for p, g in zip(params, grads):
            p.grad = g


def _again(group: dict[str, Any], native: _c.Optimizer) -> None:
    """Further steps of parameters that are given more than once, by the same gradients."""
    times = Counter(group["params"])
    grads = {p: p.grad for p in times}
    try:
        for done in range(1, max(times.values())):
            for p, g in grads.items():
                p.grad = g if times[p] > done else None
            if group.get("maximize"):
                _uphill(list(times), native, float(group["lr"]))
            else:
                native.step(float(group["lr"]))
    finally:
        for p, g in grads.items():
            p.grad = g


# Settings of a group that are not the native side's.
_APART = {"params", "lr", "initial_lr", "maximize", *IGNORED}


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """All that the native side is made with; the learning rate is told at each step."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in group.items() if k not in _APART}


class SGD(Native):
    """Gradient descent, with momentum if wanted."""

    kind = "SGD"
    _slots = ("momentum_buffer",)

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov, **options_of("SGD", more)}
        )


class Adam(Native):
    """Steps scaled by running averages of the gradient and its square."""

    kind = "Adam"
    _slots = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, **options_of(self.kind, more)})


class AdamW(Adam):
    """Adam with decay of the weights apart from the gradient."""

    kind = "AdamW"

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **more)


class RMSprop(Native):
    """Steps scaled by a running average of the square."""

    kind = "RMSprop"
    _slots = ("step", "square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered, **options_of("RMSprop", more)}
        )


class Adagrad(Native):
    """Steps scaled by the sum of the squares."""

    kind = "Adagrad"
    _slots = ("step", "sum")

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **more: Any,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "initial_accumulator_value": initial_accumulator_value, "eps": eps, **options_of("Adagrad", more)},
        )


class Lion(Native):
    """Steps by the sign of a running average."""

    kind = "Lion"
    _slots = ("step", "exp_avg")

    def __init__(self, params: Parameters, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, **more: Any) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, **options_of("Lion", more)})


class Muon(Native):
    """Momentum made orthogonal, for matrices."""

    kind = "Muon"
    _slots = ("step", "momentum_buffer")

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_steps: int = 5,
        **more: Any,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "ns_steps": ns_steps, **options_of("Muon", more)}
        )
