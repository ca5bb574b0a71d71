"""Trainings with one planted mistake: the first cause names it, and its edit repairs them."""

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np
import pytest

nn = cr.nn


def table(rows=160, columns=4, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, columns)).astype("float32")
    return x, (x[:, 0] - x[:, 1] + 0.3 * x[:, 2]).astype("float32")


def classes(rows=240):
    x, z = table(rows)
    return x, (z > 0).astype("int64") + (z > 1).astype("int64")


def mlp(outputs, *end, width=16, lib=nn):
    return lib.Sequential(lib.Linear(4, width), lib.Tanh(), lib.Linear(width, outputs), *end)


def adam(rate=0.01):
    return lambda p: cr.optim.Adam(p, lr=rate)


def sgd(rate):
    return lambda p: cr.optim.SGD(p, lr=rate)


def repaired(report, *kinds):
    assert not report.learns and report.causes, str(report)
    assert report.causes[0].kind in kinds, str(report)
    assert report.after > report.skill + 0.2 and report.causes[0].edit, str(report)
    assert report.causes[0].confidence > 0.5
    return report


def test_a_training_that_learns_is_left_alone():
    report = cr.diagnose(lambda: mlp(3), classes(), F.cross_entropy, adam(0.02))
    assert report.learns and not report.causes and report.skill > 0.7, str(report)
    assert not [s for s in report.suspects if s.strength > 0.5], report.suspects


def test_a_softmax_before_logits_is_named_and_costs_nothing_where_it_does_not_matter():
    signs = cr.diagnose.before(lambda: mlp(3, nn.Softmax(-1)), classes(), F.cross_entropy, adam())
    assert signs[0].kind == "output_activation" and signs[0].strength == 1.0 and signs[0].where == "3"


def test_a_low_rate():
    report = cr.diagnose(lambda: mlp(3), classes(), F.cross_entropy, adam(1e-6), epochs=10)
    repaired(report, "lr_low")
    assert report.curves[0].changes == [] and len(report.curves) > 1


def test_a_high_rate():
    x, y = table()
    repaired(cr.diagnose(lambda: mlp(1), (x, y[:, None]), F.mse_loss, sgd(5.0)), "lr_high")


def test_inputs_without_scale():
    x, y = classes()
    repaired(cr.diagnose(lambda: mlp(3), (2000 + 300 * x, y), F.cross_entropy, adam()), "input_scale")


def test_targets_without_scale():
    x, y = table()
    repaired(cr.diagnose(lambda: mlp(1), (x, 5000 + 900 * y[:, None]), F.mse_loss, adam()), "target_scale")


def test_a_broadcast_loss():
    report = cr.diagnose(lambda: mlp(1), table(), lambda o, t: ((o - t) ** 2).mean(), adam(0.02))
    repaired(report, "loss_broadcast")
    assert "reshape" in report.causes[0].edit[0]


def test_clipping_that_always_clips():
    report = cr.diagnose(lambda: mlp(3), classes(), F.cross_entropy, sgd(0.3), clip=1e-5)
    assert repaired(report, "clipping").changes == ["no_clip"]


def ring(rows=300):
    """Whether a point lies outside of a circle, which no single unit can tell."""
    x = np.random.default_rng(1).normal(size=(rows, 2)).astype("float32")
    return x, ((x**2).sum(1) > 1.2).astype("float32")[:, None]


def test_equal_weights():
    def make():
        m = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1))
        with cr.no_grad():
            for p in m.parameters():
                p.fill_(0.1)
        return m

    repaired(cr.diagnose(make, ring(), F.binary_cross_entropy_with_logits, adam(0.02), epochs=30), "init_constant")


def test_a_narrow_model_is_made_wider():
    def make(width=1):
        return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))

    repaired(cr.diagnose(make, ring(), F.binary_cross_entropy_with_logits, adam(0.02), epochs=30), "capacity")


def test_shuffled_labels_are_not_learned():
    x, y = classes(300)
    report = cr.diagnose(lambda: mlp(3), (x, np.random.default_rng(3).permutation(y)), F.cross_entropy, adam(0.02), runs=25)
    assert not report.learns and report.causes[0].kind == "labels", str(report)


def test_a_number_that_is_none():
    x, y = classes()
    x[7, 2] = np.nan
    report = cr.diagnose(lambda: mlp(3), (x, y), F.cross_entropy, adam())
    assert report.causes[0].kind == "data" and "row 7" in report.causes[0].evidence, str(report)


def test_the_same_seed_gives_the_same_report():
    once = [cr.diagnose(lambda: mlp(3), classes(), F.cross_entropy, adam(1e-5), epochs=5, runs=12) for _ in range(2)]
    assert once[0].text == once[1].text and once[0].curves == once[1].curves


