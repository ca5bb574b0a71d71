"""Verdicts on gradients without the code that computed them: other labels, and other copies."""

import chainrule as cr
import numpy as np
import pytest


def classified(labels):
    """A loss of a layer with its own labels, and the gradients of the layer with those given."""
    r = np.random.default_rng(1)
    x, w, b, y = r.standard_normal((9, 4)), r.standard_normal((4, 7)), r.standard_normal(7), r.integers(0, 7, 9)
    z = x @ w + b
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[range(9), labels(y)] -= 1
    given = x.T @ p / 9, p.sum(0) / 9
    w, b = (cr.tensor(v, requires_grad=True).named(n) for v, n in ((w, "w"), (b, "b")))
    loss = cr.nn.functional.cross_entropy(cr.tensor(x) @ w + b, cr.tensor(y))
    return loss, list(zip((w, b), given))


LABELS = {
    "one more each": lambda y: (y + 1) % 7, "one less each": lambda y: (y - 1) % 7, "one place further": lambda y: np.roll(y, 1),
    "one place back": lambda y: np.roll(y, -1), "in the reverse order": lambda y: y[::-1],
}


@pytest.mark.parametrize("said", LABELS)
def test_other_labels(said):
    report = cr.check.verdict(*classified(LABELS[said]))
    assert not report.passed and "the indices of `cross_entropy`" in str(report) and said in str(report), report


def test_right_labels_and_any_others():
    assert cr.check.verdict(*classified(lambda y: y)).passed
    report = cr.check.verdict(*classified(lambda y: (3 * y + np.arange(9)) % 7))
    assert not report.passed and "the indices" not in str(report), report


@pytest.mark.parametrize("loss_of", [cr.nn.functional.cross_entropy, lambda z, y: cr.nn.functional.nll_loss(z.log_softmax(1), y)])
def test_other_labels_are_classes(loss_of):
    """Labels are counted up to the size of any axis, and rows are more than classes."""
    r = np.random.default_rng(2)
    w = cr.tensor(r.standard_normal((4, 7)), requires_grad=True).named("w")
    loss = loss_of(cr.tensor(r.standard_normal((9, 4))) @ w, cr.tensor([0, 1, 2, 3, 4, 5, 6, 6, 6]))
    assert not cr.check.verdict(loss, [(w, r.standard_normal((4, 7)))]).passed


@pytest.mark.parametrize("whole", [True, False])
def test_whole_copies_and_those_of_each_row(whole):
    r = np.random.default_rng(3)
    w, x = r.standard_normal((2, 3)), r.standard_normal((6, 3))
    t = np.tanh(x * (np.tile(w, (3, 1)) if whole else np.repeat(w, 3, 0)))
    d = 2 * t * (1 - t * t) * x
    wrong = d.reshape(2, 3, 3).sum(1) if whole else d.reshape(3, 2, 3).sum(0)
    w = cr.tensor(w, requires_grad=True).named("w")
    loss = ((cr.tensor(x) * (w.repeat(3, 1) if whole else w.repeat_interleave(3, 0))).tanh() ** 2).sum()
    report = cr.check.verdict(loss, [(w, wrong)])
    assert not report.passed and "with axis 0 in another order" in str(report), report
