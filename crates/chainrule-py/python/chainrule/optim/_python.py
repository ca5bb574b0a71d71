"""Optimizers whose steps are formulas in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._dtypes import finfo
from .._making import full_like, ones_like, zeros_like
from ..autograd import no_grad
from .optimizer import Optimizer, Parameters, options_of, with_grad


def _checked(name: str, **numbers: float) -> None:
    for what, x in numbers.items():
        if not x >= 0.0:
            raise ValueError(f"{name}: {what} must be 0 or more, it is {x}")


def _rounded(x: float) -> float:
    """A number as PyTorch keeps it among an optimizer's state: of the default dtype."""
    return x if _c.get_default_dtype().name == "float64" else np.float32(x).item()


class _Formula(Optimizer):
    """A step for each parameter by itself: `update(p, g, state, group)`."""

    decays = True
    """Whether the decay of the weights is done before `update`."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of the parameters that have gradients."""
        loss = None if closure is None else with_grad(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        g = p.grad.detach()
                        g = -g if group.get("maximize") else g
                        decay = group.get("weight_decay", 0.0) if self.decays else 0.0
                        if decay and group.get("decoupled_weight_decay"):
                            p.mul_(1 - group["lr"] * decay)
                        elif decay:
                            g = g + decay * p
                        state = self.state[p]
                        state["step"] = int(state.get("step", 0)) + 1
                        self.update(p, g, state, group)
        return loss

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step of one parameter by its gradient."""
        raise NotImplementedError


def _moments(g: Tensor, state: dict[str, Any], betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Running averages of the gradient and of its square, as they are now."""
    if "exp_avg" not in state:
        state["exp_avg"], state["exp_avg_sq"] = zeros_like(g), zeros_like(g)
    m: Tensor = state["exp_avg"].lerp_(g, 1 - betas[0])
    v: Tensor = state["exp_avg_sq"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    return m, v


class Adadelta(_Formula):
    """Steps in the units of the parameter: `p -= lr * sqrt(D + eps) / sqrt(V + eps) * g`.

    `V` is the running average of `g^2` and `D` that of the squared steps, both with `rho`.
    """

    def __init__(self, params: Parameters, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, **more: Any) -> None:
        _checked("Adadelta", lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, **options_of("Adadelta", more)})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        if "square_avg" not in state:
            state["square_avg"], state["acc_delta"] = zeros_like(p), zeros_like(p)
        square = state["square_avg"].mul_(rho).addcmul_(g, g, value=1 - rho)
        delta = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * g
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.sub_(group["lr"] * delta)


class Adamax(_Formula):
    """Adam with the largest gradient in place of the mean square: `p -= lr / (1 - b1^t) * m / u`,
    `u = max(b2 * u, |g| + eps)`.
    """

    def __init__(
        self, params: Parameters, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, **more: Any
    ) -> None:
        _checked("Adamax", lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, **options_of("Adamax", more)})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        b1, b2 = group["betas"]
        if "exp_avg" not in state:
            state["exp_avg"], state["exp_inf"] = zeros_like(p), zeros_like(p)
        m = state["exp_avg"].lerp_(g, 1 - b1)
        u = state["exp_inf"].copy_((state["exp_inf"] * b2).maximum(g.abs() + group["eps"]))
        p.sub_(group["lr"] / (1 - b1 ** state["step"]) * (m / u))


class NAdam(_Formula):
    """Adam with Nesterov's look ahead; the momentum at step t is
    `b1 * (1 - 0.96^(t * momentum_decay) / 2)`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        **more: Any,
    ) -> None:
        _checked("NAdam", lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        settings = {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay, **options_of("NAdam", more)}
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, **settings})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (b1, b2), t, decay = group["betas"], state["step"], group["momentum_decay"]
        mu, ahead = (b1 * (1 - 0.5 * 0.96 ** (k * decay)) for k in (t, t + 1))
        product = _rounded(_rounded(float(state.get("mu_product", 1.0))) * _rounded(mu))
        state["mu_product"] = product
        m, v = _moments(g, state, group["betas"])
        root = (v / (1 - b2**t)).sqrt() + group["eps"]
        lr = group["lr"]
        p.sub_(lr * (1 - mu) / (1 - product) * (g / root))
        p.sub_(lr * ahead / (1 - product * ahead) * (m / root))


class RAdam(_Formula):
    """Adam with a rectified variance: plain momentum until the average of the squares has seen
    enough.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        **more: Any,
    ) -> None:
        _checked("RAdam", lr=lr, eps=eps, weight_decay=weight_decay)
        settings = {"decoupled_weight_decay": decoupled_weight_decay, **options_of("RAdam", more)}
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, **settings})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (b1, b2), t = group["betas"], state["step"]
        m, v = _moments(g, state, group["betas"])
        m = m / (1 - b1**t)
        longest = 2 / (1 - b2) - 1
        length = longest - 2 * t * b2**t / (1 - b2**t)
        if length <= 5:
            p.sub_(group["lr"] * m)
            return
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        scale = (1 - b2**t) ** 0.5 / (v.sqrt() + group["eps"])
        p.sub_(group["lr"] * ratio**0.5 * (m * scale))


