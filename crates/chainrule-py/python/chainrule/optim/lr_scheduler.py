"""Learning rates over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import Optimizer


class LRScheduler:
    """Sets the learning rate of each group after each `step()`."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        self.base_lrs = [float(group.setdefault("initial_lr", group["lr"])) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def factor(self, epoch: int) -> float:
        """What the learning rates are multiplied by."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The learning rates at this epoch. Most follow from those of the epoch before, so that schedulers can be chained."""
        return [rate * self.factor(self.last_epoch) for rate in self.get_last_lr()]

    def get_last_lr(self) -> list[float]:
        """The learning rates in use."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def step(self) -> None:
        """One epoch on."""
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved."""
        return {"last_epoch": self.last_epoch, "base_lrs": self.base_lrs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from there."""
        self.last_epoch, self.base_lrs = state_dict["last_epoch"], list(state_dict["base_lrs"])


class LambdaLR(LRScheduler):
    """The first learning rate times what a function gives."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float], last_epoch: int = -1) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * self.lr_lambda(self.last_epoch) for lr in self.base_lrs]


class StepLR(LRScheduler):
    """Smaller by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma if epoch > 0 and epoch % self.step_size == 0 else 1.0


class MultiStepLR(LRScheduler):
    """Smaller by `gamma` at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma ** self.milestones.count(epoch)


class ExponentialLR(LRScheduler):
    """Smaller by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma if epoch > 0 else 1.0


class LinearLR(LRScheduler):
    """From one factor to another along a line."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3.0, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1.0
        by = self.end_factor - self.start_factor
        return 1.0 + by / (self.total_iters * self.start_factor + (epoch - 1) * by)


class CosineAnnealingLR(LRScheduler):
    """From the first learning rate to `eta_min` along a cosine."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, rates = self.last_epoch, self.get_last_lr()
        if epoch == 0:
            return rates
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            by = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * by for base, rate in zip(self.base_lrs, rates)]
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (epoch, epoch - 1))
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in rates]
