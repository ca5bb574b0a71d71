"""Checks of a training before its first step: what the data, the model and the loss show by
themselves, most of it exactly.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._settings import WIDTHS, Array, Backend, Facts, Training, kind_of, last_called, units_wanted

SIGNS = ("output_fit", "output_pair")


@dataclass(frozen=True)
class Suspect:
    """A sign of a cause: how strong it is, where, the evidence, and the changes that would mend it.
    At a strength of 1 it is certain that something is wrong."""

    kind: str
    strength: float
    where: str
    evidence: str
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} at {self.where}: {self.evidence}"


def looked_at(training: Training) -> tuple[Facts, list[Suspect]]:
    """The facts of a training, and everything that is suspicious, the strongest first."""
    found = [*_data(training)]
    broken = [s for s in found if s.strength >= 1.0 and s.kind == "data"]
    model = training.built()
    backend = Backend(model)
    rng = np.random.default_rng([training.seed, 77])
    rows = np.sort(rng.permutation(len(training.x))[:64])
    x, y = training.x[rows], training.y[rows]
    facts = _facts(backend, training, model, x, y)
    if not broken:
        found += _outputs(training, facts)
        found += _independence(backend, model, training, x)
        found += _modes(backend, model, x)
        found += _weights(backend, model, training, facts)
    found.sort(key=lambda s: -s.strength)
    return facts, found


def _facts(backend: Backend, training: Training, model: Any, x: Array, y: Array) -> Facts:
    end, leaves = last_called(backend, model, x)
    output = backend.outputs(model, x)
    kind = kind_of(training.y)
    classes = int(training.y.max()) + 1 if kind == "classes" and training.y.size else 2
    names = inspect.signature(training.make).parameters if callable(training.make) else {}
    width = next((n for n in WIDTHS if n in names and isinstance(names[n].default, int)), None)
    facts = Facts(kind, "", False, False, output, end, leaves, width, classes)
    rng = np.random.default_rng(5)
    probe: Array = np.asarray(rng.normal(size=output.shape)).astype("float32")
    inside: Array = np.asarray(1.0 / (1.0 + np.exp(-probe)), dtype="float32")
    if output.ndim > 1 and output.shape[-1] > 1:
        inside /= inside.sum(-1, keepdims=True)

    def value(o: Array, t: Array = y) -> float:
        return backend.value(training.loss, o, t)

    def same(a: float, b: float) -> bool:
        return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1e-3)

    at = value(probe)
    if kind == "numbers" or y.size == output.size and same(value(y.reshape(output.shape).astype("float32")), 0.0) and value(probe) > 0.1:
        facts.takes = "numbers"
    if kind == "classes" and output.ndim > 1 and same(value(2 * probe), 2 * at) and same(value(-probe), -at) and abs(at) > 1e-6:
        facts.takes = "log probabilities"
    elif output.shape[-1] > 1 and same(value(probe + 3.0), at) and not same(value(2 * probe), at):
        facts.takes = "logits"
    elif kind in ("binary", "multilabel") and y.size == output.size:
        sure = (40.0 * y - 20.0).reshape(output.shape).astype("float32")
        half = value(np.full_like(probe, 0.5))
        if abs(value(sure)) < 1e-3 and value(-sure) > 1.0:
            facts.takes = "binary logits"
        elif facts.takes != "numbers" and half > 0 and not same(half, value(np.full_like(probe, -20.0))):
            facts.takes = "probabilities"
    elif kind == "onehot" and facts.takes != "numbers" and math.isfinite(value(inside)):
        facts.takes = "probabilities"
    usable = inside if facts.takes == "probabilities" else probe
    facts.sums = same(value(np.concatenate([usable, usable]), np.concatenate([y, y])), 2 * value(usable)) and abs(value(usable)) > 1e-6
    facts.divides = same(2 * value(np.concatenate([usable, usable]), np.concatenate([y, y])), value(usable)) and abs(value(usable)) > 1e-6
    facts.pads = _padding_counted(x, usable, y, value)
    if y.size == output.size and y.shape != output.shape:
        one, all_ = value(usable, y.reshape(output.shape)), value(usable)
        facts.broadcasts = math.isfinite(one) and math.isfinite(all_) and not same(one, all_)
    return facts


def _padding_counted(x: Array, outputs: Array, y: Array, value: Any) -> tuple[int, float] | None:
    """The padding and its share, if rows end in a token that fills them up in inputs and targets
    alike, and the loss changes with the answers there.
    """
    if y.ndim != 2 or y.dtype.kind != "i" or x.dtype.kind != "i" or x.shape != y.shape or y.shape[1] < 3 or outputs.shape[:2] != y.shape:
        return None
    values, counts = np.unique(y[:, -1], return_counts=True)
    fill = int(values[counts.argmax()])
    # The last places of a row, from the end as far as all are the filling token.
    tail: Array = np.flip(np.cumprod(np.flip(y == fill, 1), 1), 1).astype(bool)
    inputs = np.unique(x[:, 1:][tail[:, :-1]], return_counts=True)[1]
    share = float(tail.mean())
    if not 0.1 < share < 0.9 or (tail.sum(1) >= 2).mean() < 0.3 or inputs.max(initial=0) < 0.95 * inputs.sum():
        return None
    moved = outputs.copy()
    moved[tail] = 0.5 * moved[tail] + 1.0 if moved.ndim == 2 else np.flip(moved[tail], -1)
    before, after = value(outputs), value(moved)
    return (fill, share) if math.isfinite(before) and abs(after - before) > 1e-5 * abs(before) else None


def _row(a: Array) -> int:
    return int(np.argwhere(~np.isfinite(a.reshape(len(a), -1)).all(1))[0, 0])


def _data(training: Training) -> list[Suspect]:
    x, y, out = training.x, training.y, list[Suspect]()
    kind = kind_of(y)
    for name, a in (("inputs", x), ("targets", y)):
        if not np.isfinite(a).all():
            bad = a[_row(a)]
            return [Suspect("data", 1.0, "data", f"row {_row(a)} of the {name} has the value {bad[~np.isfinite(bad)].flat[0] if bad.ndim else bad}")]
    if x.dtype.kind == "f":
        out += _columns(x, y)
        largest = float(np.abs(x).max(initial=0.0))
        spread = x.std(0) if x.ndim == 2 else np.ones(1)
        spread = spread[spread > 0]
        if largest > 20.0:
            out.append(Suspect("input_scale", min(0.5 + math.log10(largest / 20.0) / 2, 0.95), "data", f"inputs up to {largest:.3g}", ("scale_x",)))
        elif spread.size > 1 and spread.max() > 100.0 * spread.min():
            out.append(Suspect("input_scale", 0.7, "data", f"columns differ {spread.max() / spread.min():.0f} times in spread", ("scale_x",)))
        elif largest < 0.1:
            out.append(Suspect("input_scale", 0.8, "data", f"inputs of at most {largest:.2g}", ("scale_x",)))
    if (y == y[:1]).all() and len(y) > 1:
        out.append(Suspect("labels", 1.0, "data", "all targets are equal"))
    if kind == "numbers":
        size, mean = float(max(np.abs(y).mean(), y.std())), float(y.mean())
        if size > 10.0:
            out.append(Suspect("target_scale", min(0.5 + math.log10(size / 10.0) / 2, 0.95), "data", f"targets of size {size:.3g}", ("scale_y",)))
        elif abs(mean) > 3.0 * y.std() > 0:
            out.append(Suspect("target_scale", 0.5, "data", f"targets of mean {mean:.3g} and spread {y.std():.3g}", ("scale_y",)))
        whole = (y == np.round(y)).all() and 2 <= len(np.unique(y)) <= 20 and y.size > 60
        if whole and (y.ndim == 1 or y.shape[-1] == 1):
            out.append(Suspect("labels", 0.3, "data", f"the targets are numbers of {len(np.unique(y))} kinds only, {y.min():g} to {y.max():g}; are they classes?"))
    if kind == "classes":
        low = int(y.min())
        if low < 0:
            out.append(Suspect("labels", 1.0, "data", f"a class has the number {low}; classes are counted from 0"))
        elif low > 0:
            out.append(Suspect("labels", 0.5, "data", f"the classes begin at {low}, so that class 0 has no rows"))
    out += _rows(training, kind)
    return out


def _columns(x: Array, y: Array) -> list[Suspect]:
    if x.ndim != 2:
        return []
    out = []
    constant = np.flatnonzero((x == x[:1]).all(0))
    if len(x) > 1 and 0 < constant.size < x.shape[1]:
        out.append(Suspect("data", 0.3, "data", f"columns {', '.join(map(str, constant[:8]))} of the inputs are constant"))
    elif len(x) > 1 and constant.size:
        out.append(Suspect("data", 0.95, "data", "all columns of the inputs are constant"))
    if y.ndim == 1 or y.shape[-1] == 1:
        t = y.reshape(len(y)).astype("float64")
        moving = x.std(0) > 0
        if t.std() > 0 and len(x) > 10 and moving.any():
            z = (x[:, moving] - x[:, moving].mean(0)) / x[:, moving].std(0)
            r = np.abs(z.T @ ((t - t.mean()) / t.std())) / len(t)
            if r.max() > 0.99999:
                at = int(np.flatnonzero(moving)[int(r.argmax())])
                out.append(Suspect("data", 0.6, "data", f"column {at} of the inputs is the target itself: it leaks"))
    return out


def _rows(training: Training, kind: str) -> list[Suspect]:
    x, y, out = training.x, training.y, list[Suspect]()
    classes = y if kind == "classes" else y.argmax(-1) if kind == "onehot" else y.reshape(len(y)) if kind == "binary" else None
    if classes is not None and classes.ndim == 1 and len(classes) > 20:
        turns, counts = int((classes[1:] != classes[:-1]).sum()), np.unique(classes, return_counts=True)[1]
        if not training.shuffle and 5 * turns < min(len(classes), 200):
            told = f"rows are not shuffled, and the class changes {turns} times in {len(classes)} rows"
            out.append(Suspect("data_order", 0.9, "shuffle", told, ("shuffle",)))
        if len(counts) > 1 and counts.max() > 10 * counts.min():
            out.append(Suspect("unbalanced", 0.4, "data", f"the largest class has {counts.max()} rows, the smallest {counts.min()}"))
    if x.ndim == 2 and x.dtype.kind == "i" and y.shape == x.shape:
        if (x == y).all():
            out.append(Suspect("labels", 1.0, "data", "the targets are the inputs themselves, not the tokens that follow"))
    if training.validation is not None:
        known = {row.tobytes() for row in x}
        share = float(np.mean([row.tobytes() in known for row in training.validation[0]]))
        if share > 0.5:
            out.append(Suspect("validation", 0.6, "data", f"{100 * share:.0f} % of the validation's rows are among those trained on"))
    return out


def _outputs(training: Training, facts: Facts) -> list[Suspect]:
    out, o, kind = list[Suspect](), facts.output, facts.kind
    where = facts.end[0] or "the model" if facts.end else "the last layer"
    end = type(facts.end[1]).__name__ if facts.end else ""
    inside = bool(o.min() >= 0.0 and o.max() <= 1.0)
    sums = o.ndim > 1 and o.shape[-1] > 1 and bool(np.allclose(o.sum(-1), 1.0, atol=1e-4)) and inside
    if facts.broadcasts:
        shapes = f"outputs [n{''.join(f', {k}' for k in o.shape[1:])}] against targets [n{''.join(f', {k}' for k in training.y.shape[1:])}]"
        out.append(Suspect("loss_broadcast", 1.0, "loss", f"{shapes} are compared each with each", ("loss_form",)))
    if facts.sums:
        out.append(Suspect("loss_reduction", 0.6, "loss", "the loss of twice the rows is twice as large: it is a sum", ("loss_form", "output_pair")))
    if facts.divides:
        out.append(Suspect("loss_reduction", 0.9, "loss", "the loss of twice the rows is half as large: a mean is divided by the rows once more"))
    if facts.pads:
        told = f"{100 * facts.pads[1]:.0f} % of the targets are the filling token {facts.pads[0]} at the end of a row, and the loss counts the answers there"
        out.append(Suspect("loss_reduction", 0.6, "loss", told))
    if end in ("Softmax", "LogSoftmax") and o.shape[-1] == 1:
        out.append(Suspect("output_activation", 1.0, where, f"a softmax over one unit is {o.flat[0]:g} for every input", SIGNS))
    elif "logits" in facts.takes and (end == "Softmax" or end == "Sigmoid" or sums):
        out.append(Suspect("output_activation", 1.0, where, f"the loss takes logits and gets {end or 'softmax'}'s probabilities", SIGNS))
    elif facts.takes == "probabilities" and not inside:
        told = f"the loss takes probabilities and gets numbers from {o.min():.3g} to {o.max():.3g}"
        out.append(Suspect("output_activation", 1.0, where, told, ("output_pair", "output_fit")))
    elif "logits" in facts.takes and end in ("ReLU", "Tanh", "LeakyReLU", "Softplus", "ELU", "GELU"):
        strong = 1.0 if end in ("ReLU", "Tanh", "Softplus") else 0.6
        out.append(Suspect("output_activation", strong, where, f"logits after {end} cannot be all numbers", SIGNS))
    elif facts.takes == "log probabilities" and not np.allclose(np.exp(o.astype("float64")).sum(-1), 1.0, atol=1e-3):
        out.append(Suspect("loss", 1.0, "loss", "the loss takes log-probabilities and gets other numbers; nothing bounds it from below", ("output_pair",)))
    elif kind == "numbers" and end:
        out += _reach(training.y, end, where)
    if kind in ("classes", "onehot") and facts.takes == "numbers" and facts.classes > 2 and end != "Softmax":
        out.append(Suspect("loss", 0.6, "loss", f"the loss takes the {facts.classes} classes for numbers", ("output_pair",)))
    wanted = units_wanted(facts, training.y)
    if wanted and kind == "classes" and wanted > 2 and o.ndim == 2 and o.shape[-1] < wanted:
        out.append(Suspect("output_units", 1.0, "the last layer", f"{o.shape[-1]} units for {wanted} classes", ("output_pair",)))
    return out


def _reach(y: Array, end: str, where: str) -> list[Suspect]:
    low, high = {"Sigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0), "ReLU": (0.0, math.inf), "Softplus": (0.0, math.inf)}.get(end, (-math.inf, math.inf))
    outside = float(((y < low) | (y > high)).mean())
    if outside > 0.0:
        return [Suspect("output_activation", 1.0, where, f"{end} cannot give {100 * outside:.0f} % of the targets, which go from {y.min():.3g} to {y.max():.3g}", SIGNS)]
    return [Suspect("output_activation", 0.5, where, f"{end} at the end of a regression", SIGNS)] if math.isfinite(low) else []


def _independence(backend: Backend, model: Any, training: Training, x: Array) -> list[Suspect]:
    """One input is changed, and the answers to the others must stay as they are, bit for bit but
    for the order of sums.
    """
    if len(x) < 4:
        return []
    model.eval()
    x, at = x[:8], 2
    changed = x.copy()
    changed[at] = x[(at + 1) % len(x)]
    before, after = backend.outputs(model, x), backend.outputs(model, changed)
    if len(before) != len(x) or not np.isfinite(before).all():
        return []

    def moved(a: Array, b: Array) -> float:
        return float(np.abs(a - b).max() / (np.abs(a).max() + 1e-12)) if a.size else 0.0

    others = [i for i in range(len(x)) if i != at]
    out = []
    if moved(before[others], after[others]) > 1e-4:
        row = int(max(others, key=lambda i: moved(before[i], after[i])))
        told = f"when row {at} of a batch is changed, the answer to row {row} moves by {100 * moved(before[row], after[row]):.2g} %: an example's output depends on another example"
        out.append(Suspect("architecture", 1.0, "model", told))
    y = training.y
    follows = x.ndim == 2 and y.shape == training.x.shape and y.dtype.kind == "i" and training.x.dtype.kind == "i"
    if follows and x.shape[1] > 2 and (training.x[:, 1:] == y[:, :-1]).mean() > 0.9 and before.shape[:2] == x.shape:
        for place in range(1, x.shape[1]):
            changed = x.copy()
            changed[:, place] = np.roll(x[:, place], 1)
            answers = backend.outputs(model, changed)
            if (changed != x).any() and moved(before[:, :place], answers[:, :place]) > 1e-5:
                told = f"the answer at place {place - 1} depends on the token at place {place}, which it is to predict: no causal mask, or one that is off by one"
                out.append(Suspect("architecture", 1.0, "model", told))
                break
    return out


def _modes(backend: Backend, model: Any, x: Array) -> list[Suspect]:
    """Dropout that never acts or always does, and statistics that are never updated."""
    out = []
    names = [type(m).__name__ for m in model.modules()]
    dropouts = [m for m in model.modules() if "Dropout" in type(m).__name__ and getattr(m, "p", 0.0) > 0.0]
    stats = [m for m in model.modules() if "BatchNorm" in type(m).__name__ and getattr(m, "running_mean", None) is not None]
    before = [array_of(m.running_mean) for m in stats]
    model.train()
    train = [backend.outputs(model, x) for _ in range(2)]
    if dropouts and (train[0] == train[1]).all():
        out.append(Suspect("regularisation", 0.6, "dropout", "two passes in training mode are equal: the dropout never acts"))
    same = [bool((a == array_of(m.running_mean)).all()) for a, m in zip(before, stats)]
    if stats and all(same):
        out.append(Suspect("architecture", 0.6, "batch norm", "a pass in training mode leaves the running statistics as they were"))
    model.eval()
    twice = [backend.outputs(model, x) for _ in range(2)]
    if (twice[0] != twice[1]).any() and np.isfinite(twice[0]).all():
        told = "two passes in evaluation mode differ: something random, such as dropout, acts there too"
        out.append(Suspect("validation", 0.9, "model", told if names else ""))
    return out


def array_of(t: Any) -> Array:
    """A copy of a tensor's numbers."""
    return np.array(t.detach().numpy())


