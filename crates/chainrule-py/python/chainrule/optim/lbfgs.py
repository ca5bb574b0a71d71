"""L-BFGS: steps along the gradient times an estimate of the inverse Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _functions as _f
from .._chainrule import Tensor
from ..autograd import no_grad
from .optimizer import Optimizer, Parameters, with_grad

# The strong Wolfe conditions: least decrease, and largest slope.
DECREASE, SLOPE = 1e-4, 0.9
MOST_ROUNDS = 25


class _Point(NamedTuple):
    """A point of the line search: step, loss, gradient, slope along the direction."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _cubic(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic through two points and their slopes, kept within bounds."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    if a.t == b.t:
        return (low + high) / 2.0
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    if a.t > b.t:
        a, b = b, a
    found = b.t - (b.t - a.t) * ((b.slope + root - d1) / (b.slope - a.slope + 2 * root))
    return min(max(found, low), high)


def _bracket(value: Callable[[float], _Point], start: _Point, t: float, most: int) -> tuple[list[_Point], bool, int]:
    """Two points with a minimum between them, or one that is good already; and the number of
    evaluations.
    """
    before, now = start, value(t)
    for evaluations in range(1, most + 1):
        if now.loss > start.loss + DECREASE * now.t * start.slope or (evaluations > 2 and now.loss >= before.loss):
            return [before, now], False, evaluations
        if abs(now.slope) <= -SLOPE * start.slope:
            return [now], True, evaluations
        if now.slope >= 0:
            return [before, now], False, evaluations
        least, largest = now.t + 0.01 * (now.t - before.t), now.t * 10
        before, now = now, value(_cubic(before, now, (least, largest)))
    # One more was evaluated after the last look.
    return [start, now], False, most + 1


def _wolfe(value: Callable[[float], _Point], start: _Point, t: float, size: float, tolerance: float, most: int) -> tuple[_Point, int]:
    """A step that fulfils the strong Wolfe conditions, and the number of evaluations."""
    ends, done, evaluations = _bracket(value, start, t, most)
    stuck, rounds = False, evaluations - 1
    if len(ends) == 1:
        return ends[0], evaluations
    low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
    while not done and rounds < most:
        if abs(ends[1].t - ends[0].t) * size < tolerance:
            break
        left, right = sorted((ends[0].t, ends[1].t))
        t = _cubic(ends[0], ends[1])
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            # Too near an end twice: a step of a tenth away from it.
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = value(t)
        evaluations, rounds = evaluations + 1, rounds + 1
        if now.loss > start.loss + DECREASE * now.t * start.slope or now.loss >= ends[low].loss:
            ends[high] = now
            low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
            continue
        if abs(now.slope) <= -SLOPE * start.slope:
            done = True
        elif now.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = now
    return ends[low], evaluations


class LBFGS(Optimizer):
    """Steps along `-H g`, where `H` estimates the inverse Hessian from the last `history_size`
    steps.

    `step(closure)` makes up to `max_iter` of them, and calls the closure, which computes the loss
    and its gradients, up to `max_eval` times. `line_search_fn="strong_wolfe"` searches along each
    direction. There is one group of parameters.

    ```
    w = cr.tensor([3.0, -2.0], requires_grad=True)
    opt = cr.optim.LBFGS([w], line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = ((w - cr.tensor([1.0, 1.0])) ** 2).sum()
        loss.backward()
        return loss

    opt.step(closure)
    assert w.allclose(cr.ones(2))
    ```
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}")
        settings = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval, "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change, "history_size": history_size, "line_search_fn": line_search_fn,
        }
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS: there is one group of parameters")

    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def _grad(self) -> Tensor:
        flat = [(p.detach() * 0.0 if p.grad is None else p.grad.detach()).reshape(-1) for p in self._params()]
        return _f.cat(flat)

    def _move(self, start: list[Tensor], t: float, direction: Tensor) -> None:
        """Puts the parameters at `start + t * direction`."""
        at = 0
        for p, x in zip(self._params(), start):
            n = p.numel()
            p.copy_(x + t * direction[at : at + n].reshape(p.shape))
            at += n

    @staticmethod
    def _direction(g: Tensor, state: dict[str, Any]) -> Tensor:
        """`-H g` by the two loops over the steps that are remembered."""
        q: Tensor = -g
        steps, changes = state["old_stps"], state["old_dirs"]
        factors = []
        for s, y, rho in reversed(list(zip(steps, changes, state["ro"]))):
            factor = s.dot(q) * rho
            factors.append(factor)
            q = q - factor * y
        q = q * state["H_diag"]
        for s, y, rho, factor in zip(steps, changes, state["ro"], reversed(factors)):
            q = q + s * (factor - y.dot(q) * rho)
        return q

    @staticmethod
    def _remember(g: Tensor, state: dict[str, Any], most: int) -> None:
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        product = float(y.dot(s))
        if product <= 1e-10:
            return
        for name, new in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / product)):
            state[name] = [*state[name][-(most - 1) if most > 1 else len(state[name]) :], new] if len(state[name]) >= most else [*state[name], new]
        state["H_diag"] = product / float(y.dot(y))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` steps; gives the loss before the first of them."""
        if closure is None:
            raise TypeError("LBFGS: step needs a closure that computes the loss and its gradients")
        with no_grad():
            return self._steps(closure)

    def _steps(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params()[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = with_grad(closure)
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        g = self._grad()
        if float(g.abs().max()) <= group["tolerance_grad"]:
            return first
        done = 0
        while done < group["max_iter"]:
            done += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            else:
                self._remember(g, state, group["history_size"])
            d = state["d"] = self._direction(g, state)
            state["prev_flat_grad"], before = g, loss
            t = min(1.0, 1.0 / float(g.abs().sum())) * group["lr"] if state["n_iter"] == 1 else group["lr"]
            slope = float(g.dot(d))
            if slope > -group["tolerance_change"]:
                break
            t, loss, g, count = self._along(closure, _Point(0.0, loss, g, slope), t, d, done == group["max_iter"], group["max_eval"] - evaluations)
            state["t"], state["prev_loss"] = t, before
            evaluations += count
            state["func_evals"] += count
            if (
                evaluations >= group["max_eval"]
                or float(g.abs().max()) <= group["tolerance_grad"]
                or float((d * t).abs().max()) <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first

    def _along(self, closure: Callable[[], Any], start: _Point, t: float, d: Tensor, last: bool, left: int) -> tuple[float, float, Tensor, int]:
        """A step along the direction: its length, the loss and the gradient there, and the number
        of evaluations.
        """
        origin = [p.detach().clone() for p in self._params()]
        if self.param_groups[0]["line_search_fn"] is None:
            self._move(origin, t, d)
            if last:
                # Nobody asks for the loss after the last step.
                return t, start.loss, start.grad, 0
            loss = float(with_grad(closure))
            return t, loss, self._grad(), 1

        def value(t: float) -> _Point:
            self._move(origin, t, d)
            loss = float(with_grad(closure))
            g = self._grad()
            return _Point(t, loss, g, float(g.dot(d)))

        most = max(0, min(MOST_ROUNDS, left))
        found, count = _wolfe(value, start, t, float(d.abs().max()), self.param_groups[0]["tolerance_change"], most)
        self._move(origin, found.t, d)
        return found.t, found.loss, found.grad, count
