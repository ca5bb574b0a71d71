"""Reports name the user's Python lines: those that called an op, and never one of the library."""

import re
import subprocess
import sys
import threading

import chainrule as cr
import numpy as np
import pytest

HERE = "test_user_lines.py"
F64 = cr.float64


def line_of(part):
    """The line of this file that has a text once, beside this call."""
    rows = open(__file__).read().split("\n")
    found = [i for i, row in enumerate(rows, 1) if part in row and "line_of(" not in row and "for part in" not in row]
    assert len(found) == 1, (part, found)
    return found[0]


def model():
    r = np.random.default_rng(0)
    x = cr.tensor(r.standard_normal((5, 3)))
    w = cr.tensor(r.standard_normal((3, 4)), requires_grad=True).named("w")
    z = x @ w
    h = z.tanh()
    s = cr.nn.functional.softmax(h, 1)
    loss = (s * s).mean()
    return x, w, z, h, loss


def clean(text):
    assert ".rs" not in text and "/rustc/" not in text and "site-packages" not in text and "_chainrule" not in text, text
    return text


def test_a_verdict_names_the_line():
    x, w, z, h, loss = model()
    (dz,) = cr.autograd.grad(loss, [z], retain_graph=True)
    dh = cr.autograd.grad(loss, [h], retain_graph=True)[0]
    wrong = x.T @ (dh * (1 - h))
    text = clean(str(cr.check.verdict(loss, [(w, wrong)])))
    assert f"{HERE}:{line_of('h = z.tanh()')}" in text, text
    assert not np.allclose((x.T @ dz).detach().numpy(), wrong.detach().numpy())


def test_compare_and_explain_name_lines():
    x, w, z, h, loss = model()
    h.named("h"), z.named("z")
    dz, dh = (cr.autograd.grad(loss, [t], retain_graph=True)[0] for t in (z, h))
    text = clean(str(cr.check.compare(loss, {"h": dh, "z": dz, "w": 2 * (x.T @ dz)})))
    assert f"{HERE}:{line_of('z = x @ w')}" in text, text
    told = clean(cr.explain(loss))
    for part in ("z = x @ w", "h = z.tanh()", "cr.nn.functional.softmax(h, 1)", "loss = (s * s).mean()"):
        assert f"{HERE}:{line_of(part)}" in told, told


def test_deviations_name_lines():
    x, w, z, h, loss = model()
    h.named("h")
    dh = cr.autograd.grad(loss, [h], retain_graph=True)[0]
    text = clean(str(cr.check.verdict(loss, [(w, x.T @ dh)])))
    assert re.search(rf"{HERE}:\d+", text), text


def kinked(x):
    return cr.relu(x).sum()


def test_a_kink_names_its_line():
    text = clean(str(cr.check.gradcheck(kinked, [cr.tensor([0.0, 1.0, -1.0])])))
    assert "kink" in text and f"{HERE}:{line_of('return cr.relu(x).sum()')}" in text, text


def test_lines_within_loops_lambdas_and_comprehensions():
    w = cr.randn(3, requires_grad=True)
    parts = [(w * k).exp() for k in range(2)]
    step = lambda t: t.sin()  # noqa: E731
    loss = sum(step(p).sum() for p in parts)
    told = clean(cr.explain(loss))
    assert f"{HERE}:{line_of('parts = [(w * k).exp()')}" in told and f"{HERE}:{line_of('step = lambda t: t.sin()')}" in told


def test_many_nodes_and_other_threads():
    """Lines are kept for the latest nodes; an older one has none, and no wrong one."""
    w = cr.randn(2, requires_grad=True)
    first = w.tanh()
    for _ in range(70_000):
        w * 2.0
    told = clean(cr.explain(first.sum()))
    assert f"{HERE}:{line_of('told = clean(cr.explain(first.sum()))')}" in told and "tanh" in told
    assert f"{HERE}:{line_of('w * 2.0')}" not in told
    made = []
    thread = threading.Thread(target=lambda: made.append((w * 3.0).sum()))
    thread.start()
    thread.join()
    assert f"{HERE}:{line_of('w * 2.0')}" not in clean(cr.explain(made[0]))


def test_a_second_backward_is_no_line_of_the_forward():
    w = cr.randn(3, requires_grad=True)
    y = (w**3).sum()
    (g,) = cr.autograd.grad(y, [w], create_graph=True)
    after = g.sum()
    told = clean(cr.explain(after))
    assert f"{HERE}:{line_of('after = g.sum()')}" in told, told