def _weights(backend: Backend, model: Any, training: Training, facts: Facts) -> list[Suspect]:
    """Weights that begin equal, parameters that the optimizer does not have, and gradients at the
    start.
    """
    out = []
    # A new model: the passes above moved running statistics.
    model = training.built()
    optimizer = training.optimizer(model.parameters())
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    missing = [name for name, p in named if id(p) not in known]
    if missing:
        out.append(Suspect("optimizer", 0.9, missing[0], f"the optimizer does not have {len(missing)} parameters, {missing[0]} the first"))
    lr = float(optimizer.param_groups[0]["lr"])
    if lr < 0:
        out.append(Suspect("lr_sign", 1.0, "optimizer", f"the rate is {lr:g}: each step goes uphill", ("usual_rate", "adam")))
    if lr == 0:
        out.append(Suspect("lr_low", 1.0, "optimizer", "the rate is 0", ("usual_rate", "adam")))
    values = {name: array_of(p) for name, p in named}
    equal = [name for name, v in values.items() if v.ndim >= 2 and v.shape[0] > 1 and (v == v[:1]).all()]
    if equal:
        out.append(Suspect("init_constant", 1.0, equal[0], f"all units of {equal[0]} begin with equal weights", ("init",)))
    out += _untied(model, values)
    out += _moments(optimizer.param_groups[0])
    rows = min(len(training.x), 64)
    x, y = backend.tensor(training.x[:rows]), backend.tensor(training.y[:rows])
    model.train()
    try:
        loss = training.loss(model(x), y)
        loss.backward()
    except Exception as error:  # noqa: BLE001 -- the user's own code may raise anything; the run will say it again
        out.append(Suspect("loss", 1.0, "loss", f"the first step fails: {error}", ("output_pair",)))
        return out
    none = [name for name, p in named if p.grad is None]
    if none:
        out.append(Suspect("architecture", 0.5, none[0], f"no gradient reaches {len(none)} parameters, {none[0]} the first"))
    norms = [(n, float(np.linalg.norm(array_of(p.grad)))) for n, p in named if p.grad is not None and p.ndim >= 2]
    if len(norms) > 2:
        low, high = min(norms, key=lambda n: n[1]), max(norms, key=lambda n: n[1])
        if all(g == 0.0 for _, g in norms):
            out.append(Suspect("architecture", 0.6, "model", "every first gradient is exactly 0", ("init", "relu_hidden")))
        elif low[1] < 1e-4 * high[1]:
            told = f"the first gradient of {low[0]} is {low[1]:.2g}, that of {high[0]} {high[1]:.2g}: it vanishes on the way"
            out.append(Suspect("hidden_activation", 0.7, low[0], told, ("relu_hidden", "init")))
    whole = math.sqrt(sum(float(np.square(array_of(p.grad)).sum()) for _, p in named if p.grad is not None))
    if training.clip is not None and whole > 10.0 * training.clip > 0.0:
        told = f"the first gradient has the norm {whole:.2g} and is shortened to {training.clip:.2g}"
        out.append(Suspect("clipping", min(0.5 + math.log10(whole / training.clip) / 10, 0.9), "clip", told, ("no_clip",)))
    out += _first_step(optimizer, named, lr)
    big = [(n, float(v.std()) * math.sqrt(math.prod(v.shape[1:]))) for n, v in values.items() if v.ndim >= 2 and v.size > 8]
    for name, size in big:
        if "embed" not in name.lower() and not 0.02 < size < 20.0 and name not in equal:
            out.append(Suspect("init_scale", 0.7, name, f"{name} multiplies the size of its input by {size:.2g} at the start", ("init",)))
            break
    return out