class ASGD(_Formula):
    """Gradient descent that also averages: `state[p]["ax"]` is the mean of the parameter since step
    `t0`.

    The rate at step t is `lr / (1 + lambd * lr * t)^alpha`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        **more: Any,
    ) -> None:
        _checked("ASGD", lr=lr, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, **options_of("ASGD", more)})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, lambd, t = group["lr"], group["lambd"], state["step"]
        if "ax" not in state:
            state.update(eta=_rounded(lr), mu=1.0, ax=zeros_like(p))
        eta = float(state["eta"])
        p.mul_(1 - lambd * eta)
        p.sub_(eta * g)
        if state["mu"] == 1:
            state["ax"].copy_(p)
        else:
            state["ax"].add_((p - state["ax"]) * float(state["mu"]))
        state["eta"] = _rounded(lr / (1 + lambd * lr * t) ** group["alpha"])
        state["mu"] = _rounded(1 / max(1, t - group["t0"]))


class Rprop(_Formula):
    """Steps by the sign of the gradient; the size of each element's step grows while the sign
    stays, and shrinks when it turns.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        **more: Any,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Rprop: etas are one below 1 and one above it, got {etas}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, **options_of("Rprop", more)})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        shrink, grow = group["etas"]
        if "prev" not in state:
            state["prev"], state["step_size"] = zeros_like(p), full_like(p, group["lr"])
        turned = g * state["prev"]
        factor = ones_like(p).masked_fill(turned > 0, grow).masked_fill(turned < 0, shrink)
        size = state["step_size"].copy_((state["step_size"] * factor).clamp(*group["step_sizes"]))
        g = g.masked_fill(turned < 0, 0.0)
        p.sub_(g.sign() * size)
        state["prev"].copy_(g)


class Adafactor(_Formula):
    """Adam's second moments from sums over rows and over columns, and steps in proportion to the
    parameter: `p -= max(eps2, rms(p)) * min(lr, 1 / sqrt(t)) * u / max(1, rms(u) / d)`.

    The averages move by `t^beta2_decay`, `u` is the gradient divided by the root of the estimate,
    and rms the root of the mean square. A parameter with one axis or none keeps all moments.
    `eps[0]` is by default the distance from 1 to the next number of the dtype.

    ```
    w = cr.nn.Parameter(cr.ones(3, 2))
    optimizer = cr.optim.Adafactor([w], lr=0.1)
    w.square().sum().backward()
    optimizer.step()
    assert optimizer.state[w]["row_var"].shape == (3, 1) and bool((w < 1).all())
    ```
    """

    decays = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        **more: Any,
    ) -> None:
        _checked("Adafactor", lr=lr, weight_decay=weight_decay, eps1=eps[0] or 0.0, eps2=eps[1])
        if beta2_decay > 0:
            raise ValueError(f"Adafactor: beta2_decay must be 0 or less, it is {beta2_decay}")
        if d < 1:
            raise ValueError(f"Adafactor: d, the threshold of clipping, must be 1 or more, it is {d}")
        settings = {"beta2_decay": beta2_decay, "eps": tuple(eps), "d": d, "weight_decay": weight_decay, **options_of("Adafactor", more)}
        super().__init__(params, {"lr": lr, **settings})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        t, (small, least), lr = state["step"], group["eps"], group["lr"]
        small = finfo(p.dtype).eps if small is None else small
        share = t ** group["beta2_decay"]
        rate = max(least, p.norm().item() / p.numel() ** 0.5) * min(lr, t**-0.5)
        # The size of the parameter is that before its decay.
        p.mul_(1 - lr * group["weight_decay"])
        if g.ndim > 1:
            if "row_var" not in state:
                state["row_var"], state["col_var"] = zeros_like(g[..., :1]), zeros_like(g[..., :1, :])
            row = state["row_var"].lerp_(g.square().mean(-1, keepdim=True), share)
            column = state["col_var"].lerp_(g.square().mean(-2, keepdim=True), share)
            moments = row @ column / row.mean(-2, keepdim=True).clamp(min=small)
        else:
            if "variance" not in state:
                state["variance"] = zeros_like(g)
            moments = state["variance"].lerp_(g.square(), share)
        u = g * moments.clamp(min=small * small).rsqrt()
        p.sub_(u * (rate / max(1.0, u.norm().item() / (u.numel() ** 0.5 * group["d"]))))


class SparseAdam(_Formula):
    """Adam for tables of which a step uses few rows: rows without a gradient stay as they are, with
    their moments.

    Gradients are dense here, and a row without one is a row of zeros. There is no decay of the
    weights.

    ```
    table = cr.nn.Embedding(5, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = cr.optim.SparseAdam(table.parameters(), lr=0.1)
    table(cr.tensor([1, 3])).sum().backward()
    optimizer.step()
    assert (table.weight != before).any(1).tolist() == [False, True, False, True, False]
    ```
    """

    def __init__(self, params: Parameters, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False) -> None:
        _checked("SparseAdam", lr=lr, eps=eps)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (b1, b2), t = group["betas"], state["step"]
        if "exp_avg" not in state:
            state["exp_avg"], state["exp_avg_sq"] = zeros_like(p), zeros_like(p)
        used = (g != 0).reshape(g.shape[0], -1).any(1).nonzero().squeeze(1) if g.ndim else _c.tensor([0])
        if not used.numel():
            return
        rows: Any = ... if not g.ndim else used
        m = state["exp_avg"][rows] + (g[rows] - state["exp_avg"][rows]) * (1 - b1)
        v = state["exp_avg_sq"][rows] + (g[rows].square() - state["exp_avg_sq"][rows]) * (1 - b2)
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = m, v
        p[rows] -= group["lr"] * (1 - b2**t) ** 0.5 / (1 - b1**t) * (m / (v.sqrt() + group["eps"]))
