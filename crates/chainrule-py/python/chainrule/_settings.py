"""A training in Python with some of its settings changed: the data, the model, the loss and the
optimizer of one run, for modules of this library and of PyTorch alike.
"""

from __future__ import annotations

import importlib
import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

WIDTHS = ("width", "hidden", "hidden_size", "units", "channels", "features", "dim", "n_embd", "d_model")
"""Arguments of a model's factory that say how wide it is."""
ENOUGH = 40
"""Rows from which on some are kept back."""
MOST_HELD = 1000
MOST_STEPS = 4500
LONG = 3000
"""Steps that a longer run has at most."""
RATES = {"down_10": 0.1, "down_100": 0.01, "up_10": 10.0, "up_100": 100.0}
ENDS = ("Softmax", "LogSoftmax", "Sigmoid", "Tanh", "ReLU", "LeakyReLU", "Softplus", "GELU", "ELU", "SiLU")
"""Activations that can stand at the end of a model."""
FLAT = ("Sigmoid", "Tanh", "Hardsigmoid", "Hardtanh", "Softsign", "Identity", "Softmax", "LogSigmoid")
"""Activations of hidden layers in whose place a ReLU is tried."""


def array(data: Any) -> Array:
    """Data as an array: of float32, or of int64."""
    if hasattr(data, "detach"):
        data = data.detach()
        data = data.cpu() if hasattr(data, "cpu") else data
        data = data.numpy()
    a = np.asarray(data)
    if a.dtype == object or a.dtype.kind not in "fiub":
        raise TypeError(f"diagnose: data are arrays or tensors of numbers, not of {a.dtype}")
    return np.ascontiguousarray(a, dtype="float32" if a.dtype.kind == "f" else "int64")


class Backend:
    """The library of a model: this one or PyTorch."""

    def __init__(self, model: Any) -> None:
        name = "torch" if any(c.__module__.startswith("torch.") for c in type(model).__mro__) else "chainrule"
        self.is_torch = name == "torch"
        self.lib: Any = importlib.import_module(name)
        self.functional: Any = importlib.import_module(f"{name}.nn.functional")
        for needed in ("parameters", "named_modules", "train", "eval"):
            if not hasattr(model, needed):
                raise TypeError(f"diagnose: make() gives a {type(model).__name__}, which is no module")

    def tensor(self, a: Array) -> Any:
        """The array as a tensor of the library."""
        return self.lib.from_numpy(np.ascontiguousarray(a)) if self.is_torch else self.lib.tensor(a)

    def outputs(self, model: Any, x: Array, rows: int = 512) -> Array:
        """The model's answers."""
        with self.lib.no_grad():
            parts = [array(model(self.tensor(x[at : at + rows]))) for at in range(0, len(x), rows)]
        return np.concatenate(parts) if parts[0].ndim else np.asarray(parts)

    def value(self, loss: Callable[[Any, Any], Any], output: Array, target: Array) -> float:
        """The loss of these outputs; not a number where the loss does not take them."""
        try:
            with self.lib.no_grad():
                return float(loss(self.tensor(output), self.tensor(target)).item())
        except Exception:  # noqa: BLE001 -- a loss may refuse what it does not take in its own way
            return math.nan


def kind_of(y: Array) -> str:
    """The kind of the targets: numbers of classes, yes or no, one-hot rows, several of yes or no,
    or numbers.
    """
    if y.dtype.kind == "i":
        return "classes"
    known = y[np.isfinite(y)]
    if not known.size or not np.isin(known, (0.0, 1.0)).all():
        return "numbers"
    if y.ndim == 1 or y.shape[-1] == 1:
        return "binary"
    return "onehot" if (y.sum(-1) == 1).all() else "multilabel"


def _said(output: Array, target: Array, kind: str) -> tuple[Array, Array]:
    """The classes that the outputs say, and the right ones."""
    if kind == "onehot":
        return output.reshape(target.shape).argmax(-1), target.argmax(-1)
    if kind == "classes" and output.ndim > target.ndim and output.shape[-1] + (output.ndim > 2) * output.shape[1] > 1:
        axis = -1 if output.shape[:-1] == target.shape else 1
        return output.argmax(axis), target
    if kind == "classes" and output.ndim == 2 and output.size != target.size and output.size % target.size == 0:
        return output.reshape(target.size, -1).argmax(-1), target.reshape(-1)
    at = 0.5 if output.min() >= 0.0 and output.max() <= 1.0 else 0.0
    return (output.reshape(target.shape) > at).astype("int64"), target.astype("int64")


