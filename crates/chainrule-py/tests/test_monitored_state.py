"""States of optimizers that somebody holds see the steps of a monitored loop, and it theirs."""

import chainrule as cr
import chainrule.nn.functional as F
import pytest

OPTIMIZERS = {
    "SGD": lambda p: cr.optim.SGD(p, 0.1, momentum=0.9),
    "Adam": lambda p: cr.optim.Adam(p, 0.05),
    "RMSprop": lambda p: cr.optim.RMSprop(p, 0.01, centered=True, momentum=0.5),
    "RAdam": lambda p: cr.optim.RAdam(p, 0.05),
}


def plain(x):
    if isinstance(x, cr.Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {k if isinstance(k, (int, str)) else None: plain(v) for k, v in x.items()}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x


class Loop:
    """Some steps; from step `since` on the state is held, and later written to."""

    def __init__(self, kind, compiled):
        cr.manual_seed(0)
        self.model = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.BatchNorm1d(4), cr.nn.Tanh(), cr.nn.Dropout(0.3), cr.nn.Linear(4, 1))
        self.optimizer = OPTIMIZERS[kind](self.model.parameters())
        self.step = cr.compile(self.once) if compiled else self.once

    def once(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, since):
        first = next(self.model.parameters())
        losses, held, own = [], None, {}
        for i in range(10):
            if i == since:
                held, own = (self.optimizer.state_dict(), self.model.state_dict()), self.optimizer.state[first]
            if i == since + 4:
                for value in own.values():
                    if isinstance(value, cr.Tensor) and value.numel() > 1:
                        value.mul_(0.5)
            losses.append(self.step(cr.randn(8, 3), cr.randn(8, 1)).item())
        return plain((losses, list(self.model.parameters()), held, own, self.optimizer.state_dict(), cr.rand(2)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_held_state_has_the_same_bits_in_a_monitored_loop(kind, compiled):
    for since in (0, 1, 3):
        alone = Loop(kind, compiled).run(since)
        for every in (1, 2, None):
            loop = Loop(kind, compiled)
            with cr.monitor(loop.model, loop.optimizer, every=every):
                assert loop.run(since) == alone, (since, every)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_held_gradient_is_not_changed_by_a_look(compiled):
    w = cr.ones(2, requires_grad=True)
    optimizer = cr.optim.SGD([w], lr=0.1)

    def once(x):
        (w * x).sum().backward()
        optimizer.step()

    (w * 3).sum().backward()
    held, step = w.grad, cr.compile(once) if compiled else once
    with cr.monitor([w], optimizer, every=1):
        for _ in range(3):
            step(cr.ones(2))
            assert held.tolist() == w.grad.tolist()
    assert held.tolist() == [6.0, 6.0]


def adversaries(compiled, every):
    """Two models with an optimizer each, one of them watched, and writes to what is no model's."""
    cr.manual_seed(0)
    made, judge = cr.nn.Linear(2, 2), cr.nn.Linear(2, 1)
    of_made, of_judge = cr.optim.Adam(made.parameters(), 0.1), cr.optim.Adam(judge.parameters(), 0.1)
    generator, count, seen = cr.Generator().manual_seed(3), cr.zeros(1), []

    def once(x, total, kept):
        z = cr.randn(4, 2, generator=generator)
        of_judge.zero_grad()
        loss = (judge(made(z).detach()) ** 2).mean() - judge(x).mean()
        loss.backward()
        of_judge.step()
        of_made.zero_grad()
        (-judge(made(z)).mean()).backward()
        of_made.step()
        count.add_(1)
        total.add_(loss.detach())
        kept.append(total * 1)
        return loss

    step, total = cr.compile(once) if compiled else once, cr.zeros(1)

    def run():
        return [step(cr.ones(4, 2), total, seen).item() for _ in range(5)]

    if every == 0:
        losses = run()
    else:
        with cr.monitor(made, of_made, every=every):
            losses = run()
    return plain((losses, count, total, seen, judge.weight, made.weight, of_judge.state_dict(), cr.rand(1)))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_look_leaves_what_no_model_has(compiled):
    alone = adversaries(compiled, 0)
    for every in (1, 2, None):
        assert adversaries(compiled, every) == alone


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("reader", ["monitor", "state"])
def test_a_state_that_was_read_and_let_go_leaves_compiled_steps_as_fast(kind, reader):
    cr.manual_seed(0)
    model = cr.nn.Linear(4, 2)
    optimizer = getattr(cr.optim, kind)(model.parameters(), lr=0.01)
    x = cr.randn(8, 4)

    @cr.compile
    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def goes_on():
        """Whether the program runs by the native side's own conditions."""
        return step._recent[0].conditions.hold()

    step(), step()
    assert goes_on()
    if reader == "monitor":
        with cr.monitor(model, optimizer, every=1):
            for _ in range(20):
                step()
    else:
        assert len(optimizer.state) == (2 if kind == "Adam" else 0)
        step()
    step()
    assert goes_on()
    # A holder of it sees what steps do.
    held = optimizer.state
    for n in range(2):
        step()
        assert not goes_on()
        if kind == "Adam":
            assert held[model.bias]["step"].item() == optimizer.state_dict()["state"][1]["step"].item()
    del held
    step(), step()
    assert goes_on()
