"""A training loop with a line of progress, and events for whoever wants to know."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._chainrule import Generator, Tensor
from ._making import randperm
from ._measure import AverageMeter as AverageMeter, ConfusionMatrix as ConfusionMatrix, accuracy as accuracy
from .autograd import no_grad
from .progress import track


@dataclass(frozen=True)
class Event:
    """Kind of the event: a `"step"`, an `"evaluation"` or the `"end"`."""

    kind: str
    step: int
    """Number of steps done."""
    loss: float
    """The loss of this step's batch, before its update; for an evaluation the value under `"loss"`,
    if there is one."""
    lr: float
    seconds: float
    """Since the beginning."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass
class History:
    """History of a training: for each step its loss, and the evaluations."""

    losses: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    evaluations: list[Event] = field(default_factory=list)
    stopped: bool = False
    """Whether Ctrl-C, or a listener that returned True, ended it."""

    def plot(self, window: int = 1) -> Any:
        """The curve of the loss, the mean of each `window` steps, drawn by matplotlib."""
        from .plots import loss_curve

        return loss_curve(self.losses, window=window)


Batch = Sequence[Tensor]


@dataclass
class Run:
    """A training that goes on, as callbacks see it."""

    model: Any
    optimizer: Any
    history: History
    callbacks: Sequence[Callback]
    should_stop: bool = False
    """Set by a callback to end the training after this step."""

    @property
    def global_step(self) -> int:
        """Number of steps done."""
        return len(self.history.losses)

    @property
    def callback_metrics(self) -> dict[str, float]:
        """The last loss, the rate and the newest measures, by name."""
        out: dict[str, float] = {}
        if self.history.losses:
            out.update(loss=self.history.losses[-1], lr=self.history.rates[-1])
        if self.history.evaluations:
            out.update({"evaluated" if name == "loss" else name: value for name, value in self.history.evaluations[-1].metrics.items()})
        return out


class Callback:
    """Methods that `fit` calls at its events: subclass it and write those that are wanted. Names,
    order and arguments are those of Lightning's callbacks, with a `Run` for its trainer.

    ```
    class Printer(cr.train.Callback):
        def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
            if batch_idx % 100 == 0:
                print(batch_idx, outputs)

        def on_validation_end(self, trainer, model):
            trainer.should_stop = trainer.callback_metrics.get("accuracy", 0.0) > 0.99
    ```
    """

    def setup(self, trainer: Run, model: Any, stage: str) -> None:
        """Before all else; `stage` is `"fit"`."""

    def on_fit_start(self, trainer: Run, model: Any) -> None:
        """The training is about to begin."""

    def on_train_start(self, trainer: Run, model: Any) -> None:
        """The first step is next."""

    def on_train_batch_start(self, trainer: Run, model: Any, batch: Batch, batch_idx: int) -> None:
        """A batch is there; -1 as result skips the rest of the training."""

    def on_train_batch_end(self, trainer: Run, model: Any, outputs: float, batch: Batch, batch_idx: int) -> None:
        """A step is done; `outputs` is its loss."""

    def on_validation_start(self, trainer: Run, model: Any) -> None:
        """The evaluation begins."""

    def on_validation_end(self, trainer: Run, model: Any) -> None:
        """The measures are in `trainer.callback_metrics`."""

    def on_train_end(self, trainer: Run, model: Any) -> None:
        """The last step is done."""

    def on_fit_end(self, trainer: Run, model: Any) -> None:
        """The last evaluation is done, too."""

    def on_exception(self, trainer: Run, model: Any, exception: BaseException) -> None:
        """Something was raised, which ends the training; Ctrl-C too."""

    def teardown(self, trainer: Run, model: Any, stage: str) -> None:
        """After all else, after an exception too."""


