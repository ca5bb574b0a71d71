"""Modules, optimizers, compiled steps, checks."""

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np
import pytest


def net():
    cr.manual_seed(0)
    return cr.nn.Sequential(cr.nn.Linear(4, 8), cr.nn.Tanh(), cr.nn.Linear(8, 3))


OPTIMIZERS = [
    (cr.optim.SGD, dict(lr=0.1)), (cr.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)), (cr.optim.Adam, dict(lr=0.01)),
    (cr.optim.AdamW, dict(lr=0.01)), (cr.optim.RMSprop, dict(lr=0.01)), (cr.optim.Adagrad, dict(lr=0.1)),
]


@pytest.mark.parametrize("kind, options", OPTIMIZERS)
def test_optimizers_as_torch(kind, options):
    torch = pytest.importorskip("torch")
    ours = net()
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    theirs.load_state_dict(cr.io.to_torch(ours.state_dict()))
    a, b = kind(ours.parameters(), **options), getattr(torch.optim, kind.__name__)(theirs.parameters(), **options)
    x, y = np.random.randn(6, 4).astype("float32"), np.array([0, 1, 2, 0, 1, 2])
    for _ in range(5):
        a.zero_grad()
        b.zero_grad()
        F.cross_entropy(ours(cr.tensor(x)), cr.tensor(y)).backward()
        torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(y)).backward()
        a.step()
        b.step()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), atol=2e-5)


def test_initial_values_are_those_of_torch():
    torch = pytest.importorskip("torch")
    cr.manual_seed(3)
    torch.manual_seed(3)
    for ours, theirs in ((cr.nn.Linear(5, 7), torch.nn.Linear(5, 7)), (cr.nn.Embedding(4, 3), torch.nn.Embedding(4, 3))):
        for p, q in zip(ours.parameters(), theirs.parameters()):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6)


def test_modules():
    m = net()
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert "Linear(in_features=4" in repr(m)
    state = m.state_dict()
    other = net()
    with cr.no_grad():
        for p in other.parameters():
            p.zero_()
    other.load_state_dict(state)
    x = cr.randn(2, 4)
    assert cr.equal(m(x), other(x))
    with pytest.raises(ValueError, match="missing"):
        m.load_state_dict({})
    m.eval()
    assert not m[0].training
    assert m.double()[0].weight.dtype == cr.float64


def test_groups_and_schedules():
    m = net()
    opt = cr.optim.SGD([{"params": m[0].parameters()}, {"params": m[2].parameters(), "lr": 0.5}], lr=0.1)
    schedule = cr.optim.lr_scheduler.StepLR(opt, 2, 0.1)
    rates = []
    for _ in range(3):
        opt.zero_grad()
        m(cr.randn(2, 4)).sum().backward()
        opt.step()
        schedule.step()
        rates.append(schedule.get_last_lr())
    np.testing.assert_allclose(rates, [[0.1, 0.5], [0.01, 0.05], [0.01, 0.05]])
    opt.load_state_dict(opt.state_dict())
    with pytest.raises(ValueError):
        cr.optim.SGD([])


def test_compile():
    m, n = net(), net()
    opts = [cr.optim.SGD(t.parameters(), lr=0.1) for t in (m, n)]
    x, y = cr.randn(6, 4), cr.tensor([0, 1, 2, 0, 1, 2])

    def step(model, opt):
        def run(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss

        return run

    eager, compiled = step(m, opts[0]), cr.compile(step(n, opts[1]))
    for _ in range(4):
        assert eager(x, y).item() == pytest.approx(compiled(x, y).item(), rel=1e-6)
    # Neither simplified nor fused, the steps are those of the eager mode, bit for bit.
    o = net()
    plain = cr.compile(simplify=False, fuse=False)(step(o, cr.optim.SGD(o.parameters(), lr=0.1)))
    p = net()
    eager = step(p, cr.optim.SGD(p.parameters(), lr=0.1))
    for _ in range(4):
        assert eager(x, y).item() == plain(x, y).item()
    assert "\n  fused\n" in compiled.listing and "\n  fused\n" not in plain.listing
    assert "cross_entropy" in compiled.listing and "def " in compiled.to_python()
    assert "import torch" in compiled.to_python("torch") and "jnp." in compiled.to_python("jax")
    with pytest.raises(ValueError, match="numpy, torch or jax"):
        compiled.to_python("theano")
    assert "__global__ void k00_" in compiled.to_cuda() and "@compute" in compiled.to_wgsl()
    losses = compiled.run_many(cr.stack([x] * 3), cr.stack([y] * 3))
    assert losses.shape == (3,)
    with pytest.raises(TypeError):
        compiled(1.0)
    with pytest.raises(ZeroDivisionError):
        cr.compile(lambda t: 1 / 0)(x)


def test_checks():
    x = cr.tensor([0.3, -1.2, 2.0], dtype=cr.float64)
    assert cr.check.gradcheck(lambda t: t.tanh(), x)

    class Squash(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * (1 - y)

    assert not cr.check.gradcheck(Squash.apply, x)
    report = cr.check.explain(Squash.apply, x, reference=lambda t: t.tanh())
    assert not report and "square forgotten" in str(report)
    assert not cr.check.explain(Squash.apply, x)
    assert cr.check.explain(lambda t: t.tanh(), x)
    w = cr.tensor([1.0, 2.0], requires_grad=True).named("w")
    loss = (w * w).sum()
    assert cr.check.compare(loss, {"w": 2 * w.detach()})
    loss = (w * w).sum()
    assert not cr.check.compare(loss, {"w": w.detach()})


def test_torch_interop():
    torch = pytest.importorskip("torch")

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * (1 - ctx.saved_tensors[0])

    x = torch.randn(4, dtype=torch.float64)
    assert cr.torch.gradcheck(torch.tanh, x)
    report = cr.torch.gradcheck(Wrong, x, reference=lambda t: t.tanh())
    assert not report and "square forgotten" in str(report)
    assert not cr.torch.gradcheck(Wrong, x)
    f = cr.torch.wrap(lambda a, b: (a * b).tanh())
    inputs = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(f, inputs)
    both = cr.torch.wrap(lambda a, b: (a * b, (a + b).exp()))
    assert torch.autograd.gradcheck(both, inputs)


def test_torch_modules():
    torch = pytest.importorskip("torch")

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, (g * x).sum(0) / len(x)  # the sum of a mean: too small

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(3))

        def forward(self, x):
            return Scale.apply(x, self.w)

    layer = Layer()
    assert not cr.torch.gradcheck(layer, torch.randn(4, 3))
    assert layer.w.dtype == torch.float32
    assert cr.torch.gradcheck(torch.nn.Linear(3, 2), torch.randn(4, 3))
    assert cr.torch.gradcheck(lambda x: (x.sin(), x.cos().sum()), torch.randn(4))  # several results
