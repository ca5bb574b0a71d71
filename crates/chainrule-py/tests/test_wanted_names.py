"""Layers, optimizers and distributions that few scripts use, with what PyTorch 2.15 gives."""

import math

import chainrule as cr
import numpy as np
import pytest
from chainrule.distributions._implicit import beta_slope, gamma_slope


# PyTorch's own values; the slopes are from mpmath.
ADAPTIVE = {"classes": [0, 1, 2, 4, 1],
 "gradient": [-0.020524850005402367, -0.07400390552297158, -0.05944411158921664, 0.00976832439909806],
 "output": [-0.9306853272922422, -3.801658867878332, -8.252066534775423, -2.8272875053372317, -2.159406740939602]}
POOLED = {"places": [[[[1, 8, 10], [13, 14, 22], [25, 33, 34]], [[1, 3, 10], [18, 15, 22], [30, 27, 35]]]],
 "values": [[[[0.8414709848078965, 0.9893582466233818, -0.5440211108893698], [0.4201670368266409, 0.9906073556948704, -0.008851309290403876],
              [-0.13235175009777303, 0.9999118601072672, 0.5290826861200238]],
             [[-0.6435381333569995, 0.9637953862840878, 0.9017883476488092], [-0.5587890488516163, 0.6702291758433747, 0.9928726480845371],
              [-0.026551154023966794, 0.16735570030280691, 0.9510546532543747]]]]}
ADAFACTOR = {"plain": [[0.06843799558273164, 0.8415335615078757, 0.9093058807456118], [0.14593559540819978, -0.7480582184619242, -0.9501778831977991]],
 "settings": [[0.7842275398704165, 0.812916078319121, 0.8742953841058253], [0.2851517937690186, -0.526802103181899, -0.7201708590848781]],
 "vector": [0.028549586093508453, 0.8678363453214111, 0.9336786560292599]}
SPARSE_ADAM = [[0.0, 0.7414709942029839], [0.8348837509387231, 0.06670636739048832], [-0.5727389863214117, -0.7751119746876257],
 [-0.20500185795094994, 0.5825729342708784], [0.925476896892702, 0.3482371498106965]]
GAMMA_SLOPES = [((0.3, 0.2), 1.2120372612897223), ((2.5, 7.0), 1.709902981455647), ((2.5, 0.1), 0.1405497929736699), ((1000.0, 1010.0), 1.0051509296765344),
 ((0.05, 1e-08), 3.5845671864832955e-06), ((10000.0, 9900.0), 0.9949998326599522)]
BETA_SLOPES = [((0.3, 0.2, 0.9), 7.152603291573881), ((2.5, 7.0, 0.1), 0.06829713178963784), ((30.0, 2.0, 0.99), 0.0326320671339393),
 ((0.05, 5.0, 1e-08), 3.2811426612269136e-06), ((0.05, 0.05, 0.001), 0.3366881426583834), ((500.0, 0.1, 0.99999), 0.0020017909476314597),
 ((100.0, 100.0, 0.52), 0.005115806067188827)]
LKJ = [-2.4829523166928396, -0.7728601904604141]


def waves(*shape):
    return cr.arange(float(math.prod(shape)), dtype=cr.float64).reshape(shape).sin()


