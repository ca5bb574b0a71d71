"""Averages of weights over steps, with PyTorch's names and numbers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from ..autograd import no_grad
from ..nn.module import Module
from .lr_scheduler import LRScheduler
from .optimizer import Optimizer


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The average `decay * average + (1 - decay) * value`, for `AveragedModel`."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"get_ema_avg_fn: decay is between 0 and 1, got {decay}")

    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        return averaged * decay + current * (1 - decay)

    return average


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The mean of all values so far, for `AveragedModel`."""

    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        mean: Tensor = averaged + (current - averaged) / (count + 1)
        return mean

    return average


def _over_all(of_one: Callable[[Tensor, Tensor, Any], Tensor]) -> Callable[[Any, Any, Any], None]:
    def update(averaged: Any, current: Any, count: Any) -> None:
        for a, b in zip(averaged, current):
            # Averages of counts are cut to whole numbers.
            a.copy_(of_one(a, b, count).to(a.dtype))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """As `get_ema_avg_fn`, for `multi_avg_fn`."""
    return _over_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """As `get_swa_avg_fn`, for `multi_avg_fn`."""
    return _over_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of its: the mean over the calls of
    `update_parameters`, or what `avg_fn(average, value, count)` gives. Buffers are averaged with
    `use_buffers`, else those of the model are taken.

    ```
    net = cr.nn.Linear(2, 1)
    mean = cr.optim.swa_utils.AveragedModel(net)
    mean.update_parameters(net)
    assert mean(cr.ones(1, 2)).equal(net(cr.ones(1, 2)))
    ```
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None, use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _c.tensor(0))
        self.multi_avg_fn = multi_avg_fn or _over_all(avg_fn or get_swa_avg_fn())
        self.avg_fn, self.use_buffers = avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the averages."""
        mine, theirs = (self._averaged(m) for m in (self.module, model))
        with no_grad():
            values = [(a.detach(), b.detach()) for a, b in zip(mine, theirs)]
            if int(self.n_averaged) == 0:
                for a, b in values:
                    a.copy_(b)
            elif values:
                self.multi_avg_fn([a for a, _ in values], [b for _, b in values], self.n_averaged)
            if not self.use_buffers:
                for a, b in zip(self.module.buffers(), model.buffers()):
                    a.detach().copy_(b.detach())
            self.n_averaged += 1

    def _averaged(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Running statistics of the batch norms anew, as means over one pass of the data. A batch is
    the input of the model, or the first of a list is.
    """
    norms = [m for m in model.modules() if hasattr(m, "running_mean") and hasattr(m, "num_batches_tracked") and m.running_mean is not None]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.running_mean.zero_()
        m.running_var.fill_(1.0)
        m.num_batches_tracked.zero_()
        m.momentum = None
    was_training = model.training
    model.train()
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the learning rates that are there to `swa_lr` in `anneal_epochs` epochs, along a cosine
    ('cos') or a line ('linear'); it stays there.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if isinstance(anneal_epochs, bool) or not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs is a whole number from 0 up, got {anneal_epochs!r}")
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(f"SWALR: {len(rates)} rates for {len(optimizer.param_groups)} groups")
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _part(self, t: float) -> float:
        """The part of the way at `t` from 0 to 1."""
        return (1 - math.cos(math.pi * t)) / 2 if self.anneal_strategy == "cos" else t

    def get_lr(self) -> list[float]:
        """The learning rates at this epoch."""
        epoch, whole = self._step_count - 1, max(1, self.anneal_epochs)
        step = epoch if self.anneal_epochs else max(1, epoch)
        before, now = (self._part(max(0.0, min(1.0, t / whole))) for t in (step - 1, step))
        out = []
        for group in self.optimizer.param_groups:
            rate, last = float(group["lr"]), float(group["swa_lr"])
            first = last if before == 1 else (rate - before * last) / (1 - before)
            out.append(last * now + first * (1 - now))
        return out


__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn",
]
