"""Steps between looks are counted by the native side alone, and nothing is known less by it."""

import re
from contextlib import nullcontext

import pytest

import chainrule as cr
from chainrule._monitor import Monitor
from chainrule._observers import ACTIVE, STEPPED

NATIVE_BACKWARD, NATIVE_STEP = cr.Tensor.backward, cr.optim.SGD.step


def is_bare():
    """Whether nothing wraps backward passes and steps."""
    return cr.Tensor.backward is NATIVE_BACKWARD and cr.optim.SGD.step is NATIVE_STEP


def records(m):
    text = re.findall(r"<script[^>]*>(.*?)</script>", m._native.html("looks"), re.DOTALL)
    # Seconds and bytes differ from run to run.
    return [re.sub(r'"(seconds|bytes)":[^,}]*', "", part) for part in text], m.steps, m._passes, [(f.kind, f.since) for f in m.findings()]


def healthy(model, optimizer, i, x, y, scale=1.0):
    optimizer.zero_grad()
    loss = scale * cr.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def summed(model, optimizer, i, x, y):
    loss = cr.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def in_halves(model, optimizer, i, x, y):
    optimizer.zero_grad()
    for half in (slice(0, 8), slice(8, 16)):
        loss = cr.nn.functional.cross_entropy(model(x[half]), y[half])
        (loss / 2).backward()
    optimizer.step()
    return loss


def spiked(model, optimizer, i, x, y):
    return healthy(model, optimizer, i, x, y, 100.0 if i == 131 else 1.0)


def with_closure(model, optimizer, i, x, y):
    def closure():
        optimizer.zero_grad()
        loss = cr.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return optimizer.step(closure)


def made_anew(model, optimizer, i, x, y):
    return healthy(model, cr.optim.SGD(model.parameters(), lr=0.1) if i % 10 == 7 else optimizer, i, x, y)


def at_rest(model, optimizer, i, x, y):
    model.train(i < 40)
    return healthy(model, optimizer, i, x, y)


LOOPS = (healthy, summed, in_halves, spiked, with_closure, made_anew, at_rest)


def watched(loop, every=20, steps=200):
    cr.manual_seed(0)
    nn = cr.nn
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 3))
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    inputs = [cr.randn(16, 6) for _ in range(5)]
    batches = [(x, x[:, :3].argmax(1)) for x in inputs]
    bare = 0
    with nullcontext() if every is None else cr.monitor(model, optimizer, every=every) as m:
        losses = []
        for i in range(steps):
            losses.append(loop(model, optimizer, i, *batches[i % 5]).item())
            bare += is_bare()
    assert is_bare() and not ACTIVE and not STEPPED
    return losses, None if m is None else records(m), bare


@pytest.mark.parametrize("loop", LOOPS)
def test_counted_steps_leave_the_same_records(loop, monkeypatch):
    plain = watched(loop, every=None)[0]
    losses, alone, bare = watched(loop)
    monkeypatch.setattr(Monitor, "_counts_alone", False)
    through_python = watched(loop)
    assert losses == plain == through_python[0] and alone == through_python[1]
    assert through_python[2] == 0 and bare > (100 if loop is not at_rest else 10), bare
    assert alone[1] == 200


def test_the_loops_have_what_they_are_for():
    found = {loop: [kind for kind, _ in watched(loop)[1][3]] for loop in (healthy, summed, spiked, at_rest)}
    assert not found[healthy]
    assert "not_zeroed" in found[summed] and "loss_spike" in found[spiked] and "evaluation_mode" in found[at_rest], found


def test_no_long_time_is_unseen():
    cr.manual_seed(0)
    model = cr.nn.Linear(4, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.01)
    x = cr.randn(8, 4)
    seen = []
    with cr.monitor(model, optimizer) as m:
        # First looks that took as much time as a million steps.
        m._timed.spent, m._timed.is_counting = 60.0, False
        for i in range(3000):
            if m._native.is_due():
                seen.append(i)
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    assert seen[-1] >= 1500 and all(b <= 2 * (a + 1) for a, b in zip(seen, seen[1:])), seen
    assert len(seen) < 30


def test_a_second_monitor_ends_the_counting_of_the_first():
    nn = cr.nn
    models = [nn.Linear(4, 1), nn.Linear(4, 1)]
    optimizers = [cr.optim.SGD(model.parameters(), lr=0.01) for model in models]
    x = cr.randn(8, 4)

    def step(which):
        optimizers[which].zero_grad()
        models[which](x).square().mean().backward()
        optimizers[which].step()

    with cr.monitor(models[0], optimizers[0], every=50) as first:
        for _ in range(120):
            step(0)
        assert is_bare()
        with cr.monitor(models[1], optimizers[1], every=50) as second:
            assert not is_bare()
            for _ in range(60):
                step(0), step(1)
        for _ in range(20):
            step(0)
    assert is_bare() and not STEPPED and first.steps == 200 and second.steps == 60


def test_a_step_of_the_users_class_is_counted_where_it_ends():
    class Twice(cr.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            return super().step()

    model = cr.nn.Linear(4, 1)
    optimizer = Twice(model.parameters(), lr=0.01)
    with cr.monitor(model, optimizer, every=50) as m:
        for _ in range(150):
            optimizer.zero_grad()
            model(cr.ones(8, 4)).square().mean().backward()
            optimizer.step()
    assert m.steps == 150


def test_another_net_between_counted_steps_is_noted(monkeypatch):
    def game():
        cr.manual_seed(1)
        models = [cr.nn.Linear(4, 1), cr.nn.Linear(4, 1)]
        optimizers = [cr.optim.SGD(model.parameters(), lr=0.01) for model in models]
        x = cr.randn(8, 4)
        with cr.monitor(models[0], optimizers[0], every=30) as m:
            for i in range(150):
                for which in (0, 1) if i > 60 else (0,):
                    optimizers[which].zero_grad()
                    models[which](x).square().mean().backward()
                    optimizers[which].step()
        return records(m), m._elsewhere

    alone = game()
    monkeypatch.setattr(Monitor, "_counts_alone", False)
    assert alone == game() and alone[1] > 3
