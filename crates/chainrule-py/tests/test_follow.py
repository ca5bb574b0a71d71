"""Mistakes in backward passes that people write: the line, and the line as it should be.

Each case is a right backward pass and one of its lines spoiled (or two). The report must point at
the spoiled line; the corrected line must make the backward pass right by PyTorch's own check, or be
the line as it was.
"""

import importlib.util
import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import chainrule as cr
import pytest

torch = pytest.importorskip("torch")

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

inputs = [torch.randn(7, 4), torch.rand(4) + 0.5, torch.randn(4)]
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


def load(path, code):
    path.write_text("import torch\ntorch.manual_seed(0)\n" + code)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = next(v for v in vars(module).values() if isinstance(v, type) and issubclass(v, torch.autograd.Function))
    return function, module.inputs


def is_right(function, inputs):
    given = [x.double().requires_grad_() for x in inputs]
    return torch.autograd.gradcheck(function.apply, given, raise_exception=False)


@pytest.mark.parametrize("name", SPOILED)
def test_the_line_and_its_correction(name, tmp_path):
    code, lines = SPOILED[name]
    function, inputs = load(tmp_path / "whole.py", code)
    assert cr.torch.gradcheck(function, inputs), "the case itself is right"
    spoiled = code
    for right, wrong in lines:
        assert right in spoiled
        spoiled = spoiled.replace(right, wrong)
    path = tmp_path / "spoiled.py"
    function, inputs = load(path, spoiled)
    assert not is_right(function, inputs), "the spoiled case is wrong"
    report = cr.torch.gradcheck(function, inputs)
    assert not report
    text = str(report)
    corrected = path.read_text()
    said = [row for row in text.splitlines() if row.startswith("corrected")]
    assert len(said) == len(lines), text
    for (right, wrong), row in zip(lines, said):
        at = 3 + code[: code.index(right)].count("\n")
        assert f"spoiled.py:{at} " in text, text
        new = row.removeprefix("corrected").partition("    right to")[0].strip()
        rows = corrected.split("\n")
        assert rows[at - 1].strip() == wrong
        rows[at - 1] = rows[at - 1].replace(wrong, new)
        corrected = "\n".join(rows)
    function, inputs = load(tmp_path / "mended.py", corrected)
    assert is_right(function, inputs), text
    assert "site-packages" not in text and ".rs:" not in text


def test_the_report_as_the_book_shows_it(tmp_path):
    code, lines = SPOILED["gradient of another stage"]
    function, inputs = load(tmp_path / "net.py", code.replace(*lines[0]))
    rows = str(cr.torch.gradcheck(function, inputs)).splitlines()
    assert rows[1] == "net.py:19  dw1 = x.T @ dh"
    assert rows[2] == " " * 11 + " " * 12 + "^^ is the gradient of `h`; due here is that of `z`"
    assert rows[3].startswith("corrected  dw1 = x.T @ dz    right to ") and rows[3].endswith("; all else of the backward is right")


BOOK = Path(__file__).parents[3] / "docs" / "src"


def test_the_example_of_the_book(tmp_path):
    page = (BOOK / "why-wrong.md").read_text()
    code = re.search(r"```text\n(import torch.*?)```", page, re.S).group(1)
    shown = re.search(r"\$ chainrule check backward net.py\n.*?\n(.*?)```", page, re.S).group(1)
    path = tmp_path / "net.py"
    path.write_text(code)
    torch.manual_seed(0)
    module = runpy.run_path(str(path))
    report = cr.torch.gradcheck(module["Net"], module["inputs"]())
    without_error = re.compile(r"right to [^;]*;")
    assert without_error.sub("", "\n".join(str(report).splitlines()[1:])) == without_error.sub("", shown.rstrip())
    picture = BOOK / "images" / "follow.svg"
    if os.environ.get("CHAINRULE_UPDATE_DOCS"):
        picture.write_text(report.pictures[0])
    assert picture.read_text() == report.pictures[0]


