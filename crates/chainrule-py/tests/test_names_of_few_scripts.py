"""Names that few scripts use, beside PyTorch's."""

import importlib

import chainrule as cr
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def flat(x):
    """All numbers of a result, and then of its parts."""
    if hasattr(x, "detach"):
        return [np.asarray(x.detach().tolist(), dtype=float)]
    if isinstance(x, (list, tuple)):
        return [y for part in x for y in flat(part)]
    return [] if x is None else [np.asarray(x, dtype=float)]


def same(f, tolerance=1e-12):
    for ours, theirs in zip(flat(f(cr)), flat(f(torch)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 5, 3)])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_reflections(shape, left, transpose):
    def f(m):
        a, tau = m.geqrf(m.tensor(array(*shape)))
        b = m.tensor(array(*shape[:-2], *((shape[-2], 2) if left else (2, shape[-2])), seed=1))
        return a, tau, m.ormqr(a, tau, b, left, transpose)

    same(f)


def test_histograms_over_axes():
    def f(m):
        x, w = m.tensor(array(50, 2)), m.tensor(np.abs(array(50)))
        edges = [m.linspace(-2, 2, 5, dtype=m.float64), m.linspace(-1, 1, 3, dtype=m.float64)]
        return m.histogramdd(x, [3, 4]), m.histogramdd(x, edges, weight=w), m.histogramdd(x, [2, 2], range=[-1.0, 1.0, -2.0, 2.0], density=True)

    same(f)
    assert cr.histogramdd(cr.randn(9, 2), [2, 2]).hist.shape == (2, 2)


def test_places_in_memory():
    for order in ((0, 2, 1), (2, 0, 1), (1, 2, 0)):
        ours, theirs = (m.empty_permuted((2, 3, 4), order) for m in (cr, torch))
        assert tuple(ours.shape) == (2, 3, 4) and ours.stride() == theirs.stride()
    with pytest.raises(ValueError, match="no order"):
        cr.empty_permuted((2, 3), (0, 0))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN_tanh", "RNN_relu"])
@pytest.mark.parametrize("options", [(True, 1, False, False), (False, 2, True, False), (True, 2, True, True)])
def test_recurrent_layers_as_functions(kind, options):
    bias, layers, both, first = options

    def f(m):
        name, _, nonlinearity = kind.partition("_")
        more = {"nonlinearity": nonlinearity} if nonlinearity else {}
        layer = getattr(m.nn, name)(3, 4, layers, bias=bias, bidirectional=both, batch_first=first, **more).double()
        params = [m.tensor(array(*p.shape, seed=i), requires_grad=True) for i, p in enumerate(layer.parameters())]
        x = m.tensor(array(5, 5, 3), requires_grad=True)
        h = m.tensor(array(layers * (1 + both), 5, 4))
        before = m.get_rng_state().sum()
        out = getattr(m, kind.lower())(x, (h, h * 0.5) if name == "LSTM" else h, params, bias, layers, 0.0, True, both, first)
        assert (m.get_rng_state().sum() == before).item()
        sum((o * o).sum() for o in out).backward()
        return *out, x.grad, *(p.grad for p in params)

    same(f, 1e-10)


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_with_its_weights_given(separate, need_weights):
    def f(m):
        q, k, v = (m.tensor(array(n, 2, 8, seed=i), requires_grad=True) for i, n in enumerate((3, 5, 5)))
        weights = [m.tensor(array(8, 8, seed=5 + i) / 3, requires_grad=True) for i in range(4)]
        bias = m.tensor(array(24, seed=9))
        whole = None if separate else m.cat(weights[:3])
        apart = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weights)) if separate else {}
        padding = m.tensor([[False] * 5, [False, False, False, True, True]])
        out, seen = m.nn.functional.multi_head_attention_forward(
            q, k, v, 8, 2, whole, bias, None, None, False, 0.0, weights[3], bias[:8], True, padding, need_weights, None, separate, **apart
        )
        (out * out).sum().backward()
        return out, seen, q.grad, v.grad, *(w.grad for w in weights)

    same(f, 1e-10)
    with pytest.raises(ValueError, match="in 3 heads"):
        cr.nn.functional.multi_head_attention_forward(cr.ones(1, 1, 8), cr.ones(1, 1, 8), cr.ones(1, 1, 8), 8, 3, None, None, None, None, False, 0.0, cr.ones(8, 8), None)


def test_pools_with_their_places():
    def f(m):
        F, x = m.nn.functional, m.tensor(array(2, 3, 6, 6))
        volume = m.tensor(array(1, 2, 4, 4, 4))
        return F.max_pool1d_with_indices(x[0], 2), F.max_pool2d_with_indices(x, 2, stride=1), F.max_pool3d_with_indices(volume, 2), F.adaptive_max_pool2d_with_indices(x, (2, 3))

    same(f)


