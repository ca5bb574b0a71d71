"""Looks of the monitor that take short ways see what others see."""

import re

import pytest

import chainrule as cr
from chainrule import _chainrule as _c
from chainrule._monitor import Monitor

torch = pytest.importorskip("torch")


def shown(native):
    """The records of a monitor."""
    return re.findall(r"<script[^>]*>(.*?)</script>", native.html("looks"), re.DOTALL)


class NoOptimizer:
    param_groups: list = []


def leaf(t, g=None):
    t = t.detach().requires_grad_()
    t.grad = g
    return t


def numbers(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


TENSORS = {
    "random": lambda: leaf(numbers(30, 20), numbers(30, 20)),
    "huge": lambda: leaf(torch.full((5, 3), 3e38), torch.full((5, 3), -3e38)),
    "tiny": lambda: leaf(torch.full((5, 3), 1e-42), torch.full((5, 3), 1e-30)),
    "not finite": lambda: leaf(torch.tensor([1.0, float("nan"), float("inf")]), torch.tensor([0.0, -float("inf"), 2.0])),
    "empty": lambda: leaf(torch.zeros(0, 3), torch.zeros(0, 3)),
    "0-d": lambda: leaf(torch.tensor(2.5), torch.tensor(-1.5)),
    "transposed": lambda: leaf(numbers(6, 8).t(), numbers(6, 8).t()),
    "strided": lambda: leaf(numbers(6, 8)[::2, 1::3], numbers(12, 9)[::4, ::3]),
    "expanded": lambda: leaf(numbers(4, 5), numbers(1, 5).expand(4, 5)),
    "offset": lambda: leaf(numbers(20)[3:11], numbers(9)[1:]),
    "double": lambda: leaf(numbers(7, 3, dtype=torch.float64), numbers(7, 3, dtype=torch.float64)),
    "no gradient": lambda: leaf(numbers(3)),
    "channels last": lambda: leaf(numbers(2, 3, 4, 5).to(memory_format=torch.channels_last)),
    "parameter": lambda: torch.nn.Parameter(numbers(5, 2)),
}


def copied(t):
    return None if t is None else cr.tensor(t.detach().contiguous().numpy())


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_are_read_where_they_lie_have_the_statistics_of_copies(kind):
    t = TENSORS[kind]()
    there, beside = _c.Monitor(1), _c.Monitor(1)
    there.hold_foreign([("p", t)])
    assert there.note_foreign_gradients() and there.see_foreign() and there.foreign_updated()
    beside.parameters([("p", copied(t), copied(t.grad))])
    beside.all_updated([("p", copied(t))])
    for native in (there, beside):
        native.note_number(1.0)
        native.end_step(NoOptimizer(), None, False)
    assert shown(there) == shown(beside)


@pytest.mark.parametrize("t", [numbers(4).half(), numbers(4).bfloat16(), torch._neg_view(numbers(4)), torch.ones(3, device="meta")])
def test_tensors_that_hide_their_numbers_are_not_read_where_they_lie(t):
    native = _c.Monitor(1)
    native.hold_foreign([("p", t)])
    assert not native.see_foreign() and not native.foreign_updated()
    assert not native.note_foreign_loss(t)


def test_a_gradient_that_is_changed_between_pass_and_step_is_seen():
    for factor, clipped in ((1.0, False), (1e-4, True)):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with cr.torch.monitor(model, optimizer, every=1) as m:
            for _ in range(30):
                optimizer.zero_grad()
                (model(torch.randn(8, 4)) - 1).square().mean().backward()
                for p in model.parameters():
                    p.grad.mul_(factor)
                optimizer.step()
        assert ("clipping" in [f.kind for f in m.findings()]) is clipped


@pytest.mark.parametrize("is_compiled", [False, True])
def test_looks_without_python_keep_the_same_records(is_compiled, monkeypatch):
    def watched():
        cr.manual_seed(0)
        nn = cr.nn
        model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Sequential(nn.Linear(12, 8), nn.ReLU()), nn.Linear(8, 3))
        optimizer = cr.optim.Adam(model.parameters(), lr=0.01)
        batches = [(cr.randn(16, 6), cr.randint(0, 3, (16,))) for _ in range(5)]

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = cr.compile(step) if is_compiled else step
        losses = []
        with cr.monitor(model, optimizer, every=1) as m:
            for i in range(150):
                losses.append(run(*batches[i % 5]).item())
        # Seconds and bytes differ from run to run.
        records = [re.sub(r'"(seconds|bytes)":[^,}]*', "", text) for text in shown(m._native)]
        return losses, records, m._native.looks(), [f.kind for f in m.findings()]

    plain = watched()
    monkeypatch.setattr(Monitor, "_has_plain_looks", False)
    assert plain == watched()
    assert plain[2] == 150
