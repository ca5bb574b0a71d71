"""Files of nests, functions with several results, functions over rows, modules of other parameters.
"""

import io
import math

import chainrule as cr
import numpy as np
import pytest
from beside import torch_or_skip


def test_nests_are_saved(tmp_path):
    m = cr.nn.Linear(2, 3)
    o = cr.optim.Adam(m.parameters())
    m(cr.ones(1, 2)).sum().backward()
    o.step()
    state = {
        "model": m.state_dict(), "optimizer": o.state_dict(), "epoch": 3, "rng": cr.get_rng_state(), 1: None, "dtype": cr.float64,
        "nest": [1.5, math.inf, (cr.ones(2), "a"), True, np.float32(0.5), np.arange(3, dtype=np.int32)],
    }
    path = tmp_path / "run.pt"
    cr.save(state, path)
    again = cr.load(path, map_location="cpu")
    assert list(again) == list(state) and again[1] is None and again["dtype"] == cr.float64
    assert again["nest"][:2] == [1.5, math.inf] and again["nest"][2][1] == "a" and again["nest"][3] is True
    assert again["nest"][2][0].tolist() == [1, 1] and again["nest"][5].tolist() == [0, 1, 2]
    assert isinstance(again["nest"][5], np.ndarray) and again["nest"][5].dtype == np.int32
    n = cr.nn.Linear(2, 3)
    p = cr.optim.Adam(n.parameters())
    n.load_state_dict(again["model"])
    p.load_state_dict(again["optimizer"])
    cr.set_rng_state(again["rng"])
    for module, optimizer in ((m, o), (n, p)):
        optimizer.zero_grad()
        module(cr.ones(1, 2)).sum().backward()
        optimizer.step()
    assert cr.equal(m.weight, n.weight)


def test_what_is_saved_and_what_not(tmp_path):
    file = io.BytesIO()
    cr.save(cr.ones(2), file)
    file.seek(0)
    assert cr.load(file).tolist() == [1, 1]
    names = {"a": cr.ones(2), "b": cr.zeros(1)}
    cr.save(names, tmp_path / "names")
    assert list(cr.load(tmp_path / "names")) == ["a", "b"]
    for value, words in [({"a": lambda: 1}, "'a' is no tensor but function.*cannot be pickled"), ({1.5: lambda: 1}, "keys are strings")]:
        with pytest.raises(TypeError, match=words):
            cr.save(value, tmp_path / "no")
    assert not (tmp_path / "no").exists()
    with pytest.raises(ValueError, match="one device"):
        cr.load(tmp_path / "names", map_location="cuda")


def several(m):
    class Several(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, y):
            ctx.save_for_backward(x, y)
            positive = x > 0
            ctx.mark_non_differentiable(positive)
            return x * y, positive, (x * k).sum()

        @staticmethod
        def backward(ctx, product, _, total):
            x, y = ctx.saved_tensors
            return product * y + total * 3, None, product * x

    x, y = (m.tensor(v, requires_grad=True) for v in ([1.0, -2.0], [3.0, 5.0]))
    product, positive, total = Several.apply(x, 3, y)
    (product.sin().sum() + total * 2).backward()
    both = x.grad.tolist() + y.grad.tolist()
    x.grad = None
    Several.apply(x, 3, y)[0].sum().backward()
    return both, x.grad.tolist(), positive.tolist(), total.item(), positive.requires_grad


def test_functions_with_several_results():
    both, alone, positive, total, flows = several(cr)
    want = [3 * math.cos(3) + 6, 5 * math.cos(-10) + 6, math.cos(3), -2 * math.cos(-10)]
    assert both == pytest.approx(want, rel=1e-6) and alone == [3, 5] and positive == [True, False] and total == -3 and not flows
    torch = torch_or_skip()
    assert several(torch)[0] == pytest.approx(both, rel=1e-6) and several(torch)[1:] == (alone, positive, total, flows)


