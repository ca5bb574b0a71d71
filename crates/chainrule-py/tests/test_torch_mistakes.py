"""Wrong backward passes of PyTorch's users: the verdict names the mistake, also where it is in a
parameter's gradient.
"""

import chainrule as cr
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
TARGETS = torch.tensor([0, 1, 2, 0])


def function(forward, backward, saved):
    """A `torch.autograd.Function` of these; `saved(y, *inputs)` is what backward gets."""

    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            y = forward(*inputs)
            ctx.save_for_backward(*saved(y, *inputs))
            return y

        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    return Custom


def output(y, *_):
    return (y,)


def inputs(_, *inputs):
    return inputs


def norm(x):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)


X, S = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
B = torch.randn(3, generator=torch.Generator().manual_seed(2))
# Forward, backward, what is saved, inputs, and what the verdict must say.
MISTAKES = {
    "tanh": (torch.tanh, lambda g, y: g * (1 - y), output, (X,), "square forgotten in `tanh`"),
    "sigmoid written out": (lambda x: 1 / (1 + torch.exp(-x)), lambda g, y: g * y, output, (X,), "factor forgotten in `sigmoid`"),
    "exp": (torch.exp, lambda g, x: g * x, inputs, (X,), "in `exp`"),
    "sqrt": (lambda x: (x * x + 1).sqrt(), lambda g, y, x: g * x / (2 * y), lambda y, x: (y, x), (X,), "`"),
    "sine": (torch.sin, lambda g, x: -g * torch.cos(x), inputs, (X,), "in `sin`"),
    "softmax": (lambda x: F.softmax(x, dim=1), lambda g, y: g * y * (1 - y), output, (X,), "softmax treated as diagonal"),
    "cross entropy": (
        lambda x: F.cross_entropy(x, TARGETS), lambda g, x: g * (F.softmax(x, 1) - F.one_hot(TARGETS, 3)), inputs, (X,), "missing 1/n in `cross_entropy`",
    ),
    "a product's transpose": (
        lambda a, b: a @ b, lambda g, a, b: (g @ b, a.t() @ g), inputs, (S, S.flip(0)), "second operand not transposed in `matmul`",
    ),
    "a bias not summed": (lambda x, b: x + b, lambda g, x, b: (g, g[0]), inputs, (X, B), "slice where a sum is due in `add`"),
    "a mean for a sum": (lambda x, b: x * b, lambda g, x, b: (g * b, (g * x).mean(0)), inputs, (X, B), "mean where a sum is due in `mul`"),
    "variance": (lambda x: x.var(0), lambda g, x: g * 2 * (x - x.mean(0)) / 4, inputs, (X,), "wrong correction in `var`"),
    "mean": (torch.mean, lambda g, x: torch.ones_like(x) * g, inputs, (X,), "missing 1/n in `mean`"),
    "an embedding": (
        lambda w: w[torch.tensor([0, 1, 1])], lambda g, w: torch.zeros_like(w).index_copy(0, torch.tensor([0, 1, 1]), g), inputs, (X,),
        "overwritten instead of accumulated",
    ),
    "layer norm": (
        norm, lambda g, x: g / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5), inputs, (X,), "overwritten instead of accumulated",
    ),
    "a use forgotten": (lambda x: x * x, lambda g, x: g * x, inputs, (X,), "overwritten instead of accumulated"),
    "max": (lambda x: x.max(1).values, lambda g, x: g[:, None].expand_as(x).clone(), inputs, (X,), "max"),
    "relu": (lambda x: x.clamp(min=0), lambda g, x: g * (x < 0), inputs, (X,), "clamp"),
    "sum": (lambda x: x.sum(0), lambda g, x: g.expand_as(x) / 4, inputs, (X,), "sum"),
    "minus": (lambda a, b: a - b, lambda g, a, b: (g, g), inputs, (X, X.flip(0)), "in `sub`"),
    "division": (lambda a, b: a / (b * b + 1), lambda g, a, b: (g / (b * b + 1), 2 * b * g * a / (b * b + 1) ** 2), inputs, (X, X.flip(0)), "`div`"),
    "by way of NumPy": (lambda x: torch.from_numpy(x.numpy()).tanh(), lambda g, y: g * (1 - y), output, (X,), "square forgotten in `tanh`"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_functions(name):
    forward, backward, saved, given, said = MISTAKES[name]
    report = cr.torch.gradcheck(function(forward, backward, saved), given)
    assert not report
    assert said in str(report), str(report)
    assert ".rs" not in str(report)


RIGHT = {
    "tanh": (torch.tanh, lambda g, y: g * (1 - y * y), output, (X,)),
    "product": (lambda a, b: a @ b, lambda g, a, b: (g @ b.t(), a.t() @ g), inputs, (X, S)),
    "bias": (lambda x, b: x + b, lambda g, x, b: (g, g.sum(0)), inputs, (X, B)),
    "softmax": (lambda x: F.softmax(x, 1), lambda g, y: y * (g - (g * y).sum(1, keepdim=True)), output, (X,)),
    "by way of NumPy": (lambda x: torch.from_numpy(x.numpy()).tanh(), lambda g, y: g * (1 - y * y), output, (X,)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions(name):
    forward, backward, saved, given = RIGHT[name]
    assert cr.torch.gradcheck(function(forward, backward, saved), given)


class Linear(torch.autograd.Function):
    """The newer form; the mistake is in the gradient that `wrong` names."""

    wrong = ""

    @staticmethod
    def forward(x, w, b):
        return F.linear(x, w, b)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @classmethod
    def backward(cls, ctx, g):
        x, w, b = ctx.saved_tensors
        dx, dw, db = g @ w, g.t() @ x, g.sum(0)
        if cls.wrong == "weight":
            dw = dw * 2
        if cls.wrong == "bias":
            db = g.mean(0)
        return dx, dw, db


class Layer(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.inner = torch.nn.Linear(3, 4)
        self.weight, self.bias = torch.nn.Parameter(torch.randn(5, 4)), torch.nn.Parameter(torch.zeros(5))

    def forward(self, x):
        return self.linear.apply(self.inner(x).tanh(), self.weight, self.bias).sigmoid()


@pytest.mark.parametrize("wrong, said", [("weight", "factor 2 added in `linear`"), ("bias", "mean where a sum is due"), ("", "")])
def test_parameters(wrong, said):
    torch.manual_seed(0)
    layer = Layer(type("Linear", (Linear,), {"wrong": wrong}))
    report = cr.torch.gradcheck(layer, X)
    assert bool(report) == (not wrong)
    if wrong:
        assert f"first that of `{wrong}`" in str(report) and said in str(report), str(report)
    assert layer.weight.dtype == torch.float32 and not hasattr(layer.weight, "_value")


def test_modules_of_torch_are_right():
    torch.manual_seed(0)
    nn = torch.nn
    for module in (
        nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.SiLU()), nn.Bilinear(3, 3, 2),
    ):
        given = (X, X.flip(0)) if isinstance(module, nn.Bilinear) else X
        assert cr.torch.gradcheck(module, given), module


def test_a_reference_of_inputs_and_parameters():
    torch.manual_seed(0)
    layer = Layer(type("Linear", (Linear,), {"wrong": "bias"}))
    names = [n for n, _ in layer.named_parameters()]
    assert names == ["weight", "bias", "inner.weight", "inner.bias"]
    f = cr.nn.functional
    report = cr.torch.gradcheck(layer, X, reference=lambda x, w, b, iw, ib: f.linear(f.linear(x, iw, ib).tanh(), w, b).sigmoid())
    assert not report and "`bias`" in str(report)


TYPED = """
import torch

class Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        p = torch.nn.functional.pad(x * x, (1, 1))
        return p[:, :-2] + p[:, 1:-1] + p[:, 2:]

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
"""


def test_a_line_is_never_one_of_pytorch():
    """Functions of PyTorch call others in its own files."""
    space = {}
    exec(compile(TYPED, "<typed>", "exec"), space)
    text = str(cr.torch.gradcheck(space["Spread"], torch.randn(3, 5)))
    assert "`pad`" in text and "<typed>:8" in text and "overrides" not in text, text
