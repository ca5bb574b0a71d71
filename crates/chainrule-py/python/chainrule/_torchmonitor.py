"""The monitor of loops of PyTorch."""

from __future__ import annotations

from typing import Any

import torch as _torch

from . import _chainrule as _c
from ._chainrule import Tensor
from ._monitor import Monitor


class TorchMonitor(Monitor):
    """As `Monitor`, for models and optimizers of PyTorch, by its hooks."""

    _tensor = _torch.Tensor
    _bounds = {_torch.nn.Tanh: (-1, 1), _torch.nn.Sigmoid: (0, 1), _torch.nn.Hardtanh: (-1, 1), _torch.nn.Softsign: (-1, 1)}

    def _watch_steps(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        # The hooks of all optimizers: a loop may make its own anew.
        before = register_optimizer_step_pre_hook(lambda optimizer, *_: self._before_step(optimizer) if self._steps_here(optimizer) else None)
        after = register_optimizer_step_post_hook(lambda optimizer, *_: self._after_step() if self._steps_here(optimizer) else None)
        self._undo += [before.remove, after.remove]

    def _ours(self, t: Any) -> Tensor:
        t = t.detach().cpu()
        return _c.tensor((t if t.dtype in (_torch.float32, _torch.float64) else t.float()).numpy(), None, False)

    def _is_tracing(self) -> bool:
        return False

    def _is_recording(self) -> bool:
        return bool(_torch.is_grad_enabled())

    def _not_recording(self) -> Any:
        return _torch.no_grad()

    def _random_state(self) -> Any:
        return _torch.get_rng_state()

    def _set_random_state(self, state: Any) -> None:
        _torch.set_rng_state(state)

    def _loader(self) -> Any:
        from torch.utils.data import DataLoader

        return DataLoader

    def around(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compiled functions of this package are no part of a loop of PyTorch."""
        return compiled._call(*args, **kwargs)


def monitor(model: Any, optimizer: Any = None, *, every: int | None = None) -> Monitor:
    """Watches a loop of PyTorch: `with cr.torch.monitor(model, optimizer) as m:` around it. As
    `chainrule.monitor`; the loop, the model and the optimizer stay as they are.
    """
    return TorchMonitor(model, optimizer, every=every)