def test_adaptive_softmax():
    layer = cr.nn.AdaptiveLogSoftmaxWithLoss(4, 12, [3, 7], div_value=2.0, head_bias=True, dtype=cr.float64)
    for i, p in enumerate(layer.parameters()):
        p.data = waves(*p.shape) + 0.1 * i
    x, y = waves(5, 4).requires_grad_(), cr.tensor([0, 2, 3, 6, 11])
    output, loss = layer(x, y)
    loss.backward()
    assert list(layer.state_dict()) == ["head.weight", "head.bias", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight", "tail.1.1.weight"]
    np.testing.assert_allclose(output.tolist(), ADAPTIVE["output"], atol=1e-12)
    np.testing.assert_allclose(x.grad[0].tolist(), ADAPTIVE["gradient"], atol=1e-12)
    assert layer.predict(x).tolist() == ADAPTIVE["classes"]
    np.testing.assert_allclose(layer.log_prob(x).exp().sum(1).tolist(), np.ones(5), atol=1e-12)
    np.testing.assert_allclose(layer(x[3], y[3]).output.item(), output[3].item(), atol=1e-14)
    compiled = cr.compile(layer)
    with cr.no_grad():
        np.testing.assert_allclose(compiled(x, y)[0].tolist(), output.tolist(), atol=1e-12)
    with pytest.raises(ValueError, match="targets are from 0 to 11"):
        layer(x, y + 1)
    for cutoffs in ([], [3, 3], [0], [12]):
        with pytest.raises(ValueError, match="cutoffs"):
            cr.nn.AdaptiveLogSoftmaxWithLoss(4, 12, cutoffs)


def test_fractional_pools():
    samples = cr.tensor([[[0.25, 0.75], [0.5, 0.1]]], dtype=cr.float64)
    pool = cr.nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.6), return_indices=True, _random_samples=samples)
    values, places = pool(waves(1, 2, 6, 6))
    np.testing.assert_allclose(values.tolist(), POOLED["values"], atol=1e-12)
    assert places.tolist() == POOLED["places"]
    assert cr.nn.FractionalMaxPool3d(2, output_size=(2, 3, 3))(waves(1, 1, 5, 6, 7)).shape == (1, 1, 2, 3, 3)
    with pytest.raises(ValueError, match="one of them"):
        cr.nn.FractionalMaxPool2d(2)


@pytest.mark.parametrize("name", ["plain", "settings", "vector"])
def test_adafactor(name):
    settings = {} if name != "settings" else {"lr": 0.1, "weight_decay": 0.1, "d": 1.5, "beta2_decay": -0.5, "eps": (1e-10, 1e-2)}
    w = cr.nn.Parameter(waves(*((3,) if name == "vector" else (2, 3))))
    optimizer = cr.optim.Adafactor([w], **settings)
    for _ in range(4):
        optimizer.zero_grad()
        ((w - 1) ** 4).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(w.tolist(), ADAFACTOR[name], atol=1e-14)