def skill_of(output: Array, target: Array, kind: str) -> float:
    """0 for the best constant answer, 1 for a perfect one."""
    if not np.isfinite(output).all():
        return -1.0
    if kind == "numbers":
        rows = target.reshape(len(target), -1).astype("float64")
        error = np.square(output.reshape(rows.shape) - rows).mean()
        return max(-1.0, float(1.0 - error / max(np.square(rows - rows.mean(0)).mean(), 1e-12)))
    said, right = _said(output, target, kind)
    if kind == "multilabel":
        share = right.reshape(len(right), -1).mean(0)
        usual = float(np.maximum(share, 1.0 - share).mean())
    else:
        usual = float(np.unique(right, return_counts=True)[1].max() / right.size)
    return float(((said == right).mean() - usual) / max(1.0 - usual, 1e-9))


def last_called(backend: Backend, model: Any, x: Array) -> tuple[Any, list[Any]]:
    """The last activation of the model with its name, none if it ends otherwise, and all its leaves
    in the order of their calls.
    """
    leaves = [(name, m) for name, m in model.named_modules() if not list(m.children())]
    called: list[Any] = []
    hooks = [m.register_forward_hook(lambda _m, _i, _o, n=name, m=m: called.append((n, m))) for name, m in leaves]
    model.eval()
    backend.outputs(model, x[:2])
    for hook in hooks:
        hook.remove()
    end = called[-1] if called and type(called[-1][1]).__name__ in ENDS else None
    return end, called


def replace(model: Any, name: str, new: Any) -> Any:
    """The model with another module under this name; a model that is that module alone is
    replaced.
    """
    if not name:
        return new
    owner, _, leaf = name.rpartition(".")
    parent = model.get_submodule(owner) if owner else model
    parent._modules[leaf] = new
    return model


@dataclass
class Facts:
    """Facts of a training before its first step."""

    kind: str
    takes: str
    """Input of the loss: "logits" of classes, "binary logits", "probabilities", "log
    probabilities", "numbers", or "" where that is not clear."""
    sums: bool
    """Whether the loss grows with the number of rows."""
    broadcasts: bool
    """Whether the loss compares each output with each target."""
    output: Array
    end: Any
    leaves: list[Any]
    width: str | None
    classes: int
    found: list[Any] = field(default_factory=list)
    divides: bool = False
    """Whether the loss falls with the number of rows."""
    pads: tuple[int, float] | None = None
    """The padding token and its share, where the loss counts the answers there."""


