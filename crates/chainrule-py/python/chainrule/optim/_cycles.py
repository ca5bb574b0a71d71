"""Schedules that go up and down, and one that follows a measured value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .lr_scheduler import LRScheduler, _each
from .optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Smaller by `factor` when a value has not improved for more than `patience` epochs:
    `step(value)`.

    Better is lower by the share `threshold` (`threshold_mode="rel"`) or by that amount ("abs"), or
    higher with `mode="max"`. After a change `cooldown` epochs are not counted.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor is below 1, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', got {mode!r} and {threshold_mode!r}")
        self.optimizer, self.mode, self.factor_, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = _each("ReduceLROnPlateau", optimizer, min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _is_better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        margin = abs(self.threshold)
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 + sign * margin)
        else:
            bound = self.best + sign * margin
        return value > bound if self.mode == "max" else value < bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """One epoch on, with the value of it."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs <= self.patience:
            return
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            lower = max(float(group["lr"]) * self.factor_, least)
            if float(group["lr"]) - lower > self.eps:
                group["lr"] = lower
        self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0


def _momentum(group: dict[str, Any], value: float | None = None) -> float:
    """The momentum of a group, after it was set if a value is given: its own, or the first of its
    betas.
    """
    if "betas" in group:
        if value is not None:
            group["betas"] = (value, *group["betas"][1:])
        return float(group["betas"][0])
    if value is not None:
        group["momentum"] = value
    return float(group["momentum"])


def _with_momentum(name: str, optimizer: Optimizer) -> None:
    if any("momentum" not in g and "betas" not in g for g in optimizer.param_groups):
        raise ValueError(f"{name}: cycle_momentum=True needs an optimizer with momentum or betas")


class OneCycleLR(LRScheduler):
    """Up from `max_lr / div_factor` to `max_lr` in the first share `pct_start` of the steps, then
    down to `max_lr / div_factor / final_div_factor`.

    The momentum goes the other way, from `max_momentum` to `base_momentum` and back. The steps are
    `total_steps`, or `epochs * steps_per_epoch`; `step()` follows each batch. With `three_phase`
    the way down mirrors the way up, and a last phase goes to the end.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0 <= pct_start <= 1 or anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: steps are positive, pct_start is between 0 and 1 and anneal_strategy 'cos' or 'linear', "
                f"got {total_steps}, {pct_start} and {anneal_strategy!r}"
            )
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        up, end = pct_start * total_steps - 1, total_steps - 1
        self.phases = [(up, "initial_lr", "max_lr", "max_momentum", "base_momentum"), (end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        if three_phase:
            down = (2 * pct_start * total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            self.phases = [self.phases[0], down, (end, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        if last_epoch == -1:
            for group, highest in zip(optimizer.param_groups, _each("OneCycleLR", optimizer, max_lr)):
                group["initial_lr"], group["max_lr"] = highest / div_factor, highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            _with_momentum("OneCycleLR", optimizer)
            low, high = (_each("OneCycleLR", optimizer, m) for m in (base_momentum, max_momentum))
            for group, a, b in zip(optimizer.param_groups, low, high):
                if last_epoch == -1:
                    _momentum(group, b)
                    group["max_momentum"], group["base_momentum"] = b, a
        super().__init__(optimizer, last_epoch)

    def _between(self, a: float, b: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (b - a) * share + a
        return b + (a - b) / 2.0 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[float]:
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"OneCycleLR: step {at} of {self.total_steps}: there are no more steps")
        start = 0.0
        for end, first, last, first_momentum, last_momentum in self.phases:
            if at <= end or end == self.phases[-1][0]:
                share = (at - start) / (end - start) if end != start else 1.0
                break
            start = end
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                _momentum(group, self._between(group[first_momentum], group[last_momentum], share))
        return [self._between(group[first], group[last], share) for group in self.optimizer.param_groups]


class CyclicLR(LRScheduler):
    """Between `base_lr` and `max_lr`: `step_size_up` steps up, `step_size_down` down, again and
    again.

    `mode` "triangular" keeps the height, "triangular2" halves it each cycle, "exp_range" multiplies
    it by `gamma^step`; or `scale_fn` gives the factor of a cycle (or step:
    `scale_mode="iterations"`).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}")
        lows = _each("CyclicLR", optimizer, base_lr)
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows):
                group["lr"] = low
        self.max_lrs = _each("CyclicLR", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        if cycle_momentum:
            _with_momentum("CyclicLR", optimizer)
            self.base_momentums, self.max_momentums = (_each("CyclicLR", optimizer, m) for m in (base_momentum, max_momentum))
            for group, m in zip(optimizer.param_groups, self.max_momentums):
                _momentum(group, m)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        return float({"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode])

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        # Functions are not saved.
        return {k: v for k, v in super().state_dict().items() if k != "scale_fn"}
