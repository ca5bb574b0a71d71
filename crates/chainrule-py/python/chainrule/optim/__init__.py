"""Optimizers and learning-rate schedules, with PyTorch's names and defaults."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]]


class Optimizer:
    """Gives parameters new values by their gradients. A dictionary for each group of parameters may have settings of its own."""

    kind = ""

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._native: list[_c.Optimizer] = []
        self._made_with: list[Any] = []
        self._looked: list[tuple[Any, ...]] = []
        LIVE.add(self)
        given = list(params)
        if not given:
            raise ValueError(f"{type(self).__name__}: there are no parameters to train")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)  # type: ignore[arg-type]

    def add_param_group(self, group: dict[str, Any]) -> None:
        """More parameters, with settings of their own. Each parameter is in one group, and there once."""
        params = group["params"]
        group = {**self.defaults, **group, "params": [params] if isinstance(params, Tensor) else list(params)}
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in group["params"]:
            if id(p) in known:
                raise ValueError(f"{type(self).__name__}: a parameter of shape {tuple(p.shape)} is given twice, and would be stepped twice")
            known.add(id(p))
        self.param_groups.append(group)
        self._native.append(_c.Optimizer(self.kind, group["params"], float(group["lr"]), group))
        self._made_with.append(_settings(group))
        self._looked.append((None,))

    def _renew(self) -> None:
        """Makes the native side anew for groups whose settings were changed, or whose parameters were given other values; what it remembers goes on."""
        for i, group in enumerate(self.param_groups):
            native = self._native[i]
            # Most steps change nothing: the same objects are there.
            if len(group) == len(self._looked[i]) and all(map(operator.is_, group.values(), self._looked[i])) and native.holds(group["params"]):
                continue
            settings = _settings(group)
            self._looked[i] = (None,) if any(isinstance(v, list) for k, v in group.items() if k != "params") else tuple(group.values())
            if settings == self._made_with[i] and native.holds(group["params"]):
                continue
            new = _c.Optimizer(self.kind, group["params"], float(group["lr"]), group)
            state = native.state_dict()
            if any(name.endswith(".step") for name, _ in state):
                if "momentum" in settings and not settings["momentum"]:
                    state = [(name, t) for name, t in state if not name.endswith("momentum_buffer")]
                try:
                    new.load_state_dict(state)
                except ValueError as error:
                    old = self._made_with[i]
                    what = ", ".join(k for k in settings if settings[k] != old.get(k)) or "the dtype of a parameter"
                    raise ValueError(
                        f"{type(self).__name__}: {what} changed after the first step, and what is remembered does not fit ({error}); make a new optimizer"
                    ) from error
            self._native[i], self._made_with[i] = new, settings

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of the parameters that have gradients."""
        loss = None if closure is None else _with_grad(closure)
        self._renew()
        if _c._session_on():
            _c._session_stepped(self, [p for group in self.param_groups for p in group["params"]])
        for group, native in zip(self.param_groups, self._native):
            native.step(float(group["lr"]))
        return loss

    def _tell_rates(self) -> None:
        """Gives the native side the learning rates, which programs read from there."""
        self._renew()
        for group, native in zip(self.param_groups, self._native):
            native.set_lr(float(group["lr"]))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients; with `set_to_none=False` they become zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                forget_gradient(p, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """All that the optimizer remembers."""
        settings = [{k: v for k, v in group.items() if k != "params"} for group in self.param_groups]
        return {"state": [dict(native.state_dict()) for native in self._native], "param_groups": settings}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        for group, settings in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update(settings)
        for native, state in zip(self._native, state_dict["state"], strict=True):
            native.load_state_dict(list(state.items()))

    def __repr__(self) -> str:
        settings = {k: v for k, v in self.param_groups[0].items() if k != "params"}
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in settings.items())})"


def forget_gradient(p: Tensor, set_to_none: bool) -> None:
    """No gradient, or one of zeros in its place."""
    if set_to_none:
        p.grad = None
    elif p.grad is not None:
        p.grad.detach().zero_()


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """All that the native side is made with; the learning rate is told at each step."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in group.items() if k not in ("params", "lr", "initial_lr")}


def _with_grad(closure: Callable[[], Any]) -> Any:
    before = _c._set_grad_enabled(True)
    try:
        return closure()
    finally:
        _c._set_grad_enabled(before)


LIVE: weakref.WeakSet[Optimizer] = weakref.WeakSet()


class SGD(Optimizer):
    """Gradient descent, with momentum if wanted."""

    kind = "SGD"

    def __init__(
        self, params: Parameters, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False
    ) -> None:
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        )


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and its square."""

    kind = "Adam"

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad})


class AdamW(Optimizer):
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
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad})


class RMSprop(Optimizer):
    """Steps scaled by a running average of the square."""

    kind = "RMSprop"

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered}
        )


class Adagrad(Optimizer):
    """Steps scaled by the sum of the squares."""

    kind = "Adagrad"

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "initial_accumulator_value": initial_accumulator_value, "eps": eps},
        )


class Lion(Optimizer):
    """Steps by the sign of a running average."""

    kind = "Lion"

    def __init__(self, params: Parameters, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})


class Muon(Optimizer):
    """Momentum made orthogonal, for matrices."""

    kind = "Muon"

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "ns_steps": ns_steps}
        )


from . import lr_scheduler  # noqa: E402

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Lion", "Muon", "Optimizer", "RMSprop", "lr_scheduler"]