def _untied(model: Any, values: dict[str, Array]) -> list[Suspect]:
    """Weights that begin as a copy of an embedding's, and are trained apart from it."""
    embeddings = [f"{name}.weight" for name, m in model.named_modules() if type(m).__name__ == "Embedding"]
    for name in embeddings:
        table = values.get(name)
        copies = [other for other, v in values.items() if other not in embeddings and table is not None and np.array_equal(v, table)]
        if copies:
            told = f"{copies[0]} begins as a copy of {name} and is another parameter: the two are not tied"
            return [Suspect("architecture", 0.6, copies[0], told)]
    return []


def _moments(group: Any) -> list[Suspect]:
    """Shares that the optimizer keeps of its state, beyond what trains."""
    out = []
    momentum, betas = group.get("momentum") or 0.0, group.get("betas")
    if not 0.0 <= momentum < 1.0:
        out.append(Suspect("optimizer", 1.0, "optimizer", f"a momentum of {momentum:g} lets old steps grow or turn back", ("adam",)))
    elif momentum > 0.98:
        told = f"a momentum of {momentum:g} makes each step {1 / (1 - momentum):.0f} times as long"
        out.append(Suspect("optimizer", 0.7, "optimizer", told, ("down_10", "adam")))
    if betas and betas[0] > 0.98:
        told = f"a first beta of {betas[0]:g} follows the gradients of the last {1 / (1 - betas[0]) if betas[0] < 1 else math.inf:.0f} steps"
        out.append(Suspect("optimizer", 0.7, "optimizer", told, ("adam",)))
    if betas and betas[1] < 0.9:
        out.append(Suspect("optimizer", 0.6, "optimizer", f"a second beta of {betas[1]:g} forgets the size of gradients within a few steps", ("adam",)))
    return out


