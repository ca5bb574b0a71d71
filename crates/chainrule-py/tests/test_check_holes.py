"""`check.gradcheck` and `check.compare`: points that are special, backward rules that are random or
not linear, scales, rounding.
"""

import math

import chainrule as cr
import numpy as np
import pytest

F = cr.nn.functional
f64 = cr.float64


def function(forward, backward):
    class Mine(cr.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx, *g):
            return backward(*g, *ctx.saved_tensors)

    return Mine.apply


def randn(*shape, seed=0, dtype=f64):
    return cr.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def norm(x):
    d = x - x.mean(0, keepdim=True)
    return d / (d.square().mean(0, keepdim=True) + 1e-5).sqrt()


def norm_backward(g, z):
    n = z.shape[0]
    y, s = norm(z), ((z - z.mean(0, keepdim=True)).square().mean(0, keepdim=True) + 1e-5).sqrt()
    return (g - g.mean(0, keepdim=True) - y * (g * y).mean(0, keepdim=True)) / s


def test_a_bias_of_zeros_before_batch_norm():
    wrong = function(lambda x, b: norm(x + b), lambda g, x, b: (norm_backward(g, x + b), g.sum(0)))
    right = function(lambda x, b: norm(x + b), lambda g, x, b: (norm_backward(g, x + b), (g * 0).sum(0)))
    for b in (cr.zeros(3, dtype=f64), randn(3, seed=1), cr.ones(3, dtype=f64)):
        inputs = [randn(8, 3), b]
        assert cr.check.gradcheck(wrong, inputs).outcome == "wrong"
        assert cr.check.gradcheck(right, inputs).outcome == "right"


SPECIAL = {
    "sin at 0 with slope 1": (lambda x: x.sin(), lambda g, x: g, 0.0),
    "square at 1 with slope 2": (lambda x: x * x, lambda g, x: 2 * g, 1.0),
    "cube at 1 with the rule of a square": (lambda x: x**3, lambda g, x: 3 * x * g, 1.0),
    "a product that forgets its factor of one": (lambda x: x * x.exp(), lambda g, x: g * x.exp() * (2 * x + 1), 0.0),
    "softmax of equal numbers": (lambda x: x.softmax(-1), lambda g, x: (g - g.mean(-1, keepdim=True)) / x.shape[-1], 0.5),
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_right_at_a_special_point_alone(name, shape):
    forward, backward, at = SPECIAL[name]
    report = cr.check.gradcheck(function(forward, backward), cr.full(shape, at, dtype=f64))
    assert report.outcome == "wrong" and "beside the given one" in str(report)


def test_a_random_backward():
    rng = np.random.default_rng(0)
    report = cr.check.gradcheck(function(lambda x: x * 2, lambda g, x: g * cr.tensor((rng.random(g.shape) < 0.5) * 4.0, dtype=f64)), randn(3, 4))
    assert report.outcome == "wrong" and "the backward is random" in str(report)


NOT_LINEAR = {
    "magnitude": lambda g: g.abs(), "positive only": lambda g: g.clamp(min=0), "clipped": lambda g: g.clamp(-5, 5), "a constant added": lambda g: g + 1e-3,
    "normalised": lambda g: g / g.abs().sum(), "another slope below zero": lambda g: cr.where(g > 0, g, 0.9 * g), "squared": lambda g: g * g,
    "small ones dropped": lambda g: g * (g.abs() > 1e-2).to(f64),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)])
def test_a_backward_that_is_not_linear(name, shape):
    report = cr.check.gradcheck(function(lambda x: x.clone(), lambda g, x: NOT_LINEAR[name](g)), randn(*shape, seed=3))
    assert report.outcome == "wrong" and "not linear in the cotangent" in str(report)


FAR = {
    "clamp": (lambda x, hi: x.clamp(-2.5, 6.0), lambda g, x, hi: g * ((x > -2.5) & (x < hi)).to(f64), 6.0, 1e9),
    "softplus with a threshold": (lambda x, hi: F.softplus(x), lambda g, x, hi: g * cr.where(x > hi, cr.ones_like(x), x.sigmoid()), 20.0, 5.0),
    "huber": (lambda x, hi: cr.where(x.abs() < 4, x * x / 2, 4 * x.abs() - 8), lambda g, x, hi: g * x.clamp(-hi, hi), 4.0, 2.8),
}


@pytest.mark.parametrize("name", FAR)
def test_bounds_that_none_of_the_inputs_reaches(name):
    forward, backward, bound, other = FAR[name]
    x = cr.tensor([0.1, -1.2, 0.9, 2.0, -0.4], dtype=f64)
    for hi, said in ((bound, "right"), (other, "wrong")):
        report = cr.check.gradcheck(function(lambda x: forward(x, 0), lambda g, x, hi=hi: backward(g, x, hi)), x)  # noqa: B023
        assert report.outcome == said, report
    assert "several times their size" in str(report)


