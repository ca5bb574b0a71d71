"""Diagnosis of a training that does not learn: each suspected cause is tested by short runs with
that one thing changed, and the cause is the change that repairs it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _chainrule as _c
from ._before import Suspect, looked_at
from ._random import fork_rng
from ._settings import RATES, Array, Facts, Training, array


@dataclass(frozen=True)
class Cause:
    """A cause, with its proof."""

    kind: str
    where: str
    since: int
    """The step since when; 0 for the settings themselves."""
    confidence: float
    evidence: str
    edit: list[str]
    """The edits that mend it, in words of the training's own settings."""
    skill_before: float
    """Skill with the other edits but not this one."""
    skill_after: float
    end: str = ""
    """End of the training if nothing is mended."""
    numbers: dict[str, float] = field(default_factory=dict)
    """The evidence as numbers, by name."""


@dataclass(frozen=True)
class Curve:
    """One run: its changes, the loss of each step, and the skill."""

    changes: list[str]
    text: str
    losses: list[float]
    fit: float
    """Skill on the rows that were trained on."""
    held: float | None
    """Skill on rows that were kept back."""


@dataclass
class Diagnosis:
    """Result of a diagnosis. As text: the report."""

    learns: bool
    skill: float
    """Skill of the training as it is: 0 for the best constant answer, 1 for a perfect one."""
    best: float
    after: float
    """Skill with the edits of all causes."""
    causes: list[Cause]
    alternatives: list[str]
    """Other sets of changes that do as well."""
    curves: list[Curve]
    changes: list[str]
    """The changes of the proposed edits, of which a curve has the run."""
    suspects: list[Suspect]
    """Signs that were seen before the first step."""
    runs: int
    late: bool
    """Whether time ran out."""
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def plot(self) -> Any:
        """The loss of the training as it is beside that with the edits, drawn by matplotlib."""
        from .plots import curves

        chosen = [c for c in self.curves if not c.changes or sorted(c.changes) == sorted(self.changes)]
        return curves([(c.text or "as it is", c.losses) for c in chosen])


def _training(
    make: Callable[..., Any], data: Sequence[Any], loss: Any, optimizer: Any, epochs: int, batch: int, shuffle: bool, clip: float | None, seed: int, skill: Any
) -> Training:
    if len(data) not in (2, 4):
        raise ValueError(f"diagnose: data are (x, y) or (x, y, validation x, validation y), not {len(data)} things")
    x, y, *rest = [array(a) for a in data]
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y) or not len(x):
        raise ValueError(f"diagnose: inputs {list(x.shape)} and targets {list(y.shape)} have no rows in common")
    if epochs < 1 or batch < 1:
        raise ValueError(f"diagnose: epochs ({epochs}) and batch ({batch}) are at least 1")
    own = (rest[0], rest[1]) if rest else None
    return Training(make, x, y, loss, optimizer, epochs, batch, shuffle, clip, seed, skill, own)


