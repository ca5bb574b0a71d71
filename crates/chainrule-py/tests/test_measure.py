"""Accuracy, confusion matrix and means over batches, by counting one by one."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.train import AverageMeter, ConfusionMatrix, accuracy


def test_counts_agree_with_a_loop():
    rng = np.random.default_rng(0)
    matrix, right, total = ConfusionMatrix(4), 0, 0
    counts = np.zeros((4, 4), int)
    for n in (7, 1, 0, 32):
        scores, labels = rng.integers(0, 3, (n, 4)).astype(np.float32), rng.integers(-1, 4, n)
        matrix.add(cr.tensor(scores), cr.tensor(labels))
        for row, label in zip(scores.tolist(), labels.tolist()):
            if label >= 0:
                answer = row.index(max(row))
                counts[label, answer] += 1
                right, total = right + (label == answer), total + 1
    assert (matrix.counts == counts).all()
    assert matrix.accuracy == right / total
    assert str(matrix).count("\n") == 4


def test_errors_add_nothing():
    matrix = ConfusionMatrix(2)
    for scores, labels, text in [
        ([[0.0, np.nan]], [1], "not a number"),
        ([[0.0, 1.0]], [2], "none of 2 classes"),
        ([[0.0, 1.0, 2.0]], [1], r"has \[1, 3\]"),
        ([[0.0, 1.0]], [0.5], "whole numbers"),
        ([0.0, 1.0], [1], r"has \[2\]"),
    ]:
        with pytest.raises(ValueError, match=text):
            matrix.add(scores, labels)
    assert matrix.accuracy is None and matrix.recall(0) is None
    matrix.add([[0.0, np.nan], [0.0, 1.0]], [-1, 1])
    assert matrix.accuracy == 1.0


def test_a_mean_weighs_batches_by_their_examples():
    meter = AverageMeter()
    assert meter.mean is None
    meter.add(cr.tensor(2.0), 30)
    meter.add(5.0, 10)
    meter.add(float("nan"), 0)
    assert (meter.mean, meter.count) == (2.75, 40)
    meter.reset()
    assert meter.mean is None
    assert accuracy(np.zeros((0, 3)), np.zeros(0, int)) is None
