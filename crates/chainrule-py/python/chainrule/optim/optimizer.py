"""The optimizer as such: groups of parameters with settings, and a state that can be saved, copied
and gone on from.
"""

from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import _NotInPrograms
from .._snapshot import restore, snapshot
from ._hooks import KINDS, Hooked

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

# Settings of PyTorch that choose among its implementations; here there is one. Groups have those
# that PyTorch's have.
IGNORED = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
_FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
_NOT_CAPTURABLE = ("SGD", "Adagrad", "Adafactor")


class Optimizer(Hooked):
    """Gives parameters new values by their gradients. A dictionary for each group of parameters may
    have settings of its own.

    Subclasses define `step`, and keep what they remember of a parameter in `self.state[p]`:

    ```
    class Signs(cr.optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @cr.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.sub_(group["lr"] * p.grad.sign())

    w = cr.tensor([1.0, -1.0], requires_grad=True)
    w.square().sum().backward()
    Signs([w]).step()
    assert w.allclose(cr.tensor([0.9, -0.9]))
    ```
    """

    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}: parameters come in a list, as [w], not as one tensor")
        self.defaults = defaults
        self.param_groups = []
        self._begin()
        LIVE.add(self)
        given: list[Any] = list(params)
        if not given:
            raise ValueError(f"{type(self).__name__}: there are no parameters to train")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "_is_traced", False):
            cls.step = _outside_of_programs(step)  # type: ignore[method-assign]

    def _begin(self) -> None:
        """The state, empty at first."""
        self.state: Any = defaultdict(dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, with settings of their own. Each parameter is in one group."""
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(f"{type(self).__name__}: parameters are given in an order, as in a list, and a set has none")
        given = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in given]
        if any(named) and not all(named):
            raise ValueError(f"{type(self).__name__}: all parameters of a group are given with names, or none")
        if any(named):
            param_group["param_names"] = [name for name, _ in given]
            given = [p for _, p in given]
        for p in given:
            if not isinstance(p, Tensor):
                raise TypeError(f"{type(self).__name__}: parameters are tensors, not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{type(self).__name__}: a tensor of shape {tuple(p.shape)} is the result of ops and no leaf: give what it was made of")
        for name, default in self.defaults.items():
            if default is REQUIRED and name not in param_group:
                raise ValueError(f"{type(self).__name__}: a group of parameters has no {name}, which has no default")
        # It stays the caller's, as in PyTorch, where a change of it is one of the group.
        group = param_group
        group["params"] = given
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        if len({id(p) for p in given}) < len(given):
            why = f"{type(self).__name__}: a parameter is twice in a group, and is stepped twice"
            warnings.warn(why, UserWarning, stacklevel=3)
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in given:
            if id(p) in known:
                raise ValueError(f"{type(self).__name__}: a parameter of shape {tuple(p.shape)} is in more than one group")
        self.param_groups.append(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of the parameters that have gradients. A `closure` computes the loss again,
        and is called first.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step")

    def _known(self) -> Any:
        """The state, to be read."""
        return self.state

    def _shown(self) -> Any:
        """The state in tensors that later steps write to."""
        return self.state

    def _tell_rates(self) -> None:
        """Tells programs the learning rates."""

    def _give_again(self) -> None:
        """Shows what a program did in the state that was given out."""

    def _kept(self) -> Any:
        """State and settings as they are, to be put back."""
        settings = [(group, snapshot({k: v for k, v in group.items() if k != "params"})) for group in self.param_groups]
        return snapshot(self.state), self.param_groups, settings

    def _put_back(self, kept: Any) -> None:
        """Makes state and settings as they were, in the same dictionaries and tensors."""
        state, self.param_groups, settings = kept
        for group, values in settings:
            for name in [name for name in group if name != "params" and name not in values.value]:
                del group[name]
            group.update(restore(values))
        self.state = restore(state)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients; with `set_to_none=False` they become zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                forget_gradient(p, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """All that the optimizer remembers, in PyTorch's form.

        `state` has a dictionary for the number of each parameter that was stepped, and
        `param_groups` the settings, with the parameters' numbers as `params`.
        """
        for hook in self._hooks("_state_before"):
            hook(self)
        numbers: dict[int, int] = {}
        for p in itertools.chain(*(g["params"] for g in self.param_groups)):
            numbers.setdefault(id(p), len(numbers))
        groups = [{**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        # Parameters that were taken out of their group have no number.
        shown = {k: v for k, v in self._shown().items() if not isinstance(k, Tensor) or id(k) in numbers}
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: dict(v) if isinstance(k, Tensor) else v for k, v in shown.items()}
        out: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks("_state_after"):
            new = hook(self, out)
            out = out if new is None else new
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from what `state_dict` gave, here or in PyTorch. Nothing is taken unless the
        groups fit.
        """
        for hook in self._hooks("_load_before"):
            given = hook(self, state_dict)
            state_dict = state_dict if given is None else given
        saved = [dict(g) for g in state_dict["param_groups"]]
        name = type(self).__name__
        if len(saved) != len(self.param_groups):
            raise ValueError(f"{name}: the state has {len(saved)} groups of parameters, and the optimizer {len(self.param_groups)}")
        places: dict[Any, Tensor] = {}
        for i, (own, group) in enumerate(zip(self.param_groups, saved)):
            numbers = group.pop("params", None)
            if numbers is None or len(numbers) != len(own["params"]):
                raise ValueError(f"{name}: group {i} of the state has {len(numbers or ())} parameters, and that of the optimizer {len(own['params'])}")
            places.update(zip(numbers, own["params"]))
        new: dict[Any, Any] = {}
        for number, remembered in state_dict["state"].items():
            p = places.get(number)
            new[number if p is None else p] = remembered if p is None else {k: _taken(k, v, p) for k, v in remembered.items()}
        for own, group in zip(self.param_groups, saved):
            own.update(group)
        self._take(new)
        for hook in self._hooks("_load_after"):
            hook(self)

    def _take(self, state: dict[Any, Any]) -> None:
        """Makes this the state: dictionaries by parameter."""
        self.state = defaultdict(dict, state)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_native") and k not in KINDS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        LIVE.add(self)
        # Parameters are copied one by one, and a dictionary knows them by who they are.
        self.state = defaultdict(dict, dict(self.state))

    def __copy__(self) -> Self:
        """Another handle of the same groups and state, as a shallow copy has them in PyTorch."""
        new = object.__new__(type(self))
        new.__dict__ = self.__dict__
        LIVE.add(new)
        return new

    def __repr__(self) -> str:
        parts = []
        for i, group in enumerate(self.param_groups):
            lines = "".join(f"    {k}: {group[k]}\n" for k in sorted(group) if k != "params")
            parts.append(f"Parameter Group {i}\n{lines}")
        return f"{type(self).__name__} (\n" + "\n".join(parts) + ")"


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "<required>", "__doc__": "A setting that each group gives."})()
required = REQUIRED
LIVE: weakref.WeakSet[Optimizer] = weakref.WeakSet()


