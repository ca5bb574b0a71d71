"""`cr.torch.gradcheck`: what it takes, kinks, narrow dtypes, second order, and paths through which
no gradient flows.
"""

import chainrule as cr
import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
HERE = "test_torch_gradcheck.py"


def R(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def function(forward, backward):
    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    return Custom


def outcome(fn, inputs, **options):
    report = cr.torch.gradcheck(fn, inputs, **options)
    assert bool(report) == report.passed == (report.outcome == "right")
    assert ".rs" not in str(report) and "site-packages" not in str(report)
    return report


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# ---- what it takes
class Words(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(7, 4), nn.Dropout(dropout)
        self.out = nn.Linear(4, 3)

    def forward(self, ids, targets=None):
        logits = self.out(self.dropout(self.embedding(ids)).tanh().mean(1))
        return logits if targets is None else F.cross_entropy(logits, targets)


IDS, TARGETS = torch.tensor([[0, 1, 1], [6, 2, 0]]), torch.tensor([2, 0])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_integers_and_embeddings(dtype):
    assert outcome(Words(), IDS.to(dtype)).outcome == "right"
    assert outcome(Words(), (IDS.to(dtype), TARGETS)).outcome == "right"
    assert outcome(Words(dropout=0.5), (IDS, TARGETS)).outcome == "right"  # the same mask in each call
    assert outcome(lambda x, y: F.cross_entropy(x, y), (R(2, 3), TARGETS)).outcome == "right"
    assert outcome(lambda x, mask: x.masked_fill(mask, 0.0).exp(), (R(2, 3), R(2, 3, seed=1) > 0)).outcome == "right"
    assert outcome(lambda x, k, how: F.softmax(x * k, how), (R(2, 3), 2, 1)).outcome == "right"
    rows = function(lambda w, i: w[i.long()], lambda g, w, i: (torch.zeros_like(w).index_copy(0, i.long().reshape(-1), g.reshape(-1, 4)), None))
    assert outcome(rows, (R(7, 4), IDS.to(dtype))).outcome == "wrong"


@pytest.mark.parametrize("row", [0, -1])
def test_a_row_of_padding_gets_no_gradient_and_that_is_right(row):
    table = nn.Embedding(7, 4, padding_idx=row)
    report = outcome(nn.Sequential(table, nn.Tanh()), torch.tensor([[0, 1, 6], [6, 2, 0]]))
    assert report.outcome == "right" and f"row {row % 7} of the table of `embedding` gets no gradient" in str(report)

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = table

        def forward(self, ids):
            return function(lambda x: 2 * x, lambda g, x: 3 * g).apply(self.table(ids))

    assert outcome(Twice(), torch.tensor([1, 2])).outcome == "wrong"
    assert outcome(lambda w, i: F.embedding_bag(i, w, padding_idx=row).tanh(), (R(7, 4), torch.tensor([[0, 1], [6, 2]]))).outcome == "right"


def test_what_cannot_be_checked_says_so():
    with pytest.raises(ValueError, match="no float input"):
        cr.torch.gradcheck(lambda i: i * 2, torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="no float tensor"):
        cr.torch.gradcheck(lambda x: x > 0, R(3))
    with pytest.raises(TypeError, match="complex"):
        cr.torch.gradcheck(lambda x: x.abs(), torch.randn(3, dtype=torch.complex64))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 1)])
def test_odd_shapes(shape):
    tanh = function(torch.tanh, lambda g, x: g * (1 - x.tanh() ** 2))
    assert outcome(tanh, R(*shape)).outcome == "right"


