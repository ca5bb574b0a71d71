"""Optimizers and schedules beside PyTorch's, in f64; what is remembered, saved, copied and pickled.
"""

import copy
import json
import pickle
import warnings
from pathlib import Path

import chainrule as cr
import numpy as np
import pytest

CASES = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "maximize": True, "foreach": False}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "fused": None}), ("AdamW", {"lr": 0.1}), ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.3}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}), ("Adadelta", {}), ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}), ("NAdam", {"lr": 0.1}), ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}), ("RAdam", {"lr": 0.1, "betas": (0.8, 0.99), "weight_decay": 0.1}), ("ASGD", {"lr": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}), ("LBFGS", {"max_iter": 6}), ("LBFGS", {"lr": 0.3, "history_size": 3, "max_iter": 7}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "lr": 20.0, "max_iter": 3, "history_size": 2}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "lr": 1e-3, "max_iter": 4}), ("SGD", {"lr": 0.0}),
]
FORMULAS = [c for c in CASES if c[0] != "LBFGS"]
SCHEDULES = [
    lambda s, o: s.StepLR(o, 2), lambda s, o: s.MultiStepLR(o, [2, 3, 3]), lambda s, o: s.ExponentialLR(o, 0.9),
    lambda s, o: s.LinearLR(o, total_iters=3), lambda s, o: s.ConstantLR(o, total_iters=3), lambda s, o: s.PolynomialLR(o, 4, 2.0),
    lambda s, o: s.CosineAnnealingLR(o, 4, 0.01), lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2), lambda s, o: s.LambdaLR(o, lambda e: 1 / (1 + e)),
    lambda s, o: s.MultiplicativeLR(o, [lambda e: 0.9]), lambda s, o: s.OneCycleLR(o, 0.5, total_steps=21),
    lambda s, o: s.OneCycleLR(o, 0.5, epochs=3, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"),
    lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, 4, mode="triangular2"), lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
    lambda s, o: s.SequentialLR(o, [s.LinearLR(o, total_iters=4), s.CosineAnnealingLR(o, 6), s.StepLR(o, 2)], [4, 9]),
    lambda s, o: s.SequentialLR(o, [s.LambdaLR(o, lambda e: e / 5), s.LambdaLR(o, lambda e: 1 - e / 50)], [5]),
    lambda s, o: s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]), lambda s, o: s.ReduceLROnPlateau(o, patience=2, factor=0.5),
    lambda s, o: s.ReduceLROnPlateau(o, "max", patience=1, cooldown=1, threshold_mode="abs"),
]
VALUES = [3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]
X, Y = (np.random.default_rng(s).normal(size=size) for s, size in ((5, (6, 3)), (6, (6, 4))))


def weights(m):
    r = np.random.default_rng(0)
    return [m.tensor(r.normal(size=(3, 4)), requires_grad=True), m.tensor(r.normal(size=(4,)), requires_grad=True)]


def loss(m, w):
    return ((m.tensor(X) @ w[0]).tanh() + w[1] - m.tensor(Y)).square().mean()


def train(m, kind, options, steps, schedule=None):
    w = weights(m)
    o = getattr(m.optim, kind)(w, **options)
    s = schedule and schedule(m.optim.lr_scheduler, o)
    rates = []

    def closure():
        o.zero_grad()
        value = loss(m, w)
        value.backward()
        return value

    for i in range(steps):
        o.step(closure)
        if s:
            g = o.param_groups[0]
            rates.append([float(g["lr"]), g["momentum"] if "momentum" in g else g["betas"][0]])
            s.step(VALUES[i % 12]) if isinstance(s, m.optim.lr_scheduler.ReduceLROnPlateau) else s.step()
    return [x.detach().numpy().copy() for x in w], rates, o, w


REFERENCE = json.loads((Path(__file__).parent / "optimizers.json").read_text())


