"""Compiled functions on a device, beside the processor; skipped where the package or the machine
has none.
"""

import pytest

import chainrule as cr


def device():
    try:
        cr.compile(lambda x: x, device="wgpu")
    except ValueError as e:
        pytest.skip(str(e))
    return "wgpu"


def trained(device, outside=lambda n, w, sgd: None):
    """The losses of a small training, and its weights."""
    cr.manual_seed(3)
    x, y = cr.randn(16, 3), cr.randn(16, 1)
    w = (cr.randn(3, 1) * 0.5).requires_grad_()
    sgd = cr.optim.SGD([w], lr=0.1, momentum=0.9)

    def step(x, y):
        sgd.zero_grad()
        loss = ((x @ w).tanh() - y).square().mean()
        loss.backward()
        sgd.step()
        return loss.detach()

    step = cr.compile(step, device=device)
    losses = []
    for n in range(10):
        losses.append(step(x, y).item())
        outside(n, w, sgd)
    assert step.eager is None
    return losses, w.detach().tolist()


def test_a_training_has_the_losses_of_the_processor():
    on, off = trained(device()), trained(None)
    assert on[0] == pytest.approx(off[0], rel=1e-4)
    for a, b in zip(on[1], off[1]):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-5)
    assert on[0][-1] < on[0][0]


def test_reads_and_writes_from_outside_are_seen():
    seen = []

    def outside(n, w, sgd):
        seen.append(w.detach().tolist())
        if n == 3:
            with cr.no_grad():
                w.mul_(0.5)
        if n == 6:
            sgd.param_groups[0]["lr"] = 0.01

    on, off = trained(device(), outside), trained(None, outside)
    assert on[0] == pytest.approx(off[0], rel=1e-4)
    # Each call changed what is read after it.
    assert all(a != b for a, b in zip(seen[:10], seen[1:10]))
    plain = trained(None)
    assert abs(plain[0][5] - off[0][5]) > 1e-4 and abs(plain[0][9] - off[0][9]) > 1e-5


def test_many_runs_in_one_call():
    f = cr.compile(lambda x: (x * 2).sin().sum(), device=device())
    x = cr.arange(12).float().reshape(4, 3)
    want = (x * 2).sin().sum(1)
    assert f.run_many(x).tolist() == pytest.approx(want.tolist(), abs=1e-4)


def test_gradients_are_added_up():
    w = cr.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        (w * x).sin().sum().backward()

    f = cr.compile(f, device=device())
    x = cr.tensor([0.5, -1.0])
    f(x)
    once = w.grad.tolist()
    f(x)
    assert w.grad.tolist() == pytest.approx([2 * g for g in once], rel=1e-5)


def test_errors_name_the_device():
    with pytest.raises(ValueError, match="cpu, cuda\\[:N\\] or wgpu\\[:N\\]"):
        cr.compile(lambda x: x, device="tpu")
    with pytest.raises(ValueError, match="wgpu:99"):
        cr.compile(lambda x: x, device="wgpu:99")
    assert cr.compile(lambda x: x + 1, device="cpu")(cr.tensor([1.0])).tolist() == [2.0]


def test_an_op_without_a_kernel_is_named():
    f = cr.compile(lambda x: x.cummax(0)[0], device=device())
    with pytest.raises(ValueError, match="cummax"):
        f(cr.tensor([1.0, 3.0, 2.0]))