def _first_step(optimizer: Any, named: Any, lr: float) -> list[Suspect]:
    """The first step of an optimizer with two moments is the rate itself, where the moments are
    corrected for their start at 0.
    """
    group = optimizer.param_groups[0]
    betas = group.get("betas")
    if not betas or not 0 < lr < 1 or not 0 <= betas[0] < 1 or not 0 <= betas[1] < 1:
        return []
    known = {id(p) for p in group["params"]}
    inside = [p for _, p in named if p.grad is not None and id(p) in known]
    gradients, before = [array_of(p.grad) for p in inside], [array_of(p) for p in inside]
    optimizer.step()
    moves: list[Any] = [np.abs(array_of(p) - b)[np.abs(g) > 1e-3] / lr for p, b, g in zip(inside, before, gradients)]
    sizes: Array = np.concatenate([m.ravel() for m in moves]) if moves else np.zeros(0)
    uncorrected = (1 - betas[0]) / math.sqrt(1 - betas[1])
    if sizes.size < 4 or abs(uncorrected - 1.0) < 0.2:
        return []
    size = float(np.median(sizes))
    if abs(size - uncorrected) < 0.05 * uncorrected:
        told = f"the first step is {size:.2f} times the rate, where it would be the rate itself: the moments are not corrected for their start at 0"
        return [Suspect("optimizer", 0.8, "optimizer", told, ("adam",))]
    return []


__all__ = ["Suspect", "looked_at"]
