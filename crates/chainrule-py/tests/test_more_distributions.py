"""Distributions beside the common ones: the numbers are PyTorch's in float64, and draws are its
draws for the seed 0.
"""

import math

import chainrule as cr
import numpy as np
import pytest

D = cr.distributions


def t(*values):
    return cr.tensor(values, dtype=cr.float64)


# Parameters, values, and then log_prob, mean, variance, entropy and a draw.
KNOWN = {
    "Weibull": (
        (t(1, 2), t(1.5, 3)), t(0.3, 2), [-0.3608380613063535, -0.5945348918918355], [0.9027452929509336, 1.7859590231384985],
        [0.37569028481393185, 0.4213315394739148], [0.7869401135256798, 0.9793453351595242], [2.3088726364509538, 2.143105959025044],
    ),
    "Pareto": (
        (t(1, 2), t(2.5, 3)), t(1.3, 2.5), [-0.001984193762063602, -0.4871090971486747], [1.6666666666666667, 3.0], [2.2222222222222223, 3.0],
        [0.4837092681258449, 0.9278682252251689], [4.068728222921483, 3.0140221080188345],
    ),
    "Kumaraswamy": (
        (t(1.5, 2), t(1.5, 3)), t(0.3, 0.5), [0.11919099110490172, 0.5232481437645479], [0.5117359567707279, 0.457142857142857],
        [0.062052871778213115, 0.04102040816326541], [-0.05080611436740334, -0.2084261358947218], [0.07384180996717159, 0.32985133968024105],
    ),
    "HalfCauchy": (
        (t(1.5, 2),), t(0.3, 0.5), [-0.8962685265509006, -1.205354507665835], [math.inf] * 2, [math.inf] * 2,
        [2.24334217451751, 2.5310242469692907], [15.896593990023444, 1.5295345192118],
    ),
    "ContinuousBernoulli": (
        (t(0.1, 0.5),), t(0.3, 0.5), [0.2458106706321619, 0.0], [0.33011961331341877, 0.5], [0.06650886242255583, 0.08333333333333333],
        [-0.17963111600005513, 0.0], [0.9022542455532642, 0.707819864399788],
    ),
    "NegativeBinomial": (
        (t(3, 5), t(0.3, 0.6)), t(2, 0), [-1.6862109712400142, -4.581453659370775], [1.2857142857142856, 7.499999999999999],
        [1.8367346938775506, 18.749999999999996], None, None,
    ),
    "InverseGamma": (
        (t(3, 5), t(0.3, 0.6)), t(2, 0.5), [-7.227654315777536, -2.7732988658182274], [0.15, 0.15], [0.0225, 0.0075],
        [-1.201962964159859, -1.3694778040088469], None,
    ),
    "FisherSnedecor": (
        (t(3, 5), t(5, 6)), t(2, 0.5), [-1.9456354504357132, -0.4312275647141395], [1.6666666666666667, 1.5], [11.11111111111111, 4.05], None, None,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_numbers(name):
    parameters, value, *wanted, drawn = KNOWN[name]
    d = getattr(D, name)(*parameters)
    found = [d.log_prob(value), d.mean, d.variance]
    found += [] if wanted[3] is None else [d.entropy()]
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-14)
    cr.manual_seed(0)
    x = d.sample()
    assert x.shape == (2,) and d.expand((3, 2)).sample((5,)).shape == (5, 3, 2)
    if drawn is not None:
        np.testing.assert_allclose(x.numpy(), drawn, rtol=1e-12)
        np.testing.assert_allclose(d.icdf(d.cdf(value)).numpy() if hasattr(type(d), "icdf") and name != "Pareto" else value.numpy(), value.numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", ["NegativeBinomial", "InverseGamma", "FisherSnedecor"])
def test_draws_have_the_mean(name):
    parameters = {"NegativeBinomial": KNOWN[name][0], "InverseGamma": (t(6, 8), t(3, 6)), "FisherSnedecor": (t(3, 5), t(20, 30))}[name]
    d = getattr(D, name)(*parameters)
    cr.manual_seed(1)
    x = d.sample((20000,)).numpy()
    assert (np.abs(x.mean(0) - d.mean.numpy()) < 5 * d.stddev.numpy() / 20000**0.5).all()


def test_relaxed_draws_have_gradients():
    for d, drawn in [
        (D.RelaxedBernoulli(t(0.7)[0], t(0.1, 0.9)), [0.8617101602037187, 0.987906495518397]),
        (D.RelaxedOneHotCategorical(t(0.7)[0], t(0.1, 0.9)), [0.0017558077877085953, 0.9982441922122912]),
    ]:
        if isinstance(d, D.RelaxedBernoulli):
            cr.manual_seed(0)
        np.testing.assert_allclose(d.rsample().numpy(), drawn, rtol=1e-9)
    assert D.RelaxedOneHotCategorical(t(0.7)[0], t(0.1, 0.9)).log_prob(t(0.3, 0.7)).item() == pytest.approx(-0.7665642683749156, rel=1e-12)
    np.testing.assert_allclose(D.RelaxedBernoulli(t(0.7)[0], t(0.1, 0.9)).log_prob(t(0.3, 0.7)).numpy(), [-0.7665642683749159, -0.7665642683749163], rtol=1e-12)
    logits = t(0.1, 0.5, 0.4).requires_grad_()
    x = D.OneHotCategoricalStraightThrough(logits=logits).rsample((3,))
    assert set(x.detach().round(decimals=9).flatten().tolist()) == {0.0, 1.0}
    (x * t(0, 1, 2)).sum().backward()
    assert abs(logits.grad.sum().item()) < 1e-12 and logits.grad.abs().max().item() > 0.1


def test_vectors_matrices_and_angles():
    low = D.LowRankMultivariateNormal(t(0, 1, 2), cr.arange(6, dtype=cr.float64).reshape(3, 2) / 5, t(1, 2, 3))
    assert low.log_prob(cr.ones(3, dtype=cr.float64)).item() == pytest.approx(-4.601016009380272, rel=1e-12) and low.entropy().item() == pytest.approx(5.462840188356323, rel=1e-12)
    whole = D.MultivariateNormal(low.loc, low.covariance_matrix)
    assert D.kl_divergence(low, whole).item() == pytest.approx(0, abs=1e-12) and low.rsample((4,)).shape == (4, 3)
    w = D.Wishart(t(4)[0], cr.stack([t(2, 0.5), t(0.5, 1)]))
    assert w.log_prob(cr.stack([t(3, 0.2), t(0.2, 2)])).item() == pytest.approx(-5.393724905718595, rel=1e-12)
    assert w.entropy().item() == pytest.approx(7.140810774333904, rel=1e-12)
    cr.manual_seed(0)
    assert w.sample((4000,)).mean(0).allclose(w.mean, atol=0.3)
    cr.manual_seed(0)
    drawn = D.VonMises(t(0, 1), t(0.5, 4)).sample((2,)).numpy()
    np.testing.assert_allclose(drawn, [[-0.764039329028396, 1.707922755568049], [-1.0924181466019025, 1.4081304078133101]], rtol=1e-9)
    angles = cr.linspace(-math.pi, math.pi, 2001, dtype=cr.float64)
    assert cr.trapezoid(D.VonMises(t(1)[0], t(4)[0]).log_prob(angles).exp(), angles).item() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", ["StickBreakingTransform", "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform"])
def test_maps_and_their_inverses(name):
    transform = getattr(D, name)()
    x = t(0.1, -0.4, 0.7) if transform.domain.event_dim == 1 else cr.stack([t(0.1, 0.0), t(0.3, -0.2)])
    y = transform(x)
    assert transform.inv(y).allclose(x, atol=1e-9) and bool(transform.codomain.check(y).all())
    if name in ("StickBreakingTransform", "CorrCholeskyTransform"):
        # The logarithm of the determinant of the slopes to those elements that are free.
        at = (slice(0, 3),) if name == "StickBreakingTransform" else cr.tensor([4, 8, 9])
        free = (lambda x: transform(x)[:3]) if name == "StickBreakingTransform" else (lambda x: cr.stack([transform(x)[1, 0], transform(x)[2, 0], transform(x)[2, 1]]))
        slopes = cr.func.jacrev(free)(x)
        assert transform.log_abs_det_jacobian(x, y).item() == pytest.approx(cr.linalg.slogdet(slopes)[1].item(), rel=1e-6), at


def test_maps_onto_sets():
    c, x = D.constraints, t(0.1, -0.4, 0.7)
    for constraint in (c.positive, c.unit_interval, c.interval(-1.0, 3.0), c.greater_than(2.0), c.less_than(3.0), c.simplex, D.Normal.arg_constraints["scale"]):
        for onto in (D.transform_to, D.biject_to):
            assert bool(constraint.check(onto(constraint)(x)).all())
    with pytest.raises(NotImplementedError, match="no map onto"):
        D.transform_to(c.boolean)
    assert D.Uniform(0.0, 2.0).support.check(t(1, 3)).tolist() == [True, False] and D.Categorical(cr.ones(3)).enumerate_support().tolist() == [0, 1, 2]
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="above 0"):
        D.Normal(0.0, -1.0)


def test_divergences_are_means_of_differences():
    a = t(0.3, 0.6)
    pairs = [
        (D.Geometric(a), D.Geometric(a.flip(0))), (D.Gumbel(a, 1.0), D.Gumbel(0.0, a)), (D.HalfNormal(a), D.HalfNormal(t(1, 1))), (D.Cauchy(a, 1.0), D.Cauchy(t(0, 0), 1.0)),
        (D.Laplace(a, 1.0), D.Normal(t(0, 0), 1.0)), (D.Uniform(t(0, 0), t(1, 1)), D.Normal(t(0, 0), 1.0)), (D.Exponential(a), D.Gamma(t(1, 1), t(2, 2))),
        (D.Pareto(t(1, 1), a + 2), D.Pareto(t(1, 1), t(2, 2))), (D.Binomial(t(3, 3), a), D.Binomial(t(3, 3), a.flip(0))),
    ]
    for p, q in pairs:
        cr.manual_seed(2)
        x = p.sample((40000,))
        gap = (p.log_prob(x) - q.log_prob(x)).numpy()
        error = 5 * gap.std(0) / len(gap) ** 0.5
        assert (np.abs(D.kl_divergence(p, q).numpy() - gap.mean(0)) < error).all(), p