def test_functions_and_layers_under_other_names():
    def f(m):
        x = m.tensor(array(2, 4, 3, 3))
        points = m.tensor([-3.0, -0.5, 0.0, 0.1, 2.0, 9.0], dtype=m.float64)
        special = m.special
        lrn = m.nn.CrossMapLRN2d(2, 0.1, 0.7, 1.5) if m is cr else m.nn.LocalResponseNorm(2, 0.1, 0.7, 1.5)
        y = m.tensor(np.random.default_rng(1).integers(0, 4, (2, 3, 3)))
        return (
            m.native_channel_shuffle(x, 2), m.nn.functional.native_channel_shuffle(x, 2), lrn(x), m.nn.NLLLoss()(x, y) if m is torch else m.nn.NLLLoss2d()(x, y),
            special.modified_bessel_i0(points), special.modified_bessel_i1(points), special.spherical_bessel_j0(points),
            cr.cond(m.tensor(True), lambda t: t + 1, lambda t: t - 1, (x,)), m.is_distributed(x), m.cpu.device_count(), m.xpu.is_available(),
        )

    same(f, 1e-10)


def test_a_condition_in_a_compiled_function():
    f = cr.compile(lambda x: cr.cond(x.sum() > 0, lambda t: t * 2, lambda t: -t, (x,)))
    assert f(cr.ones(2)).tolist() == [2, 2] and f(-cr.ones(2)).tolist() == [1, 1] and "read inside a trace" in f.eager


def test_constraints_of_parts():
    def f(m):
        c = m.distributions.constraints
        x = m.tensor([[0.5, -1.0, 2.0], [3.0, -2.0, 4.0]])
        return c.cat([c.positive, c.real], dim=1, lengths=[1, 2]).check(x), c.stack([c.positive, c.real, c.unit_interval], dim=1).check(x), c.stack([c.real, c.positive]).check(x)

    same(f)


# Whether a layer is one of PyTorch's common classes.
CLASSES = [
    ("dropout", "_DropoutNd", ("Dropout", "Dropout2d", "AlphaDropout", "Linear")), ("batchnorm", "_NormBase", ("BatchNorm1d", "InstanceNorm2d", "LayerNorm")),
    ("instancenorm", "_InstanceNorm", ("BatchNorm1d", "InstanceNorm2d")), ("pooling", "_MaxPoolNd", ("MaxPool2d", "AvgPool2d")),
    ("pooling", "_AvgPoolNd", ("MaxPool2d", "AvgPool3d")), ("conv", "_ConvTransposeNd", ("Conv2d", "ConvTranspose2d")), ("rnn", "RNNCellBase", ("GRUCell", "LSTMCell", "GRU")),
]


@pytest.mark.parametrize("module, name, layers", CLASSES, ids=lambda x: x if isinstance(x, str) else "")
def test_common_classes(module, name, layers):
    def f(m):
        base = getattr(importlib.import_module(f"{m.__name__}.nn.modules.{module}"), name)
        return [issubclass(getattr(m.nn, layer), base) for layer in layers]

    assert f(cr) == f(torch)


def test_a_loss_with_weights_of_ones_own():
    def f(m):
        base = importlib.import_module(f"{m.__name__}.nn.modules.loss")._WeightedLoss

        class Focal(base):
            def forward(self, x, y):
                loss = m.nn.functional.cross_entropy(x, y, self.weight, reduction="none")
                return getattr((1 - (-loss).exp()) ** 2 * loss, self.reduction)()

        loss = Focal(m.tensor([1.0, 2.0, 0.5], dtype=m.float64), reduction="sum")
        return loss(m.tensor(array(4, 3)), m.tensor([0, 1, 2, 1])), list(loss.state_dict().values())

    same(f)


def test_names_that_are_others_here():
    from chainrule.amp.autocast_mode import autocast
    from chainrule.amp.grad_scaler import GradScaler
    from chainrule.nn.common_types import _size_2_t
    from chainrule.nn.modules.utils import _reverse_repeat_tuple
    from chainrule.optim.optimizer import _use_grad_for_differentiable

    assert autocast is cr.amp.autocast and GradScaler is cr.amp.GradScaler and _size_2_t
    assert _reverse_repeat_tuple((1, 2), 2) == torch.nn.modules.utils._reverse_repeat_tuple((1, 2), 2)
    assert cr.return_types.max is type(cr.ones(2).max(0)) and cr.get_device_module() is cr.cpu
    assert cr.autograd.function.InplaceFunction is cr.autograd.Function and cr.compiler.allow_in_graph(len) is len
    w = cr.ones(2, requires_grad=True)

    class Plain(cr.optim.Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad)

    (w * w).sum().backward()
    Plain([w], {}).step()
    assert w.tolist() == [-1, -1]
    before = cr.is_anomaly_enabled()
    cr.set_anomaly_enabled(True)
    assert cr.is_anomaly_enabled()
    cr.set_anomaly_enabled(before)
    g = cr.Generator().manual_seed(3)
    cr.rand(2, generator=g)
    h = g.clone_state()
    assert cr.equal(cr.rand(3, generator=g), cr.rand(3, generator=h))


def test_sums_of_products_by_the_numbers_of_axes():
    a, b, c = array(2, 3), array(3, 4), array(5, 3, 3)
    same(lambda m: m.einsum(m.tensor(a), [0, 1], m.tensor(b), [1, 2], [0, 2]))
    same(lambda m: m.einsum(m.tensor(a), [0, 30], m.tensor(b), [30, 2]))
    same(lambda m: (m.einsum(m.tensor(c), [..., 1, 1], [...]), m.einsum(m.tensor(a), [1, 0])))
    same(lambda m: m.einsum("ij,jk", [m.tensor(a), m.tensor(b)]))
    with pytest.raises(ValueError, match="from 0 to 51"):
        cr.einsum(cr.ones(2), [60])