def batches(*tensors: Tensor, size: int = 32, generator: Generator | None = None) -> Iterator[tuple[Tensor, ...]]:
    """Batches of rows that belong together, in a new random order for each round through the data,
    without end.
    """
    n = len(tensors[0])
    if size < 1 or n < size or any(len(t) != n for t in tensors):
        raise ValueError(f"batches: tensors of {[len(t) for t in tensors]} rows do not give batches of {size}")
    while True:
        order = randperm(n, generator=generator)
        for at in range(0, n - size + 1, size):
            rows = order[at : at + size]
            yield tuple(t[rows] for t in tensors)


def fit(
    model: Callable[..., Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    optimizer: Any,
    batches: Iterable[Batch],
    *,
    steps: int | None = None,
    scheduler: Any = None,
    evaluate: Callable[[], Mapping[str, float]] | None = None,
    evaluate_every: int = 0,
    listeners: Sequence[Callable[[Event], Any]] = (),
    callbacks: Sequence[Callback] = (),
    compiled: bool = True,
    progress: bool = True,
) -> History:
    """Trains: `loss(model(*inputs), target)` of each batch, whose last tensor is the target;
    backward; a step of the optimizer.

    It ends after `steps`, with the batches, at Ctrl-C, or when a listener returns True. `compiled`
    runs each step as one program. `callbacks` are told of each event, see `Callback`. `evaluate` is
    called without recording, every `evaluate_every` steps and at the end; `progress` shows a bar of
    tqdm, or a line where tqdm is not installed.
    """
    from .compiler import compile

    def step(*batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        value = loss(model(*batch[:-1]), batch[-1])
        value.backward()
        optimizer.step()
        return value

    run = compile(step) if compiled else step
    history, began = History(), time.perf_counter()
    trainer = Run(model, optimizer, history, callbacks)

    def call(name: str, *args: Any) -> list[Any]:
        return [getattr(callback, name)(trainer, model, *args) for callback in callbacks]

    def tell(kind: str, value: float, metrics: Mapping[str, float] = {}) -> bool:
        event = Event(kind, len(history.losses), value, optimizer.param_groups[0]["lr"], time.perf_counter() - began, metrics)
        if kind == "evaluation":
            history.evaluations.append(event)
        return any([listener(event) is True for listener in listeners])

    def measured() -> bool:
        if evaluate is None:
            return False
        call("on_validation_start")
        with no_grad():
            metrics = dict(evaluate())
        stop = tell("evaluation", metrics.get("loss", float("nan")), metrics)
        call("on_validation_end")
        return stop

    def numbered() -> Iterator[Batch]:
        source = iter(batches)
        for _ in range(steps) if steps is not None else iter(int, 1):
            batch = next(source, None)
            if batch is None:
                return
            yield batch

    def loop() -> None:
        bar = track(numbered(), total=steps)
        for batch in bar if progress else numbered():
            index = len(history.losses)
            if -1 in call("on_train_batch_start", batch, index):
                history.stopped = True
                break
            value = run(*batch).item()
            history.losses.append(value)
            history.rates.append(optimizer.param_groups[0]["lr"])
            measures = history.evaluations[-1].metrics if history.evaluations else {}
            bar.show(**{"loss": value, **{"evaluated" if name == "loss" else name: x for name, x in measures.items()}})
            stop = tell("step", value)
            call("on_train_batch_end", value, batch, index)
            if evaluate_every and len(history.losses) % evaluate_every == 0:
                stop = measured() or stop
            if scheduler is not None:
                scheduler.step()
            if stop or trainer.should_stop:
                history.stopped = True
                break

    call("setup", "fit")
    try:
        call("on_fit_start")
        call("on_train_start")
        try:
            loop()
        except KeyboardInterrupt as interrupt:
            call("on_exception", interrupt)
            history.stopped = True
        call("on_train_end")
        done = len(history.losses)
        if not (history.evaluations and history.evaluations[-1].step == done):
            measured()
        tell("end", history.losses[-1] if done else float("nan"))
        call("on_fit_end")
    except BaseException as exception:
        call("on_exception", exception)
        raise
    finally:
        call("teardown", "fit")
    return history


__all__ = ["AverageMeter", "Callback", "ConfusionMatrix", "Event", "History", "Run", "accuracy", "batches", "fit"]
