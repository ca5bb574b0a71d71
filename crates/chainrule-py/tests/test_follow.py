"""Mistakes in backward passes that people write: the line, and the line as it should be.

Each case is a right backward pass and one of its lines spoiled (or two). The report must point at
the spoiled line; the corrected line must make the backward pass right by PyTorch's own check, or be
the line as it was.
"""

import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import chainrule as cr
import pytest
from follow_cases import HEAD, LIBRARIES, MLP, SPOILED, WITH_TORCH, function_is_right, function_of, line_of, loaded, mended, spoiled, text_for, torch


def judged(library, function, inputs):
    return cr.torch.gradcheck(function, inputs) if library == "torch" else cr.check.backward(function, inputs)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", SPOILED)
def test_the_line_and_its_correction(name, library, tmp_path):
    code, lines = SPOILED[name]
    function, inputs = function_of(loaded(tmp_path / "whole.py", library, code))
    assert judged(library, function, inputs), "the case itself is right"
    path = tmp_path / "spoiled.py"
    function, inputs = function_of(loaded(path, library, spoiled(code, lines)))
    assert not function_is_right(function, inputs), "the spoiled case is wrong"
    report = judged(library, function, inputs)
    assert not report
    text = str(report)
    assert sum(row.startswith("corrected") for row in text.splitlines()) == len(lines), text
    for right, _ in lines:
        assert f"spoiled.py:{line_of(code, right)} " in text, text
    function, inputs = function_of(loaded(tmp_path / "mended.py", library, mended(path, text)))
    assert function_is_right(function, inputs), text
    assert "site-packages" not in text and ".rs:" not in text


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_report_as_the_book_shows_it(library, tmp_path):
    code, lines = SPOILED["gradient of another stage"]
    function, inputs = function_of(loaded(tmp_path / "net.py", library, spoiled(code, lines)))
    rows = str(judged(library, function, inputs)).splitlines()
    assert rows[1] == "net.py:19  dw1 = x.T @ dh"
    assert rows[2] == " " * 11 + " " * 12 + "^^ is the gradient of `h`; due here is that of `z`"
    assert rows[3].startswith("corrected  dw1 = x.T @ dz    right to ") and rows[3].endswith("; all else of the backward is right")


BOOK = Path(__file__).parents[3] / "docs" / "src"


@WITH_TORCH
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


PICTURES = {"follow-two.svg": "two on one path", "follow-loop.svg": "a step of time off"}


@pytest.mark.parametrize("file", PICTURES)
def test_the_pictures_of_the_book(file, tmp_path):
    code, lines = SPOILED[PICTURES[file]]
    function, inputs = function_of(loaded(tmp_path / "net.py", "chainrule", spoiled(code, lines)))
    (drawn,) = cr.check.backward(function, inputs).pictures
    assert drawn.count("<line") >= 3
    picture = BOOK / "images" / file
    if os.environ.get("CHAINRULE_UPDATE_DOCS"):
        picture.write_text(drawn)
    assert picture.read_text() == drawn


@pytest.mark.parametrize("library", LIBRARIES)
def test_right_but_unusual_ones_are_left_alone(library, tmp_path):
    code = spoiled(MLP, [("dz = (1 - h * h) * dh", "dz = dh / torch.cosh(z) ** 2"), ("db1 = dz.sum(0)", "db1 = torch.ones(len(dz), dtype=dz.dtype) @ dz")])
    function, inputs = function_of(loaded(tmp_path / "right.py", library, code))
    assert function_is_right(function, inputs) and judged(library, function, inputs)


