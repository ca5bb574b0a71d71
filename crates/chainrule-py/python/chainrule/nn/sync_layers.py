"""Batch normalisation over the batches of several ranks."""

from __future__ import annotations

from typing import Any

from .. import _functions as _f
from .. import _making as _m
from .. import distributed
from .._chainrule import Tensor
from .._custom import Function
from .._errors import ArgumentError
from .layers import _BatchNorm
from .module import Module

__all__ = ["SyncBatchNorm"]


class _OverRanks(Function):
    """The sum over the ranks of a tensor that each of them has, in a fixed order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: distributed.Ranks) -> Tensor:
        ctx.ranks = ranks
        return ranks.sum(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.ranks.sum(grad), None


class SyncBatchNorm(_BatchNorm):
    """Mean 0 and variance 1 over the batches of all ranks and the places, for inputs
    `[n, features]` or `[n, features, ...]`. The gradient goes through the statistics to all ranks.

    `process_group` are the ranks, those of the last `cr.distributed.init()` if nothing is said; one
    rank alone has batch norm. All ranks call the layer equally often and in the same order. The
    mean of their gradients is that of the whole batch if each has the mean loss of as many
    examples.

    ```
    norm = cr.nn.SyncBatchNorm(3, process_group=cr.distributed.init())
    assert norm(cr.randn(4, 3, 2)).shape == (4, 3, 2)
    ```
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: distributed.Ranks | None = None, device: Any = None, dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        if input.ndim < 2 or input.shape[1] != self.num_features:
            raise ArgumentError(f"SyncBatchNorm: the input must be [n, {self.num_features}] or [n, {self.num_features}, ...], has shape {tuple(input.shape)}")
        ranks = self.process_group or distributed.current()
        if ranks is None or ranks.size == 1 or not (self.training or not self.track_running_stats):
            return super().forward(input)
        shape, half = input.shape, input.dtype.itemsize < 4
        x = (input.float() if half else input).reshape(shape[0], self.num_features, -1)
        count = _m.full((1,), float(x.numel() // self.num_features), dtype=x.dtype)
        totals = _OverRanks.apply(_f.cat([x.sum((0, 2)), count]), ranks)
        n = totals[-1:].detach()
        mean = totals[:-1] / n
        apart = x - mean.reshape(1, -1, 1)
        var = _OverRanks.apply(apart.square().sum((0, 2)), ranks) / n
        y: Tensor = apart / (var + self.eps).sqrt().reshape(1, -1, 1)
        if self.weight is not None:
            y = y * self.weight.reshape(1, -1, 1)
        if self.bias is not None:
            y = y + self.bias.reshape(1, -1, 1)
        if self.training and self.track_running_stats:
            self._track(mean.detach(), var.detach() * n / (n - 1))
        y = y.reshape(shape)
        return y.to(input.dtype) if half else y

    def _track(self, mean: Tensor, unbiased: Tensor) -> None:
        self.num_batches_tracked += 1
        momentum = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        for running, new in ((self.running_mean, mean), (self.running_var, unbiased)):
            running.copy_(running * (1 - momentum) + new.to(running.dtype) * momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: distributed.Ranks | None = None) -> Module:
        """The module with each batch norm inside made one over the ranks, with the same parameters
        and statistics. A module that is batch norm itself is another then.

        ```
        net = cr.nn.Sequential(cr.nn.Linear(2, 3), cr.nn.BatchNorm1d(3))
        net = cr.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        assert type(net[1]) is cr.nn.SyncBatchNorm
        ```
        """
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            affine = module.weight is not None
            made = cls(module.num_features, module.eps, module.momentum, affine, module.track_running_stats, process_group)
            if affine:
                made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
            return made
        for name, child in module.named_children():
            changed = cls.convert_sync_batchnorm(child, process_group)
            if changed is not child:
                setattr(module, name, changed)
        return module