def test_right_but_unusual_ones_are_left_alone(tmp_path):
    code = MLP.replace("dz = (1 - h * h) * dh", "dz = dh / torch.cosh(z) ** 2").replace("db1 = dz.sum(0)", "db1 = torch.ones(len(dz), dtype=dz.dtype) @ dz")
    function, inputs = load(tmp_path / "right.py", code)
    assert is_right(function, inputs) and cr.torch.gradcheck(function, inputs)


def chosen(bug):
    """One of the ways in which a backward pass is written, chosen from outside."""

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            if bug:
                dw = g.T @ x
            else:
                dw = x.T @ g
            return g @ w.T, dw

    return Two


def test_a_way_that_was_chosen_outside_is_no_mistake():
    inputs = [torch.randn(5, 4), torch.randn(4, 4)]
    text = str(cr.torch.gradcheck(chosen(True), inputs))
    assert re.search(r"corrected +dw = \(g.T @ x\).T", text), text
    assert cr.torch.gradcheck(chosen(False), inputs)


@pytest.mark.parametrize("name, entry", [("mean for sum", "mean where a sum is due"), ("not transposed", "second operand not transposed"), ("gradient of another stage", None)])
def test_one_entry_of_the_catalogue_at_most(name, entry, tmp_path):
    code, lines = SPOILED[name]
    function, inputs = load(tmp_path / "spoiled.py", code.replace(*lines[0]))
    entries = re.findall(r"^- (.*?) in `(.*?)`", str(cr.torch.gradcheck(function, inputs)), re.M)
    assert [mistake for mistake, _ in entries] == ([entry] if entry else [])


class Mish(torch.autograd.Function):
    """With the derivative of another function: no small edit makes it right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(torch.nn.functional.softplus(x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.sigmoid() * (1 + x * (1 - x.sigmoid())))


def test_nothing_is_named_that_is_not_there():
    report = cr.torch.gradcheck(Mish, torch.randn(4, 3, generator=torch.Generator().manual_seed(0)))
    assert not report and "corrected" not in str(report), str(report)


class Squash(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        z = x @ w
        h = z.sigmoid()
        ctx.save_for_backward(x, w, h)
        return h

    @staticmethod
    def backward(ctx, dh):
        x, w, h = ctx.saved_tensors
        dz = dh * h * (1 + h)
        return dz @ w.T, x.T @ dz


def affine(x, w, b):
    return x @ w + b


def affine_backward(dy, x, w, b):
    return dy @ w.T, dy.T @ x, dy.sum(0)


def test_our_own_functions():
    cr.manual_seed(0)
    report = cr.check.backward(Squash, [cr.randn(4, 3), cr.randn(3, 5)])
    assert not report and "corrected" in str(report) and "dz = dh * h * (1 - h)" in str(report), str(report)
    # Square, so that the shapes do not tell.
    report = cr.check.backward(affine, [cr.randn(3, 3), cr.randn(3, 3), cr.randn(3)], affine_backward)
    assert not report and "corrected" in str(report) and "`w`" in str(report), str(report)
    report = cr.check.backward(affine, [cr.randn(3, 3), cr.randn(3, 3), cr.randn(3)], lambda dy, x, w, b: (dy @ w.T, x.T @ dy, dy.sum(0)))
    assert report, str(report)


def test_the_module_that_the_command_runs(tmp_path):
    def run(name, text):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        done = subprocess.run([sys.executable, "-m", "chainrule.check", str(path)], capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    status, said, _ = run("wrong.py", "import torch\ntorch.manual_seed(0)\n" + MLP.replace("db1 = dz.sum(0)", "db1 = dz.mean(0)"))
    assert status == 1 and "wrong.py:20" in said and "db1 = dz.sum(0)" in said, said
    status, said, _ = run("right.py", "import torch\ntorch.manual_seed(0)\n" + MLP)
    assert status == 0 and said.startswith("Net: the gradients are right"), said
    for name, text in (("none.py", "x = 1\n"), ("broken.py", "import nothing_of_this_name\n"), ("bare.py", MLP.replace("inputs =", "given =").join(["import torch\n", ""]))):
        status, said, error = run(name, text)
        assert status == 2 and error.startswith("error: ") and len(error.strip().splitlines()) == 1, error


AT_KINKS = """
import torch

