"""Schedulers of schedulers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from .lr_scheduler import LRScheduler
from .optimizer import Optimizer


def _states(schedulers: Sequence[LRScheduler]) -> list[dict[str, Any]]:
    return [s.state_dict() for s in schedulers]


class SequentialLR(LRScheduler):
    """One scheduler after the other: the next one begins at its own epoch 0 at each milestone.

    ```
    opt = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=1.0)
    warm = cr.optim.lr_scheduler.ConstantLR(opt, factor=0.1, total_iters=2)
    rest = cr.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    schedule = cr.optim.lr_scheduler.SequentialLR(opt, [warm, rest], milestones=[2])
    rates = [schedule.get_last_lr()[0]]
    for _ in range(3):
        opt.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    assert rates == [0.1, 0.1, 1.0, 0.5]
    ```
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1) -> None:
        _of_one("SequentialLR", optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: {len(schedulers)} schedulers have {len(schedulers) - 1} milestones between them, not {len(milestones)}")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        # All of them set the rates when they were made; only the first is to.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        first = self._schedulers[0]
        first._step_count -= 1
        first.step()

    def step(self, epoch: int | None = None) -> None:
        """One epoch on."""
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        if which and self._milestones[which - 1] == self.last_epoch:
            self._schedulers[which].step(0)
        else:
            self._schedulers[which].step()

    def state_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**own, "_schedulers": _states(self._schedulers)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Schedulers that step together: their factors are multiplied."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: at least one scheduler is needed")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _of_one("ChainedScheduler", self.optimizer, schedulers)
        self._schedulers = list(schedulers)

    def step(self, epoch: int | None = None) -> None:
        """One epoch on, for each."""
        for scheduler in self._schedulers:
            scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        return {"_schedulers": _states(self._schedulers), "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._last_lr = state_dict.get("_last_lr", self._rates())
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


def _of_one(name: str, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
    if not schedulers:
        raise ValueError(f"{name}: at least one scheduler is needed")
    for scheduler in schedulers:
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"{name}: a {type(scheduler).__name__} belongs to another optimizer")
