"""Typical notebooks run with `import torch` replaced, and give PyTorch's numbers."""

import copy
import pickle

import chainrule as cr
import numpy as np
import pytest


def bigrams(t, f):
    """Counts, chances and samples of pairs of letters; then the same as one layer."""
    counts = t.zeros((5, 5), dtype=t.int32)
    for a, b in zip([0, 1, 2, 3, 1, 0, 2], [1, 2, 3, 1, 0, 2, 4]):
        counts[a, b] += 1
    chances = (counts + 1).float()
    chances /= chances.sum(1, keepdims=True)
    g = t.Generator().manual_seed(2147483647)
    drawn, at = [], 0
    for _ in range(12):
        at = t.multinomial(chances[at], num_samples=1, replacement=True, generator=g).item()
        drawn.append(at)
    likelihood = sum(t.log(chances[a, b]) for a, b in zip(drawn, drawn[1:]))
    xs, ys = t.tensor([0, 1, 2, 3]), t.tensor([1, 2, 3, 1])
    w = t.randn((5, 5), generator=g, requires_grad=True)
    losses = []
    for _ in range(5):
        logits = f.one_hot(xs, num_classes=5).float() @ w
        exps = logits.exp()
        probs = exps / exps.sum(1, keepdims=True)
        loss = -probs[t.arange(4), ys].log().mean() + 0.01 * (w**2).mean()
        w.grad = None
        loss.backward()
        w.data += -1.0 * w.grad
        losses.append(loss.item())
    return counts.tolist(), drawn, f"{likelihood:.4f}", losses, f"{-likelihood / 4}"[:6]


def by_hand(t, f):
    """Gradients of intermediates, and the same by hand."""
    g = t.Generator().manual_seed(1)
    n, w, gain = 6, t.randn((4, 5), generator=g), t.ones((1, 5))
    x, y = t.randn((n, 4), generator=g), t.randint(0, 5, (n,), generator=g)
    w.requires_grad = gain.requires_grad = True
    h = x @ w
    spread = h - 1 / n * h.sum(0, keepdim=True)
    logits = gain * spread * ((spread**2).sum(0, keepdim=True) / (n - 1) + 1e-5) ** -0.5
    most = logits.max(1, keepdim=True).values
    exps = (logits - most).exp()
    total = exps.sum(1, keepdims=True)
    logs = (exps * total**-1).log()
    loss = -logs[range(n), y].mean()
    for p in (h, spread, logits, most, exps, total, logs):
        p.retain_grad()
    loss.backward()
    d = t.zeros_like(logs)
    d[range(n), y] = -1.0 / n
    dlogits = f.softmax(logits, 1)
    dlogits[range(n), y] -= 1
    dlogits /= n
    indices = logits.max(1).indices
    rows = t.zeros_like(w)
    for k in range(3):
        rows[k] += x[k, 0] * w[k]
    return (
        t.all(d == logs.grad).item(), t.allclose(dlogits, logits.grad), (d - logs.grad).abs().max().item(), loss.item(), w.grad.tolist(),
        f.one_hot(indices, num_classes=logits.shape[1]).tolist(), rows.detach().tolist(), t.cat(t.unbind(h, 1), 0).tolist(),
    )


def layers(t, f):
    """Layers as classes, statistics of activations and of updates."""
    t.manual_seed(42)

    class Linear:
        def __init__(self, inputs, outputs):
            self.weight, self.bias = t.randn((inputs, outputs)) / inputs**0.5, t.zeros(outputs)

        def __call__(self, x):
            self.out = x @ self.weight
            self.out += self.bias
            return self.out

    class Norm:
        def __init__(self, n):
            self.gamma, self.beta, self.mean = t.ones(n), t.zeros(n), t.zeros(n)

        def __call__(self, x):
            dim = 0 if x.ndim == 2 else (0, 1)
            mean, var = x.mean(dim, keepdim=True), x.var(dim, keepdim=True)
            self.out = self.gamma * (x - mean) / t.sqrt(var + 1e-5) + self.beta
            with t.no_grad():
                self.mean = 0.9 * self.mean + 0.1 * mean
            return self.out

    first, norm, last = Linear(6, 8), Norm(8), Linear(8, 4)
    with t.no_grad():
        last.weight *= 0.1
        norm.gamma *= 5 / 3
    parameters = [first.weight, first.bias, norm.gamma, norm.beta, last.weight, last.bias]
    for p in parameters:
        p.requires_grad = True
    table = t.randn((9, 3))
    ix = t.randint(0, 9, (10, 4, 2))
    y = t.randint(0, 4, (10,))
    rates, out = 10 ** t.linspace(-3, 0, 4), []
    for step in range(4):
        x = table[ix]
        hidden = t.tanh(norm(first(x.view(10, 4, -1))))
        hidden = t.cat([hidden[:, ::2, :], hidden[:, 1::2, :]], 2).view(10, -1, 8).mean(1).squeeze(1)
        loss = f.cross_entropy(last(hidden), y)
        norm.out.retain_grad()
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -rates[step] * p.grad
        with t.no_grad():
            out.append(((rates[step] * last.weight.grad).std() / last.weight.data.std()).log10().item())
        out.append(loss.log10().item())
    heights, edges = t.histogram(norm.out, density=True)
    saturated = f"{(hidden.abs() > 0.97).float().mean() * 100:.2f}"
    # A batch norm takes the bias before it away: its gradient is rounding.
    return out, heights.detach().sum().item(), edges[:-1].detach()[:2].tolist(), saturated, "%.4f" % norm.out.std(), norm.mean.shape, norm.out.grad.abs().mean().item()