# ---- narrow dtypes
class Single(nn.Module):
    """Names float32, so that it does not run in float64."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.w, self.factor = nn.Parameter(R(3, 2)), factor

    def forward(self, x):
        y = function(lambda a, b: a @ b, lambda g, a, b: (g @ b.t(), self.factor * a.t() @ g)).apply(x.to(torch.float32), self.w.to(torch.float32))
        return y @ torch.eye(2, dtype=torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_models_as_they_are(dtype):
    for module in (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())):
        assert outcome(module.to(dtype), R(6, 3, dtype=dtype)).outcome == "right"
        assert module[0].weight.dtype == dtype


def test_code_that_is_float32_by_itself():
    assert outcome(Single(), R(4, 3)).outcome == "right"
    assert outcome(Single(1.05), R(4, 3)).outcome == "wrong"

    def low(g, x):
        return (g.float() * (1 - torch.tanh(x.float()) ** 2)).to(g.dtype)

    assert outcome(function(torch.tanh, low), R(4, 3)).outcome == "right"
    assert outcome(function(torch.tanh, lambda g, x: low(g, x) * 1.001), R(4, 3)).outcome == "wrong"


def test_a_gradient_that_overflows_in_its_own_dtype():
    steep = function(lambda x: (x * 1e-30) * 1e30, lambda g, x: g * (1e30 * 1e30) / (1e30 * torch.full_like(x, 1e30)))
    assert outcome(steep, R(3)).outcome == "wrong"


# ---- second order
def test_second_order():
    cube = function(lambda x: x**3, lambda g, x: 3 * g * x * x)
    assert outcome(cube, R(3), order=2).outcome == "right"
    assert outcome(function(lambda x: x**3, lambda g, x: 3 * g * x.detach() * x), R(3), order=2).outcome == "wrong"
    assert outcome(function(lambda x: x**3, lambda g, x: 3 * g * x.detach() * x), R(3)).outcome == "right"
    assert outcome(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), R(2, 3), order=2).outcome == "right"


# ---- kinks
Z = torch.tensor([[0.0, 1, -1], [0, 2, -2]])
TIE = torch.tensor([[1.0, 1, 0], [2, 3, 3]])
KINKS = {
    "relu with 1": (torch.relu, lambda g, x: g * (x >= 0), Z),
    "relu with a half": (torch.relu, lambda g, x: g * ((x > 0).to(g) + 0.5 * (x == 0).to(g)), Z),
    "abs with 1": (torch.abs, lambda g, x: g * torch.where(x >= 0, 1.0, -1.0).to(g), Z),
    "clamp with 0 at its bounds": (lambda x: x.clamp(-1, 1), lambda g, x: g * ((x > -1) & (x < 1)), Z),
    "clamp with a half at its bounds": (lambda x: x.clamp(-1, 1), lambda g, x: g * ((x.abs() < 1).to(g) + 0.5 * (x.abs() == 1).to(g)), Z),
    "the last of two largest": (lambda x: x.max(1).values, lambda g, x: g[:, None] * F.one_hot(2 - x.flip(1).argmax(1), 3).to(g), TIE),
    "two largest share": (lambda x: x.amax(1), lambda g, x: g[:, None] * (m := (x == x.amax(1, keepdim=True)).to(g)) / m.sum(1, keepdim=True), TIE),
    "leaky relu": (lambda x: F.leaky_relu(x, 0.1), lambda g, x: g * torch.where(x >= 0, 1.0, 0.1).to(g), Z),
    "softshrink": (lambda x: F.softshrink(x, 1.0), lambda g, x: g * (x.abs() >= 1), Z),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", KINKS)
def test_another_slope_at_a_kink_is_a_kink(name, dtype):
    forward, backward, x = KINKS[name]
    report = outcome(function(forward, backward), x.to(dtype))
    assert report.outcome == "right" and "kink" in str(report)
    # Beside the kink it must be right all the same.
    assert outcome(function(forward, lambda g, x: backward(g, x) * 1.01), x.to(dtype)).outcome == "wrong"


WILD = {
    "relu with 5": (torch.relu, lambda g, x: g * ((x > 0).to(g) + 5.0 * (x == 0).to(g)), Z),
    "relu with -1/10": (torch.relu, lambda g, x: g * ((x > 0).to(g) - 0.1 * (x == 0).to(g)), Z),
    "abs with 2": (torch.abs, lambda g, x: g * (x.sign() + 2.0 * (x == 0).to(g)), Z),
    "the two largest both": (lambda x: x.amax(1), lambda g, x: 3 * g[:, None] * (x == x.amax(1, keepdim=True)).to(g) * torch.tensor([[1.0], [1 / 3]]).to(g), TIE),
}


@pytest.mark.parametrize("name", WILD)
def test_a_slope_that_is_on_no_side_of_a_kink_is_wrong(name):
    forward, backward, x = WILD[name]
    assert outcome(function(forward, backward), x).outcome == "wrong"


def test_where_many_kinks_add_up_a_usual_slope_is_right():
    layer = function(lambda x, w: torch.relu(x @ w), lambda g, x, w: ((g * (x @ w > 0)) @ w.t(), x.t() @ (g * (x @ w > 0))))
    assert outcome(layer, (torch.zeros(3, 4), R(4, 5))).outcome == "right"


# ---- gradients too small for differences
@pytest.mark.parametrize("factor, said", [(1.0, "right"), (0.0, "wrong"), (-1.0, "wrong"), (2.0, "wrong")])
def test_a_tiny_gradient_is_judged_by_its_own_size(factor, said):
    def tiny(x, w):
        return x.sum() + 1e-19 * (w**2).sum()

    fn = function(tiny, lambda g, x, w: (g * torch.ones_like(x), factor * 2e-19 * g * w))
    assert outcome(fn, (R(3), R(4))).outcome == said


def test_what_only_rounding_leaves_is_nothing():
    """The sum of a softmax is 1, so its gradient is rounding; zeros are as right."""
    ones = function(lambda x: x.softmax(1).sum(1), lambda g, x: torch.zeros_like(x))
    assert outcome(ones, R(4, 3)).outcome == "right"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_backward_that_is_wrong_in_a_narrow_dtype_alone(dtype):
    for factor, said in ((1.0, "right"), (2.0, "wrong"), (0.0, "wrong")):
        fn = function(torch.tanh, lambda g, x: g * (1 - torch.tanh(x) ** 2) * (factor if x.dtype == dtype else 1.0))  # noqa: B023
        assert outcome(fn, R(6, 5, dtype=dtype)).outcome == said


# ---- paths through which no gradient flows
class Net(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.path, self.inner = path, nn.Linear(3, 3)

    def forward(self, x):
        h = self.inner(x).tanh()
        return h * self.path(h) + h


@torch.no_grad()
def spread(h):
    return h.square().mean()


def silent(h):
    with torch.no_grad():
        m = h.exp()
        m = m * 2
    return m


CUTS = {
    "detach": (lambda h: h.detach().sin(), "detach()"),
    "torch.detach": (lambda h: torch.detach(h).exp(), "detach()"),
    ".data": (lambda h: h.data.exp(), ".data"),
    ".item()": (lambda h: h.sum().item(), ".item()"),
    "float()": (lambda h: float(h.mean()), "float()"),
    "no_grad": (silent, "no_grad"),
    "a function without gradients": (spread, "no_grad"),
    "torch.tensor of a tensor": (lambda h: torch.tensor(h.detach().mean()) + torch.tensor(h.mean()).exp(), "torch.tensor()"),
    "new_tensor": (lambda h: h.new_tensor(h.mean()).exp(), "new_tensor()"),
    "numbers in a list": (lambda h: torch.tensor([float(v) for v in h.sum(1)])[:, None], "float()"),
    "a straight-through estimator": (lambda h: h + ((h * 4).round() / 4 - h).detach(), "straight-through"),
    "the same by .data": (lambda h: h + (h.sign() - h).data, "straight-through"),
}


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.parametrize("name", CUTS)
def test_a_path_without_a_gradient_is_told_with_its_line(name):
    path, said = CUTS[name]
    report = outcome(Net(path), R(4, 3))
    text = str(report)
    assert report.outcome == "wrong" and said in text and "no gradient flows through" in text and HERE in text, text
    if name not in ("float()", ".item()"):
        assert "`inner.weight`" in text or "inner.weight" in text, text
        assert " loses " in text


def test_the_size_of_what_is_lost_is_that_of_the_path():
    report = str(outcome(lambda x: x * 3 + x.detach() * 2, R(4)))
    assert "40% of it" in report and "detach()" in report and "all else of the backward pass is right" in report


def test_a_detach_through_which_nothing_would_flow_is_right():
    def stable(x):
        e = (x - x.max(1, keepdim=True).values.detach()).exp()
        return e / e.sum(1, keepdim=True)

    assert outcome(stable, R(4, 3)).outcome == "right"
    assert outcome(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), R(6, 3)).outcome == "right"  # running statistics


def test_a_mistake_beside_a_cut_is_told_too():
    wrong = function(torch.tanh, lambda g, x: g * (1 - x.tanh()))
    report = outcome(lambda x: wrong.apply(x) + x.detach() ** 2, R(4))
    assert report.outcome == "wrong" and "detach()" in str(report) and "WRONG" in str(report)


# ---- random, not linear, special points
def test_random_and_nonlinear_backwards():
    report = outcome(function(lambda x: x * 2, lambda g, x: 4 * g * (torch.rand_like(g) < 0.5)), R(3, 4))
    assert report.outcome == "wrong" and "random" in str(report)
    for rule in (torch.abs, lambda g: g.clamp(min=0), lambda g: g.clamp(-3, 3), lambda g: g / (g.norm() + 1e-9)):
        for shape in ((), (1,), (3,)):
            report = outcome(function(lambda x: x.clone(), lambda g, x: rule(g)), R(*shape))
            assert report.outcome == "wrong" and "not linear" in str(report)


def test_zero_initialised_parameters():
    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, b):
            z = x + b
            m, s = z.mean(0), (z.var(0, unbiased=False) + 1e-5).sqrt()
            y = (z - m) / s
            ctx.save_for_backward(y, s)
            return y

        @staticmethod
        def backward(ctx, g):
            y, s = ctx.saved_tensors
            return (g - g.mean(0) - y * (g * y).mean(0)) / s, g.sum(0)

    assert outcome(Norm, (R(8, 3), torch.zeros(3))).outcome == "wrong"
    report = outcome(function(torch.sin, lambda g, x: g), torch.zeros(3))
    assert report.outcome == "wrong", report


@pytest.mark.parametrize("rows, threads", [(4, 1), (20_000, 2)])
def test_small_functions_are_checked_on_one_thread(rows, threads):
    """Waking threads for each of thousands of small ops takes longer than the ops."""
    seen, before = set(), torch.get_num_threads()

    def f(x):
        seen.add(torch.get_num_threads())
        return x.tanh()

    torch.set_num_threads(2)
    try:
        assert cr.torch.gradcheck(f, torch.randn(rows, 3))
        assert min(seen) <= threads and threads in seen and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
