"""Values and gradients beside PyTorch's: f64, random shapes, broadcasting, views."""

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
TF = torch.nn.functional

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
seeds = st.integers(0, 2**31)
quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))

UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1 floor frac log log10 log1p log2 neg reciprocal relu rsqrt
sigmoid sign sin sinh sqrt square tan tanh trunc round nan_to_num isnan isinf isfinite logical_not selu
""".split()
BINARY = """
add sub mul div atan2 copysign fmod floor_divide hypot logaddexp maximum minimum remainder pow eq ne lt le gt ge logical_and logical_or
""".split()
REDUCTIONS = "sum mean prod amax amin logsumexp any all".split()
ACTIVATIONS = """
relu relu6 leaky_relu elu celu selu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish sigmoid tanh logsigmoid
""".split()


def numbers(seed, shape, low=-2.0, high=2.0):
    a = np.random.default_rng(seed).uniform(low, high, shape)
    return a + 0.05 * np.sign(a)


def check(ours, theirs, arrays, rtol=1e-9):
    x = [cr.tensor(a, requires_grad=True) for a in arrays]
    y = [torch.tensor(a, requires_grad=True) for a in arrays]
    a, b = ours(*x), theirs(*y)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-12)
    assert a.dtype.name == str(b.dtype).removeprefix("torch.")
    if not (a.requires_grad and b.requires_grad):  # floor_divide has a gradient in neither
        return
    up = np.random.default_rng(7).normal(size=tuple(b.shape))
    (a * cr.tensor(up)).sum().backward()
    (b * torch.tensor(up)).sum().backward()
    for p, q in zip(x, y):
        want = torch.zeros_like(q) if q.grad is None else q.grad
        got = cr.zeros_like(p) if p.grad is None else p.grad
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", UNARY)
@quick
@given(shape=shapes, seed=seeds, transposed=st.booleans())
def test_unary(name, shape, seed, transposed):
    low, high = {"acosh": (1.1, 4), "log": (0.1, 3), "log2": (0.1, 3), "log10": (0.1, 3), "sqrt": (0.1, 3), "rsqrt": (0.1, 3)}.get(name, (-0.9, 0.9))
    a = numbers(seed, shape, low, high)
    turn = (lambda t: t.T) if transposed and len(shape) == 2 else (lambda t: t)
    check(lambda t: getattr(cr, name)(turn(t)), lambda t: getattr(torch, name)(turn(t)), [a])


@pytest.mark.parametrize("name", BINARY)
@quick
@given(shape=shapes, seed=seeds, which=st.sampled_from("ab="))
def test_binary(name, shape, seed, which):
    low = 0.1 if name == "pow" else -2.0
    small = tuple(1 if i % 2 else n for i, n in enumerate(shape))[len(shape) // 2 :]
    a, b = numbers(seed, shape, low), numbers(seed + 1, shape if which == "=" else small, low)
    pair = [b, a] if which == "b" else [a, b]
    check(getattr(cr, name), getattr(torch, name), pair)


@pytest.mark.parametrize("name", REDUCTIONS)
@quick
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), seed=seeds, keepdim=st.booleans(), data=st.data())
def test_reductions(name, shape, seed, keepdim, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    a = numbers(seed, shape)
    check(lambda t: getattr(t, name)(dim, keepdim), lambda t: getattr(t, name)(dim, keepdim), [a])
    if name in ("sum", "mean", "amax", "amin"):
        both = tuple(range(len(shape)))
        check(lambda t: getattr(t, name)(both), lambda t: getattr(t, name)(both), [a])


@pytest.mark.parametrize("name", ACTIVATIONS)
@quick
@given(shape=shapes, seed=seeds)
def test_activations(name, shape, seed):
    check(getattr(F, name), getattr(TF, name), [numbers(seed, shape, -4, 4)])


SHAPED = {
    "softmax": lambda m, t: t.softmax(-1), "log_softmax": lambda m, t: t.log_softmax(0), "var": lambda m, t: t.var(0), "std": lambda m, t: t.std(-1, keepdim=True),
    "norm": lambda m, t: t.norm(), "cumsum": lambda m, t: t.cumsum(0), "cumprod": lambda m, t: t.cumprod(1), "max": lambda m, t: t.max(1).values,
    "min": lambda m, t: t.min(0)[0], "median": lambda m, t: t.median(1).values, "sort": lambda m, t: t.sort(0, descending=True).values, "topk": lambda m, t: t.topk(2, 1).values,
    "flip": lambda m, t: t.flip(0, 1), "roll": lambda m, t: t.roll(1, 0), "roll_flat": lambda m, t: t.roll(2), "tril": lambda m, t: t.tril(-1), "triu": lambda m, t: t.triu(1),
    "diag": lambda m, t: t.diag(), "diagonal": lambda m, t: t.diagonal(1), "trace": lambda m, t: t.trace(), "repeat": lambda m, t: t.repeat(2, 1), "tile": lambda m, t: t.tile(2, 2),
    "repeat_interleave": lambda m, t: t.repeat_interleave(2, 1), "unfold": lambda m, t: t.unfold(0, 2, 1), "narrow": lambda m, t: t.narrow(1, 1, 2), "select": lambda m, t: t.select(1, 2),
    "chunk": lambda m, t: t.chunk(2, 0)[1], "split": lambda m, t: t.split([1, 3], 0)[1], "unbind": lambda m, t: t.unbind(1)[0], "movedim": lambda m, t: t.movedim(0, 1),
    "flatten": lambda m, t: t.flatten(), "unflatten": lambda m, t: t.unflatten(0, (2, 2)), "expand": lambda m, t: t.unsqueeze(0).expand(3, -1, -1), "squeeze": lambda m, t: t[:1].squeeze(),
    "gather": lambda m, t: t.gather(1, m.tensor([[0, 1], [2, 2], [0, 0], [1, 2]])), "index_select": lambda m, t: t.index_select(0, m.tensor([1, 1, 3])),
    "masked_fill": lambda m, t: t.masked_fill(t > 0, 5.0), "masked_select": lambda m, t: t.masked_select(t > 0), "where": lambda m, t: m.where(t > 0, t, -t), "take": lambda m, t: t.take(m.tensor([0, 5])),
    "scatter_add": lambda m, t: t.scatter_add(0, m.tensor([[0, 1, 2]]), t[:1]), "index_add": lambda m, t: t.index_add(0, m.tensor([0, 0]), t[1:3]), "clamp": lambda m, t: t.clamp(-0.5, 0.7),
    "cat": lambda m, t: m.cat([t, t * 2], 1), "stack": lambda m, t: m.stack([t, t * 2], -1), "einsum": lambda m, t: m.einsum("ij,kj->ik", t, t), "matmul": lambda m, t: t @ t.T,
    "outer": lambda m, t: m.outer(t[0], t[1]), "dot": lambda m, t: t[0].dot(t[1]), "tensordot": lambda m, t: m.tensordot(t, t, dims=([1], [1])), "addmm": lambda m, t: m.addmm(t @ t.T, t, t.T, beta=0.5),
    "kron": lambda m, t: m.kron(t[:2], t[2:]), "lerp": lambda m, t: m.lerp(t[0], t[1], 0.3), "addcmul": lambda m, t: m.addcmul(t, t, t, value=0.5), "logcumsumexp": lambda m, t: t.logcumsumexp(1),
    "cummax": lambda m, t: t.cummax(0).values, "cross": lambda m, t: m.cross(t, t.flip(0), 1), "hstack": lambda m, t: m.hstack([t, t]), "vstack": lambda m, t: m.vstack([t, t]),
    "pow": lambda m, t: t**3 + 2**t + t.abs() ** 0.5, "scalars": lambda m, t: 2 - t / 3 + 1 / (t + 5), "mod": lambda m, t: t % 0.3, "floor": lambda m, t: t // 0.3,
}


@pytest.mark.parametrize("name", SHAPED)
def test_shaped(name):
    check(lambda t: SHAPED[name](cr, t), lambda t: SHAPED[name](torch, t), [numbers(3, (4, 3))])


X, W = (2, 4, 6, 6), (4, 2, 3, 3)
LAYERS = {
    "linear": (lambda f, x, w, b: f.linear(x, w, b), [(3, 4), (5, 4), (5,)]), "conv2d": (lambda f, x, w: f.conv2d(x, w, stride=2, padding=1, groups=2), [X, W]),
    "conv1d": (lambda f, x, w: f.conv1d(x, w, padding=1, dilation=2), [(2, 3, 9), (4, 3, 3)]), "conv_transpose2d": (lambda f, x, w: f.conv_transpose2d(x, w, stride=2, padding=1), [X, (4, 2, 3, 3)]),
    "max_pool2d": (lambda f, x: f.max_pool2d(x, 2), [X]), "avg_pool2d": (lambda f, x: f.avg_pool2d(x, 3, 2, 1), [X]), "avg_pool1d": (lambda f, x: f.avg_pool1d(x, 2), [(2, 3, 8)]),
    "adaptive": (lambda f, x: f.adaptive_avg_pool2d(x, 2), [X]), "pad": (lambda f, x: f.pad(x, (1, 2), value=3.0), [(2, 3)]), "reflect": (lambda f, x: f.pad(x, (1, 2), mode="reflect"), [(2, 3, 5)]),
    "layer_norm": (lambda f, x, w, b: f.layer_norm(x, (4,), w, b), [(3, 4), (4,), (4,)]), "group_norm": (lambda f, x, w, b: f.group_norm(x, 2, w, b), [(2, 4, 3), (4,), (4,)]),
    "rms_norm": (lambda f, x, w: f.rms_norm(x, (4,), w), [(3, 4), (4,)]), "batch_norm": (lambda f, x, w, b: f.batch_norm(x, None, None, w, b, training=True), [(6, 4), (4,), (4,)]),
    "instance_norm": (lambda f, x: f.instance_norm(x), [(2, 3, 5)]), "mse": (lambda f, x, y: f.mse_loss(x, y), [(3, 4), (3, 4)]), "l1": (lambda f, x, y: f.l1_loss(x, y, reduction="sum"), [(3, 4), (3, 4)]),
    "smooth": (lambda f, x, y: f.smooth_l1_loss(x, y, reduction="none"), [(3, 4), (3, 4)]), "huber": (lambda f, x, y: f.huber_loss(x, y, delta=0.7), [(3, 4), (3, 4)]),
    "bce": (lambda f, x, y: f.binary_cross_entropy_with_logits(x, y.sigmoid()), [(3, 4), (3, 4)]), "kl": (lambda f, x, y: f.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), [(3, 4), (3, 4)]),
    "cosine": (lambda f, x, y: f.cosine_similarity(x, y), [(3, 4), (3, 4)]), "attention": (lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 2, 5, 4)] * 3),
    "glu": (lambda f, x: f.glu(x), [(3, 4)]), "normalize": (lambda f, x: f.normalize(x), [(3, 4)]), "softmin": (lambda f, x: f.softmin(x, dim=1), [(3, 4)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    f, shapes = LAYERS[name]
    check(lambda *t: f(F, *t), lambda *t: f(TF, *t), [numbers(i, s) for i, s in enumerate(shapes)], rtol=1e-7)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 1}])
def test_cross_entropy(options):
    y = np.array([0, 3, 1, 2])
    check(lambda x: F.cross_entropy(x, cr.tensor(y), **options), lambda x: TF.cross_entropy(x, torch.tensor(y), **options), [numbers(0, (4, 5))])


@pytest.mark.parametrize("seed", range(3))
def test_random_numbers(seed):
    cr.manual_seed(seed)
    torch.manual_seed(seed)
    np.testing.assert_array_equal(cr.rand(20).numpy(), torch.rand(20).numpy())
    np.testing.assert_array_equal(cr.randint(0, 100, (30,)).numpy(), torch.randint(0, 100, (30,)).numpy())
    np.testing.assert_array_equal(cr.randperm(20).numpy(), torch.randperm(20).numpy())
    np.testing.assert_allclose(cr.randn(40).numpy(), torch.randn(40).numpy(), rtol=1e-6)
    p = torch.rand(5)
    cr.manual_seed(seed)
    torch.manual_seed(seed)
    np.testing.assert_array_equal(cr.multinomial(cr.tensor(p.numpy()), 3).numpy(), torch.multinomial(p, 3).numpy())


def test_printing_is_that_of_torch():
    for a in (np.arange(12.0).reshape(3, 4) / 7, np.array([1e-7, 1.0]), np.array([1e9, 2.0]), np.arange(3), np.array([True, False]), np.zeros((2, 2)), np.array([np.nan, 1.5, np.inf]), np.arange(2000)):
        a = a.astype("float32") if a.dtype == "float64" else a
        assert repr(cr.tensor(a)) == repr(torch.tensor(a))
