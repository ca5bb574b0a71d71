"""`autocast`: products of rounded operands, in every mode; beside PyTorch where it is there."""

import threading
import warnings

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional


def draw(*shape, seed=0):
    return cr.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def near(x):
    """The nearest numbers of bfloat16, in float64, by whole numbers."""
    a = np.ascontiguousarray(x.detach().numpy(), np.float32)
    bits = a.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def check(got, want, size=None):
    """float32, and off by the rounding of sums alone."""
    assert got.dtype == cr.float32
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=0, atol=3e-6 * np.abs(want).max())


def products():
    """Each product as a function of two tensors, and the same in NumPy."""
    return [
        ("@", lambda a, b: a @ b, (5, 40), (40, 7), lambda a, b: a @ b),
        ("linear", lambda a, b: F.linear(a, b), (3, 5, 40), (7, 40), lambda a, b: a @ b.T),
        ("bmm", lambda a, b: cr.bmm(a, b), (2, 5, 40), (2, 40, 7), lambda a, b: a @ b),
        ("einsum", lambda a, b: cr.einsum("ik,jk->ij", a, b), (5, 40), (7, 40), lambda a, b: a @ b.T),
        ("addmm", lambda a, b: cr.addmm(cr.zeros(7), a, b), (5, 40), (40, 7), lambda a, b: a @ b),
        ("conv1d", lambda a, b: F.conv1d(a, b), (2, 3, 9), (4, 3, 9), lambda a, b: np.einsum("ncl,ocl->no", a, b)[..., None]),
        ("conv_transpose1d", lambda a, b: F.conv_transpose1d(a, b), (2, 5, 1), (5, 3, 4), lambda a, b: np.einsum("nci,cok->nok", a, b)),
    ]


@pytest.mark.parametrize("name, f, left, right, whole", products(), ids=lambda x: x if isinstance(x, str) else "")
def test_products_and_gradients_round_their_operands(name, f, left, right, whole):
    a, b = draw(*left, seed=1).requires_grad_(), draw(*right, seed=2).requires_grad_()
    with cr.autocast("cpu", dtype=cr.bfloat16):
        y = f(a, b)
    check(y, whole(near(a), near(b)))
    assert not np.array_equal(y.detach().numpy(), f(a, b).detach().numpy())
    # The backward pass runs outside.
    g = draw(*y.shape, seed=3)
    y.backward(g)
    a64, b64 = (cr.tensor(near(t)).requires_grad_() for t in (a, b))
    f(a64, b64).backward(cr.tensor(near(g))) if name != "addmm" else (a64 @ b64).backward(cr.tensor(near(g)))
    check(a.grad, a64.grad.numpy())
    check(b.grad, b64.grad.numpy())


def is_on():
    x = cr.tensor([[1.00390625]])
    value = (x @ cr.ones(1, 1)).item()
    assert cr.is_autocast_enabled("cpu") == (value == 1.0)
    return value == 1.0


def test_blocks_nest_end_and_are_reset_by_errors():
    assert not is_on()
    outer = cr.autocast("cpu", dtype=cr.bfloat16)
    with outer:
        assert is_on()
        with cr.autocast("cpu", enabled=False):
            assert not is_on()
            with outer:
                assert is_on()
            assert not is_on()
        assert is_on()
    assert not is_on()
    with pytest.raises(ValueError, match="inner sizes"):
        with cr.amp.autocast("cpu"):
            cr.ones(2, 3) @ cr.ones(2, 3)
    assert not is_on()

    @cr.autocast("cpu", dtype=cr.bfloat16)
    def decorated(deep):
        return is_on() and (not deep or decorated(deep - 1))

    assert decorated(2) and not is_on()
    assert decorated.__name__ == "decorated"


def test_it_holds_for_its_thread():
    seen = []
    with cr.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(is_on()))
        thread.start()
        thread.join()
        assert is_on()
    assert seen == [False]


def test_other_dtypes_stay_as_they_are():
    a, b = draw(4, 9).double(), draw(9, 3, seed=1).double()
    whole = (a @ b).tolist()
    ints = cr.arange(6).reshape(2, 3)
    with cr.autocast("cpu"):
        assert (a @ b).tolist() == whole
        assert (ints @ ints.T).tolist() == [[5, 14], [14, 50]]
        # Sums, softmax and the loss keep all digits.
        x = draw(3, 4, seed=2)
        assert x.sum().item() == cr.tensor(x.numpy()).sum().item()
        assert (a.to(cr.bfloat16) @ b.to(cr.bfloat16)).dtype == cr.bfloat16