def test_a_bound_beyond_inputs_of_two_or_three_elements():
    """They are drawn until 24 elements were placed: drawn once, 4 of these 22 were seen."""
    forward, backward, bound, other = FAR["clamp"]
    looked = seen = 0
    for seed in range(40):
        x = cr.tensor(np.random.default_rng(seed).standard_normal(2 + seed % 2), dtype=f64)
        if bool((x > 0).all()) or bool((x < 0).all()):
            continue
        right, wrong = (cr.check.gradcheck(function(lambda x: forward(x, 0), lambda g, x, hi=hi: backward(g, x, hi)), x) for hi in (bound, other))  # noqa: B023
        assert right.outcome == "right", right
        looked, seen = looked + 1, seen + (wrong.outcome == "wrong")
    # Two elements near zero may both stay on this side of it after all.
    assert looked > 15 and seen >= 0.9 * looked, f"{seen} of {looked}"


def test_a_term_of_the_gradients_of_two_outputs_together():
    for extra, said in ((0.0, "right"), (1e-3, "wrong")):
        two = function(lambda x: (x * 2, x.sin()), lambda g, h, x, extra=extra: g * 2 + h * x.cos() + extra * g * h)
        report = cr.check.gradcheck(two, randn(3, seed=4))
        assert report.outcome == said, report
    assert "each by itself" in str(report)


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e-12, 1e12, 1e100, 1e140])
def test_scales(scale):
    x = randn(3, seed=5) * scale
    right, wrong = (cr.check.gradcheck(function(lambda x: x * x, lambda g, x, k=k: k * g * x), x) for k in (2, 3))
    assert not wrong and right.outcome != "wrong"


@pytest.mark.parametrize("slope", [1.0, -4.0])
def test_values_whose_differences_drown_are_uncertain(slope):
    report = cr.check.gradcheck(function(lambda x: x + 1e150, lambda g, x: g * slope), randn(3))
    assert report.outcome == "uncertain" and not report.passed and not report and "UNCERTAIN" in str(report)


def test_odd_inputs():
    tanh = function(lambda x: x.tanh(), lambda g, x: g * (1 - x.tanh() ** 2))
    for x in (randn(), randn(0), randn(1), randn(2, 1), randn(3, dtype=cr.float32)):
        assert cr.check.gradcheck(tanh, x).outcome == "right"
    targets = cr.tensor([0, 2, 1, 1])
    assert cr.check.gradcheck(lambda x, y: F.cross_entropy(x, y), [randn(4, 3), targets]).outcome == "right"
    assert cr.check.gradcheck(lambda w, i: F.embedding(i, w).tanh(), [randn(4, 3), targets]).outcome == "right"


def deep(x, layers=20):
    out = [x]
    for _ in range(layers):
        out.append((out[-1] * 0.5).sigmoid())
    return out


@pytest.mark.parametrize("dtype", [cr.float32, f64])
@pytest.mark.parametrize("factor", [1.0, -7.0, 0.0, 1.01])
def test_compare_judges_a_vanished_gradient_by_its_own_size(dtype, factor):
    x = randn(5, dtype=dtype).requires_grad_().named("x")
    layers = deep(x)
    loss, d = layers[-1].sum(), cr.ones(5, dtype=dtype)
    for y in reversed(layers[1:]):
        y = y.detach()
        d = d * y * (1 - y) * 0.5
    assert float(d.abs().max()) < 1e-15
    assert cr.check.compare(loss, {"x": d * factor}).passed == (factor == 1.0)


def test_compare_takes_tolerances_and_passes_nothing_that_it_did_not_compare():
    x = cr.tensor([1.0, 2.0], dtype=f64, requires_grad=True).named("x")
    loss, off = (x * x).sum(), cr.tensor([2.0 + 1e-4, 4.0], dtype=f64)
    assert not cr.check.compare(loss, {"x": off})
    assert cr.check.compare(loss, {"x": off}, rtol=1e-3) and cr.check.compare(loss, {"x": off}, atol=1e-3)
    assert not cr.check.compare(loss, {"x": cr.tensor([2.0 + 1e-9, 4.0], dtype=f64)}, rtol=1e-12)
    assert not cr.check.compare(loss, {"y": off})