def test_generators_are_left_as_they_were():
    cr.manual_seed(5)
    want = cr.rand(3).tolist()
    cr.manual_seed(5)
    cr.diagnose(lambda: mlp(3), classes(60), F.cross_entropy, adam(), epochs=1, runs=2)
    assert cr.rand(3).tolist() == want


class Mixing(nn.Module):
    """Each answer has a share of the mean over the batch."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x):
        y = self.inner(x)
        return y + y.mean(0, keepdim=True)


class Tokens(nn.Module):
    """The mean of the vectors of tokens up to `ahead` places ahead."""

    def __init__(self, ahead):
        super().__init__()
        self.embedding, self.out = nn.Embedding(7, 5), nn.Linear(5, 7)
        place = np.arange(6)
        seen = (place[None] <= place[:, None] + ahead).astype("float32")
        self.weights = cr.tensor(seen / seen.sum(1, keepdims=True))

    def forward(self, x):
        return self.out(self.weights @ self.embedding(x))


def kinds(signs):
    return [s.kind for s in signs if s.strength >= 1.0]


def test_an_output_that_depends_on_another_example():
    assert kinds(cr.diagnose.before(Mixing, classes(), F.cross_entropy, adam())) == ["architecture"]
    assert not kinds(cr.diagnose.before(lambda: mlp(3), classes(), F.cross_entropy, adam()))


@pytest.mark.parametrize("ahead, seen", [(0, False), (1, True), (6, True)])
def test_an_output_that_depends_on_the_future(ahead, seen):
    text = np.random.default_rng(0).integers(0, 7, size=(40, 7))

    def loss(o, t):
        return F.cross_entropy(o.reshape(-1, 7), t.reshape(-1))

    signs = cr.diagnose.before(lambda: Tokens(ahead), (text[:, :-1], text[:, 1:]), loss, adam())
    assert ("architecture" in kinds(signs)) == seen, signs


def test_targets_that_are_the_inputs():
    text = np.random.default_rng(0).integers(0, 7, size=(40, 6))
    signs = cr.diagnose.before(lambda: Tokens(0), (text, text), lambda o, t: F.cross_entropy(o.reshape(-1, 7), t.reshape(-1)), adam())
    assert "labels" in kinds(signs)


def test_signs_in_the_data():
    x, y = classes()
    x[:, 3] = 4.0
    signs = cr.diagnose.before(lambda: mlp(4), (x, y + 1, x[:20], y[:20] + 1), F.cross_entropy, adam())
    told = {s.kind: s.evidence for s in signs}
    assert "columns 3" in told["data"] and "begin at 1" in told["labels"] and "100 %" in told["validation"], signs


def test_a_column_that_is_the_target():
    x, y = table()
    x[:, 2] = 3 * y + 1
    signs = cr.diagnose.before(lambda: mlp(1), (x, y[:, None]), F.mse_loss, adam())
    assert any("column 2" in s.evidence for s in signs), signs


def test_dropout_that_never_acts_and_dropout_that_always_does():
    class Always(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 3)

        def forward(self, x):
            return F.dropout(self.inner(x), 0.5, True)

    class Never(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.drop = nn.Linear(4, 3), nn.Dropout(0.5)

        def forward(self, x):
            return self.inner(x)

    assert "validation" in [s.kind for s in cr.diagnose.before(Always, classes(), F.cross_entropy, adam())]
    assert "regularisation" in [s.kind for s in cr.diagnose.before(Never, classes(), F.cross_entropy, adam())]
    assert not cr.diagnose.before(lambda: mlp(3, nn.Dropout(0.1)), classes(), F.cross_entropy, adam())


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_tying_that_copies(is_tied):
    class Bigram(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(7, 5), nn.Linear(5, 7, bias=False)
            weight = self.table.weight
            self.head.weight = weight if is_tied else nn.Parameter(weight.detach().clone())

        def forward(self, x):
            return self.head(self.table(x))

    x = np.random.default_rng(0).integers(0, 7, 200)
    signs = cr.diagnose.before(Bigram, (x, (x + 1) % 7), F.cross_entropy, adam())
    assert any("tied" in s.evidence for s in signs) != is_tied, signs


def test_parameters_that_the_optimizer_does_not_have():
    signs = cr.diagnose.before(lambda: mlp(3), classes(), F.cross_entropy, lambda p: cr.optim.SGD(list(p)[:2], lr=0.1))
    assert signs[0].kind == "optimizer" and "2.weight" in signs[0].evidence


def test_a_loss_that_is_divided_twice():
    x, y = table()
    make = lambda: nn.Linear(x.shape[1], 1)  # noqa: E731
    mean = lambda o, t: ((o - t) ** 2).mean()  # noqa: E731
    twice = lambda o, t: ((o - t) ** 2).mean() / len(o)  # noqa: E731
    told = [s.evidence for s in cr.diagnose.before(make, (x, y[:, None]), twice, sgd(0.1)) if s.kind == "loss_reduction"]
    assert told and "divided by the rows once more" in told[0], told
    assert not [s for s in cr.diagnose.before(make, (x, y[:, None]), mean, sgd(0.1)) if s.kind == "loss_reduction"]


def test_padding_that_is_counted():
    rng = np.random.default_rng(3)
    rows = rng.integers(1, 9, (80, 11))
    for row, end in zip(rows, rng.integers(3, 10, 80), strict=True):
        row[end:] = 0
    x, y = rows[:, :-1], rows[:, 1:]
    make = lambda: nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))  # noqa: E731

    def counted(o, t):
        return F.cross_entropy(o.reshape(-1, 9), t.reshape(-1))

    def left_out(o, t):
        return F.cross_entropy(o.reshape(-1, 9), t.reshape(-1), ignore_index=0)

    told = [s.evidence for s in cr.diagnose.before(make, (x, y), counted, adam()) if s.kind == "loss_reduction"]
    assert told and "filling token 0" in told[0], told
    assert not [s for s in cr.diagnose.before(make, (x, y), left_out, adam()) if s.kind == "loss_reduction"]


class Uncorrected(cr.optim.SGD):
    """Adam without the correction of its moments."""

    def __init__(self, parameters, lr, corrected):
        super().__init__(parameters, lr=lr)
        self.param_groups[0]["betas"] = (0.9, 0.999)
        self.corrected = corrected

    def step(self):
        group = self.param_groups[0]
        by = 1.0 if self.corrected else 0.1 / 0.001**0.5
        with cr.no_grad():
            for p in group["params"]:
                if p.grad is not None:
                    p -= group["lr"] * by * p.grad.sign()


def test_moments_that_are_not_corrected():
    x, y = table()
    make = lambda: nn.Linear(x.shape[1], 1)  # noqa: E731
    look = lambda o: [s for s in cr.diagnose.before(make, (x, y[:, None]), F.mse_loss, o) if s.kind == "optimizer"]  # noqa: E731
    told = look(lambda p: Uncorrected(p, 0.01, False))
    assert told and "not corrected" in told[0].evidence, told
    assert not look(lambda p: Uncorrected(p, 0.01, True))
    assert not look(adam(0.01))


def test_momentum_and_betas_out_of_range():
    x, y = table()
    make = lambda: nn.Linear(x.shape[1], 1)  # noqa: E731
    look = lambda o: [s.evidence for s in cr.diagnose.before(make, (x, y[:, None]), F.mse_loss, o) if s.kind == "optimizer"]  # noqa: E731
    assert "momentum of 0.999" in look(lambda p: cr.optim.SGD(p, lr=0.01, momentum=0.999))[0]
    assert "first beta of 0.999" in look(lambda p: cr.optim.Adam(p, lr=0.01, betas=(0.999, 0.9)))[0]
    assert not look(lambda p: cr.optim.SGD(p, lr=0.01, momentum=0.9))


@pytest.mark.parametrize(
    "data, wanted",
    [((np.zeros(3),), "not 1 things"), ((np.zeros((3, 1)), np.zeros(4)), "no rows in common"), ((np.array([["a"]]), np.zeros(1)), "of numbers")],
)
def test_bad_data_get_one_clear_line(data, wanted):
    with pytest.raises((ValueError, TypeError), match=wanted):
        cr.diagnose(lambda: mlp(1), data, F.mse_loss, adam())


def test_an_error_of_the_user_comes_through():
    def loss(o, t):
        if not hasattr(loss, "once"):
            loss.once = True
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cr.diagnose(lambda: mlp(3), classes(), loss, adam())


def test_models_of_pytorch():
    torch = pytest.importorskip("torch")
    x, y = table(240)
    y = (y > 0).astype("float32")[:, None]
    report = cr.diagnose(
        lambda: mlp(1, torch.nn.Softmax(-1), lib=torch.nn), (x, y), torch.nn.functional.binary_cross_entropy, lambda p: torch.optim.Adam(p, lr=0.02)
    )
    repaired(report, "output_activation")


HEALTHY = {
    # The split trains on 225 of 300 rows: a batch of 32 leaves one over, which has no variance.
    "batch norm": (lambda: nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3)), F.cross_entropy),
    "dropout": (lambda: nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3)), F.cross_entropy),
    "log-softmax": (lambda: mlp(3, nn.LogSoftmax(-1)), F.nll_loss),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_other_trainings_that_learn_are_left_alone(name):
    make, loss = HEALTHY[name]
    report = cr.diagnose(make, classes(300), loss, adam(0.02))
    assert report.learns and not report.causes, str(report)
