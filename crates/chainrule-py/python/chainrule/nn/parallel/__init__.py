"""Wrappers for several devices. There is one device, and a wrapped module runs as it is."""

from __future__ import annotations

from typing import Any

from .. import more_layers as _layers
from ..module import Module

DataParallel = _layers.DataParallel


class DistributedDataParallel(Module):
    """The module as it is, in a process that is alone; with several ranks an error that says what
    averages gradients.
    """

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        from ... import distributed

        super().__init__()
        ranks = distributed.current()
        if ranks is not None and ranks.size > 1:
            raise NotImplementedError("DistributedDataParallel: gradients of several ranks are averaged by distributed.Ranks: add(parameters) after backward, then average()")
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        return self.module(*args, **kwargs)

    def no_sync(self) -> Any:
        """A block without effect."""
        import contextlib

        return contextlib.nullcontext()


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None) -> Any:
    """The module's result: there is one device."""
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*args, **(module_kwargs or {}))


__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