def _edits(training: Training, facts: Facts, lr: float) -> dict[str, str]:
    """The changes that change something, each with its edit in words."""
    rows, kind = len(training.x), facts.kind
    end = f"`{facts.end[0]}` ({type(facts.end[1]).__name__})" if facts.end else ""
    losses = {"classes": "cross_entropy", "onehot": "cross_entropy", "numbers": "mse_loss"}
    right = losses.get(kind, "binary_cross_entropy_with_logits")
    without = f"without {end} at the end, " if end else ""
    out = {c: f"lr = {lr * by:g} in place of {lr:g}" for c, by in RATES.items() if lr > 0}
    out |= {"adam": "optimizer = Adam, lr = 0.001", "adam_fast": "optimizer = Adam, lr = 0.01"}
    out["output_pair"] = f"{without}loss = {right}"
    out["init"] = "He's initialisation before ReLUs, Glorot's elsewhere, biases of 0"
    out["shuffled_targets"] = "shuffled targets"
    if lr <= 0:
        out["usual_rate"] = "the optimizer's usual rate, above 0"
    if training.x.dtype.kind == "f":
        out["scale_x"] = "x = (x - x.mean(0)) / x.std(0)" if training.x.ndim == 2 else "x = (x - x.mean()) / x.std()"
    if kind == "numbers":
        out["scale_y"] = "y = (y - y.mean(0)) / y.std(0)"
    if facts.end:
        fitting = {"probabilities": "Sigmoid" if kind in ("binary", "multilabel") else "Softmax", "log probabilities": "LogSoftmax"}
        fit = fitting.get(facts.takes, "Identity")
        if type(facts.end[1]).__name__ != fit:
            out["output_fit"] = f"{end} = {fit}"
    if facts.broadcasts or facts.sums:
        out["loss_form"] = "target.reshape(output.shape) in the loss" if facts.broadcasts else "the mean over rows in place of the sum"
    names = [type(m).__name__ for name, m in facts.leaves if not facts.end or name != facts.end[0]]
    flat = sorted({n for n in names if n in ("Sigmoid", "Tanh", "Softmax", "Identity", "Softsign", "LogSigmoid")})
    if flat:
        out["relu_hidden"] = f"ReLU in place of {' and '.join(flat)} in the hidden layers"
    if any("Dropout" in n for n in names) or _decays(training):
        out["no_regularisation"] = "no dropout, weight_decay = 0"
    if facts.width:
        out["wider"] = f"a larger {facts.width}"
    if not 16 <= training.batch <= 64 and not (training.batch > 64 and rows <= 64):
        out["batch_32"] = f"batch = 32 in place of {training.batch}"
    if not training.shuffle:
        out["shuffle"] = "shuffle = True"
    kept = rows - min(rows // 4, 1000) if rows >= 40 else rows
    if training.planned(["longer"], kept)[1] >= 1.5 * training.planned([], kept)[1]:
        per = -(-kept // min(training.batch, kept))
        out["longer"] = f"epochs = {max(1, training.planned(['longer'], kept)[1] // per)} in place of {training.epochs}"
    if training.clip is not None:
        out["no_clip"] = f"no clipping to {training.clip:g}"
    return out


def _decays(training: Training) -> bool:
    optimizer = training.optimizer(training.built().parameters())
    return any(group.get("weight_decay") for group in optimizer.param_groups)


class _Diagnose:
    """`chainrule.diagnose`."""

    def __call__(
        self,
        make: Callable[..., Any],
        data: Sequence[Any],
        loss: Callable[[Any, Any], Any],
        optimizer: Callable[[Any], Any],
        *,
        epochs: int = 20,
        batch: int = 32,
        shuffle: bool = True,
        clip: float | None = None,
        skill: Callable[[Array, Array], float] | None = None,
        seconds: float = 60.0,
        runs: int = 60,
        seed: int = 1,
    ) -> Diagnosis:
        """Says why a training does not learn, and proves it by short runs with one thing changed.

        `make()` gives a new model, of this library or of PyTorch; `data` are `(x, y)`, arrays or
        tensors, perhaps with `(..., xv, yv)` for validation; `loss(output, target)` and
        `optimizer(parameters)` are those of the training. If `make` takes its width as an argument
        with a default (`width`, `hidden`, `units`, ...), a wider model is tried too.

        Skill is 0 for the best answer that does not look at the input and 1 for a perfect one:
        accuracy above the most frequent class, or the share of the variance that is explained;
        `skill(output, target)` may measure something else. From 40 rows on a quarter is kept back,
        and skill that only the rows trained on have does not count. The same seed gives the same
        report, as long as `seconds` are not reached.

        ```
        import numpy as np

        rng = np.random.default_rng(0)
        x = rng.normal(size=(120, 4)).astype("float32")
        y = (x[:, :1] + x[:, 1:2] > 0).astype("float32")
        nn = cr.nn

        report = cr.diagnose(
            lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), nn.Softmax(-1)),
            (x, y),
            nn.functional.binary_cross_entropy,
            lambda p: cr.optim.Adam(p, lr=0.02),
        )
        assert report.causes[0].kind == "output_activation"
        assert report.skill < 0.1 and report.after > 0.8
        ```
        """
        training = _training(make, data, loss, optimizer, epochs, batch, shuffle, clip, seed, skill)
        if not (seconds > 0 and math.isfinite(seconds)) or runs < 1:
            raise ValueError(f"diagnose: seconds ({seconds}) and runs ({runs}) are above 0")
        with _generators():
            facts, suspects = looked_at(training)
            model = training.built()
            chosen = optimizer(model.parameters())
            lr = float(chosen.param_groups[0]["lr"])
            known = _edits(training, facts, lr)
            # Parameters that the optimizer changes, and rows: where both are few, the seed decides.
            weights = sum(math.prod(p.shape) for p in model.parameters())
            told = [(s.kind, s.strength, s.where, s.evidence, [r for r in s.remedies if r in known]) for s in suspects]
            broken = any(s.kind == "data" and s.strength >= 1.0 for s in suspects)

            def run(changes: list[str], number: int, left: float) -> Any:
                return None if broken else training.run(facts, changes, number, left)

            kinds = [(word, edit) for word, edit in known.items()]
            is_chancy = len(training.x) < 40 or weights < 100
            report, text = _c._prove(run, kinds, told, lr, type(chosen).__name__ == "SGD", is_chancy, runs, float(seconds))
        found = json.loads(report)
        causes, curves = [Cause(**c) for c in found.pop("causes")], [Curve(**c) for c in found.pop("curves")]
        for curve in curves:
            # JSON has no number that is none.
            curve.losses[:] = [math.nan if x is None else x for x in curve.losses]
        return Diagnosis(causes=causes, curves=curves, suspects=suspects, text=text, **found)

    def before(
        self,
        make: Callable[..., Any],
        data: Sequence[Any],
        loss: Callable[[Any, Any], Any],
        optimizer: Callable[[Any], Any],
        *,
        shuffle: bool = True,
        clip: float | None = None,
        seed: int = 1,
    ) -> list[Suspect]:
        """Signs of mistakes before the first step, the strongest first; no run is made.

        Looked at are the data (numbers that are none, constant columns, scales, classes, order,
        leaks into the validation or from a column), the last layer against the loss, initial
        weights and gradients, parameters that the optimizer does not have, and by a perturbation
        whether an example's output depends on another example, or on the token that it is to
        predict. A strength of 1 is certain.

        ```
        import numpy as np

        x = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
        y = x.sum(1)
        signs = cr.diagnose.before(
            lambda: cr.nn.Linear(3, 1),
            (x, y),
            lambda out, t: ((out - t) ** 2).mean(),
            lambda p: cr.optim.SGD(p, lr=0.1),
        )
        assert signs[0].kind == "loss_broadcast" and signs[0].strength == 1.0
        ```
        """
        with _generators():
            return looked_at(_training(make, data, loss, optimizer, 1, 32, shuffle, clip, seed, None))[1]


class _generators:
    """A block that leaves all generators as they were. PyTorch runs on one thread in it: for models
    that are tried in seconds, handing pieces to others costs more than it saves.
    """

    def __enter__(self) -> None:
        import sys

        self.numbers, self.fork = np.random.get_state(), fork_rng()
        self.fork.__enter__()
        self.torch: Any = sys.modules.get("torch")
        if self.torch:
            self.state, self.threads = self.torch.get_rng_state(), self.torch.get_num_threads()
            self.torch.set_num_threads(1)

    def __exit__(self, *raised: Any) -> None:
        np.random.set_state(self.numbers)
        self.fork.__exit__(*raised)
        if self.torch:
            self.torch.set_rng_state(self.state)
            self.torch.set_num_threads(self.threads)


diagnose = _Diagnose()

__all__ = ["Cause", "Curve", "Diagnosis", "Suspect", "diagnose"]
