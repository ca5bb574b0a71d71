"""Backward passes that are right, lines of theirs as people get them wrong, and what puts them into
files. They are written for PyTorch; the same text is one of our own tensors, whose names are the
same.
"""

import importlib.util
import itertools
import re

import chainrule as cr
import numpy as np
import pytest

try:
    import torch
except ImportError:
    torch = None

WITH_TORCH = pytest.mark.skipif(torch is None, reason="PyTorch is not here")
LIBRARIES = [cr.__name__, pytest.param("torch", marks=WITH_TORCH)]
HEAD = 2
"""The lines in front of a case in its file."""

MLP = """
class Net(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w1, b1, w2):
        z = x @ w1 + b1
        h = torch.tanh(z)
        y = h @ w2
        ctx.save_for_backward(x, w1, w2, z, h)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w1, w2, z, h = ctx.saved_tensors
        dw2 = h.T @ dy
        dh = dy @ w2.T
        dz = (1 - h * h) * dh
        dw1 = x.T @ dz
        db1 = dz.sum(0)
        dx = dz @ w1.T
        return dx, dw1, db1, dw2

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(4), torch.randn(4, 4)]
"""
# Sizes that tell: with 7 and 4, 2 / (n - 1) is 1 / (n - 1) of the other axis.
NORM = """
class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias):
        n = x.shape[0]
        mean = x.mean(0, keepdim=True)
        diff = x - mean
        var = (diff * diff).sum(0, keepdim=True) / (n - 1)
        inv = (var + 1e-5) ** -0.5
        raw = diff * inv
        ctx.save_for_backward(gain, diff, inv, raw)
        return gain * raw + bias

    @staticmethod
    def backward(ctx, g):
        gain, diff, inv, raw = ctx.saved_tensors
        n = g.shape[0]
        dbias = g.sum(0)
        dgain = (g * raw).sum(0)
        draw = g * gain
        ddiff = draw * inv
        dinv = (draw * diff).sum(0, keepdim=True)
        dvar = -0.5 * inv ** 3 * dinv
        ddiff = ddiff + 2 / (n - 1) * diff * dvar
        dx = ddiff - ddiff.mean(0, keepdim=True)
        return dx, dgain, dbias

inputs = [torch.randn(6, 5), torch.rand(5) + 0.5, torch.randn(5)]
"""
ATTENTION = """
class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        t, d = q.shape
        ctx.mask = torch.ones(t, t).triu(1).bool()
        s = (q @ k.T / d ** 0.5).masked_fill(ctx.mask, float("-inf"))
        p = torch.softmax(s, dim=-1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        d = q.shape[-1]
        dv = p.T @ g
        dp = g @ v.T
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        ds = ds / d ** 0.5
        dq = ds @ k
        dk = ds.T @ q
        return dq, dk, dv

inputs = [torch.randn(5, 5), torch.randn(5, 5), torch.randn(5, 5)]
"""
RNN = """
class Rnn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, w, u):
        h = xs.new_zeros(xs.shape[1], u.shape[0])
        hs = [h]
        for t in range(xs.shape[0]):
            h = torch.tanh(xs[t] @ w + h @ u)
            hs.append(h)
        ctx.save_for_backward(xs, w, u, torch.stack(hs))
        return torch.stack(hs[1:])

    @staticmethod
    def backward(ctx, g):
        xs, w, u, hs = ctx.saved_tensors
        dw, du, dxs = torch.zeros_like(w), torch.zeros_like(u), torch.zeros_like(xs)
        dh_next = torch.zeros_like(hs[0])
        for t in reversed(range(xs.shape[0])):
            dh = g[t] + dh_next
            da = dh * (1 - hs[t + 1] ** 2)
            dw += xs[t].T @ da
            du += hs[t].T @ da
            dxs[t] = da @ w.T
            dh_next = da @ u.T
        return dxs, dw, du

inputs = [torch.randn(4, 2, 3), torch.randn(3, 3), torch.randn(3, 3)]
"""
# The code, and the lines as they are and as they are spoiled.
SPOILED = {
    "input for output": (MLP, [("dz = (1 - h * h) * dh", "dz = (1 - z * z) * dh")]),
    "gradient of another stage": (MLP, [("dw1 = x.T @ dz", "dw1 = x.T @ dh")]),
    "mean for sum": (MLP, [("db1 = dz.sum(0)", "db1 = dz.mean(0)")]),
    "not transposed": (MLP, [("dh = dy @ w2.T", "dh = dy @ w2")]),
    "returned in another order": (ATTENTION, [("return dq, dk, dv", "return dk, dq, dv")]),
    "gain forgotten": (NORM, [("draw = g * gain", "draw = g")]),
    "n for n - 1": (NORM, [("ddiff = ddiff + 2 / (n - 1) * diff * dvar", "ddiff = ddiff + 2 / n * diff * dvar")]),
    "power": (NORM, [("dvar = -0.5 * inv ** 3 * dinv", "dvar = -0.5 * inv ** 2 * dinv")]),
    "factor 2": (NORM, [("ddiff = ddiff + 2 / (n - 1) * diff * dvar", "ddiff = ddiff + 1 / (n - 1) * diff * dvar")]),
    "mean over the wrong axis": (NORM, [("dx = ddiff - ddiff.mean(0, keepdim=True)", "dx = ddiff - ddiff.mean(1, keepdim=True)")]),
    "mean path forgotten": (NORM, [("dx = ddiff - ddiff.mean(0, keepdim=True)", "dx = ddiff")]),
    "overwritten": (NORM, [("ddiff = ddiff + 2 / (n - 1) * diff * dvar", "ddiff = 2 / (n - 1) * diff * dvar")]),
    "softmax correction over the wrong axis": (ATTENTION, [("ds = p * (dp - (dp * p).sum(-1, keepdim=True))", "ds = p * (dp - (dp * p).sum(0, keepdim=True))")]),
    "scale forgotten": (ATTENTION, [("dk = ds.T @ q", "dk = ds.T @ q * d ** 0.5")]),
    "a step of time off": (RNN, [("du += hs[t].T @ da", "du += hs[t + 1].T @ da")]),
    "not carried": (RNN, [("dh = g[t] + dh_next", "dh = g[t]")]),
    "walked forwards": (RNN, [("for t in reversed(range(xs.shape[0])):", "for t in range(xs.shape[0]):")]),
    "assigned in a loop": (RNN, [("dw += xs[t].T @ da", "dw = xs[t].T @ da")]),
    "two mistakes": (MLP, [("dw2 = h.T @ dy", "dw2 = z.T @ dy"), ("db1 = dz.sum(0)", "db1 = dz.mean(0)")]),
    "two on one path": (MLP, [("dz = (1 - h * h) * dh", "dz = (1 - z * z) * dh"), ("db1 = dz.sum(0)", "db1 = dz.mean(0)")]),
}  # fmt: skip
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
SPOILED_KINDS = {
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


def text_for(library, code):
    """The file of a case."""
    if library == "torch":
        return "import torch\ntorch.manual_seed(0)\n" + code
    return "import chainrule as cr\ncr.manual_seed(0)\n" + code.replace("torch.", "cr.")


def loaded(path, library, code):
    """The module of a case."""
    path.write_text(text_for(library, code))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function_of(module):
    """The `Function` of a module, and its inputs."""
    owners = (cr.autograd.Function, torch.autograd.Function) if torch else cr.autograd.Function
    return next(v for v in vars(module).values() if isinstance(v, type) and issubclass(v, owners)), module.inputs


def pair_of(module):
    """The function of a module that has a `_backward` beside it, that, and the inputs."""
    name = next(n for n in vars(module) if f"{n}_backward" in vars(module))
    return getattr(module, name), getattr(module, f"{name}_backward"), module.inputs


def line_of(code, right):
    """The line of a text in the file."""
    return HEAD + 1 + code[: code.index(right)].count("\n")


def spoiled(code, lines):
    """The code with lines as they are spoiled."""
    for right, wrong in lines:
        assert code.count(right) == 1, right
        code = code.replace(right, wrong)
    return code


def mended(path, text):
    """The lines of a file with the corrections of a report made."""
    rows = path.read_text().split("\n")
    said = text.splitlines()
    for k, (place, corrected) in enumerate(zip(said, itertools.islice(said, 2, None)), 3):
        at = re.match(rf"{path.name}:(\d+) ", place)
        if at and corrected.startswith("corrected"):
            # A line that was missing comes with the one that it stands before.
            more = itertools.takewhile(lambda row: row.startswith(" " * len("corrected")), said[k:])
            new = [row.removeprefix("corrected").strip().partition("    ")[0] for row in (corrected, *more)]
            old = rows[int(at[1]) - 1]
            rows[int(at[1]) - 1] = "\n".join(old[: len(old) - len(old.lstrip())] + row for row in new)
    return "\n".join(rows[HEAD:])


def doubles(inputs):
    """Arrays in float64 of inputs of either library."""
    return [np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in inputs]


def differences(value, inputs, along):
    """The slope of a function of arrays along a direction, by differences at two steps."""

    def slope(step):
        ends = [value([x + s * step * d for x, d in zip(inputs, along)]) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * step)

    return (4 * slope(5e-4) - slope(1e-3)) / 3


def agrees(value, inputs, gradients):
    """Whether gradients agree with differences of a function: each along two directions."""
    draw = np.random.default_rng(9)
    for i, (x, g) in enumerate(zip(inputs, gradients)):
        if x.dtype.kind != "f":
            continue
        for _ in range(2):
            along = [np.zeros_like(y) if y.dtype.kind == "f" else 0 for y in inputs]
            along[i] = draw.standard_normal(x.shape)
            told, seen = float((along[i] * g).sum()), differences(value, inputs, along)
            if not abs(told - seen) <= 1e-6 * (np.abs(along[i] * g).sum() + abs(seen)) + 1e-9:
                return False
    return True


def function_is_right(function, inputs):
    """Whether the backward of a `Function` gives the slopes of its forward."""
    if torch is not None and issubclass(function, torch.autograd.Function):
        given = [x.double().requires_grad_() for x in inputs]
        return torch.autograd.gradcheck(function.apply, given, raise_exception=False)
    given = [x.double() for x in doubles_of(inputs)]
    y = function.apply(*given)
    above = np.random.default_rng(1).standard_normal(tuple(y.shape))
    leaves = [x.requires_grad_() for x in doubles_of(inputs)]
    (function.apply(*leaves) * cr.tensor(above)).sum().backward()
    return agrees(lambda arrays: float((function.apply(*map(cr.tensor, arrays)).numpy() * above).sum()), doubles(given), [x.grad.numpy() for x in leaves])


def doubles_of(inputs):
    """Tensors of ours in float64, apart from any tape."""
    return [cr.tensor(x.detach().numpy().astype(np.float64)) for x in inputs]


def pair_is_right(forward, backward, inputs, sizes=(1.0, 10.0)):
    """Whether a backward gives the slopes of a forward, at the inputs and at ten times as large
    ones: by PyTorch's autograd where the tensors are its own, else by differences.
    """
    for size in sizes:
        if torch is not None and any(isinstance(x, torch.Tensor) for x in inputs):
            given = [(size * x).double().requires_grad_() for x in inputs]
            y = forward(*given)
            above = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
            right = torch.autograd.grad(y, given, above)
            with torch.no_grad():
                found = backward(above, *(x.detach() for x in given))
            if not all(torch.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(found, right)):
                return False
            continue
        ours = any(isinstance(x, cr.Tensor) for x in inputs)
        arrays = [size * a.astype(np.float64) for a in doubles(inputs)]
        made = cr.tensor if ours else np.asarray
        y = forward(*map(made, arrays))
        above = np.random.default_rng(1).standard_normal(tuple(np.shape(y)))
        found = backward(made(above) if ours or np.shape(y) else float(above), *map(made, arrays))
        if not agrees(lambda each: float((doubles([forward(*map(made, each))])[0] * above).sum()), arrays, doubles(found)):
            return False
    return True
