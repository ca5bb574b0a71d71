"""Programs of Python functions: lines and names of the script, and arguments that require
gradients.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.strip() == text)


def test_lines_and_names_of_the_script():
    w = cr.randn(3, 2, requires_grad=True)

    @cr.compile(simplify=False, fuse=False)
    def step(x):
        hidden = (x @ w).tanh()
        loss = (
            hidden
            ** 2
        ).mean()
        return loss, cr.autograd.grad(loss, [w])[0]

    step(cr.randn(4, 3))
    listing = step.listing
    first = line_of("hidden = (x @ w).tanh()")
    own = "test_program_places.py"
    assert re.search(rf"matmul = x @ w +f32 \[4, 2\] +{own}:{first}\n", listing)
    assert re.search(rf"hidden = tanh\(matmul\) +f32 \[4, 2\] +{own}:{first}\n", listing)
    assert re.search(rf"rule of tanh, {own}:{first}\n", listing)
    assert re.search(rf"pow = hidden \*\* 2.0 .*{own}:{first + 2}\n", listing)
    assert "parameter w " in listing and "loss = mean(" in listing
    assert ".rs:" not in listing and ".rs:" not in step.to_python()
    assert f"{own}:{first}" in step.to_python()


def test_code_that_no_file_holds_has_no_names_but_runs():
    space = {"cr": cr}
    exec("def f(x):\n    y = x.exp()\n    return y * 2", space)
    step = cr.compile(space["f"])
    assert step(cr.ones(3)).shape == (3,)
    assert "<string>:2" in step.listing


def test_parameters_are_called_what_their_variables_are():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    scale = cr.ones(2, requires_grad=True)
    parts = [cr.ones(2, requires_grad=True), scale]

    class Other:
        def __init__(self):
            self.shift = cr.zeros(2, requires_grad=True)

        def run(self, x):
            return x + self.shift

    def f(x):
        return model(x) * scale + parts[0]

    inner = cr.compile(f)
    inner(cr.ones(5, 3))
    for name in ["0_weight", "0_bias", "2_weight", "2_bias", "scale", "parts_0"]:
        assert re.search(rf"parameter v?{name} ", inner.listing), name
    method = cr.compile(Other().run)
    method(cr.ones(2))
    assert "parameter shift " in method.listing


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64])
def test_an_argument_that_requires_gradients(dtype):
    x = cr.randn(4, 3, dtype=dtype)
    w = cr.randn(3, 2, dtype=dtype, requires_grad=True)

    def loss_of(x, w):
        return ((x @ w).tanh() ** 2).mean()

    (want,) = cr.autograd.grad(loss_of(x, w), [w])

    by_grad = cr.compile(lambda x, w: cr.autograd.grad(loss_of(x, w), [w])[0])
    np.testing.assert_allclose(by_grad(x, w).numpy(), want.numpy(), rtol=1e-5)
    assert w.grad is None

    @cr.compile
    def by_backward(x, w):
        loss = loss_of(x, w)
        loss.backward()
        return loss

    for times in [1, 2]:
        by_backward(x, w)
        np.testing.assert_allclose(w.grad.numpy(), times * want.numpy(), rtol=1e-5)
    # The same shapes without gradients are another program.
    with pytest.raises(cr.GradientError, match="does not depend"):
        by_backward(x, w.detach())
    # A gradient that flows on from an argument does so as in the function itself.
    w.grad = None
    by_backward(x, w * 2)
    (want,) = cr.autograd.grad(loss_of(x, w * 2), [w])
    np.testing.assert_allclose(w.grad.numpy(), want.numpy(), rtol=1e-5)


def test_gradients_of_many_runs():
    xs = cr.randn(5, 4, 3)
    ws = cr.randn(5, 3, 2, requires_grad=True)

    @cr.compile
    def step(x, w):
        loss = (x @ w).exp().sum()
        loss.backward()
        return loss

    assert step.run_many(xs, ws).shape == (5,)
    (want,) = cr.autograd.grad((xs @ ws).exp().sum(), [ws])
    np.testing.assert_allclose(ws.grad.numpy(), want.numpy(), rtol=1e-5)