def test_what_is_not_there_is_said():
    with pytest.raises(RuntimeError, match="float16 are not computed on the CPU: use dtype=cr.bfloat16"):
        cr.autocast("cpu", dtype=cr.float16)
    assert not cr.autocast("cpu", dtype=cr.float16, enabled=False).enabled
    for arguments in [("cpu", cr.float32), ("cuda", cr.bfloat16), ("cuda",)]:
        with pytest.warns(UserWarning, match="switched off"):
            block = cr.autocast(*arguments)
        with block:
            assert not is_on()
        with cr.autocast("cpu"), block:
            # A block for another device leaves the processor's products alone.
            assert is_on() == (arguments[0] == "cuda")
    with pytest.raises(RuntimeError, match="no type of device 'gpu'"):
        cr.autocast("gpu")
    with pytest.raises(ValueError, match="not int"):
        cr.autocast(0)
    with pytest.raises(TypeError, match="dtype is a dtype"):
        cr.autocast("cpu", dtype="bfloat16")
    with pytest.raises(RuntimeError, match="round to bfloat16"):
        cr.set_autocast_dtype("cpu", cr.float16)


def test_switches():
    assert (cr.get_autocast_dtype("cpu"), cr.get_autocast_dtype("cuda")) == (cr.bfloat16, cr.float16)
    assert cr.get_autocast_cpu_dtype() == cr.bfloat16 and cr.amp.is_autocast_available("cpu")
    cr.set_autocast_enabled("cpu", True)
    try:
        assert is_on() and cr.is_autocast_cpu_enabled() and not cr.is_autocast_enabled()
    finally:
        cr.set_autocast_enabled("cpu", False)
    assert not is_on()


def trained(compiled, rounds, steps=4):
    """Losses and weights of a few steps."""
    cr.manual_seed(1)
    net = cr.nn.Sequential(cr.nn.Linear(12, 32), cr.nn.Tanh(), cr.nn.Linear(32, 5))
    opt = cr.optim.SGD(net.parameters(), lr=0.1)
    x, y = draw(16, 12), cr.arange(16) % 5

    def step(x, y):
        opt.zero_grad()
        with cr.autocast("cpu", dtype=cr.bfloat16, enabled=rounds):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    run = cr.compile(step) if compiled else step
    losses = [run(x, y).item() for _ in range(steps)]
    return np.array(losses), np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])


def test_compiled_steps_are_those_of_eager_ones():
    (eager, weights), (compiled, others) = trained(False, True), trained(True, True)
    whole, _ = trained(False, False)
    # A sum in another order may round an operand of the next product the other way.
    np.testing.assert_allclose(compiled, eager, rtol=0, atol=2e-4)
    np.testing.assert_allclose(others, weights, rtol=0, atol=2e-4)
    assert 1e-5 < np.abs(whole - eager).max() < 0.02


def test_a_compiled_function_is_traced_anew_where_autocast_changes():
    a, b = draw(4, 30), draw(30, 6, seed=1)

    @cr.compile
    def product(a, b):
        return a @ b

    whole, rounded = (a @ b).numpy(), near(a) @ near(b)
    for _ in range(3):
        np.testing.assert_allclose(product(a, b).numpy(), whole, rtol=0, atol=1e-5)
        with cr.autocast("cpu"):
            check(product(a, b), rounded)
            with cr.autocast("cpu", enabled=False):
                np.testing.assert_allclose(product(a, b).numpy(), whole, rtol=0, atol=1e-5)
    assert sum(map(len, product._programs.values())) == 2

    @cr.compile
    def leaves_it_on(a, b):
        cr.set_autocast_enabled("cpu", True)
        return a @ b

    with pytest.raises(cr.GradientError, match="switches autocast"):
        leaves_it_on(a, b)
    assert not is_on()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_checkpoint_computes_again_as_it_did(compiled):
    def gradients(kept):
        x, w = draw(6, 9).requires_grad_(), draw(9, 9, seed=1).requires_grad_()

        def twice(x):
            return (x @ w).tanh() @ w

        def run(x):
            with cr.autocast("cpu"):
                y = twice(x) if kept else cr.utils.checkpoint.checkpoint(twice, x, use_reentrant=False)
            (y * y).sum().backward()

        (cr.compile(run) if compiled else run)(x)
        return x.grad.tolist(), w.grad.tolist()

    assert gradients(True) == gradients(False)