@pytest.mark.parametrize("part", [bigrams, by_hand, layers])
def test_parts(part):
    torch = pytest.importorskip("torch")
    ours, theirs = part(cr, cr.nn.functional), part(torch, torch.nn.functional)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, (bool, str)) or isinstance(b, tuple):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_tensors_where_python_wants_numbers():
    i, x = cr.tensor(1), cr.tensor(2.5)
    assert [5, 6, 7][i] == 6 and list(range(i)) == [0] and int(x) == 2 and round(x.item()) == 2
    assert f"{x:.2f}" == "2.50" and "%.3f" % x == "2.500" and f"{x}" == "2.5"
    assert max(cr.tensor([1, 5, 2])) == 5 and sum(cr.tensor([1, 2])).item() == 3
    assert cr.zeros(2, 3).shape == (2, 3) and cr.Size([2, 3]).numel() == 6
    assert list(cr.arange(6).view(2, 3).T.storage()) == [0, 1, 2, 3, 4, 5]
    assert cr.tensor([1], device="cpu").to(cr.device("cpu")).device == "cpu" and not cr.cuda.is_available()
    with pytest.raises(ValueError, match="processor"):
        cr.tensor([1], device="cuda")


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    h = cr.randn(4, 6, requires_grad=True).tanh()
    plt.hist(h.view(-1).tolist(), 50)
    plt.imshow(h.abs() > 0.99, cmap="gray")
    plt.imshow(cr.zeros((3, 3), dtype=cr.int32))
    plt.scatter(h[:, 0].data, h[:, 1].data)
    heights, edges = cr.histogram(h, density=True)
    plt.plot(edges[:-1].detach(), heights.detach())
    plt.plot(list(cr.linspace(-3, 0, 5)), range(5))
    plt.close("all")


def test_modules_are_copied_and_pickled():
    m = cr.nn.Sequential(cr.nn.Linear(2, 3), cr.nn.BatchNorm1d(3))
    x = cr.randn(4, 2)
    m(x)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert cr.equal(other.eval()(x), m.eval()(x))
        assert all(p.requires_grad for p in other.parameters())


def test_training_loop():
    g = cr.Generator().manual_seed(0)
    x = cr.randn(64, 3, generator=g)
    y = x @ cr.tensor([[1.0], [-2.0], [0.5]])
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    told = []
    history = cr.train.fit(
        model, cr.nn.functional.mse_loss, optimizer, cr.train.batches(x, y, size=16, generator=g), steps=60, progress=False,
        scheduler=cr.optim.lr_scheduler.StepLR(optimizer, 20, 0.5), evaluate=lambda: {"loss": cr.nn.functional.mse_loss(model(x), y).item()},
        evaluate_every=20, listeners=[told.append],
    )
    assert len(history.losses) == 60 and history.losses[-1] < 1e-2 < history.losses[0] and not history.stopped
    assert [e.step for e in history.evaluations] == [20, 40, 60] and history.rates[0] == 0.1 and history.rates[-1] == 0.025
    assert [e.kind for e in told].count("step") == 60 and told[-1].kind == "end"
    short = cr.train.fit(model, cr.nn.functional.mse_loss, optimizer, [(x, y)] * 5, compiled=False, progress=False, listeners=[lambda e: e.step == 2])
    assert len(short.losses) == 2 and short.stopped
    with pytest.raises(ValueError, match="batches"):
        next(cr.train.batches(x, y[:3]))


def test_a_bar(capsys):
    x = cr.randn(8, 2)
    model = cr.nn.Linear(2, 1)
    cr.train.fit(model, cr.nn.functional.mse_loss, cr.optim.SGD(model.parameters(), lr=0.1), [(x, x[:, :1])] * 3)


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64, cr.int64, cr.bool])
def test_capsules(dtype):
    x = (cr.arange(12).reshape(3, 4) % 3).to(dtype)
    for t in (x, x.T, x[::-1, 1:], x[0, 0], x[:0]):
        a = np.from_dlpack(t)
        assert a.tolist() == t.tolist() and not a.flags.writeable
        assert np.from_dlpack(t, copy=True).flags.writeable
        assert cr.from_dlpack(np.array(t)).tolist() == t.tolist()
    a = np.array(x)
    y = cr.from_dlpack(a.T)
    assert y.data_ptr() == a.__array_interface__["data"][0] and y.shape == (4, 3)
    with pytest.raises(BufferError, match="copy"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="device"):
        x.__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    with pytest.raises(BufferError):
        x.__dlpack__(stream=1)
    assert x.__dlpack_device__() == (1, 0)


def test_capsules_of_other_types():
    assert cr.from_dlpack(np.arange(3, dtype="int32")).tolist() == [0, 1, 2]
    numbers = np.arange(3, dtype="int32")
    assert cr.from_dlpack(numbers, copy=False).dtype == cr.int32
    assert cr.from_dlpack(np.arange(3, dtype="complex64")).dtype == cr.complex64
    with pytest.raises(cr.GradientError):
        cr.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises((TypeError, AttributeError, ValueError)):
        cr.from_dlpack([1, 2])


def test_capsules_with_torch():
    torch = pytest.importorskip("torch")
    x = cr.arange(6.0).reshape(2, 3)
    assert torch.from_dlpack(x.T).tolist() == x.T.tolist()
    t = torch.arange(6.0).reshape(2, 3).T
    y = cr.from_dlpack(t)
    assert y.tolist() == t.tolist() and y.data_ptr() == t.data_ptr()
    del t
    assert y.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
