"""Gradients of gradients in compiled functions: what a rule makes by itself, such as zeros, is
summed with what the program computes, and the sum is the program's.
"""

import chainrule as cr
import numpy as np
import pytest

F = cr.nn.functional
BENT = {
    "relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.2), "abs": lambda x: x.abs(), "hardtanh": lambda x: F.hardtanh(x, -1, 1.5), "relu6": F.relu6,
    "clamp": lambda x: x.clamp(-1, 0.5), "prelu": lambda x: F.prelu(x, cr.tensor([0.1], dtype=cr.float64)), "elu": F.elu, "softshrink": F.softshrink,
    "hardsigmoid": lambda x: F.hardsigmoid(x) * x, "hardswish": F.hardswish, "threshold": lambda x: F.threshold(x, 0.2, 0.0), "tanh": lambda x: x.tanh(),
    "maximum": lambda x: x.maximum(x * 0.3), "where": lambda x: x.where(x > 0, x * 0.2), "round": lambda x: x.round() + x, "max": lambda x: x.amax(1, keepdim=True) * x,
    "sort": lambda x: x.sort(1).values, "cummax": lambda x: x.cummax(1)[0], "pool": lambda x: F.max_pool1d(x, 2, 1), "huber": lambda x: F.huber_loss(x, x * 0, reduction="none"),
}


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("passes", [{}, {"simplify": False, "fuse": False}])
def test_a_step_that_learns_to_learn(name, passes):
    """One inner step by gradients that are differentiated, as MAML takes it."""
    f = BENT[name]

    def step(u, x):
        loss = (f(x @ u.t()).sum(1) ** 2).sum()
        (g,) = cr.autograd.grad(loss, [u], create_graph=True)
        after = (f(x @ (u - 0.05 * g).t()).sum(1) ** 2).sum()
        (found,) = cr.autograd.grad(after, [u])
        return after, found

    compiled = cr.compile(step, **passes)
    for seed in range(3):
        cr.manual_seed(seed)
        u, x = cr.randn(4, 3, dtype=cr.float64, requires_grad=True), cr.randn(5, 3, dtype=cr.float64)
        for a, b in zip(step(u, x), compiled(u, x)):
            np.testing.assert_allclose(b.tolist(), a.tolist(), rtol=1e-10, atol=1e-12)


def test_a_penalty_on_gradients():
    """The critic of a Wasserstein GAN, in place, with the gradient added to those of the loss."""
    cr.manual_seed(0)
    critic = cr.nn.Sequential(cr.nn.Linear(3, 6), cr.nn.LeakyReLU(0.2, inplace=True), cr.nn.Linear(6, 5), cr.nn.LeakyReLU(0.2), cr.nn.Linear(5, 1)).double()

    def gradients(x):
        critic.zero_grad()
        x = x.clone().requires_grad_()
        out = critic(x)
        (g,) = cr.autograd.grad(out, x, cr.ones_like(out), create_graph=True)
        loss = out.mean() + 10 * ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss.backward()
        return loss

    compiled = cr.compile(gradients)
    for seed in range(3):
        cr.manual_seed(seed)
        x = cr.randn(4, 3, dtype=cr.float64)
        found = []
        for f in (gradients, compiled):
            f(x)
            found.append([p.grad.tolist() for p in critic.parameters() if p.grad is not None])
        for a, b in zip(*found):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("wrap", ["weight_norm", "spectral_norm"])
def test_a_weight_that_a_module_computes(wrap):
    """The module keeps what it computed, which a program would not: it runs as it is."""
    found = []
    for compiled in (False, True):
        cr.manual_seed(0)
        layer = getattr(cr.nn.utils, wrap)(cr.nn.Linear(3, 2, dtype=cr.float64))
        optimizer = cr.optim.SGD(layer.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        f = cr.compile(step) if compiled else step
        x = cr.randn(4, 3, dtype=cr.float64)
        found.append([*(f(x).item() for _ in range(4)), layer.weight.tolist(), *(b.tolist() for b in layer.buffers())])
    assert found[0] == found[1] and "parametrizations" in f.eager


@pytest.mark.parametrize("name", ["batch norm", "rrelu", "ctc"])
def test_what_goes_by_elements_runs_as_it_is(name):
    norm = cr.nn.BatchNorm1d(3, momentum=None)
    f = {
        "batch norm": norm, "rrelu": lambda x: F.rrelu(x, training=True).detach(),
        "ctc": lambda x: F.ctc_loss(x.unsqueeze(1).log_softmax(2), cr.ones(1, 2, dtype=cr.int64), (x[:1, 0] * 0 + 8).long(), cr.tensor([2])),
    }[name]
    compiled, found = cr.compile(f), []
    for g in (f, compiled):
        cr.manual_seed(0)
        norm.reset_running_stats()
        found.append([g(cr.randn(8, 3)).tolist() for _ in range(3)] + [norm.running_mean.tolist()])
    assert found[0] == found[1] and compiled.eager


def test_systems_of_triangles_in_programs():
    a, b = cr.randn(4, 4, dtype=cr.float64), cr.randn(4, 2, dtype=cr.float64)
    a = a @ a.mT + cr.eye(4, dtype=cr.float64)

    def solved(a, b):
        factor = cr.linalg.cholesky(a)
        return cr.cholesky_solve(b, factor), cr.linalg.solve_triangular(factor, b, upper=False)

    with cr.no_grad():
        for want, got in zip(solved(a, b), cr.compile(solved)(a, b)):
            np.testing.assert_allclose(got.tolist(), want.tolist(), rtol=1e-12)
    triangle = cr.compile(lambda a, b: cr.linalg.solve_triangular(a, b, upper=True))
    for f, words in ((triangle, "singular"), (lambda a, b: cr.linalg.solve_triangular(a, b, upper=True), "0 on its diagonal")):
        with cr.no_grad(), pytest.raises(cr.linalg.LinAlgError, match=words):
            f(cr.zeros(1, 1), cr.ones(1, 1))