def test_functions_with_a_setup():
    class Square(cr.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = cr.tensor([3.0], requires_grad=True)
    Square.apply(x).backward(cr.ones(1))
    assert x.grad.item() == 6
    assert cr.check.gradcheck(Square.apply, (cr.tensor([0.7], dtype=cr.float64),))

    class Mixed(Square):
        @staticmethod
        def forward(x):
            return x, x.double()

    with pytest.raises(TypeError, match="of one dtype"):
        Mixed.apply(x)


def test_functions_over_rows():
    f = cr.vmap(lambda a, b: {"dot": (a * b).sum(), "twice": a * 2}, in_dims=(0, None), out_dims=0)
    out = f(cr.arange(6.0).reshape(3, 2), cr.ones(2))
    assert out["dot"].tolist() == [1, 5, 9] and out["twice"].shape == (3, 2)
    x = cr.randn(4, 3, dtype=cr.float64)
    rows = cr.vmap(cr.func.grad(lambda t: (t**3).sum()))(x)
    assert rows.allclose(3 * x**2)
    with pytest.raises(ValueError, match="equally many"):
        cr.vmap(cr.dot)(cr.ones(2, 3), cr.ones(3, 3))


def test_modules_of_other_parameters():
    m = cr.nn.Sequential(cr.nn.Linear(2, 2), cr.nn.Linear(2, 1))
    zero = {name: cr.zeros_like(p) for name, p in m.named_parameters()}
    before = m(cr.ones(1, 2)).item()
    assert cr.func.functional_call(m, zero, cr.ones(1, 2)).item() == 0 and m(cr.ones(1, 2)).item() == before
    with pytest.raises(ValueError, match="no parameter or buffer 'x'"):
        cr.func.functional_call(m, {"x": cr.ones(1)}, cr.ones(1, 2))


def test_norms_of_all_gradients():
    w = cr.tensor([3.0, 4.0], requires_grad=True)
    (w * cr.tensor([3.0, 4.0])).sum().backward()
    assert cr.nn.utils.get_total_norm([w.grad]).item() == 5
    assert cr.nn.utils.clip_grad_norm_([w], max_norm=1, foreach=True).item() == 5 and w.grad.norm().item() == pytest.approx(1, rel=1e-5)
    w.grad = cr.tensor([math.nan, 1.0])
    with pytest.raises(RuntimeError, match="is nan"):
        cr.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


def test_parts_that_are_computed_again():
    from chainrule.utils.checkpoint import checkpoint, checkpoint_sequential

    cr.manual_seed(0)
    net = cr.nn.Sequential(*(cr.nn.Sequential(cr.nn.Linear(4, 4), cr.nn.Dropout(0.5)) for _ in range(6)))
    x = cr.ones(2, 4, requires_grad=True)

    def run(f):
        cr.manual_seed(1)
        x.grad = None
        net.zero_grad()
        f(x).sum().backward()
        return [x.grad.tolist(), *(p.grad.tolist() for p in net.parameters())]

    want = run(net)
    assert run(lambda x: checkpoint_sequential(net, 3, x)) == want
    assert run(lambda x: net[1:](checkpoint(net[0], x, use_reentrant=False))) == want


def test_an_axis_that_is_not_given_is_that_of_pytorch():
    torch = torch_or_skip()
    for shape in ((3,), (2, 3), (2, 3, 4)):
        a = np.random.default_rng(0).normal(size=shape)
        for name in ("softmax", "log_softmax"):
            with pytest.warns(UserWarning):
                ours, theirs = (getattr(m.nn.functional, name)(m.tensor(a)) for m in (cr, torch))
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_small_things():
    assert cr.randint(10, size=(3,)).shape == (3,) and cr.Tensor(2, 3).shape == (2, 3) and cr.Tensor([2, 3]).tolist() == [2, 3]
    x = cr.ones(2, 3)
    assert cr.FloatTensor(x.size()).shape == (2, 3) and cr.zeros(2, dtype=float).dtype == cr.float64 and isinstance(cr.Tensor(3), cr.Tensor)
    y = cr.tensor([-1.0, 2.0])
    assert cr.nn.functional.relu_(y) is y and y.tolist() == [0, 2]
    # A mask to PyTorch, positions to NumPy.
    for index in (cr.ByteTensor([0, 1]), x.byte()[:1]):
        with pytest.raises(IndexError, match="x.bool"):
            y[index]
        with pytest.raises(IndexError, match="x.bool"):
            y[index] = 1.0
    assert y[np.array([1, 1, 0], np.uint8)].tolist() == [2, 2, 0]
    cr.use_deterministic_algorithms(True)
    cr.set_float32_matmul_precision("high")
    assert cr.normal(cr.zeros(3)).shape == (3,)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_mode_and_trapezoid_beside_torch(dim, keepdim):
    torch = torch_or_skip()
    a = np.random.default_rng(0).integers(0, 3, (4, 6))
    ours, theirs = cr.tensor(a).mode(dim, keepdim), torch.tensor(a).mode(dim, keepdim)
    np.testing.assert_array_equal(ours.values.numpy(), theirs.values.numpy())
    assert (np.take_along_axis(a, (ours.indices if keepdim else ours.indices.unsqueeze(dim)).numpy(), dim).squeeze() == ours.values.numpy().squeeze()).all()
    x = np.sort(np.random.default_rng(1).normal(size=a.shape[dim]))
    for points in ((), (x,)):
        got, want = (m.trapezoid(m.tensor(a * 1.0), *map(m.tensor, points), dim=dim).numpy() for m in (cr, torch))
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_model_cast_after_its_optimizer_was_made():
    torch = torch_or_skip()

    def run(m):
        m.manual_seed(0)
        net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 1))
        o = m.optim.Adam(net.parameters(), lr=0.1)
        net.double()
        for _ in range(4):
            o.zero_grad()
            net(m.ones(2, 3, dtype=m.float64)).sum().backward()
            o.step()
        return [p.detach().numpy() for p in net.parameters()]

    for a, b in zip(run(cr), run(torch)):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_chained_schedules():
    torch = torch_or_skip()

    def run(m):
        o = m.optim.SGD([m.ones(1, requires_grad=True)], lr=1.0)
        first, second = m.optim.lr_scheduler.ExponentialLR(o, 0.9), m.optim.lr_scheduler.MultiStepLR(o, [2, 4], 0.5)
        rates = []
        for _ in range(6):
            o.step()
            first.step()
            second.step()
            rates.append(o.param_groups[0]["lr"])
        return rates

    assert run(cr) == pytest.approx(run(torch), rel=1e-12)
