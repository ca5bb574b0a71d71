"""Mixed precision under PyTorch's names: products that round their operands to bfloat16, and
gradients that are scaled.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _chainrule as _c
from .._autocast import autocast, custom_bwd, custom_fwd, is_autocast_available
from .._chainrule import Tensor


class GradScaler:
    """A factor for the loss, so that small gradients do not vanish in float16. A step whose
    gradients are not finite is left out, and the factor shrinks; after `growth_interval` steps that
    were taken it grows. As in PyTorch it is not enabled for "cuda", the default, where there is no
    such device: the factor is 1 then, and each step is taken.

    ```
    scaler = cr.amp.GradScaler("cpu", init_scale=8.0)
    w = cr.ones(2, requires_grad=True)
    opt = cr.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    assert w.grad.tolist() == [8.0, 8.0]
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [0.5, 0.5]
    ```
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if growth_factor <= 1.0 or not 0.0 < backoff_factor < 1.0:
            raise ValueError(f"GradScaler: growth_factor is above 1 and backoff_factor between 0 and 1, got {growth_factor} and {backoff_factor}")
        self._enabled, self._scale = enabled and device == "cpu", float(init_scale)
        self._growth, self._backoff, self._interval = growth_factor, backoff_factor, growth_interval
        self._since = 0
        # By optimizer, since the last `update`: whether its gradients were finite when the factor
        # was taken out of them, and whether it was stepped.
        self._unscaled: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """The outputs times the factor: a tensor, or a nest of them."""
        self._outside("scale")
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if hasattr(outputs, "__iter__"):
            made = [self.scale(t) for t in outputs]
            return made if isinstance(outputs, list) else tuple(made)
        raise ValueError(f"GradScaler.scale: a tensor is needed, not {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Takes the factor out of the gradients, as before clipping; `step` does it else."""
        self._outside("unscale_")
        if not self._enabled:
            return
        if id(optimizer) in self._unscaled:
            raise RuntimeError("GradScaler.unscale_: called for this optimizer already since the last update()")
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                g = p.grad
                if g is not None:
                    g.mul_(1.0 / self._scale)
                    finite = finite and bool(g.isfinite().all())
        self._unscaled[id(optimizer)] = finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimizer where all gradients are finite."""
        self._outside("step")
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) in self._stepped:
            raise RuntimeError("GradScaler.step: called for this optimizer already since the last update()")
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return optimizer.step(*args, **kwargs) if self._unscaled[id(optimizer)] else None

    def update(self, new_scale: Any = None) -> None:
        """The factor for the next step: smaller after one that was left out, larger after many that
        were taken, or the given one.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._unscaled:
            raise AssertionError("GradScaler.update: no gradients were looked at since the last update(); call step() first")
        elif not all(self._unscaled.values()):
            self._scale, self._since = self._scale * self._backoff, 0
        else:
            self._since += 1
            if self._since == self._interval:
                grown = self._scale * self._growth
                self._scale, self._since = grown if math.isfinite(grown) else self._scale, 0
        self._unscaled, self._stepped = {}, set()

    def _outside(self, method: str) -> None:
        if self._enabled and _c._session_on():
            raise RuntimeError(
                f"compile: GradScaler.{method} decides by the numbers of a run, which a program would not do in later runs: call it outside, "
                "or make it with enabled=False"
            )

    def get_scale(self) -> float:
        """The factor; 1 where the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth

    def get_backoff_factor(self) -> float:
        """The factor by which the scale shrinks."""
        return self._backoff

    def get_growth_interval(self) -> int:
        """Steps between two growths."""
        return self._interval

    def is_enabled(self) -> bool:
        """Whether gradients are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor and its settings, under PyTorch's names."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth, "backoff_factor": self._backoff, "growth_interval": self._interval,
            "_growth_tracker": self._since,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the factor and its settings."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler.load_state_dict: the state is empty: it is of a scaler that was not enabled")
        self._scale, self._growth = state_dict["scale"], state_dict["growth_factor"]
        self._backoff, self._interval = state_dict["backoff_factor"], state_dict["growth_interval"]
        self._since = state_dict["_growth_tracker"]


from . import autocast_mode, grad_scaler  # noqa: E402

__all__ = ["GradScaler", "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler", "is_autocast_available"]