def test_functions_know_the_precision_of_their_forward():
    seen = []

    class Product(cr.autograd.Function):
        @staticmethod
        @cr.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @cr.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append(cr.is_autocast_enabled("cpu"))
            return g @ b.T, a.T @ g

    class Whole(cr.autograd.Function):
        @staticmethod
        @cr.amp.custom_fwd(device_type="cpu", cast_inputs=cr.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @cr.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append(cr.is_autocast_enabled("cpu"))
            return g @ b.T, a.T @ g

    a, b = draw(3, 20).requires_grad_(), draw(20, 4, seed=1).requires_grad_()
    with cr.autocast("cpu"):
        y, z = Product.apply(a, b), Whole.apply(a, b)
    check(y, near(a) @ near(b))
    np.testing.assert_allclose(z.detach().numpy(), a.detach().numpy() @ b.detach().numpy(), rtol=0, atol=1e-5)
    y.sum().backward()
    z.sum().backward()
    assert seen == [True, False]


def test_recurrent_layers_round_their_products():
    cr.manual_seed(0)
    lstm, x = cr.nn.LSTM(6, 8, batch_first=True), draw(3, 5, 6)
    whole, _ = lstm(x)
    with cr.autocast("cpu"):
        rounded, _ = lstm(x)
    with pytest.warns(UserWarning), cr.autocast("cpu"), cr.autocast("cpu", dtype=cr.float32):
        again, _ = lstm(x)
    assert again.tolist() == whole.tolist()
    off = np.abs((rounded - whole).detach().numpy()).max()
    assert 1e-5 < off < 0.02


def test_loaders_and_scalers_work_inside():
    data = cr.utils.data.TensorDataset(draw(8, 3), cr.arange(8))
    loader = cr.utils.data.DataLoader(data, batch_size=4)
    w = cr.ones(3, 1, requires_grad=True)
    opt, scaler = cr.optim.SGD([w], lr=0.1), cr.amp.GradScaler("cpu", init_scale=4.0)
    for x, _ in loader:
        opt.zero_grad()
        with cr.autocast("cpu"):
            loss = (x @ w).square().mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    assert np.isfinite(w.detach().numpy()).all() and not is_on()


def test_states_are_those_of_pytorch():
    torch = pytest.importorskip("torch")

    def states(lib):
        out = [str(lib.get_autocast_dtype(d)).split(".")[-1] for d in ("cpu", "cuda")]

        def note():
            out.append([lib.is_autocast_enabled("cpu"), lib.is_autocast_enabled(), lib.is_autocast_enabled("cuda")])

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            note()
            with lib.autocast("cpu", dtype=lib.bfloat16):
                note()
                with lib.autocast(device_type="cpu", enabled=False):
                    note()
                with lib.autocast("cuda", dtype=lib.float16):
                    note()
                with lib.amp.autocast("cpu", dtype=lib.float32):
                    note()
                note()
            lib.set_autocast_enabled("cpu", True)
            note()
            lib.set_autocast_enabled("cpu", False)
            note()
        return out, len(told)

    assert states(cr) == states(torch)


def test_a_training_ends_where_pytorch_does():
    torch = pytest.importorskip("torch")

    def losses(lib):
        rng = np.random.default_rng(3)
        sizes = [(32, 12), (32,), (5, 32), (5,)]
        weights = [lib.tensor((rng.standard_normal(s) * 0.3).astype("float32"), requires_grad=True) for s in sizes]
        x, y = lib.tensor(rng.standard_normal((64, 12)).astype("float32")), lib.tensor(rng.integers(0, 5, 64))
        functional, out = lib.nn.functional, []
        opt = lib.optim.SGD(weights, lr=0.2)
        for _ in range(40):
            opt.zero_grad()
            with lib.autocast("cpu", dtype=lib.bfloat16):
                h = functional.linear(x, weights[0], weights[1]).tanh()
                loss = functional.cross_entropy(functional.linear(h, weights[2], weights[3]).float(), y)
            loss.backward()
            opt.step()
            out.append(loss.item())
        return np.array(out)

    ours, theirs = losses(cr), losses(torch)
    assert ours[-1] < 0.8 * ours[0]
    # PyTorch's results are bfloat16, too, which makes the tolerance.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.01)
