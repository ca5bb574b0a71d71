"""Mistakes in recurrences, helpers, modules, bounds and pairs: the line, and a correction that
makes the backward pass right.

A case is a forward and its right backward as two functions, and one of the backward's lines
spoiled (or two). The corrected lines are put into the file, and the gradients of the mended
backward are compared with those of PyTorch's autograd.
"""

import importlib.util
import itertools
import re

import chainrule as cr
import pytest

torch = pytest.importorskip("torch")

CELL = """
def cell(x, h, c, w, u, p):
    for t in range(len(x)):
        i, f, g = (x[t] @ w + h @ u).chunk(3, 1)
        i, f, g = torch.sigmoid(i + p[0] * c), torch.sigmoid(f + p[1] * c), torch.tanh(g)
        c = f * c + i * g
        h = torch.tanh(c)
    return h

def cell_backward(dh, x, h, c, w, u, p):
    steps = []
    for t in range(len(x)):
        i, f, g = (x[t] @ w + h @ u).chunk(3, 1)
        i, f, g = torch.sigmoid(i + p[0] * c), torch.sigmoid(f + p[1] * c), torch.tanh(g)
        step = {"h": h, "c": c, "i": i, "f": f, "g": g}
        c = f * c + i * g
        h = torch.tanh(c)
        steps.append(step | {"h_new": h})
    dx, dw, du, dp = torch.zeros_like(x), torch.zeros_like(w), torch.zeros_like(u), torch.zeros_like(p)
    dc = torch.zeros_like(h)
    for t in reversed(range(len(x))):
        s = steps[t]
        dc = dc + dh * (1 - s["h_new"] ** 2)
        di = dc * s["g"] * s["i"] * (1 - s["i"])
        df = dc * s["c"] * s["f"] * (1 - s["f"])
        dg = dc * s["i"] * (1 - s["g"] ** 2)
        dz = torch.cat([di, df, dg], 1)
        dp[0] += (di * s["c"]).sum(0)
        dp[1] += (df * s["c"]).sum(0)
        dw += x[t].T @ dz
        du += s["h"].T @ dz
        dx[t] = dz @ w.T
        dh = dz @ u.T
        dc = dc * s["f"] + di * p[0] + df * p[1]
    return dx, dh, dc, dw, du, dp

inputs = [torch.randn(3, 2, 3), torch.randn(2, 4), torch.randn(2, 4), torch.randn(3, 12), torch.randn(4, 12), torch.randn(2, 4)]
"""
HELPERS = """
def layer_backward(dy, kept):
    x, w, y = kept
    da = dy * (1 - y ** 2)
    return da @ w.T, x.T @ da, da.sum(0)

def net(x, w1, b1, w2, b2):
    return torch.tanh(torch.tanh(x @ w1 + b1) @ w2 + b2)

def net_backward(dy, x, w1, b1, w2, b2):
    kept = []
    for w, b in ((w1, b1), (w2, b2)):
        y = torch.tanh(x @ w + b)
        kept.append((x, w, y))
        x = y
    grads = []
    for each in reversed(kept):
        dy, dw, db = layer_backward(dy, each)
        grads = [dw, db] + grads
    return dy, *grads

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(4), torch.randn(4, 4), torch.randn(4)]
"""
SHIFT = """
def turned(x, angle):
    a, b = x[:, :2], x[:, 2:]
    c, s = torch.cos(angle), torch.sin(angle)
    y = torch.cat([a * c - b * s, a * s + b * c], 1)
    return y[1:] - y[:-1]

def turned_backward(g, x, angle):
    a, b = x[:, :2], x[:, 2:]
    c, s = torch.cos(angle), torch.sin(angle)
    dy = torch.zeros_like(x)
    dy[1:] += g
    dy[:-1] -= g
    u, v = dy[:, :2], dy[:, 2:]
    dx = torch.cat([u * c + v * s, v * c - u * s], 1)
    dc = (u * a + v * b).sum(0)
    ds = (v * a - u * b).sum(0)
    return dx, ds * c - dc * s

inputs = [torch.randn(5, 4), torch.randn(2)]
"""
BOUND = """
def bounded(x, w):
    return (x @ w).clamp(-2, 2.5)

def bounded_backward(g, x, w):
    a = x @ w
    da = g * ((a > -2) & (a < 2.5)).to(g.dtype)
    return da @ w.T, x.T @ da

inputs = [0.2 * torch.randn(4, 3), 0.2 * torch.randn(3, 2)]
"""
SPOILED = {
    "another value of the step": (CELL, [('df = dc * s["c"] * s["f"]', 'df = dc * s["h"] * s["f"]')]),
    "a path to the next step": (CELL, [(" + di * p[0] + df * p[1]", " + di * p[0]")]),
    "what is carried is lost": (CELL, [("dc = dc + dh * (1", "dc = dh * (1")]),
    "overwritten in a loop": (CELL, [("du += s", "du = s")]),
    "two in a recurrence": (CELL, [('di = dc * s["g"] * s["i"] * (1 - s["i"])', 'di = dc * s["g"] * s["i"] * (1 + s["i"])'), ('dp[1] += (df * s["c"])', 'dp[1] += (df * s["h"])')]),
    "in a helper that runs twice": (HELPERS, [("(1 - y ** 2)", "(1 - y) ** 2")]),
    "a bias of a helper": (HELPERS, [("da.sum(0)", "da.mean(0)")]),
    "turned the wrong way": (SHIFT, [("u * c + v * s, v * c - u * s", "u * c - v * s, v * c + u * s")]),
    "a bound that is not reached": (BOUND, [("(a > -2) & (a < 2.5)", "a > -2")]),
}  # fmt: skip
ONE_LINE_ONLY = {"two terms"}
"""Kinds for which no edit need be found, only the line."""


