"""Learning rates over time, with PyTorch's names and numbers."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .optimizer import Optimizer


def _noting(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step of a subclass, after which its rates are the last ones."""

    @functools.wraps(step)
    def noting(self: LRScheduler, *args: Any, **kwargs: Any) -> Any:
        out = step(self, *args, **kwargs)
        self._last_lr = self._rates()
        return out

    return noting


class LRScheduler:
    """Sets the learning rate of each group after each `step()`, which follows that of the
    optimizer.

    Subclasses define `factor(epoch)`, by which the rates of the epoch before are multiplied, or
    `get_lr()`, the rates themselves. Schedulers of one optimizer can be chained.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: an optimizer is needed, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        if last_epoch != -1 and any("initial_lr" not in group for group in optimizer.param_groups):
            raise KeyError(f"{type(self).__name__}: to go on from epoch {last_epoch} each group of the optimizer needs its initial_lr")
        self.base_lrs = [float(group.setdefault("initial_lr", group["lr"])) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        # Entries of the state in PyTorch.
        self._is_initial = self._get_lr_called_within_step = False
        self.step()

    def factor(self, epoch: int) -> float:
        """The factors of the learning rates."""
        raise NotImplementedError(f"{type(self).__name__} has neither factor nor get_lr")

    def get_lr(self) -> list[float]:
        """The learning rates at this epoch. Most follow from those of the epoch before, so that
        schedulers can be chained.
        """
        return [rate * self.factor(self.last_epoch) for rate in self._rates()]

    def closed(self, base: float) -> float | None:
        """The learning rate at this epoch from that at the beginning, for jumps; None where only
        `get_lr` knows.
        """
        return None

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "step" in cls.__dict__:
            setattr(cls, "step", _noting(cls.__dict__["step"]))

    def _rates(self) -> list[float]:
        """The learning rates in use."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The learning rates that the last step set; after `load_state_dict` those of the state."""
        return list(self.__dict__.get("_last_lr") or self._rates())

    def step(self, epoch: int | None = None) -> None:
        """One epoch on, or to the given one."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates: list[Any] = [self.closed(base) for base in self.base_lrs] if epoch is not None else [None]
        if any(rate is None for rate in rates):
            rates = self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, rates):
            group["lr"] = lr
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The first learning rate times what a function gives for the epoch; a list has one function
    for each group.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1) -> None:
        self.lr_lambdas = _each("LambdaLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]

    def state_dict(self) -> dict[str, Any]:
        # Functions are not saved.
        return {k: [None] * len(v) if k == "lr_lambdas" else v for k, v in super().state_dict().items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


class MultiplicativeLR(LRScheduler):
    """The learning rate of the epoch before times what a function gives for the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1) -> None:
        self.lr_lambdas = _each("MultiplicativeLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rates = self._rates()
        return rates if self.last_epoch <= 0 else [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, rates)]

    def state_dict(self) -> dict[str, Any]:
        # Functions are not saved.
        return {k: [None] * len(v) if k == "lr_lambdas" else v for k, v in super().state_dict().items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


def _each(name: str, optimizer: Optimizer, given: Any) -> list[Any]:
    n = len(optimizer.param_groups)
    out = list(given) if isinstance(given, (list, tuple)) else [given] * n
    if len(out) != n:
        raise ValueError(f"{name}: {len(out)} values for {n} groups of parameters")
    return out


class StepLR(LRScheduler):
    """Smaller by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma if epoch > 0 and epoch % self.step_size == 0 else 1.0

    def closed(self, base: float) -> float:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Smaller by `gamma` at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma ** self.milestones[epoch] if epoch in self.milestones else 1.0

    def closed(self, base: float) -> float:
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(LRScheduler):
    """Times `factor` until `total_iters`, and the first learning rate from then on."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor is between 0 and 1, got {factor}")
        self.scale, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.scale if epoch == 0 else 1.0 / self.scale if epoch == self.total_iters else 1.0

    def closed(self, base: float) -> float:
        return base * (self.scale if self.last_epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """From one factor to another along a line."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3.0, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: factors are between 0 and 1, and the first is above 0, got {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1.0
        by = self.end_factor - self.start_factor
        return 1.0 + by / (self.total_iters * self.start_factor + (epoch - 1) * by)

    def closed(self, base: float) -> float:
        by = self.end_factor - self.start_factor
        return base * (self.start_factor + by * min(self.total_iters, self.last_epoch) / self.total_iters)


class ExponentialLR(LRScheduler):
    """Smaller by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma if epoch > 0 else 1.0

    def closed(self, base: float) -> float:
        return base * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """The first learning rate times `(1 - epoch / total_iters)^power`, and 0 afterwards."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        if epoch == 0 or epoch > self.total_iters:
            return 1.0
        return float(((1.0 - epoch / self.total_iters) / (1.0 - (epoch - 1) / self.total_iters)) ** self.power)

    def closed(self, base: float) -> float:
        return float(base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """From the first learning rate to `eta_min` along a cosine of half period `T_max`."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, rates = self.last_epoch, self._rates()
        if epoch == 0:
            return rates
        if self._step_count == 1 and epoch > 0:
            return [self.eta_min + (base - self.eta_min) * (1 + math.cos(epoch * math.pi / self.T_max)) / 2 for base in self.base_lrs]
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            by = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * by for base, rate in zip(self.base_lrs, rates)]
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (epoch, epoch - 1))
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in rates]

    def closed(self, base: float) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines from the first learning rate to `eta_min`, one after the other: of `T_0` epochs, then
    each `T_mult` times as long.

    `step(epoch)` takes fractions of epochs.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int) or T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"CosineAnnealingWarmRestarts: T_0 and T_mult are positive integers, got {T_0} and {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min, self.T_cur = T_mult, eta_min, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        self._step_count += 1
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: an epoch is not negative, got {epoch}")
        elif epoch >= self.T_0 and self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        elif epoch >= self.T_0:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        else:
            self.T_i, self.T_cur = self.T_0, epoch
        self.last_epoch = math.floor(epoch)
        for group, lr in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = lr


from ._cycles import CyclicLR, OneCycleLR, ReduceLROnPlateau  # noqa: E402
from ._sequences import ChainedScheduler, SequentialLR  # noqa: E402

_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR",
    "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]
