"""Compiled functions give the gradients of the eager mode: slices, data far from zero, small
numbers that were written, indices.
"""

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F

rng = np.random.default_rng(4)


def gradients(f, values, dtype=cr.float64, compiled=False):
    def step(*args):
        loss = f(*args)
        loss.backward()
        return loss

    leaves = [cr.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    (cr.compile(step) if compiled else step)(*leaves)
    return [np.zeros(x.shape) if x.grad is None else x.grad.numpy().astype(float) for x in leaves]


def standardised(t, axis):
    d = t - t.mean(axis, keepdim=True)
    return d * ((d * d).mean(axis, keepdim=True) + 1e-5) ** -0.5


def constant(shape, like, seed=1):
    return cr.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=like.dtype)


SLICES = {
    "a head without weight": lambda x: (x[:, 1:] ** 2).mean() + 0.0 * x[:, :1].exp().sum(),
    "differences of columns": lambda x: (F.log_softmax(x[:, 2:] - x[:, :1], 1) * constant((6, 2), x)).sum(),
    "three parts, two of them zero": lambda x: (lambda a, b, c: (a * 0).sum() + (b**3).sum() - (c - c).sum())(x[:2], x[2:4], x[4:]),
    "rows that overlap": lambda x: (x[:4] ** 2).sum() + 0.0 * x[2:].sum(),
    "every other row": lambda x: x[::2].tanh().sum() + (x[1::2] * 0.0).sum(),
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_of_which_one_has_no_gradient(name):
    x = [rng.standard_normal((6, 4))]
    (want,), (got,) = (gradients(SLICES[name], x, compiled=c) for c in (False, True))
    assert np.abs(want).max() > 0.01
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


FAR = {
    "kernel widths": lambda x, c, s: (((x[:, None] - c[None]) / (s.tanh() * 0.1 + 1)[None]) ** 2).mean(),
    "likelihood": lambda x, m, s: (((x - m) / (s.tanh() * 0.1).exp()) ** 2 / 2).mean(),
    "scatter": lambda x, c, s: ((x - x.mean()) ** 2).sum() * 1e-3 + ((c - c.mean()) ** 2).mean(),
    "correlation": lambda x, c, s: ((x - x.mean()) * (c - c.mean())).sum() / (((x - x.mean()) ** 2).sum() * ((c - c.mean()) ** 2).sum()).sqrt(),
}


@pytest.mark.parametrize("far", [0.0, 50.0, 3000.0])
@pytest.mark.parametrize("name", FAR)
def test_f32_far_from_zero(name, far):
    values = [(rng.standard_normal(12) + far).astype(np.float32) for _ in range(3)]
    truth = gradients(FAR[name], [v.astype(float) for v in values])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the plain program may run; what counts is the gradient
        got = gradients(FAR[name], values, cr.float32, compiled=True)
    plain = gradients(FAR[name], values, cr.float32)
    for t, p, g in zip(truth, plain, got):
        size = np.abs(t).max()
        if size > 0:
            assert np.abs(g - t).max() <= 16 * np.abs(p - t).max() + 4e-6 * size


def test_a_written_number_is_not_rounding():
    logits = [np.array([11.0, 13.0, 14.5, 15.0])]
    loss = lambda x: -((1 - x.sigmoid() + 1e-7).log()).sum()  # noqa: E731
    (plain,), (got,) = (gradients(loss, logits, cr.float32, compiled=c) for c in (False, True))
    np.testing.assert_allclose(got, plain, rtol=1e-5)
    near = lambda w: ((w * (1 + 3e-9) - w) * w).sum() * cr.tensor(np.float32(2)).to(cr.float64)  # noqa: E731
    (plain,), (got,) = (gradients(near, [np.array([0.2, -0.7])], compiled=c) for c in (False, True))
    np.testing.assert_allclose(got, plain, rtol=1e-6)


COMPILES = {
    "an outer sum, standardised": ([(4,), (3,)], lambda a, b: (standardised(a[:, None] + b[None], 0).tanh() * constant((4, 3), a)).sum()),
    "a transposed column, twice": ([(5, 4), (4, 1)], lambda x, c: (lambda d: (x @ d.T).mean() + (d * d).sum())(c.T)),
    "the softmax of what does not depend on the axis": ([(3, 1), (4,)], lambda a, b: (F.softmax(a.expand(3, 4), 1) * b).sum()),
}


@pytest.mark.parametrize("name", COMPILES)
def test_programs_that_did_not_compile(name):
    shapes, loss = COMPILES[name]
    values = [rng.standard_normal(s) for s in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = gradients(loss, values, compiled=True)
    for g, want in zip(got, gradients(loss, values)):
        np.testing.assert_allclose(g, want, rtol=1e-10, atol=1e-13)


INDICES = {
    "picked": lambda w, i: -w.log_softmax(1)[range(3), i].mean(),
    "rows": lambda w, i: w[i].tanh().sum(),
    "rows of rows": lambda w, i: (w[i[:, None] - i[None]] ** 2).sum(),
    "columns": lambda w, i: w[:, i].exp().sum(),
    "from the end": lambda w, i: w[-1 - i].tanh().sum(),
    "one": lambda w, i: w[i[0]].tanh().sum(),
}


@pytest.mark.parametrize("name", INDICES)
def test_arguments_are_indices(name):
    w = cr.tensor(rng.standard_normal((3, 3)), dtype=cr.float64, requires_grad=True)

    def step(i):
        loss = INDICES[name](w, i)
        loss.backward()
        return loss, w.grad

    compiled = cr.compile(step)
    for index in ([0, 1, 2], [2, 2, 0], [1, 1, 1]):
        w.grad = None
        want = [t.detach().numpy().copy() for t in step(cr.tensor(index))]
        w.grad = None
        for a, b in zip(compiled(cr.tensor(index)), want):
            np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-13)


def test_an_index_outside_is_an_error_of_the_run():
    f = cr.compile(lambda w, i: w[i].sum())
    w = cr.ones(3)
    assert f(w, cr.tensor([0, -1])).item() == 2
    with pytest.raises((IndexError, ValueError), match="outside"):
        f(w, cr.tensor([0, 3]))