def load(path, code):
    path.write_text("import torch\ntorch.manual_seed(0)\n" + code)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name = re.search(r"def (\w+)_backward\(\w+, x", code).group(1)
    return getattr(module, name), getattr(module, f"{name}_backward"), module.inputs


def is_right(forward, backward, inputs):
    """Whether the gradients are those of autograd, at the inputs and at ten times as large ones."""
    for size in (1.0, 10.0):
        given = [(size * x).double().requires_grad_() for x in inputs]
        y = forward(*given)
        above = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
        right = torch.autograd.grad(y, given, above)
        with torch.no_grad():
            found = backward(above, *(x.detach() for x in given))
        if not all(torch.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(found, right)):
            return False
    return True


def mended(path, text):
    """The file with the corrections of a report made."""
    rows = path.read_text().split("\n")
    said = text.splitlines()
    for place, corrected in zip(said, itertools.islice(said, 2, None)):
        at = re.match(rf"{path.name}:(\d+) ", place)
        if at and corrected.startswith("corrected"):
            new = corrected.removeprefix("corrected").strip().partition("    ")[0]
            old = rows[int(at[1]) - 1]
            rows[int(at[1]) - 1] = old[: len(old) - len(old.lstrip())] + new
    return "\n".join(rows)


@pytest.mark.parametrize("name", SPOILED)
def test_the_line_and_its_correction(name, tmp_path):
    code, lines = SPOILED[name]
    forward, backward, inputs = load(tmp_path / "whole.py", code)
    assert is_right(forward, backward, inputs), "the case itself is right"
    assert cr.check.backward(forward, inputs, backward), "and nothing is said of it"
    spoiled = code
    for right, wrong in lines:
        assert spoiled.count(right) == 1
        spoiled = spoiled.replace(right, wrong)
    path = tmp_path / "spoiled.py"
    forward, backward, inputs = load(path, spoiled)
    assert not is_right(forward, backward, inputs), "the spoiled case is wrong"
    text = str(cr.check.backward(forward, inputs, backward))
    for right, _ in lines:
        assert f"spoiled.py:{3 + code[: code.index(right)].count(chr(10))} " in text, text
    new = mended(path, text).partition("torch.manual_seed(0)\n")[2]
    forward, backward, inputs = load(tmp_path / "mended.py", new)
    assert is_right(forward, backward, inputs), text


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


def test_a_function_in_a_module(tmp_path):
    def report(code):
        path = tmp_path / "module.py"
        path.write_text("import torch\ntorch.manual_seed(0)\n" + code)
        spec = importlib.util.spec_from_file_location("module", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return cr.torch.gradcheck(module.model, [torch.randn(5, 3)])

    assert report(MODULE)
    text = str(report(MODULE.replace("(u * du).sum(1,", "(u * du).sum(0,")))
    assert "module.py:18 " in text and re.search(r"corrected +dv = \(du - u \* \(u \* du\)\.sum\(-?1, keepdim=True\)\) / norm", text), text


class Held(torch.autograd.Function):
    """With a bound that small inputs do not reach."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-3, 3)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x < 3)


def test_a_bound_that_the_inputs_do_not_reach():
    report = cr.torch.gradcheck(Held, [0.5 * torch.randn(12, generator=torch.Generator().manual_seed(0))])
    assert not report and "at larger inputs" in str(report) and "corrected" in str(report), str(report)


def test_one_sign_and_a_domain_are_kept():
    """Inputs that are positive stay so, and what leaves the domain tells nothing."""

    def entropy(p, q):
        return (p * p.log()).sum() + (1 - q * q).sqrt().sum()

    def entropy_backward(g, p, q):
        # `abs` is no slope of anything, but right for all that is positive.
        return g * (p.abs().log() + 1), -g * q / (1 - q * q).sqrt()

    given = [torch.tensor([0.2, 0.7, 0.1]), torch.tensor([0.3, -0.5])]
    assert cr.check.backward(entropy, given, entropy_backward)


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
    forward, backward, inputs = load(tmp_path / "arrays.py", ARRAYS)
    assert cr.check.backward(forward, inputs, backward)
    code = ARRAYS.replace(right, wrong)
    path = tmp_path / "spoiled.py"
    forward, backward, inputs = load(path, code)
    text = str(cr.check.backward(forward, inputs, backward))
    line = 3 + ARRAYS[: ARRAYS.index(right)].count("\n")
    assert f"spoiled.py:{line} " in text, text
    mended_code = mended(path, text).partition("torch.manual_seed(0)\n")[2]
    _, again, inputs = load(tmp_path / "mended.py", mended_code)
    assert cr.check.backward(forward, inputs, again), text


def test_arrays_in_a_backward_of_tensors():
    import numpy as np

    def logistic(x, w):
        return torch.sigmoid(x @ w)

    def logistic_backward(g, x, w):
        g, x, w = (t.numpy() for t in (g, x, w))
        p = 1 / (1 + np.exp(-(x @ w)))
        dz = g * p * (1 + p)
        return torch.from_numpy(dz @ w.T), torch.from_numpy(x.T @ dz)

    given = [torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.randn(3, 2, generator=torch.Generator().manual_seed(1))]
    text = str(cr.check.backward(logistic, given, logistic_backward))
    assert "dz = g * p * (1 - p)" in text, text