CHOSEN = """
def chosen(bug):
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

inputs = [torch.randn(5, 4), torch.randn(4, 4)]
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_way_that_was_chosen_outside_is_no_mistake(library, tmp_path):
    module = loaded(tmp_path / "chosen.py", library, CHOSEN)
    text = str(judged(library, module.chosen(True), module.inputs))
    assert re.search(r"corrected +dw = (\(g.T @ x\).T|x.T @ g) ", text), text
    assert judged(library, module.chosen(False), module.inputs)


@WITH_TORCH
@pytest.mark.parametrize("name, entry", [("mean for sum", "mean where a sum is due"), ("not transposed", "second operand not transposed"), ("gradient of another stage", None)])
def test_one_entry_of_the_catalogue_at_most(name, entry, tmp_path):
    code, lines = SPOILED[name]
    function, inputs = function_of(loaded(tmp_path / "spoiled.py", "torch", spoiled(code, lines)))
    entries = re.findall(r"^- (.*?) in `(.*?)`", str(cr.torch.gradcheck(function, inputs)), re.M)
    assert [mistake for mistake, _ in entries] == ([entry] if entry else [])


RATIO = """
class Ratio(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.softmax(x.cumsum(1), 1).cumsum(0) / x.exp().sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 / (x * x + 3))

inputs = [torch.randn(4, 3)]
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_is_named_that_is_not_there(library, tmp_path):
    """With the derivative of another function: no small edit makes it right."""
    function, inputs = function_of(loaded(tmp_path / "ratio.py", library, RATIO))
    report = judged(library, function, inputs)
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


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_module_that_the_command_runs(library, tmp_path):
    def run(name, text):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        done = subprocess.run([sys.executable, "-m", "chainrule.check", str(path)], capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    status, said, _ = run("wrong.py", text_for(library, spoiled(MLP, [("db1 = dz.sum(0)", "db1 = dz.mean(0)")])))
    assert status == 1 and "wrong.py:20" in said and "db1 = dz.sum(0)" in said, said
    status, said, _ = run("right.py", text_for(library, MLP))
    assert status == 0 and said.startswith("Net: "), said
    bare = text_for(library, MLP.replace("inputs =", "given ="))
    for name, text in (("none.py", "x = 1\n"), ("broken.py", "import nothing_of_this_name\n"), ("bare.py", bare)):
        status, said, error = run(name, text)
        assert status == 2 and error.startswith("error: ") and len(error.strip().splitlines()) == 1, error


AT_KINKS = """
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


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_slope_at_a_kink_is_right(library, tmp_path):
    module = loaded(tmp_path / "at_kinks.py", library, AT_KINKS)
    for name, inputs in module.inputs.items():
        report = cr.check.backward(getattr(module, name), inputs, getattr(module, f"{name}_backward"))
        assert report, f"{name}: {report}"
        assert ("kink" in str(report)) == (name in ("other_slope", "largest")), f"{name}: {report}"


DOUBLED = """
def forward(a):
    return torch.relu(a).mean()

def forward_backward(g, a):
    return 2 * g / a.numel() * (a > 0).to(a.dtype)

def weighted(x, lam):
    return (lam * x.abs()).sum()

def weighted_backward(g, x, lam):
    return g * lam * torch.sign(x), g * x.sum() / 0.0

inputs = {"forward": [torch.tensor([0.0, 1.0, -1.0])], "weighted": [torch.tensor([1.0, -2.0]), torch.tensor(0.5)]}
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_mistake_at_a_kink_and_one_that_is_not_finite(library, tmp_path):
    module = loaded(tmp_path / "doubled.py", library, DOUBLED)
    report = cr.check.backward(module.forward, module.inputs["forward"], module.forward_backward)
    assert not report and "g / a.numel()" in str(report), str(report)
    assert not cr.check.backward(module.weighted, module.inputs["weighted"], module.weighted_backward)


@pytest.mark.parametrize("library", LIBRARIES)
def test_inputs_that_do_not_fit_are_refused_in_a_line(library, tmp_path):
    file = tmp_path / "unfit.py"
    file.write_text(text_for(library, MLP.replace("torch.randn(3, 4)", "torch.randn(7, 4)")))
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
