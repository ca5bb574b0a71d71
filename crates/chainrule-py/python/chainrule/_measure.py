"""Measures of a classifier and of a loss over many batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._chainrule import Tensor


class AverageMeter:
    """The mean of a value over batches of different sizes: `sum(value * examples) / sum(examples)`.

    >>> loss = AverageMeter()
    >>> loss.add(2.0, 30)
    >>> loss.add(5.0, 10)
    >>> loss.mean, loss.count
    (2.75, 40)
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets all values."""
        self._sum = 0.0
        self._count = 0

    def add(self, value: float | Tensor, examples: int = 1) -> None:
        """Adds the mean value of that many examples."""
        if examples < 0:
            raise ValueError(f"AverageMeter: examples must not be negative, is {examples}")
        if examples:
            self._sum += float(value) * examples
            self._count += examples

    @property
    def mean(self) -> float | None:
        """The mean so far; `None` before the first example."""
        return self._sum / self._count if self._count else None

    @property
    def count(self) -> int:
        """The number of examples so far."""
        return self._count


class ConfusionMatrix:
    """The number of times each class was taken for each: `counts[label, answer]`.

    >>> matrix = ConfusionMatrix(3)
    >>> matrix.add([[0.1, 0.8, 0.1], [0.9, 0.0, 0.1], [0.2, 0.3, 0.5]], [1, 0, 1])
    >>> matrix.counts.tolist()
    [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    >>> matrix.recall(1), matrix.precision(2)
    (0.5, 0.0)
    """

    def __init__(self, classes: int) -> None:
        self.counts = np.zeros((classes, classes), np.int64)

    def add(self, scores: Any, labels: Any) -> None:
        """Adds examples: scores or probabilities `[n, classes]`, of which the largest is the answer
        (the first of equal ones), and whole labels `[n]`. Negative labels do not count.

        Raises `ValueError` for other shapes, scores that are not numbers, and labels that are no
        classes; then nothing is added.
        """
        pair = _answers(scores, labels, len(self.counts))
        np.add.at(self.counts, pair, 1)

    @property
    def accuracy(self) -> float | None:
        """The share of right answers; `None` without examples."""
        return _share(self.counts.trace(), self.counts.sum())

    def recall(self, label: int) -> float | None:
        """The share of right answers among the examples of a class; `None` if it has none."""
        return _share(self.counts[label, label], self.counts[label].sum())

    def precision(self, label: int) -> float | None:
        """The share of right ones among the answers that name a class; `None` if there are none."""
        return _share(self.counts[label, label], self.counts[:, label].sum())

    def __str__(self) -> str:
        width = max(5, len(str(self.counts.max(initial=0)))) + 1
        classes = range(len(self.counts))
        lines = [" " * 5 + "".join(f"{answer:>{width}}" for answer in classes)]
        for label in classes:
            cells = "".join(f"{n or '.':>{width}}" for n in self.counts[label].tolist())
            lines.append(f"{label:>5}{cells}")
        return "\n".join(lines)


def accuracy(scores: Any, labels: Any) -> float | None:
    """The share of the labels that the largest score of their row names; `None` if no label counts.

    Shapes and errors as in `ConfusionMatrix.add`.

    >>> accuracy([[0.1, 0.8], [0.9, 0.0], [0.2, 0.3]], [1, 1, -1])
    0.5
    """
    array = _array(scores)
    labelled, answers = _answers(array, labels, array.shape[1] if array.ndim == 2 else 0)
    return _share((labelled == answers).sum(), len(labelled))


def _array(x: Any) -> Any:
    return x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)


def _answers(scores: Any, labels: Any, classes: int) -> tuple[Any, Any]:
    """The labels that count, and for each the class of the largest score."""
    scores, labels = _array(scores), _array(labels)
    if scores.ndim != 2 or scores.shape[1] != classes or labels.shape != scores.shape[:1]:
        raise ValueError(
            f"accuracy: wants scores [n, {classes}] and labels [n], "
            f"has {list(scores.shape)} and {list(labels.shape)}"
        )
    if labels.size and labels.dtype.kind not in "iu":
        raise ValueError(f"accuracy: labels must be whole numbers, are {labels.dtype}")
    labels = labels.astype(np.int64)
    counts = labels >= 0
    scores, labels = scores[counts], labels[counts]
    if labels.size and labels.max() >= classes:
        raise ValueError(f"accuracy: label {labels.max()} is none of {classes} classes")
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        raise ValueError("accuracy: a score is not a number")
    return labels, (scores.argmax(1) if labels.size else labels)


def _share(part: Any, whole: Any) -> float | None:
    return float(part) / float(whole) if whole else None
