"""Distributions beside PyTorch's, draws included, and by the laws of probability."""

import chainrule as cr
import numpy as np
import pytest

LOC, SCALE, PROBS = np.array([[0.3], [-1.2]]), np.array([0.5, 2.0, 1.1]), np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
COV = np.array([[2.0, 0.3], [0.3, 0.7]])
CASES = {
    "Normal": (lambda d, t: d.Normal(t(LOC), t(SCALE)), [0.2, -3.0, 1.0]),
    "Normal of numbers": (lambda d, t: d.Normal(1.0, 2.0), 0.25),
    "LogNormal": (lambda d, t: d.LogNormal(t(LOC), t(SCALE)), [0.2, 3.0, 1.0]),
    "Uniform": (lambda d, t: d.Uniform(t(LOC) - 3, t(SCALE) + 2), [0.2, -0.5, 1.0]),
    "Exponential": (lambda d, t: d.Exponential(t(SCALE)), [0.2, 3.0, 1.0]),
    "Laplace": (lambda d, t: d.Laplace(t(LOC), t(SCALE)), [0.2, -3.0, 1.0]),
    "Bernoulli": (lambda d, t: d.Bernoulli(t(PROBS)), [0.0, 1.0, 1.0]),
    "Bernoulli of logits": (lambda d, t: d.Bernoulli(logits=t(LOC)), [0.0, 1.0, 1.0]),
    "Categorical": (lambda d, t: d.Categorical(t(PROBS)), [2, 0]),
    "Categorical of logits": (lambda d, t: d.Categorical(logits=t(PROBS)), [[2, 0], [1, 1]]),
    "OneHotCategorical": (lambda d, t: d.OneHotCategorical(t(PROBS)), [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "MultivariateNormal": (lambda d, t: d.MultivariateNormal(t(np.array([1.0, 2.0])), t(COV)), [[0.5, 1.0], [2.0, 0.0]]),
    "Independent": (lambda d, t: d.Independent(d.Normal(t(LOC), t(SCALE)), 1), [[0.2, -3.0, 1.0], [1.0, 1.0, 1.0]]),
}
OTHER = {
    "Normal": lambda d, t: d.Normal(t(LOC) + 1, t(SCALE) * 2), "LogNormal": lambda d, t: d.LogNormal(t(LOC) + 1, t(SCALE) * 2),
    "Uniform": lambda d, t: d.Uniform(t(LOC) - 3.5, t(SCALE) + 1.9), "Exponential": lambda d, t: d.Exponential(t(SCALE) + 1),
    "Laplace": lambda d, t: d.Laplace(t(LOC) + 1, t(SCALE) * 2), "Bernoulli": lambda d, t: d.Bernoulli(t(PROBS) / 2),
    "Categorical": lambda d, t: d.Categorical(t(PROBS[::-1].copy())), "OneHotCategorical": lambda d, t: d.OneHotCategorical(t(PROBS[::-1].copy())),
    "MultivariateNormal": lambda d, t: d.MultivariateNormal(t(np.array([0.0, 1.0])), t(COV * 2 + np.eye(2))),
    "Independent": lambda d, t: d.Independent(d.Normal(t(LOC) + 1, t(SCALE) * 2), 1),
}


def made(m, name, table=CASES):
    """The distribution, and its parameters, which need gradients."""
    leaves = []

    def leaf(a):
        leaves.append(m.tensor(a, requires_grad=True))
        return leaves[-1]

    entry = table[name]
    return (entry[0] if isinstance(entry, tuple) else entry)(m.distributions, leaf), leaves


def tell(x):
    return x.detach().numpy()


@pytest.mark.parametrize("name", CASES)
def test_beside_torch(name):
    torch = pytest.importorskip("torch")

    def run(m):
        d, leaves = made(m, name)
        value = m.tensor(CASES[name][1]) if "Categorical" in name[:11] else m.tensor(CASES[name][1], dtype=m.float64 if leaves else None)
        found = [d.log_prob(value), d.entropy(), d.mean, d.variance]
        loss = found[0].sum() + (d.entropy() * 0.7).sum()
        m.manual_seed(5)
        drawn = [d.sample(), d.sample((4,)), d.sample((2, 3))]
        if d.has_rsample:
            drawn.append(d.rsample((3,)))
            loss = loss + drawn[-1].sin().sum()
        grads = []
        if leaves:
            loss.backward()
            grads = [x.grad.numpy() for x in leaves]
        return [tell(x) for x in (*found, *drawn)] + grads, (tuple(d.batch_shape), tuple(d.event_shape))

    (ours, shapes), (theirs, want) = run(cr), run(torch)
    assert shapes == want
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype == np.float64 else 2e-7, atol=1e-12)


@pytest.mark.parametrize("name", OTHER)
def test_divergences_beside_torch(name):
    torch = pytest.importorskip("torch")

    def run(m):
        (p, a), (q, b) = made(m, name), made(m, name, OTHER)
        kl = m.distributions.kl_divergence(p, q)
        kl.nan_to_num(posinf=0.0).sum().backward()
        return [tell(kl)] + [x.grad.numpy() for x in (*a, *b) if x.grad is not None]

    for a, b in zip(run(cr), run(torch)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["Normal", "Uniform", "Exponential", "Laplace"])
def test_quantiles(name):
    d, _ = made(cr, name)
    q = cr.tensor([0.1, 0.5, 0.77], dtype=cr.float64)
    assert d.cdf(d.icdf(q)).allclose(q.expand(tuple(d.batch_shape)), rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_mean_and_the_entropy(name):
    cr.manual_seed(1)
    d, _ = made(cr, name)
    drawn = d.sample((20000,))
    if not bool(d.mean.isnan().all()):
        spread = d.variance.sqrt() / 20000**0.5
        assert bool(((drawn.mean(0) - d.mean).abs() < 5 * spread + 1e-9).all())
    spread = d.log_prob(drawn).std(0) / 20000**0.5
    assert bool(((-d.log_prob(drawn).mean(0) - d.entropy()).abs() < 5 * spread + 1e-5).all())


def test_mistakes_are_told():
    d = cr.distributions
    for call, words in [
        (lambda: d.Normal(0.0, -1.0), "scale must be above 0"), (lambda: d.Categorical(cr.tensor([-1.0, 2.0])), "0 or more"),
        (lambda: d.Categorical(), "either"), (lambda: d.Bernoulli(cr.tensor(1.5)), "between 0 and 1"), (lambda: d.Uniform(1.0, 0.0), "below high"),
        (lambda: d.Categorical(cr.ones(3)).log_prob(cr.tensor(3)), "from 0 to 2"), (lambda: d.Bernoulli(cr.tensor(0.5)).log_prob(cr.tensor(2.0)), "0 or 1"),
        (lambda: d.Categorical(cr.ones(3)).rsample(), "no rsample"), (lambda: d.kl_divergence(d.Normal(0.0, 1.0), d.Categorical(cr.ones(2))), "register_kl"),
        (lambda: d.Exponential(1.0).log_prob(cr.tensor(-1.0)), "0 or more"),
    ]:
        with pytest.raises((ValueError, NotImplementedError), match=words):
            call()


def test_a_policy_gradient_compiles():
    logits = cr.zeros(4, 3, requires_grad=True)
    actions = cr.tensor([0, 1, 2, 1])

    def loss():
        logits.grad = None
        d = cr.distributions.Categorical(logits=logits)
        out = -(d.log_prob(actions) * cr.tensor([1.0, -1.0, 2.0, 0.5])).sum() - 0.1 * d.entropy().sum()
        out.backward()
        return out

    want = loss().item()
    g = logits.grad.clone()
    assert cr.compile(loss)().item() == pytest.approx(want, rel=1e-6) and logits.grad.allclose(g)