def give_again() -> None:
    """Shows what a program did in the states that were given out."""
    for optimizer in list(LIVE):
        optimizer._give_again()


def _taken(name: str, value: Any, p: Tensor) -> Any:
    """A saved value, of the dtype of its parameter unless it counts steps. A tensor that has it is
    taken itself, so that later steps write to it, as in PyTorch.
    """
    if not isinstance(value, Tensor):
        if type(value).__module__.startswith("torch") and hasattr(value, "detach"):
            value = _c.tensor(value.detach().cpu().numpy())
        else:
            return value
    given, value = value, value.detach()
    if name != "step" and value.is_floating_point() and value.dtype != p.dtype:
        return value._to_dtype(p.dtype)
    return value.clone() if given.requires_grad else given


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step without a tape, as PyTorch's own optimizers are written."""
    from ..autograd import no_grad

    return no_grad()(step)


def _outside_of_programs(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step of a subclass; a program would not do again what it does in Python."""

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if _c._session_on():
            raise _NotInPrograms(f"compile: {type(self).__name__} steps in Python, which a program would not do again: call its step() after the compiled function")
        return self._stepped(step, args, kwargs) if self._has_step_hooks() else step(self, *args, **kwargs)

    run._is_traced = True  # type: ignore[attr-defined]
    return run


def options_of(name: str, more: dict[str, Any]) -> dict[str, Any]:
    """Options that all optimizers have: `maximize`, and those that choose PyTorch's implementation,
    which are ignored.
    """
    is_adam = name in ("Adam", "AdamW")
    unknown = [k for k in more if k not in (*IGNORED, "maximize") and not (is_adam and k == "decoupled_weight_decay")]
    if unknown:
        raise TypeError(f"{name}: there is no option {', '.join(unknown)}")
    without = {"fused": name not in _FUSED, "capturable": name in _NOT_CAPTURABLE, "differentiable": name == "Adafactor"}
    ignored = {k: more.get(k, default) for k, default in IGNORED.items() if k in more or not without.get(k, False)}
    decoupled = {"decoupled_weight_decay": bool(more.get("decoupled_weight_decay", name == "AdamW"))} if is_adam else {}
    return {"maximize": bool(more.get("maximize", False)), **ignored, **decoupled}


def with_grad(closure: Callable[[], Any]) -> Any:
    """The closure's loss; its gradients are recorded also inside of `no_grad`."""
    before = _c._set_grad_enabled(True)
    try:
        return closure()
    finally:
        _c._set_grad_enabled(before)


def forget_gradient(p: Tensor, set_to_none: bool) -> None:
    """No gradient, or one of zeros in its place."""
    if set_to_none:
        p.grad = None
    elif p.grad is not None:
        p.grad.detach().zero_()
