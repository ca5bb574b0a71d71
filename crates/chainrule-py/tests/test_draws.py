"""Random numbers that PyTorch draws in another order than the axes say, or as many as it needs."""

import copy

import chainrule as cr
import numpy as np
import pytest

F = cr.nn.functional


@pytest.fixture(autouse=True)
def double():
    cr.set_default_dtype(cr.float64)
    yield
    cr.set_default_dtype(cr.float32)


DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.5), "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, training=True), "rand_like": cr.rand_like,
    "randint_like": lambda x: cr.randint_like(x, 100), "uniform_": lambda x: x.uniform_(-1, 1), "exponential_": lambda x: x.exponential_(),
    "bernoulli_": lambda x: x.bernoulli_(0.4), "random_": lambda x: x.random_(1000), "cauchy_": lambda x: x.cauchy_(), "geometric_": lambda x: x.geometric_(0.3),
    "log_normal_": lambda x: x.log_normal_(), "random_ of all": lambda x: x.random_(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_lie_in_memory_as_they_are_drawn(name):
    for sizes, order in (((4, 5), (1, 0)), ((2, 3, 4), (1, 2, 0)), ((2, 1, 3, 4), (3, 1, 0, 2))):
        cr.manual_seed(3)
        plain = DRAWS[name](cr.ones(sizes)).permute(order)
        cr.manual_seed(3)
        turned = DRAWS[name](cr.ones(sizes).permute(order))
        assert turned.tolist() == plain.tolist()


def test_normal_numbers_out_of_order_are_drawn_one_by_one():
    cr.manual_seed(3)
    singly = [x for _ in range(6) for x in cr.randn(4).tolist()]
    for make in (lambda: cr.ones(4, 6).t().normal_().t(), lambda: cr.randn_like(cr.ones(4, 6).t()).t()):
        cr.manual_seed(3)
        assert make().flatten().tolist() == singly
    cr.manual_seed(3)
    x = cr.zeros(6, 8)
    x[:, :4].normal_(1, 2)
    np.testing.assert_allclose(x[:, :4].flatten().tolist(), np.array(singly) * 2 + 1, rtol=1e-15)


def test_the_mask_of_recurrent_outputs_in_programs():
    x = cr.arange(24.0).reshape(4, 3, 2).sin()
    for layer in (cr.nn.LSTM(2, 3, batch_first=True), cr.nn.GRU(2, 3, batch_first=True)):
        compiled = cr.compile(lambda x: F.dropout(layer(x)[0], 0.5))
        with cr.no_grad():
            cr.manual_seed(1)
            eager = F.dropout(layer(x)[0], 0.5)
            for _ in range(2):
                cr.manual_seed(1)
                assert cr.allclose(compiled(x), eager)


def test_draws_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        theirs, ours = (list(_drawn(library)) for library in (torch, cr))
    finally:
        torch.set_default_dtype(before)
    assert len(theirs) == len(ours) > 20
    for a, b in zip(theirs, ours):
        np.testing.assert_allclose(b, a, rtol=1e-12)


def _drawn(torch):
    D, f = torch.distributions, torch.nn.functional
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.ones(5, 4, 6).transpose(0, 1)
        for draw in (lambda: f.dropout(x, 0.3), lambda: torch.rand_like(x), lambda: torch.randn_like(x), lambda: torch.ones(3, 9).t().normal_(2, 3)):
            yield draw().flatten().tolist()
        many = torch.linspace(0.05, 40, 300)
        for law in (
            D.Gamma(many, 2.0), D.Chi2(many), D.Beta(many, many.flip(0)), D.Dirichlet(many.reshape(100, 3)), D.StudentT(many), D.InverseGamma(many + 2, 1.0),
            D.FisherSnedecor(many, 3.0), D.Poisson(many), D.NegativeBinomial(many, 0.4), D.Binomial(50, many / 45), D.Binomial(5, many / 45), D.Poisson(1000 * many),
        ):
            yield law.sample((2,)).flatten().tolist()
        g = torch.Generator().manual_seed(seed)
        yield torch.poisson(many, generator=g).tolist()
        yield torch.rand(3).tolist()


def test_the_generator_of_all_is_an_object():
    cr.default_generator.manual_seed(7)
    first = cr.rand(3, generator=cr.default_generator)
    cr.manual_seed(7)
    assert cr.rand(3).tolist() == first.tolist() and cr.default_generator.initial_seed() == 7
    state = cr.default_generator.get_state()
    again = cr.randn(2)
    cr.default_generator.set_state(state)
    assert cr.randn(2).tolist() == again.tolist()


def test_a_generator_seeded_anew_is_that_of_the_program():
    g = cr.Generator().manual_seed(1)
    draw = cr.compile(lambda x: x + cr.rand(2, generator=g))
    first = draw(cr.zeros(2)).tolist()
    draw(cr.zeros(2))
    g.manual_seed(1)
    assert draw(cr.zeros(2)).tolist() == first


def test_what_takes_as_many_numbers_as_it_needs_runs_as_it_is():
    w = cr.ones(2, requires_grad=True)

    def step(x):
        lam = cr.distributions.Beta(2.0, 3.0).sample()
        (w * x * lam).sum().backward()
        return lam

    compiled = cr.compile(step)
    for f in (step, compiled):
        cr.manual_seed(5)
        w.grad = None
        drawn = [f(cr.ones(2)).item() for _ in range(3)]
        assert len(set(drawn)) == 3
        np.testing.assert_allclose(w.grad.tolist(), [sum(drawn)] * 2)
    assert "gamma law" in compiled.eager
    assert copy.deepcopy(compiled)(cr.ones(2)).ndim == 0


def test_padded_outputs_lie_as_in_pytorch():
    """Sequences that were sorted lie in order of the axes; others as the layer computed them."""
    rnn = cr.nn.utils.rnn
    x, lengths = cr.rand(3, 5, 4), cr.tensor([5, 4, 2])
    for sorts, strides in ((False, (20, 4, 1)), (True, (4, 12, 1))):
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=sorts)
        assert rnn.pad_packed_sequence(packed, batch_first=True)[0].stride() == strides
