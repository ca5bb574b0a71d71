"""Compiled functions on a device, beside the processor: WebGPU, or the device that
`CHAINRULE_DEVICE` names. Skipped where the package or the machine has none.
"""

import copy
import gc
import io
import os
import pickle
import threading

import numpy as np
import pytest

import chainrule as cr


def device():
    name = os.environ.get("CHAINRULE_DEVICE", "wgpu")
    try:
        cr.compile(lambda x: x, device=name)
    except ValueError as e:
        pytest.skip(str(e))
    return name


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


def a_step(device, lr=0.1, **options):
    """A training step, its weights, and its optimizer."""
    cr.manual_seed(3)
    w = (cr.randn(3, 1) * 0.5).requires_grad_()
    sgd = cr.optim.SGD([w], lr=lr, momentum=0.9)

    def step(x, y):
        sgd.zero_grad()
        loss = ((x @ w).tanh() - y).square().mean()
        loss.backward()
        sgd.step()
        return loss.detach()

    return cr.compile(step, device=device, **options), w, sgd


def a_batch():
    return cr.randn(16, 3), cr.randn(16, 1)


READS = {
    "item": lambda w: w.sum().item(),
    "tolist": lambda w: w.tolist()[0][0],
    "numpy": lambda w: w.detach().numpy()[0, 0],
    "array": lambda w: np.asarray(w.detach())[0, 0],
    "data": lambda w: w.data[0, 0].item(),
    "repr": lambda w: repr(w),
    "op": lambda w: (w * 1).detach().tolist(),
    "pickle": lambda w: pickle.loads(pickle.dumps(w)).tolist(),
    "deepcopy": lambda w: copy.deepcopy(w.detach().clone()).tolist(),
    "dlpack": lambda w: np.from_dlpack(w.detach())[0, 0],
    "clone": lambda w: w.detach().clone().tolist(),
    "bool": lambda w: bool((w != 0).any()) and w[1].item(),
    "float": lambda w: float(w[0, 0]),
    "format": lambda w: f"{w[0, 0].item():.8f}",
    "index": lambda w: w[cr.tensor([1])].tolist(),
}


@pytest.mark.parametrize("name", READS)
def test_each_read_fetches_what_a_call_changed(name):
    step, w, _ = a_step(device())
    x, y = a_batch()
    read = READS[name]
    seen = [read(w)]
    for _ in range(3):
        step(x, y)
        seen.append(read(w))
    assert step.eager is None
    assert all(str(a) != str(b) for a, b in zip(seen, seen[1:])), seen


def test_views_arrays_and_the_optimizer_follow():
    step, w, sgd = a_step(device())
    other, v, _ = a_step(None)
    x, y = a_batch()
    views = {k: (t.detach(), t.detach()[1:], t.detach().numpy()) for k, t in {"on": w, "off": v}.items()}
    for _ in range(4):
        step(x, y)
        other(x, y)
        for on, off in zip(views["on"], views["off"]):
            assert on.tolist() == [pytest.approx(row, abs=1e-5) for row in off.tolist()]
    state = sgd.state_dict()["state"][0]["momentum_buffer"]
    assert state.abs().sum().item() > 0 and sgd.state[w]["momentum_buffer"].tolist() == state.tolist()


def test_a_write_wins_over_what_the_device_has(tmp_path):
    step, w, _ = a_step(device())
    x, y = a_batch()
    step(x, y)
    best = w.detach().clone()
    best_loss = step(x, y).item()
    for _ in range(3):
        step(x, y)
    with cr.no_grad():
        w.copy_(best)
    assert w.tolist() == best.tolist()
    step(x, y)
    with cr.no_grad():
        w[0] = 7.0
    assert w[0].item() == 7.0 and w[1].item() != best[1].item()
    cr.save({"w": w}, tmp_path / "w.pt")
    assert cr.load(tmp_path / "w.pt")["w"].tolist() == w.tolist()
    assert best_loss > 0


def test_values_outlive_the_program():
    step, w, _ = a_step(device())
    x, y = a_batch()
    step(x, y)
    step(x, y)
    del step
    gc.collect()
    off = trained_steps(None, 2)
    assert w.tolist() == [pytest.approx(row, abs=1e-5) for row in off.tolist()]


def trained_steps(device, n):
    step, w, _ = a_step(device)
    x, y = a_batch()
    for _ in range(n):
        step(x, y)
    return w.detach()


