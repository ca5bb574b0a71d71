"""Looks of the monitor that take short ways see what others see."""

import re

import pytest

import chainrule as cr
from chainrule._monitor import Monitor


def shown(native):
    """The records of a monitor."""
    return re.findall(r"<script[^>]*>(.*?)</script>", native.html("looks"), re.DOTALL)


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