def rectified(a):
    return torch.relu(a).mean()

def rectified_backward(g, a):
    return g / a.numel() * (a > 0).to(a.dtype)

def other_slope(a):
    return torch.relu(a).mean()

def other_slope_backward(g, a):
    return g / a.numel() * (a >= 0).to(a.dtype)

def largest(a):
    return a.amax(1).sum()

def largest_backward(g, a):
    first = torch.nn.functional.one_hot(a.argmax(1), a.shape[1])
    return g * first.to(a.dtype)

def margin(a, p, q):
    return torch.relu(((a - p) ** 2).sum(1) - ((a - q) ** 2).sum(1) + 1).mean()

def margin_backward(g, a, p, q):
    d = g / len(a) * (((a - p) ** 2).sum(1) - ((a - q) ** 2).sum(1) + 1 > 0).to(a.dtype)[:, None]
    return 2 * d * (q - p), -2 * d * (a - p), 2 * d * (a - q)

def leaky(x):
    return torch.where(x > 0, x, 0.2 * x).sum()

def leaky_backward(g, x):
    return g * torch.where(x > 0, 1.0, 0.2)

inputs = {
    "rectified": [torch.tensor([0.0, 1.0, -1.0, 0.0])],
    "other_slope": [torch.tensor([0.0, 1.0, -1.0, 0.0])],
    "largest": [torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]])],
    "margin": [torch.zeros(4, 1), torch.ones(4, 1), torch.full((4, 1), 2.0 ** 0.5)],
    "leaky": [torch.tensor([[-0.5, 0.7], [1.5, -2.0]])],
}
inputs["margin"][2][:2] = 1.0 + 2.0 ** -20
"""


def test_every_slope_at_a_kink_is_right(tmp_path):
    file = tmp_path / "at_kinks.py"
    file.write_text(AT_KINKS)
    found = runpy.run_path(str(file))
    for name, inputs in found["inputs"].items():
        report = cr.check.backward(found[name], inputs, found[f"{name}_backward"])
        assert report, f"{name}: {report}"
        assert ("kink" in str(report)) == (name in ("other_slope", "largest")), f"{name}: {report}"


def test_a_mistake_at_a_kink_is_found():
    def forward(a):
        return torch.relu(a).mean()

    def forward_backward(g, a):
        return 2 * g / a.numel() * (a > 0).to(a.dtype)

    report = cr.check.backward(forward, [torch.tensor([0.0, 1.0, -1.0])], forward_backward)
    assert not report and "g / a.numel()" in str(report)


def test_gradients_without_axes_are_compared():
    def weighted(x, lam):
        return (lam * x.abs()).sum()

    def weighted_backward(g, x, lam):
        return g * lam * torch.sign(x), g * x.sum() / 0.0

    assert not cr.check.backward(weighted, [torch.tensor([1.0, -2.0]), torch.tensor(0.5)], weighted_backward)


def test_inputs_that_do_not_fit_are_refused_in_a_line(tmp_path):
    file = tmp_path / "unfit.py"
    file.write_text(textwrap.dedent(MLP).replace("torch.randn(3, 4)", "torch.randn(7, 4)").replace("class Net", "import torch\nclass Net"))
    done = subprocess.run([sys.executable, "-m", "chainrule.check", str(file)], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: Net: it fails on its own inputs") and "Traceback" not in done.stderr, done.stderr


OURS = """
import chainrule as cr

class Scaled(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, (g * x).sum()

inputs = [cr.randn(4, 3), cr.tensor(2.0, dtype=cr.float64)]
"""


def test_a_file_of_our_own_functions_with_inputs_of_two_dtypes(tmp_path):
    file = tmp_path / "ours.py"
    file.write_text(OURS)
    done = subprocess.run([sys.executable, "-m", "chainrule.check", str(file)], capture_output=True, text=True)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    file.write_text(OURS.replace("(g * x).sum()", "g.sum()"))
    done = subprocess.run([sys.executable, "-m", "chainrule.check", str(file)], capture_output=True, text=True)
    assert done.returncode == 1 and "ours.py:13" in done.stdout, done.stdout + done.stderr