def test_a_forked_process_reads_what_the_device_had():
    if not hasattr(os, "fork"):
        pytest.skip("no forks here")
    step, w, _ = a_step(device())
    x, y = a_batch()
    step(x, y)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = repr(w.detach().tolist())
            try:
                step(x, y)
            except ValueError as e:
                text += f"|{e}"
            os.write(writes, text.encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as f:
        seen = f.read()
    os.waitpid(child, 0)
    values, why = seen.split("|")
    assert eval(values) == w.tolist()
    assert "forked" in why
    step(x, y)


def test_threads_read_while_another_runs():
    step, w, _ = a_step(device())
    x, y = a_batch()
    step(x, y)
    stop, errors = threading.Event(), []

    def read():
        try:
            while not stop.is_set():
                assert all(abs(v) < 100 for row in w.detach().tolist() for v in row)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for t in threads:
        t.start()
    for _ in range(100):
        step(x, y)
    stop.set()
    for t in threads:
        t.join(60)
    assert not errors and not any(t.is_alive() for t in threads)


@pytest.mark.parametrize("on", ["cpu", "wgpu"])
def test_many_steps_are_those_of_single_calls(on):
    on = device() if on == "wgpu" else None
    cr.manual_seed(5)
    batches = [a_batch() for _ in range(7)] + [(cr.randn(4, 3), cr.randn(4, 1))] + [a_batch() for _ in range(3)]
    single, w, sgd = a_step(on)
    many, v, sgd_many = a_step(on)
    for lr in (0.1, 0.05):
        for s in (sgd, sgd_many):
            s.param_groups[0]["lr"] = lr
        want = [single(x, y).item() for x, y in batches]
        got = [loss.item() for loss in many.run_steps(batches)]
        assert got == want and v.tolist() == w.tolist()
    assert many.run_steps([]) == []


def test_many_steps_see_flags_and_gradients():
    for on in (None, device()):
        layer = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.BatchNorm1d(4))
        f = cr.compile(lambda x: layer(x).sum(1), device=on, compare_first=False)
        rows = [cr.randn(5, 3) for _ in range(4)]
        f.run_steps(rows)
        count = layer[1].num_batches_tracked.item()
        assert count == 4
        layer.eval()
        got = f.run_steps(rows)
        assert layer[1].num_batches_tracked.item() == count
        with cr.no_grad():
            want = [layer(x).sum(1) for x in rows]
        for a, b in zip(got, want):
            assert a.tolist() == pytest.approx(b.tolist(), abs=1e-4)
        w = cr.tensor([1.0, 2.0], requires_grad=True)

        def add(x):
            (w * x).sum().backward()

        add = cr.compile(add, device=on)
        add.run_steps([cr.tensor([1.0, 0.5])] * 5)
        assert w.grad.tolist() == [5.0, 2.5]


@pytest.mark.parametrize("on", ["cpu", "wgpu"])
def test_the_first_step_that_is_not_finite_is_named(on):
    step, _, _ = a_step(device() if on == "wgpu" else None)
    batches = [a_batch() for _ in range(9)]
    x, y = batches[6]
    batches[6] = x, y + float("inf")
    with pytest.warns(RuntimeWarning, match=r"result 0 of step 6 is (inf|nan), the first that is not finite in 9 steps"):
        losses = step.run_steps(batches)
    assert len(losses) == 9 and np.isfinite(losses[5].item())


def test_the_first_run_is_compared():
    def loud(x):
        return (x * 1e8).sin().sum()

    # An argument of the sine so large that no two libraries agree on it.
    x = cr.linspace(0, 1, 1000)
    try:
        cr.compile(loud, device=device())(x)
    except ValueError as e:
        assert "parts from the processor's" in str(e) and "result 0" in str(e) and "\n" not in str(e)
    cr.compile(loud, device=device(), compare_first=False)(x)
    f = cr.compile(lambda x: x.sin().sum(), device=device())
    assert f(x).item() == pytest.approx(x.sin().sum().item(), rel=1e-4)


LOST = {
    **READS,
    "detach": lambda w: w.detach(),
    "stride": lambda w: w.stride(),
    "view": lambda w: w.view(-1).tolist(),
    "data_ptr": lambda w: w.data_ptr(),
    "storage_offset": lambda w: w.storage_offset(),
    "matmul": lambda w: w.T @ w,
    "in place": lambda w: w.detach().add_(1.0),
    "backward": lambda w: (w * w).sum().backward(),
    "save": lambda w: cr.save({"w": w}, io.BytesIO()),
    "state_dict": lambda w: cr.nn.ParameterList([w]).state_dict()["0"].tolist(),
    "compiled": lambda w: cr.compile(lambda x: (x + w).sum())(cr.ones(3, 1)),
    "copy": lambda w: cr.zeros(3, 1).copy_(w.detach()),
    "equal": lambda w: cr.equal(w, w),
    "step": lambda w: _stepped(w),
    "fill": lambda w: w.data.fill_(1.0),
    "set an item": lambda w: w.data.__setitem__(0, 1.0),
}


def _stepped(w):
    w.grad = cr.ones(3, 1)
    cr.optim.SGD([w], lr=0.1).step()


@pytest.mark.parametrize("name", LOST)
def test_a_lost_device_is_one_error_of_each_read(name):
    w = cr.randn(3, 1).requires_grad_()
    before = w.data
    cr._chainrule._lose(w)
    for _ in range(2):
        with pytest.raises(ValueError, match="the device was lost"):
            LOST[name](w)
    with pytest.raises(ValueError, match="the device was lost"):
        before.tolist()
    assert w.shape == (3, 1) and w.requires_grad
    with cr.no_grad():
        w.copy_(cr.ones(3, 1))
    assert w.tolist() == [[1.0]] * 3
    assert cr.ones(2).sum().item() == 2.0


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


def test_a_device_drops_weights_of_attention():
    n, p = 32, 0.25
    zeros, units = cr.zeros(n, 8), cr.tensor([[float(i == j) for j in range(n)] for i in range(n)])

    def f(q, v):
        v = v.detach().requires_grad_()
        y = cr.nn.functional.scaled_dot_product_attention(q, q, v, dropout_p=p)
        (y * units).sum().backward()
        return y.detach(), v.grad

    f = cr.compile(f, device=device())
    (first, of_values), (second, _) = f(zeros, units), f(zeros, units)
    # Each weight is 1 / n, or 0; the gradient of the values is the mask of the same run, turned.
    assert all(w == 0 or w == pytest.approx(1 / n / (1 - p), rel=1e-4) for row in first.tolist() for w in row)
    assert of_values.T.tolist() == [pytest.approx(row, rel=1e-4) for row in first.tolist()]
    kept = (first != 0).float().mean().item()
    assert abs(kept - (1 - p)) < 0.07 and first.tolist() != second.tolist()


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