@pytest.mark.parametrize("code", ["exec", "-c"])
def test_code_without_a_file(code):
    text = "import chainrule as cr\nw = cr.ones(2, requires_grad=True)\ny = w.exp().sum()\nprint(cr.explain(y))\n"
    command = [sys.executable, "-c", text] if code == "-c" else [sys.executable, "-c", f"exec(compile({text!r}, 'cell', 'exec'))"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and (":3" in done.stdout), done.stdout + done.stderr


class Halves(cr.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.Tanh())
        self.head = cr.nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))


def test_traces_and_graphs_name_parameters_and_variables():
    model, scale = Halves(), cr.ones(2, requires_grad=True)
    logits = model(cr.randn(5, 3)) * scale
    loss = logits.square().mean()
    for text in (loss.trace_backward(), loss.trace_json(), loss.graph_dot(), loss.graph_json(), loss.graph_svg(), cr.explain(loss)):
        for name in ("body.0.weight", "body.0.bias", "head.weight", "head.bias", "scale", "logits", "loss"):
            assert name in text, (name, text)
        assert not re.search(r'parameter \d|label="leaf|>leaf<', text), text
    # The names are those of one report.
    assert scale.name is None and model.head.weight.name is None
    wrong = cr.autograd.grad(loss.double(), [scale], retain_graph=True)[0]
    text = clean(str(cr.check.verdict(loss, [(scale, 2 * wrong)])))
    assert "scale" in text, text


def test_the_nearest_variable_names_a_tensor():
    weights = [cr.ones(2, requires_grad=True), cr.ones(2, requires_grad=True)]

    def inner(factor, rates):
        return ((weights[0] * factor).sum() + weights[1].sum() + rates["a"]).trace_backward()

    text = inner(weights[1], {"a": cr.ones((), requires_grad=True)})
    assert "weights[0]" in text and "factor" in text and "rates['a']" in text and "weights[1]" not in text, text
    # Modules beside each other are told apart.
    first, second = cr.nn.Linear(2, 2), cr.nn.Linear(2, 1)
    text = second(first(cr.ones(1, 2))).sum().trace_backward()
    assert "first.weight" in text and "second.bias" in text, text


def test_the_origin_of_a_nan_is_named():
    weight = cr.tensor([0.0, 2.0], requires_grad=True)
    # Finite values, and a gradient that is not.
    text = clean(cr.where(weight > 0, weight.sqrt(), weight).sum().first_non_finite())
    assert f"`sqrt` at {HERE}:{line_of('weight.sqrt(), weight)')}" in text and "input 0, `weight`, is 0" in text, text
    # A sum over many numbers: the one that is not finite, whichever input has it.
    layer, x = cr.nn.Linear(3, 1), cr.randn(4, 3)
    x[2, 1] = cr.nan
    assert "input 0 is NaN" in layer(x).mean().first_non_finite()
    with cr.no_grad():
        layer.weight[0, 1] = cr.inf
    text = layer(cr.ones(4, 3)).mean().first_non_finite()
    assert "`linear`" in text and "input 1, `weight`, is inf" in text, text
    # A mask of infinities before a softmax is meant so; a row that is masked as a whole is not.
    def masked(rows):
        scores = cr.ones(2, 3, requires_grad=True).masked_fill(cr.tensor(rows), -cr.inf)
        return cr.softmax(scores, -1)

    shares = masked([[False, True, True], [False, False, True]])
    assert (shares * cr.tensor([1.0, 2.0, 3.0])).sum().first_non_finite() is None
    text = clean((shares * shares.log()).sum().first_non_finite())
    assert f"`log` at {HERE}:{line_of('shares.log')}" in text and "is 0" in text, text
    text = (masked([[True, True, True], [False, False, True]]) ** 2).sum().first_non_finite()
    assert "`softmax`" in text and "is -inf" in text, text
    # Branches that are not taken.
    for op in ["log", "rsqrt", "reciprocal"]:
        text = cr.where(weight > 0, getattr(weight, op)(), weight).sum().first_non_finite()
        assert f"the gradient of `{op}`" in text and "input 0, `weight`, is 0" in text, text
    text = cr.where(weight > 0, 1.0 / weight, weight).sum().first_non_finite()
    assert "the gradient of `" in text and "`weight`, is 0" in text, text
    # Or else the one that is too large.
    with cr.no_grad():
        layer.weight[0, 1] = 3e38
    assert "input 1, `weight`, is 3" in layer(cr.full((4, 3), 7.0)).mean().first_non_finite()