def test_sparse_adam_leaves_other_rows():
    table = cr.nn.Embedding(5, 2, sparse=True, dtype=cr.float64)
    table.weight.data = waves(5, 2)
    optimizer = cr.optim.SparseAdam(list(table.parameters()), lr=0.1)
    for i in range(3):
        optimizer.zero_grad()
        (table(cr.tensor([i, i + 2, i])) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(table.weight.tolist(), SPARSE_ADAM, atol=1e-14)


def test_slopes_of_draws():
    # Differences of the incomplete gamma and beta functions in 40 digits.
    for (a, x), want in GAMMA_SLOPES:
        assert abs(gamma_slope(a, x)[0] / want - 1) < 1e-10
    for (a, b, x), want in BETA_SLOPES:
        assert abs(beta_slope(a, b, x)[0] / want - 1) < 1e-8


def kinds():
    d = cr.distributions
    yield "Gamma", lambda a, b: d.Gamma(a, b), (2.3, 1.5), lambda x: x, lambda a, b: a / b
    yield "Beta", lambda a, b: d.Beta(a, b), (0.7, 2.0), lambda x: x, lambda a, b: a / (a + b)
    yield "StudentT", lambda df, s: d.StudentT(df, 0.0, s), (9.0, 2.0), lambda x: x * x, lambda df, s: s * s * df / (df - 2)
    yield "InverseGamma", lambda a, b: d.InverseGamma(a, b), (6.0, 2.0), lambda x: x, lambda a, b: b / (a - 1)
    yield "FisherSnedecor", lambda a, b: d.FisherSnedecor(a, b), (7.0, 20.0), lambda x: x, lambda a, b: b / (b - 2) + 0 * a
    yield "Dirichlet", lambda a, b: d.Dirichlet(cr.stack([a, b, a + b])), (0.5, 2.0), lambda x: x[:, 1] * x[:, 1], lambda a, b: b * (b + 1) / (2 * (a + b) * (2 * (a + b) + 1))


@pytest.mark.parametrize("name, make, at, f, mean", list(kinds()), ids=[k[0] for k in kinds()])
def test_gradients_of_draws_are_those_of_the_mean(name, make, at, f, mean):
    cr.manual_seed(0)
    given = [cr.tensor(v, dtype=cr.float64, requires_grad=True) for v in at]
    drawn = f(make(*given).rsample((20000,)))
    drawn.mean().backward()
    exact = [cr.tensor(v, dtype=cr.float64, requires_grad=True) for v in at]
    mean(*exact).backward()
    assert abs(drawn.mean().item() - mean(*exact).item()) < 5 * drawn.std().item() / 20000**0.5
    for p, q in zip(given, exact):
        assert abs(p.grad.item() - q.grad.item()) < 0.06 * max(0.1, abs(q.grad.item()))
    assert not make(*given).sample((2,)).requires_grad


def test_single_draws_have_gradients_of_their_dtype():
    a = cr.tensor([0.3, 2.0, 900.0], requires_grad=True)
    x = cr.distributions.Gamma(a, cr.tensor(2.0)).rsample()
    x.sum().backward()
    assert x.dtype == a.grad.dtype == cr.float32 and bool((a.grad > 0).all())
    np.testing.assert_allclose(a.grad.tolist(), gamma_slope(a.tolist(), (2 * x).tolist()) / 2, rtol=2e-6)


def test_cholesky_factors_of_correlations():
    d = cr.distributions.LKJCholesky(3, cr.tensor([0.5, 2.0], dtype=cr.float64))
    C = cr.tensor([[1, 0.2, 0.1], [0.2, 1, 0.3], [0.1, 0.3, 1]], dtype=cr.float64)
    np.testing.assert_allclose(d.log_prob(cr.linalg.cholesky(C)).tolist(), LKJ, atol=1e-12)
    cr.manual_seed(0)
    L = d.sample((20000,))
    assert L.shape == (20000, 2, 3, 3) and bool((L.diagonal(dim1=-2, dim2=-1) > 0).all())
    drawn = (L @ L.mT)[..., 1, 0]
    # An element of such a matrix has the variance 1 / (2 concentration + dim - 1).
    np.testing.assert_allclose(drawn.var(0).tolist(), [1 / 3, 1 / 6], rtol=0.03)
    np.testing.assert_allclose(drawn.mean(0).tolist(), [0, 0], atol=0.015)


def test_nests():
    from chainrule.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_map_only, tree_unflatten

    nest = {"w": [1, (2, 3)], "b": ()}
    assert tree_leaves(nest) == [1, 2, 3]
    assert tree_map(lambda x, y: x + y, nest, nest) == {"w": [2, (4, 6)], "b": ()}
    assert tree_map_only(int, lambda x: -x, [1, "a"]) == [-1, "a"]
    with pytest.raises(ValueError, match="forms"):
        tree_map(lambda x, y: x, nest, [1])
    with pytest.raises(ValueError, match="leaves"):
        tree_unflatten([1], tree_flatten(nest)[1])


def test_small_names():
    x = cr.arange(6.0).reshape(2, 3)
    assert cr.chain_matmul(x, x.T, x).allclose(x @ x.T @ x)
    assert abs(cr.nuclear_norm(x).item() - np.linalg.norm(x.numpy(), "nuc")) < 1e-5
    assert cr.frobenius_norm(x).item() == pytest.approx(np.linalg.norm(x.numpy()))
    assert [cr.can_cast(a, b) for a, b in [(cr.float32, cr.int64), (cr.bool, cr.uint8), (cr.int8, cr.bool), (cr.float64, cr.float16)]] == [False, True, False, True]
    p = cr.ones(3, requires_grad=True)
    (p * 2).sum().backward()
    cr.nn.utils.clip_grads_with_norm_([p], 1.0, cr.tensor(4.0))
    np.testing.assert_allclose(p.grad.tolist(), [0.5] * 3, rtol=1e-6)
    with pytest.raises(ValueError, match="2 tensors and 1"):
        cr._foreach_add([x, x], [1.0])
