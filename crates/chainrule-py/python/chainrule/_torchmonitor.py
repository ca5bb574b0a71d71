"""The monitor of loops of PyTorch."""

from __future__ import annotations

from typing import Any

import torch as _torch

from . import _chainrule as _c
from ._chainrule import Tensor
from ._curvature import largest_curvature
from ._monitor import Monitor
from ._observers import ACTIVE
from ._torchears import Ears, is_silent


class TorchMonitor(Monitor):
    """As `Monitor`, for models and optimizers of PyTorch, by its hooks."""

    _tensor = _torch.Tensor
    _counts_steps = False
    _counts_alone = False
    _has_plain_looks = False
    # Whether the curvature can be had, the look that asked for it, and who hears of more passes.
    _has_curvature = True
    _curved_at = -1
    _ears: Ears | None = None
    _noted: list[tuple[Any, Tensor]] | None = None
    _added_to_used = False
    _bounds = {_torch.nn.Tanh: (-1, 1), _torch.nn.Sigmoid: (0, 1), _torch.nn.Hardtanh: (-1, 1), _torch.nn.Softsign: (-1, 1)}

    def _watch_steps(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        # The hooks of all optimizers: a loop may make its own anew.
        before = register_optimizer_step_pre_hook(lambda optimizer, *_: self._before_step(optimizer) if self._steps_here(optimizer) else None)
        after = register_optimizer_step_post_hook(lambda optimizer, *_: self._after_step() if self._steps_here(optimizer) else self._note_elsewhere())
        self._wrappers += [before.remove, after.remove]

    def _hold(self) -> None:
        self._native.hold_foreign(list(self._parameters.items()))

    def _begin_backward(self, loss: Any) -> None:
        self._note_loss(loss)
        # Passes after one onto used gradients add to them, too, unless these are zeroed.
        self._added_to_used = (self._has_stepped or self._added_to_used) and self._is_stale()
        self._native.backward(self._added_to_used)

    def _note_loss(self, loss: Any) -> None:
        if not self._native.note_foreign_loss(loss) and loss.numel() == 1:
            self._native.note_loss(self._ours(loss.double()))

    def _see_curvature(self, loss: Any) -> None:
        """As for tensors of this package: by products with the Hessian on the graph of the loss,
        where nobody but the monitor hears of the passes. Gradients that are there stay untouched.
        """
        ears, looks = self._ears, self._native.looks()
        self._stop_listening()
        if ears is None or ears.heard or self._curved_at == looks or ACTIVE != [self] or loss.numel() != 1:
            return
        self._curved_at = looks
        with self._timed:
            parameters = [p for p in self._parameters.values() if p.requires_grad and p.is_floating_point()]
            if not is_silent(loss, [] if self._sights is None else self._sights.modules()):
                return
            if self._sights is not None:
                self._sights.sleep(True)
            try:
                with _torch.enable_grad():
                    largest = largest_curvature(loss, parameters, _torch.autograd.grad)
            except (RuntimeError, NotImplementedError):
                # Not every function has a second derivative, and there may be no memory for it.
                largest, self._has_curvature = None, False
            finally:
                if self._sights is not None:
                    self._sights.sleep(False)
            if largest is not None:
                self._native.curvature(largest)

    def _finish_step(self, out: Any = None) -> float | None:
        loss = super()._finish_step(out)
        # Without an optimizer a step ends when the forward pass of the next one is over.
        if self._has_curvature and self._optimizer is not None and self._ears is None and ACTIVE == [self] and self._is_rare() and self._native.is_due():
            # The forward pass of that step comes next.
            self._ears = Ears()
        return loss

    def _stop_listening(self) -> None:
        ears, self._ears = self._ears, None
        if ears is not None:
            ears.close()

    def _unwrap(self) -> None:
        self._stop_listening()
        super()._unwrap()

    def _is_stale(self) -> bool:
        """Whether gradients that a step has used are still there: the last two that are tell."""
        seen = 0
        for p in reversed(self._stepped() or [*self._parameters.values()]):
            if p.grad is None:
                continue
            seen += 1
            if seen > 2:
                break
            if bool((p.grad != 0).any()):
                return True
        return False

    def _see_before_step(self) -> bool:
        if not self._native.is_due():
            return False
        with self._timed:
            # Tensors that cannot be read where they lie are asked for their memory here.
            if self._noted is not None or not self._native.see_foreign():
                self._compare_gradients()
                self._take_parameters()
        return True

    def _take_parameters(self) -> None:
        known = [(name, p) for name, p in self._parameters.items() if p.requires_grad]
        self._native.parameters([(name, self._copy(p), None if p.grad is None else self._copy(p.grad)) for name, p in known])

    def _end_step(self, out: Any) -> tuple[float | None, bool, bool]:
        if self._was_due:
            with self._timed:
                if not self._native.foreign_updated():
                    self._native.all_updated([(name, self._ours(p)) for name, p in self._parameters.items()])
        return self._native.end_step(self._optimizer, out, False)

    def _note_gradients(self) -> None:
        if not self._native.is_due():
            return
        self._noted = None
        with self._timed:
            if not self._native.note_foreign_gradients():
                self._noted = [(p, self._copy(p.grad)) for p in self._parameters.values() if p.grad is not None]

    def _compare_gradients(self) -> None:
        noted, self._noted = self._noted, None
        if noted is not None:
            # Gradients that are gone count as zeros: a loop may empty them before its step.
            now = [self._ours(_torch.zeros_like(p) if p.grad is None else p.grad) for p, _ in noted]
            self._native.changed_gradients([g for _, g in noted], now)

    def _sight(self, name: str, module: Any, bounds: Any, is_leaf: bool) -> Any:
        sights = self._sights
        if sights is None:
            return None
        kind = type(module).__name__ if is_leaf else None
        return self._native.foreign_sight(name, bounds, kind, sights, sights.hook(name, bounds, is_leaf))

    def _hook(self, t: Any, hook: Any) -> None:
        t.register_hook(hook)

    def _whole_sight(self, sights: Any, has_modes: bool) -> Any:
        return sights.whole

    def _ours(self, t: Any) -> Tensor:
        """The same memory, where it can be read: for what is looked at before the loop goes on."""
        t = t.detach()
        if t.device.type != "cpu":
            t = t.cpu()
        if t.layout != _torch.strided:
            t = t.to_dense()
        t = t.resolve_neg()
        return _c._from_dlpack(t if t.dtype in (_torch.float32, _torch.float64) else t.float(), None)

    def _copy(self, t: Any) -> Tensor:
        """A copy, which stays when the optimizer writes to the tensor."""
        return self._ours(t.detach().clone())

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