@pytest.mark.parametrize("kind, options", CASES)
def test_as_pytorch_wrote_it_down(kind, options):
    """The sums of the weights after a few steps, computed by PyTorch."""
    found, *_ = train(cr, kind, options, 3 if kind == "LBFGS" else 8)
    want = REFERENCE[f"{kind} {json.dumps(options)}"]
    np.testing.assert_allclose([x.sum() for x in found], want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind, options", CASES)
def test_beside_torch(kind, options):
    torch = pytest.importorskip("torch")
    steps = 1 if kind == "LBFGS" else 20
    for a, b in zip(train(cr, kind, options, steps)[0], train(torch, kind, options, steps)[0]):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("number", range(len(SCHEDULES)))
@pytest.mark.parametrize("kind, options", [("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.1})])
def test_schedules_beside_torch(kind, options, number):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (a, rates, *_), (b, want, *_) = (train(m, kind, options, 20, SCHEDULES[number]) for m in (cr, torch))
    np.testing.assert_allclose(rates, want, rtol=1e-12, atol=1e-12)
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def further(o, w):
    for _ in range(3):
        o.zero_grad()
        loss(cr, w).backward()
        o.step()
    return [x.detach().numpy().copy() for x in w]


@pytest.mark.parametrize("kind, options", FORMULAS)
@pytest.mark.parametrize("how", ["saved", "copied", "pickled", "both copied"])
def test_a_run_goes_on_as_if_not_interrupted(kind, options, how):
    _, _, o, w = train(cr, kind, options, 3)
    if how == "saved":
        other = [x.detach().clone().requires_grad_() for x in w]
        again = getattr(cr.optim, kind)(other, **options)
        again.load_state_dict(copy.deepcopy(o.state_dict()))
    elif how == "both copied":
        other, again = copy.deepcopy((w, o))
        assert again.param_groups[0]["params"][0] is other[0]
    else:
        again = copy.deepcopy(o) if how == "copied" else pickle.loads(pickle.dumps(o))
        other = again.param_groups[0]["params"]
    for a, b in zip(further(again, other), further(o, w)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind, options", FORMULAS)
def test_states_of_torch_are_taken(kind, options):
    torch = pytest.importorskip("torch")
    _, _, o, w = train(cr, kind, options, 3)
    theirs = train(torch, kind, options, 3)[2].state_dict()
    assert [g["params"] for g in o.state_dict()["param_groups"]] == [g["params"] for g in theirs["param_groups"]]
    assert set(o.state_dict()["state"].get(0, {})) - {"step"} >= {k for k, v in theirs["state"].get(0, {}).items() if v is not None} - {"step"}
    other = [x.detach().clone().requires_grad_() for x in w]
    again = getattr(cr.optim, kind)(other, **options)
    again.load_state_dict(theirs)
    for a, b in zip(further(again, other), further(o, w)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RAdam"])
def test_a_parameter_given_twice_is_stepped_twice_with_a_warning(kind):
    torch = pytest.importorskip("torch")

    def run(m):
        w, v = (m.ones(1, dtype=m.float64, requires_grad=True) for _ in range(2))
        with pytest.warns(UserWarning):
            o = getattr(m.optim, kind)([w, v, w], lr=0.1)
        for _ in range(3):
            o.zero_grad()
            (w * w + v).sum().backward()
            o.step()
        return [w.item(), v.item()]

    np.testing.assert_allclose(run(cr), run(torch), rtol=1e-12)


class Signs(cr.optim.Optimizer):
    """A user's own."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @cr.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    state["average"] = state.get("average", 0.0) + p.grad
                    p.sub_(group["lr"] * state["average"].sign())


def test_a_users_own_optimizer():
    w = cr.tensor([1.0, -1.0], requires_grad=True)
    o = Signs([w])
    schedule = cr.optim.lr_scheduler.StepLR(o, 1, 0.5)
    w.square().sum().backward()
    o.step()
    schedule.step()
    assert w.allclose(cr.tensor([0.9, -0.9])) and o.param_groups[0]["lr"] == 0.05
    again = copy.deepcopy(o)
    assert again.state[again.param_groups[0]["params"][0]]["average"].tolist() == [2, -2]

    @cr.compile
    def step():
        w.square().sum().backward()
        o.step()

    before = w.tolist()
    step()
    assert "steps in Python" in step.eager and w.tolist() != before


@pytest.mark.parametrize("name", ["Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor", "SGD uphill", "SGD by a tensor"])
def test_steps_in_python_run_as_they_are(name):
    """A compiled function with such a step has the effects of the function."""

    def trained(compiled):
        cr.manual_seed(0)
        w, x = cr.randn(3, 2, dtype=cr.float64).requires_grad_(), cr.randn(4, 3, dtype=cr.float64)
        if name.startswith("SGD"):
            o = cr.optim.SGD([w], lr=cr.tensor(0.05) if "tensor" in name else 0.05, momentum=0.5, maximize="uphill" in name)
        else:
            o = getattr(cr.optim, name)([w], lr=0.05)
        schedule = None if "tensor" in name else cr.optim.lr_scheduler.ExponentialLR(o, 0.9)

        def step(x):
            o.zero_grad()
            loss = (x @ w).tanh().square().sum()
            loss.backward()
            o.step()
            return loss.detach()

        f = cr.compile(step) if compiled else step
        losses = []
        for _ in range(6):
            losses.append(f(x).item())
            if schedule is not None:
                schedule.step()
        assert not compiled or f.eager
        return losses, w.tolist()

    assert trained(True) == trained(False)


def test_what_python_changes_before_such_a_step_is_told():
    w, count = cr.ones(2, requires_grad=True), []

    @cr.compile
    def step():
        count.append(1)
        w.square().sum().backward()
        cr.optim.Adadelta([w]).step()

    with pytest.raises(cr.GradientError, match="changes `count`"):
        step()


def test_mistakes_are_told():
    w = cr.ones(2, requires_grad=True)
    for make, words in [
        (lambda: cr.optim.SGD([]), "no parameters"), (lambda: cr.optim.SGD(w), "in a list"), (lambda: cr.optim.SGD([w * 2]), "no leaf"),
        (lambda: cr.optim.Adam([w], betaz=1), "no option betaz"), (lambda: cr.optim.SGD([{"params": [w]}, {"params": [w]}]), "more than one group"),
        (lambda: cr.optim.LBFGS([w]).step(), "closure"), (lambda: cr.optim.SGD([w]).load_state_dict({"state": {}, "param_groups": []}), "0 groups"),
        (lambda: cr.optim.lr_scheduler.StepLR(w, 1), "an optimizer is needed"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            make()
    o = cr.optim.Adam([w])
    w.sum().backward()
    o.step()
    o.state[w]["step"] = 0
    with pytest.raises(ValueError, match="not 1 or more"):
        o.step()


def test_what_was_kept_of_the_state_shows_the_steps():
    w = cr.ones(2, requires_grad=True)
    o = cr.optim.SGD([w], lr=0.1, momentum=0.9)
    (w * 2).sum().backward()
    o.step()
    kept, of_w = o.state[w]["momentum_buffer"], o.state[w]
    o.step()
    assert kept.allclose(cr.tensor([3.8, 3.8])) and of_w is o.state[w] and of_w["momentum_buffer"] is kept
    kept.zero_()
    before = w.tolist()
    o.step()
    assert w.allclose(cr.tensor(before) - 0.2) and kept.tolist() == [2, 2]
    compiled = cr.compile(lambda: (o.zero_grad(), (w * 3).sum().backward(), o.step())[0])
    compiled()
    assert o.state[w]["momentum_buffer"] is kept and kept.allclose(cr.tensor([4.8, 4.8]))
    kept.mul_(0)
    compiled()
    assert o.state[w]["momentum_buffer"].tolist() == [3, 3] == kept.tolist()
    # A state that is loaded is another one, as in PyTorch.
    o.load_state_dict(copy.deepcopy(o.state_dict()))
    o.zero_grad()
    (w * 3).sum().backward()
    o.step()
    assert o.state[w]["momentum_buffer"] is not kept and kept.tolist() == [3, 3]


def test_what_is_written_to_the_state_counts():
    for write in (lambda s: s["momentum_buffer"].zero_(), lambda s: s.update(momentum_buffer=cr.zeros(2)), lambda s: s.clear()):
        w = cr.ones(2, requires_grad=True)
        o = cr.optim.SGD([w], lr=0.1, momentum=0.9)
        w.square().sum().backward()
        o.step()
        assert o.state[w]["momentum_buffer"].tolist() == [2, 2]
        write(o.state[w])
        o.step()
        assert w.allclose(cr.full((2,), 0.6)) and o.state_dict()["state"][0]["momentum_buffer"].tolist() == [2, 2]


def test_settings_changed_later_count():
    torch = pytest.importorskip("torch")

    def run(m):
        w = weights(m)
        o = m.optim.AdamW(w, lr=0.1)
        for i in range(4):
            o.param_groups[0]["weight_decay"] = 0.1 * i
            o.zero_grad()
            loss(m, w).backward()
            o.step()
        return [x.detach().numpy() for x in w]

    for a, b in zip(run(cr), run(torch)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_schedules_are_saved():
    def made():
        o = cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=1.0)
        s = cr.optim.lr_scheduler
        return o, s.SequentialLR(o, [s.LinearLR(o, total_iters=4), s.CosineAnnealingLR(o, 6)], [4])

    (o, s), (p, t) = made(), made()
    for _ in range(3):
        s.step()
    p.load_state_dict(copy.deepcopy(o.state_dict()))
    t.load_state_dict(copy.deepcopy(s.state_dict()))
    for _ in range(5):
        s.step()
        t.step()
        assert s.get_last_lr() == t.get_last_lr()
