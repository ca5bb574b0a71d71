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
    "Cauchy": (lambda d, t: d.Cauchy(t(LOC), t(SCALE)), [0.2, -3.0, 1.0]),
    "HalfNormal": (lambda d, t: d.HalfNormal(t(SCALE)), [0.2, 3.0, 1.0]),
    "Gumbel": (lambda d, t: d.Gumbel(t(LOC), t(SCALE)), [0.2, -3.0, 1.0]),
    "Geometric": (lambda d, t: d.Geometric(t(PROBS)), [0.0, 3.0, 1.0]),
    "Geometric of logits": (lambda d, t: d.Geometric(logits=t(LOC)), [0.0, 3.0, 1.0]),
    "Independent": (lambda d, t: d.Independent(d.Normal(t(LOC), t(SCALE)), 1), [[0.2, -3.0, 1.0], [1.0, 1.0, 1.0]]),
}
# PyTorch's trigamma function, a part of these gradients, is off by up to 1.5e-9; the one here
# agrees with mpmath's to 1e-14.
TRIGAMMA = {"rtol": 1e-8, "atol": 1e-8}
# Draws are others than PyTorch's, of the same law.
BY_LAW = {
    "Gamma": (lambda d, t: d.Gamma(t(SCALE), t(PROBS)), [0.2, 3.0, 1.0]),
    "Chi2": (lambda d, t: d.Chi2(t(SCALE)), [0.2, 3.0, 1.0]),
    "Beta": (lambda d, t: d.Beta(t(SCALE), t(PROBS)), [0.2, 0.9, 0.5]),
    "Dirichlet": (lambda d, t: d.Dirichlet(t(PROBS * 4)), [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]),
    "StudentT": (lambda d, t: d.StudentT(t(SCALE + 5), t(LOC), t(SCALE)), [0.2, 3.0, -1.0]),
    "Poisson": (lambda d, t: d.Poisson(t(SCALE)), [0.0, 3.0, 1.0]),
    "Binomial": (lambda d, t: d.Binomial(7, t(PROBS)), [0.0, 3.0, 7.0]),
    "Binomial of logits": (lambda d, t: d.Binomial(5, logits=t(LOC)), [0.0, 3.0, 5.0]),
    "Multinomial": (lambda d, t: d.Multinomial(6, t(PROBS)), [[1.0, 2.0, 3.0], [0.0, 6.0, 0.0]]),
}
OTHER = {
    "Gamma": lambda d, t: d.Gamma(t(SCALE) + 1, t(PROBS) * 2), "Beta": lambda d, t: d.Beta(t(SCALE) + 1, t(PROBS) * 2),
    "Dirichlet": lambda d, t: d.Dirichlet(t(PROBS * 2 + 1)), "Poisson": lambda d, t: d.Poisson(t(SCALE) + 1),
    "Normal": lambda d, t: d.Normal(t(LOC) + 1, t(SCALE) * 2), "LogNormal": lambda d, t: d.LogNormal(t(LOC) + 1, t(SCALE) * 2),
    "Uniform": lambda d, t: d.Uniform(t(LOC) - 3.5, t(SCALE) + 1.9), "Exponential": lambda d, t: d.Exponential(t(SCALE) + 1),
    "Laplace": lambda d, t: d.Laplace(t(LOC) + 1, t(SCALE) * 2), "Bernoulli": lambda d, t: d.Bernoulli(t(PROBS) / 2),
    "Categorical": lambda d, t: d.Categorical(t(PROBS[::-1].copy())), "OneHotCategorical": lambda d, t: d.OneHotCategorical(t(PROBS[::-1].copy())),
    "MultivariateNormal": lambda d, t: d.MultivariateNormal(t(np.array([0.0, 1.0])), t(COV * 2 + np.eye(2))),
    "Independent": lambda d, t: d.Independent(d.Normal(t(LOC) + 1, t(SCALE) * 2), 1),
}


FORMULAS = {**CASES, **BY_LAW}


def made(m, name, table=FORMULAS):
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

    for i, (a, b) in enumerate(zip(run(cr), run(torch), strict=True)):
        exact = i == 0 or name not in ("Gamma", "Beta", "Dirichlet")
        np.testing.assert_allclose(a, b, **({"rtol": 1e-11, "atol": 1e-12} if exact else TRIGAMMA))


@pytest.mark.parametrize("name", ["Normal", "Uniform", "Exponential", "Laplace", "Cauchy", "HalfNormal", "Gumbel"])
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


@pytest.mark.parametrize("name", BY_LAW)
def test_formulas_beside_torch(name):
    torch = pytest.importorskip("torch")

    def run(m):
        d, leaves = made(m, name)
        found = [d.log_prob(m.tensor(BY_LAW[name][1], dtype=m.float64)), d.mean, d.variance]
        if name not in ("Poisson", "Multinomial"):
            found.append(d.entropy())
        sum((x * 0.7).sum() for x in found).backward()
        return [tell(x) for x in found] + [x.grad.numpy() for x in leaves]

    for i, (a, b) in enumerate(zip(run(cr), run(torch), strict=True)):
        np.testing.assert_allclose(a, b, **(TRIGAMMA if i > 2 else {"rtol": 1e-11, "atol": 1e-12}))


@pytest.mark.parametrize("name", [*BY_LAW, "Geometric", "HalfNormal", "Gumbel"])
def test_draws_have_the_mean_and_the_variance(name):
    d, _ = made(cr, name)
    n = 40_000
    cr.manual_seed(1)
    x = d.sample((n,)).numpy()
    mean, variance = tell(d.mean), tell(d.variance)
    assert x.shape[1:] == mean.shape and (np.abs(x.mean(0) - mean) < 6 * np.sqrt(variance / n)).all()
    fourth = ((x - mean) ** 4).mean(0)
    assert (np.abs(x.var(0) - variance) < 8 * np.sqrt(fourth / n) + 1e-12).all()
    cr.manual_seed(1)
    np.testing.assert_array_equal(d.sample((n,)).numpy(), x)


def test_draws_without_a_gradient_are_told():
    for d in (cr.distributions.Binomial(3, 0.5), cr.distributions.Poisson(1.0)):
        assert not d.has_rsample
        with pytest.raises(NotImplementedError, match="no gradient"):
            d.rsample()