@pytest.mark.parametrize("shift", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("batch", [2, 8, 64])
def test_compare_allows_in_float32_what_rounding_does(shift, batch):
    for seed in range(3):
        x = (randn(batch, 5, seed=seed, dtype=cr.float32) + shift).requires_grad_().named("x")
        w = randn(batch, 5, seed=seed + 50, dtype=cr.float32)
        loss = (norm(x) * w).sum()
        by_hand = norm_backward(w, x.detach())
        assert cr.check.compare(loss, {"x": by_hand}), cr.check.compare(loss, {"x": by_hand})
        if batch > 2:
            assert not cr.check.compare(loss, {"x": by_hand * 1.02})
            assert not cr.check.compare(loss, {"x": w / (x.detach().var(0, correction=0) + 1e-5).sqrt()})


def test_a_gradient_that_is_not_finite_is_wrong():
    report = cr.check.gradcheck(function(lambda x: x.clone(), lambda g, x: g * math.nan), randn(3))
    assert report.outcome == "wrong"


def test_arrays_of_numpy_are_gradients_too():
    x = np.random.default_rng(0).standard_normal((6, 3))
    w = cr.tensor(np.arange(1.0, 13.0).reshape(3, 4) / 10, requires_grad=True).named("w")
    h = (cr.tensor(x) @ w).tanh().named("h")
    loss = (h * h).sum()
    value = np.tanh(x @ w.detach().numpy())
    right = {"h": 2 * value, "w": x.T @ (2 * value * (1 - value**2))}
    assert cr.check.compare(loss, right).passed
    dropped = 2 * value * np.array([1, 1, 1, 1, 1, 0.0])[:, None]
    wrong = {"w": x.T @ (dropped * (1 - value**2))}
    for report in (cr.check.compare(loss, wrong), cr.check.verdict(loss, [(w, wrong["w"])])):
        assert not report.passed and "of its rows 5 of 6 are 0" in report.text, report.text


@pytest.mark.parametrize("name", ["log", "acos", "exp"])
def test_larger_inputs_outside_of_a_domain_are_no_alarm(name):
    x = cr.tensor([0.1, -0.5, 0.9, -0.7, 0.3, 0.6, -0.2, 0.4], dtype=f64)
    f = {"log": lambda x: (x + 2).log(), "acos": cr.acos, "exp": lambda x: (5 * x).exp().exp()}[name]
    report = cr.check.gradcheck(f, x)
    assert report.outcome == "right" and "note: inputs 20 times as large" in str(report), report


@pytest.mark.parametrize("dtype", [cr.float64, cr.float32, cr.bfloat16, cr.float16])
def test_compare_judges_small_elements_beside_large_ones(dtype):
    small = 1e-3 if dtype is cr.float16 else 3e-12
    c = cr.tensor([[3.0, small], [small, 3.0]], dtype=f64).to(dtype) * (100.0 if dtype is cr.float16 else 1e12)
    x = cr.tensor([[0.7, -1.2], [0.4, 0.9]], dtype=f64).to(dtype).requires_grad_().named("x")
    loss = (c * x * x * x).sum()
    right = 3 * x.detach() * x.detach() * c
    assert cr.check.compare(loss, {"x": right})
    for factor in (-7.0, 0.0, 1.5):
        by = cr.tensor([[1.0, factor], [1.0, 1.0]], dtype=f64).to(dtype)
        assert not cr.check.compare(loss, {"x": right * by})


SATURATED = {
    "sigmoid": lambda x: x.sigmoid(), "one less": lambda x: 1 - x.sigmoid(), "logarithm of it": lambda x: (x.sigmoid() + 1e-12).log(), "tanh of tanh": lambda x: (5 * x.tanh()).tanh(),
    "expm1": lambda x: x.expm1(), "elu": lambda x: F.elu(x), "selu": lambda x: F.selu(x), "celu": lambda x: F.celu(x, 1.3), "softmax": lambda x: x.softmax(-1),
}


@pytest.mark.parametrize("name", SATURATED)
@pytest.mark.parametrize("at", [[40.0, -30.0, 35.0], [-40.0, -37.0, -36.0], [20.0, -20.0, 19.0], [18.4, 0.1, -18.4]])
@pytest.mark.parametrize("order", [1, 2])
def test_right_where_an_op_is_saturated(name, at, order):
    """The results that the rules saved have lost the slope, which is then but their rounding."""
    assert cr.check.gradcheck(SATURATED[name], cr.tensor(at, dtype=f64), order=order).outcome != "wrong"


@pytest.mark.parametrize("at", [[40.0, -30.0, 35.0], [20.0, -20.0, 19.0], [3.0, -1.0, 0.5]])
def test_wrong_where_an_op_is_saturated(at):
    for backward in (lambda g, x: g * x.sigmoid(), lambda g, x: g * x.sigmoid() * (1 - x.sigmoid()) * 1.001):
        assert cr.check.gradcheck(function(lambda x: x.sigmoid(), backward), cr.tensor(at, dtype=f64)).outcome == "wrong"


def test_a_cosh_near_zero():
    assert cr.check.gradcheck(lambda x: x.cosh(), cr.tensor([1e-8, 1e-9, 2e-8], dtype=f64), order=2).outcome == "right"
