"""Mistakes of a training loop, found while it runs; for models of this library and of PyTorch."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIXES = {
    "not finite": "look at the data for numbers that are none, lower the rate, and guard logarithms, divisions and roots",
    "growing loss": "divide the learning rate by 10, and again until the loss falls",
    "vanishing gradient": "use ReLU with He's initialisation, or layers that normalise, or paths around layers",
    "exploding gradient": "begin with smaller weights (Glorot's or He's), or normalise between layers",
    "dead units": "begin with He's initialisation and biases of 0, lower the rate, or use a leaky ReLU",
    "equal weights": "begin with random weights (Glorot's or He's)",
    "missing zero_grad": "call optimizer.zero_grad() once for each optimizer.step(), before the backward pass",
    "detached branch": "keep the value on the tape: drop the detach or no_grad; or freeze the parameter if the cut is meant",
    "parameter not held by the optimizer": "give the optimizer all of model.parameters(), after the last layer was made",
    "dropout in evaluation": "call model.eval() before evaluation",
    "batch statistics in evaluation": "call model.eval() before evaluation; by hand, use the running statistics",
}

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """A mistake that was found, with what shows it."""

    mistake: str
    where: str
    step: int
    """The training step at which it was seen first, from 1."""
    evidence: str
    numbers: dict[str, float]

    @property
    def fix(self) -> str:
        return FIXES[self.mistake]

    def __str__(self) -> str:
        return f"{self.mistake}: {self.where} (seen at step {self.step})\n  evidence: {self.evidence}\n  fix: {self.fix}"


@dataclass
class WorkflowReport:
    """All that a session has found. As text: the findings; as a truth value: whether there are
    none.
    """

    steps: int
    evaluations: int
    findings: list[Finding] = field(default_factory=list)

    def get(self, mistake: str) -> Finding | None:
        """The finding of this mistake, if it was found."""
        return next((f for f in self.findings if f.mistake == mistake), None)

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        head = f"watched {self.steps} steps and {self.evaluations} evaluations: "
        if not self.findings:
            return head + "no mistake found"
        return "\n\n".join([head + f"{len(self.findings)} found", *map(str, self.findings)])


def _numbers(t: Any) -> Numbers:
    return np.array(t.detach().cpu().numpy() if hasattr(t, "cpu") else t.detach().numpy(), dtype="float64")


def _apart(a: Numbers, b: Numbers) -> float:
    size = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)), 1e-300)
    if not math.isfinite(size):
        return math.inf
    return float(np.abs(a - b).max(initial=0.0)) / size


class Workflow:
    """Watches a training loop and names the mistakes in it, with numbers.

    In each step call `forward` when the loss is there and `step` right after the optimizer's step;
    call evaluations by `evaluate`. The loop is changed in its speed alone: the session walks back a
    second time. After `steps` steps, and as many evaluations, it looks no more; the loss is looked
    at to the end. `meant` names mistakes that are on purpose.

    ```
    model = cr.nn.Sequential(cr.nn.Linear(2, 3), cr.nn.Linear(3, 1))
    with cr.no_grad():
        for p in model.parameters():
            p.copy_(p * 0.0)
    sgd = cr.optim.SGD(model.parameters(), lr=0.1)
    watch = cr.check.Workflow(model, sgd)
    for _ in range(3):
        x = cr.randn(8, 2)
        loss = ((model(x) - 1.0) ** 2).mean()
        watch.forward(loss)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        watch.step()
    assert watch.report.get("equal weights") is not None
    ```
    """

    def __init__(self, model: Any, *optimizers: Any, steps: int = 20, meant: Iterable[str] = ()) -> None:
        self.model, self.optimizers, self.most, self.meant = model, optimizers, steps, set(meant)
        unknown = self.meant - set(FIXES)
        if unknown:
            raise ValueError(f"Workflow: no mistake is called {sorted(unknown)[0]!r}; there are {', '.join(FIXES)}")
        self.report = WorkflowReport(0, 0)
        self._named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        embeddings = [name for name, m in model.named_modules() if "Embedding" in type(m).__name__]
        self._tables = {name for name, _ in self._named if any(name.startswith(e + ".") or name == e for e in embeddings)}
        self._own: list[Numbers | None] | None = None
        self._used: list[Numbers | None] = []
        self._first = self._best = math.nan
        self._silent: dict[str, NDArray[np.bool_]] = {}
        self._without: dict[str, int] = {}
        self._far = 0

    def _found(self, mistake: str, where: str, evidence: str, **numbers: float) -> None:
        known = any(f.mistake == mistake and f.where == where for f in self.report.findings)
        if mistake not in self.meant and not known:
            self.report.findings.append(Finding(mistake, where, max(self.report.steps, 1), evidence, numbers))

    def _matrices(self) -> list[tuple[str, Any]]:
        return [(name, p) for name, p in self._named if p.ndim > 1]

    def forward(self, loss: Any) -> None:
        """To be called when the loss of a training step is computed, before its backward pass."""
        value = float(loss.detach())
        self.report.steps += 1
        self._loss(value)
        if self.report.steps > self.most:
            return
        if self.report.steps == 1:
            self._weights()
        torch = type(loss).__module__.split(".")[0] == "torch"
        autograd = importlib.import_module("torch.autograd" if torch else "chainrule.autograd")
        own = autograd.grad(loss, [p for _, p in self._named], retain_graph=True, allow_unused=True)
        self._own = [None if g is None else _numbers(g) for g in own]
        self._gradients()

    def _loss(self, value: float) -> None:
        if not math.isfinite(value):
            self._found("not finite", "the loss", f"the loss of step {self.report.steps} is {value}")
            return
        if math.isnan(self._first):
            self._first = self._best = value
        self._best = min(self._best, value)
        # Three times in a row: a single bad batch is no mistake of the loop.
        self._far = self._far + 1 if value > 5.0 * abs(self._first) + 1e-9 and value > 5.0 * abs(self._best) else 0
        if self._far >= 3:
            told = f"the loss goes from {self._first:.4g} to {value:.5g} in {self.report.steps} steps"
            self._found("growing loss", "the loss", told, first=self._first, now=value)

    def _weights(self) -> None:
        matrices = [(n, _numbers(p)) for n, p in self._matrices()]
        equal = [n for n, w in matrices if w.size > 1 and min(w.shape) > 1 and bool((w == w.flat[0]).all())]
        # The last layer alone may begin at 0: its gradients differ from unit to unit.
        if equal and (len(equal) > 1 or equal[0] != matrices[-1][0]):
            value = float(dict(matrices)[equal[0]].flat[0])
            told = f"all numbers of {len(equal)} of {len(matrices)} weights begin at {value:g}: the units of a layer stay equal"
            self._found("equal weights", equal[0], told, value=value, weights=len(equal))

    def _gradients(self) -> None:
        own = dict(zip([n for n, _ in self._named], self._own or [], strict=True))
        matrices = [(n, own[n]) for n, _ in self._matrices() if n not in self._tables and own[n] is not None]
        norms = [(n, float(np.linalg.norm(g.ravel()))) for n, g in matrices if g is not None]
        for name, g in own.items():
            self._without[name] = self._without.get(name, 0) + (g is None)
        if len(norms) > 2 and norms[-1][1] > 0:
            (first, low), (last, high) = norms[0], norms[-1]
            numbers = {"first_layer": low, "last_layer": high}
            if 0 < low < 1e-5 * high:
                told = f"the gradient of {first} has the norm {low:.2g}, that of {last} {high:.2g}: it vanishes on the way"
                self._found("vanishing gradient", first, told, **numbers)
            elif low > 1e5 * high:
                told = f"the gradient of {first} has the norm {low:.2g}, that of {last} {high:.2g}: it grows on the way"
                self._found("exploding gradient", first, told, **numbers)
        for name, g in matrices:
            if g is None or g.shape[0] < 2:
                continue
            zero = (g.reshape(len(g), -1) == 0.0).all(1)
            self._silent[name] = zero & self._silent.get(name, np.ones_like(zero))
        if self.report.steps == 3:
            self._dead(matrices)

    def _dead(self, matrices: list[tuple[str, Numbers | None]]) -> None:
        # Layers before a dead one get nothing either: the last one is named.
        for name, _ in reversed(matrices):
            silent = self._silent.get(name)
            if silent is not None and silent.mean() > 0.9:
                told = f"{int(silent.sum())} of {len(silent)} units got a gradient of exactly 0 in three steps"
                self._found("dead units", name, told, share=float(silent.mean()), units=len(silent))
                return

    def step(self) -> None:
        """To be called right after the optimizer's step, before gradients are forgotten."""
        if self._own is None or self.report.steps > self.most:
            return
        held = {id(p) for o in self.optimizers for group in o.param_groups for p in group["params"]}
        # An optimizer forgets the gradients of its own parameters alone.
        used = [None if p.grad is None or (held and id(p) not in held) else _numbers(p.grad) for _, p in self._named]
        if len(self._used) == len(used):
            self._zero_grad(used)
        for (name, p), own in zip(self._named, self._own, strict=True):
            if self.report.steps < 2:
                break
            if self._without.get(name, 0) == self.report.steps and (not held or id(p) in held):
                self._found("detached branch", name, f"no gradient reached it in {self.report.steps} steps")
            elif held and id(p) not in held and own is not None and np.any(own != 0.0):
                self._found("parameter not held by the optimizer", name, "it gets a gradient, and no optimizer has it")
        self._used, self._own = used, None

    def _zero_grad(self, used: list[Numbers | None]) -> None:
        added = []
        for (name, _), own, before, now in zip(self._named, self._own or [], self._used, used, strict=True):
            if own is None or before is None or now is None or not np.any(before != 0.0) or own.size < 2:
                continue
            if _apart(now, own) > 1e-3 and _apart(now, own + before) < 1e-4:
                added.append(name)
        if added:
            told = f"the gradients of {len(added)} parameters are those of the step before plus this step's own"
            self._found("missing zero_grad", added[0], told, parameters=len(added))

    def evaluate(self, function: Callable[[Any], Any], inputs: Any) -> Any:
        """The result of `function` for the inputs. It is called twice more while evaluations are
        looked at: with the same inputs, and with inputs of which the second half is the first.
        """
        out = function(inputs)
        if self.report.evaluations >= self.most or not hasattr(out, "detach"):
            return out
        self.report.evaluations += 1
        first, again = _numbers(out), _numbers(function(inputs))
        if first.shape == again.shape and _apart(first, again) > 1e-6:
            told = f"two evaluations of the same inputs differ by {100 * _apart(first, again):.2g} %"
            self._found("dropout in evaluation", "the model", told, apart=_apart(first, again))
            return out
        half = len(inputs) // 2
        if half < 1 or len(first) != len(inputs):
            return out
        rows = list(range(half)) + [i % half for i in range(len(inputs) - half)]
        other = _numbers(function(inputs[rows]))[:half]
        if other.shape == first[:half].shape and _apart(other, first[:half]) > 1e-4:
            share = _apart(other, first[:half])
            told = f"with other examples beside it, an example's answer moves by {100 * share:.2g} %"
            self._found("batch statistics in evaluation", "the model", told, moved=share)
        return out


__all__ = ["Finding", "Workflow", "WorkflowReport"]
