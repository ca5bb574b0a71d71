"""Mistakes in recurrences, helpers, modules, bounds and pairs: the line, and a correction that
makes the backward pass right.

A case is a forward and its right backward as two functions, and one of the backward's lines
spoiled (or two). The corrected lines are put into the file, and the gradients of the mended
backward are compared with those of PyTorch's autograd, or with differences.
"""

import re

import chainrule as cr
import pytest
from follow_cases import LIBRARIES, SPOILED_KINDS, WITH_TORCH, function_of, line_of, loaded, mended, pair_is_right, pair_of, spoiled, torch


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", SPOILED_KINDS)
def test_the_line_and_its_correction(name, library, tmp_path):
    code, lines = SPOILED_KINDS[name]
    forward, backward, inputs = pair_of(loaded(tmp_path / "whole.py", library, code))
    assert pair_is_right(forward, backward, inputs), "the case itself is right"
    assert cr.check.backward(forward, inputs, backward), "and nothing is said of it"
    path = tmp_path / "spoiled.py"
    forward, backward, inputs = pair_of(loaded(path, library, spoiled(code, lines)))
    assert not pair_is_right(forward, backward, inputs), "the spoiled case is wrong"
    text = str(cr.check.backward(forward, inputs, backward))
    for right, _ in lines:
        assert f"spoiled.py:{line_of(code, right)} " in text, text
    forward, backward, inputs = pair_of(loaded(tmp_path / "mended.py", library, mended(path, text)))
    assert pair_is_right(forward, backward, inputs), text


MODULE = """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, s):
        norm = v.norm(dim=1, keepdim=True)
        u = v / norm
        ctx.save_for_backward(x, u, s, norm)
        return x @ (s[:, None] * u).T

    @staticmethod
    def backward(ctx, dy):
        x, u, s, norm = ctx.saved_tensors
        dw = dy.T @ x
        ds = (dw * u).sum(1)
        du = dw * s[:, None]
        dv = (du - u * (u * du).sum(1, keepdim=True)) / norm
        return dy @ (s[:, None] * u), dv, ds

class Layer(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.v, self.s = torch.nn.Parameter(torch.randn(o, i)), torch.nn.Parameter(torch.randn(o))

    def forward(self, x):
        return Scale.apply(x, self.v, self.s)

model = torch.nn.Sequential(Layer(3, 4), torch.nn.Tanh(), Layer(4, 4))
"""


@WITH_TORCH
def test_a_function_in_a_module(tmp_path):
    def report(code):
        module = loaded(tmp_path / "module.py", "torch", code)
        return cr.torch.gradcheck(module.model, [torch.randn(5, 3)])

    assert report(MODULE)
    text = str(report(MODULE.replace("(u * du).sum(1,", "(u * du).sum(0,")))
    assert "module.py:18 " in text and re.search(r"corrected +dv = \(du - u \* \(u \* du\)\.sum\(-?1, keepdim=True\)\) / norm", text), text


HELD = """
class Held(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-3, 3)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x < 3)

inputs = [0.5 * torch.randn(12)]
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_bound_that_the_inputs_do_not_reach(library, tmp_path):
    function, inputs = function_of(loaded(tmp_path / "held.py", library, HELD))
    report = cr.torch.gradcheck(function, inputs) if library == "torch" else cr.check.backward(function, inputs)
    assert not report and "the bound -3 is missing" in str(report) and "corrected" in str(report), str(report)


ENTROPY = """
def entropy(p, q):
    return (p * p.log()).sum() + (1 - q * q).sqrt().sum()

def entropy_backward(g, p, q):
    # `abs` is no slope of anything, but right for all that is positive.
    return g * (p.abs().log() + 1), -g * q / (1 - q * q).sqrt()

inputs = [torch.tensor([0.2, 0.7, 0.1]), torch.tensor([0.3, -0.5])]
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_sign_and_a_domain_are_kept(library, tmp_path):
    """Inputs that are positive stay so, and what leaves the domain tells nothing."""
    forward, backward, inputs = pair_of(loaded(tmp_path / "entropy.py", library, ENTROPY))
    assert cr.check.backward(forward, inputs, backward)


ARRAYS = """
import numpy as np

def net(x, w, b, v):
    y = np.tanh(x @ w + b) @ v
    return (y ** 2).mean()

def net_backward(g, x, w, b, v):
    h = np.tanh(x @ w + b)
    y = h @ v
    dy = 2 * g * y / y.size
    dv = h.T @ dy
    dz = dy @ v.T * (1 - h ** 2)
    dw = x.T @ dz
    db = dz.sum(axis=0)
    return dz @ w.T, dw, db, dv

r = np.random.default_rng(0)
inputs = [r.standard_normal(s) for s in ((5, 3), (3, 4), (4,), (4, 3))]
"""


@pytest.mark.parametrize("right, wrong", [("(1 - h ** 2)", "(1 - h)"), ("db = dz.sum(axis=0)", "db = dz.mean(axis=0)"), ("/ y.size", "/ len(y)"), ("dv = h.T @ dy", "dv = -h.T @ dy")])
def test_arrays_of_numpy(right, wrong, tmp_path):
    forward, backward, inputs = pair_of(loaded(tmp_path / "arrays.py", "chainrule", ARRAYS))
    assert pair_is_right(forward, backward, inputs) and cr.check.backward(forward, inputs, backward)
    path = tmp_path / "spoiled.py"
    forward, backward, inputs = pair_of(loaded(path, "chainrule", spoiled(ARRAYS, [(right, wrong)])))
    text = str(cr.check.backward(forward, inputs, backward))
    assert f"spoiled.py:{line_of(ARRAYS, right)} " in text, text
    forward, again, inputs = pair_of(loaded(tmp_path / "mended.py", "chainrule", mended(path, text)))
    assert pair_is_right(forward, again, inputs), text


MIXED = """
import numpy as np
from {library} import {from_numpy}

def logistic(x, w):
    return torch.sigmoid(x @ w)

def logistic_backward(g, x, w):
    g, x, w = (t.numpy() for t in (g, x, w))
    p = 1 / (1 + np.exp(-(x @ w)))
    dz = g * p * (1 + p)
    return {from_numpy}(dz @ w.T), {from_numpy}(x.T @ dz)

inputs = [torch.randn(5, 3), torch.randn(3, 2)]
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_in_a_backward_of_tensors(library, tmp_path):
    code = MIXED.format(library=library, from_numpy="from_numpy" if library == "torch" else "tensor")
    forward, backward, inputs = pair_of(loaded(tmp_path / "mixed.py", library, code))
    text = str(cr.check.backward(forward, inputs, backward))
    assert "dz = g * p * (1 - p)" in text, text