@dataclass
class Training:
    """A training as the user gives it."""

    make: Callable[..., Any]
    x: Array
    y: Array
    loss: Callable[[Any, Any], Any]
    optimizer: Callable[[Any], Any]
    epochs: int
    batch: int
    shuffle: bool
    clip: float | None
    seed: int
    skill: Callable[[Array, Array], float] | None
    validation: tuple[Array, Array] | None = None
    compiled: bool = True

    def seeded(self, backend: Backend | None, seed: int) -> None:
        """Seeds the generators that the model may draw from."""
        from ._functions import manual_seed

        manual_seed(seed)
        np.random.seed(seed % 2**32)
        if backend is None or backend.is_torch:
            import sys

            if "torch" in sys.modules:
                sys.modules["torch"].manual_seed(seed)

    def built(self, changes: list[str] = [], seed: int = 0, facts: Facts | None = None) -> Any:
        """A new model, with the changes that concern it."""
        self.seeded(None, self.seed + seed)
        wide = {}
        if "wider" in changes and facts is not None and facts.width:
            now = inspect.signature(self.make).parameters[facts.width].default
            wide = {facts.width: min(max(4 * now, 32), max(64, 2 * now))}
        model = self.make(**wide)
        return _changed(Backend(model), model, changes, self, facts) if facts is not None else model

    def run(self, facts: Facts, changes: list[str], seed: int, seconds: float) -> tuple[list[float], float, float | None] | None:
        """One run: its losses, the skill on the rows trained on, and on those kept back."""
        until = time.monotonic() + seconds
        rng = np.random.default_rng([self.seed, seed])
        x, y = self.x, self.y.copy()
        if "shuffled_targets" in changes:
            y = y[rng.permutation(len(y))]
        held = np.empty(0, dtype="int64")
        rows = np.arange(len(x))
        if len(x) >= ENOUGH:
            order = rng.permutation(len(x))
            held, rows = order[: min(len(x) // 4, MOST_HELD)], np.sort(order[min(len(x) // 4, MOST_HELD) :])
        if "scale_x" in changes:
            x = standardised(x, x[rows])
        low, size = (y[rows].mean(0), y[rows].std(0) + 1e-12) if "scale_y" in changes else (0.0, 1.0)
        goal = ((y - low) / size).astype("float32") if "scale_y" in changes else y
        model = self.built(changes, seed, facts)
        backend = Backend(model)
        optimizer = _optimizer(backend, self.optimizer, model, changes)
        losses = self._trained(backend, model, optimizer, facts, changes, x[rows], goal[rows], rng, until)
        if losses is None:
            return None
        model.eval()

        def measured(at: Array) -> float:
            out = backend.outputs(model, x[at])
            if "scale_y" in changes:
                out = (out.reshape(y[at].shape) * size + low).astype("float32")
            value = self.skill(out, y[at]) if self.skill is not None else skill_of(out, y[at], facts.kind)
            return float(value) if math.isfinite(value) else -1.0

        return losses, measured(rows), measured(held) if len(held) else None

    def planned(self, changes: list[str], rows: int) -> tuple[int, int]:
        """The batch and the number of steps."""
        batch = min(32 if "batch_32" in changes else self.batch, rows)
        per = -(-rows // batch)
        epochs = max(self.epochs, min(10 * self.epochs, -(-LONG // per))) if "longer" in changes else self.epochs
        return batch, min(epochs * per, MOST_STEPS)

    def _trained(
        self, backend: Backend, model: Any, optimizer: Any, facts: Facts, changes: list[str], x: Array, y: Array, rng: Any, until: float
    ) -> list[float] | None:
        loss = changed_loss(backend, self.loss, facts, changes)
        parameters = list(model.parameters())
        model.train()

        def step(xs: Any, ys: Any) -> Any:
            optimizer.zero_grad()
            value = loss(model(xs), ys)
            value.backward()
            if self.clip is not None and "no_clip" not in changes:
                backend.lib.nn.utils.clip_grad_norm_(parameters, self.clip)
            optimizer.step()
            return value

        run = step if backend.is_torch or not self.compiled else backend.lib.compile(step)
        batch, steps = self.planned(changes, len(x))
        losses: list[float] = []
        shuffles = self.shuffle or "shuffle" in changes
        while len(losses) < steps:
            order = rng.permutation(len(x)) if shuffles else np.arange(len(x))
            for at in range(0, len(x), batch):
                if len(losses) >= steps:
                    break
                if time.monotonic() > until:
                    return None
                now = order[at : at + batch]
                # A row that is left over alone, as the rows kept back make it, has no variance.
                if len(now) == 1 and batch > 1 and len(x) > 1:
                    continue
                losses.append(float(run(backend.tensor(x[now]), backend.tensor(y[now])).item()))
                if not math.isfinite(losses[-1]) and len(losses) > 4:
                    return losses
        return losses


def standardised(x: Array, by: Array) -> Array:
    """Mean 0 and deviation 1 by column, over all numbers for images."""
    axis = 0 if x.ndim == 2 else None
    return np.asarray((x - by.mean(axis)) / (by.std(axis) + 1e-7), dtype="float32")


def _optimizer(backend: Backend, given: Callable[[Any], Any], model: Any, changes: list[str]) -> Any:
    if "adam" in changes or "adam_fast" in changes:
        return backend.lib.optim.Adam(model.parameters(), lr=0.001 if "adam" in changes else 0.01)
    optimizer = given(model.parameters())
    for group in optimizer.param_groups:
        for change, by in RATES.items():
            if change in changes:
                group["lr"] *= by
        if "usual_rate" in changes:
            group["lr"] = 0.01 if type(optimizer).__name__ == "SGD" else 0.001
        if "no_regularisation" in changes and group.get("weight_decay"):
            group["weight_decay"] = 0.0
    return optimizer


def units_wanted(facts: Facts, y: Array) -> int | None:
    """Units that the last layer needs for the targets."""
    return facts.classes if facts.kind == "classes" else y.shape[-1] if facts.kind in ("onehot", "multilabel") and y.ndim > 1 else None


def _changed(backend: Backend, model: Any, changes: list[str], training: Training, facts: Facts) -> Any:
    nn = backend.lib.nn
    last = facts.end[0] if facts.end else None
    if "relu_hidden" in changes:
        for name, m in list(model.named_modules()):
            if type(m).__name__ in FLAT and name != last and name:
                model = replace(model, name, nn.ReLU())
    if last is not None and "output_pair" in changes:
        model = replace(model, last, nn.Identity())
    if last is not None and "output_fit" in changes:
        ends = {"probabilities": nn.Sigmoid() if facts.kind in ("binary", "multilabel") else nn.Softmax(-1), "log probabilities": nn.LogSoftmax(-1)}
        model = replace(model, last, ends.get(facts.takes, nn.Identity()))
    linear = [(name, m) for name, m in facts.leaves if type(m).__name__ == "Linear"]
    wanted = units_wanted(facts, training.y)
    if "output_pair" in changes and linear and wanted and linear[-1][1].weight.shape[0] != wanted:
        model = replace(model, linear[-1][0], nn.Linear(linear[-1][1].weight.shape[1], wanted))
    if "no_regularisation" in changes:
        for m in model.modules():
            if "Dropout" in type(m).__name__:
                m.p = 0.0
    if "init" in changes:
        _initialised(backend, model, [name for name, _ in facts.leaves])
    return model


def _initialised(backend: Backend, model: Any, order: list[str]) -> None:
    """He's numbers for layers before a ReLU, Glorot's for others, zeros for biases."""
    init = backend.lib.nn.init
    named = dict(model.named_modules())
    leaves = [named[name] for name in order if name in named]
    for at, m in enumerate(leaves):
        weight = getattr(m, "weight", None)
        if not any(word in type(m).__name__ for word in ("Linear", "Conv")) or weight is None:
            continue
        after = [type(n).__name__ for n in leaves[at + 1 : at + 3]]
        if any("ReLU" in n or n in ("GELU", "SiLU", "ELU") for n in after):
            init.kaiming_normal_(weight, nonlinearity="relu")
        else:
            init.xavier_uniform_(weight)
        if getattr(m, "bias", None) is not None:
            init.zeros_(m.bias)


def changed_loss(backend: Backend, loss: Callable[[Any, Any], Any], facts: Facts, changes: list[str]) -> Callable[[Any, Any], Any]:
    """The loss of a run."""
    f = backend.functional
    if "output_pair" in changes:
        pairs: dict[str, Callable[[Any, Any], Any]] = {
            "classes": lambda o, t: f.cross_entropy(o.reshape(-1, o.shape[-1]), t.reshape(-1)),
            "onehot": lambda o, t: -(f.log_softmax(o, -1) * t).sum(-1).mean(),
            "binary": lambda o, t: f.binary_cross_entropy_with_logits(o.reshape(t.shape), t),
            "multilabel": lambda o, t: f.binary_cross_entropy_with_logits(o.reshape(t.shape), t),
            "numbers": lambda o, t: f.mse_loss(o.reshape(t.shape), t),
        }
        return pairs[facts.kind]
    if "loss_form" in changes:

        def formed(o: Any, t: Any) -> Any:
            value = loss(o, t.reshape(o.shape) if facts.broadcasts else t)
            return value / o.shape[0] if facts.sums else value

        return formed
    return loss


__all__ = ["Backend", "Facts", "Training", "array", "kind_of", "skill_of"]
