"""Dtypes that are stored and computed wider: integers of all widths, float16 and bfloat16.

Expected values are NumPy's, and PyTorch's where it is there.
"""

from __future__ import annotations

import operator
import pickle
from typing import Any

import chainrule as cr
import numpy as np
import pytest

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
HALVES = ["float16", "bfloat16"]
ALL = ["bool", *INTEGERS, *HALVES, "float32", "float64"]
# PyTorch has sums of these only with themselves and with floats.
BARE = {"uint16", "uint32", "uint64"}

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


def edges(name: str) -> Any:
    """The ends of an integer dtype, and numbers between."""
    info = np.iinfo(name)
    picked = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3, 7, 100]
    return np.array(picked + ([-1, -2, -7] if info.min < 0 else []), dtype=name)


@needs_torch
@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_promotion_is_that_of_pytorch(a: str, b: str) -> None:
    if a != b and {a, b} & BARE and {a, b} <= {"bool", *INTEGERS}:
        pytest.skip("PyTorch does not promote them")
    for sa in ((2,), ()):
        for sb in ((2,), ()):
            x, y = cr.ones(sa, dtype=getattr(cr, a)), cr.ones(sb, dtype=getattr(cr, b))
            u, v = torch.ones(sa, dtype=getattr(torch, a)), torch.ones(sb, dtype=getattr(torch, b))
            assert (x + y).dtype.name == str(torch.result_type(u, v))[6:], (sa, sb)
            if a != b or a not in BARE:
                assert (x / y).dtype.name == str((u / v).dtype)[6:], (sa, sb)


@needs_torch
@pytest.mark.parametrize("a", ALL)
def test_numbers_of_python_take_the_dtype_that_pytorch_gives_them(a: str) -> None:
    for number in (True, 2, 2.5):
        for shape in ((2,), ()):
            x, u = cr.ones(shape, dtype=getattr(cr, a)), torch.ones(shape, dtype=getattr(torch, a))
            assert (x + number).dtype.name == (number + x).dtype.name == str(torch.result_type(u, number))[6:]
            for op in () if a in BARE else (operator.mul, operator.truediv):
                assert op(x, number).dtype.name == str(op(u, number).dtype)[6:], (number, shape, op)
                assert op(number, x).dtype.name == str(op(number, u).dtype)[6:], (number, shape, op)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "and_", "or_", "xor", "floordiv", "mod", "lt", "le", "eq", "ne", "gt", "ge"])
def test_integers_are_those_of_numpy(name: str, op: str) -> None:
    f = getattr(operator, op)
    a = edges(name)
    x, y = np.meshgrid(a, a[a != 0] if op in ("floordiv", "mod") else a)
    if op in ("floordiv", "mod") and x.dtype.kind == "i":
        # The one quotient that does not fit: NumPy warns, and gives what wraps around.
        keep = ~((x == np.iinfo(name).min) & (y == -1))
        x, y = x[keep], y[keep]
    want = f(x, y)
    got = f(cr.tensor(x), cr.tensor(y))
    assert got.dtype.name == want.dtype.name
    assert np.array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", INTEGERS)
def test_orders_and_shifts_are_those_of_numpy(name: str) -> None:
    a = edges(name)
    x = cr.tensor(a)
    assert np.array_equal(x.sort().values.numpy(), np.sort(a))
    assert (x.max().item(), x.min().item()) == (int(a.max()), int(a.min()))
    assert (x.argmax().item(), x.argmin().item()) == (int(a.argmax()), int(a.argmin()))
    assert np.array_equal(x.unique().numpy(), np.unique(a))
    assert np.array_equal(cr.maximum(x, x.flip(0)).numpy(), np.maximum(a, a[::-1]))
    bits = np.iinfo(name).bits
    places = (np.arange(a.size) % bits).astype(name)
    assert np.array_equal((x >> cr.tensor(places)).numpy(), a >> places)
    assert np.array_equal((x << cr.tensor(places)).numpy(), a << places)
    assert np.array_equal(x.abs().numpy(), np.abs(a)) and np.array_equal(x.sign().numpy(), np.sign(a))
    assert np.array_equal((-x).numpy(), -a) and np.array_equal((~x).numpy(), ~a)
    assert np.array_equal(x.double().numpy(), a.astype(np.float64)) and np.array_equal(x.float().numpy(), a.astype(np.float32))
    assert x.tolist() == a.tolist() and [v.item() for v in x] == a.tolist()


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_casts_of_what_both_hold(a: str, b: str) -> None:
    for n in (0, 1, 7, 1025):
        numbers = np.arange(n) % 100
        x = cr.tensor(numbers)._to_dtype(a)._to_dtype(b)
        want = (numbers != 0).astype(int) if "bool" in (a, b) else numbers
        assert x.dtype.name == b and x.long().tolist() == want.tolist()


@pytest.mark.parametrize("name", [n for n in ALL if n != "bfloat16"])
def test_numpy_shares_memory_both_ways(name: str) -> None:
    a = np.arange(6).reshape(2, 3).astype(name)
    x = cr.from_numpy(a)
    assert x.dtype.name == name and np.shares_memory(x.numpy(), a)
    assert np.array_equal(x.t().numpy(), a.T) and np.array_equal(x[:, ::2].numpy(), a[:, ::2])
    assert cr.tensor(a.astype(a.dtype.newbyteorder(">"))).tolist() == a.tolist()
    assert np.array_equal(np.from_dlpack(x), a) and cr.from_dlpack(a).dtype.name == name


@pytest.mark.parametrize("name", ALL)
def test_kept_by_pickle_copies_and_files(name: str, tmp_path: Any) -> None:
    x = cr.tensor([[1, 0, 3], [4, 5, 6]])._to_dtype(name)
    cr.save({"x": x, "view": x.t(), "none": x[:0]}, tmp_path / "x.safetensors")
    read = cr.load(tmp_path / "x.safetensors")
    for y, want in ((pickle.loads(pickle.dumps(x)), x), (x.clone(), x), (read["x"], x), (read["view"], x.t()), (read["none"], x[:0])):
        assert y.dtype == x.dtype and y.shape == want.shape and y.tolist() == want.tolist()
    assert x.element_size() == (1 if name == "bool" else x.dtype.itemsize)


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "uint64"])
def test_indices_of_all_integers(name: str) -> None:
    x = cr.arange(300)
    at = cr.tensor([3, 0, 3]).to(getattr(cr, name))
    assert x.index_select(0, at).tolist() == [3, 0, 3] and x.gather(0, at).tolist() == [3, 0, 3]
    if name == "uint8":
        # A mask to PyTorch, positions to NumPy.
        with pytest.raises(IndexError, match="x.bool"):
            x[at]
    else:
        assert x[at].tolist() == [3, 0, 3]
    if not name.startswith("u"):
        # From the end of more elements than the dtype can count.
        assert x[-at - 1].tolist() == [296, 299, 296]
    loss = cr.nn.functional.cross_entropy(cr.zeros(3, 4), at)
    assert abs(loss.item() - np.log(4)) < 1e-6


def halves(name: str, shape: tuple[int, ...], seed: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(getattr(torch, name))


def ours(t: Any, grad: bool = False) -> Any:
    return cr.tensor(t.float().numpy(), str(t.dtype)[6:], grad)


@needs_torch
@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "maximum", "exp", "tanh", "sqrt", "sigmoid", "relu", "abs", "neg", "log1p"])
def test_halves_are_computed_in_f32_and_rounded_once(name: str, op: str) -> None:
    a, b = halves(name, (37, 19), 1), halves(name, (19,), 2)
    f = getattr(torch, op)
    args = (a, b) if op in ("add", "sub", "mul", "div", "maximum") else (a.abs(),)
    want = f(*[t.float() for t in args]).to(a.dtype)
    got = getattr(cr, op)(*[ours(t) for t in args])
    assert got.dtype.name == name
    # A function that differs in the last bit of f32 may be rounded to the other side, hardly ever.
    wrong = (got.float().numpy() != want.float().numpy()).sum()
    assert wrong <= (2 if op in ("exp", "tanh", "sigmoid", "log1p") else 0), wrong
    assert want.shape == tuple(got.shape)


@needs_torch
@pytest.mark.parametrize("name", HALVES)
def test_gradients_of_halves_are_halves(name: str) -> None:
    x, w = halves(name, (5, 8), 3), halves(name, (4, 8), 4)
    u, v = x.clone().requires_grad_(), w.clone().requires_grad_()
    out = torch.nn.functional.linear(u, v).tanh()
    out.sum().backward()
    a, b = ours(x, True), ours(w, True)
    mine = cr.nn.functional.linear(a, b).tanh()
    mine.sum().backward()
    unit = 2.0**-10 if name == "float16" else 2.0**-7
    for got, want in ((mine, out), (a.grad, u.grad), (b.grad, v.grad)):
        assert got.dtype.name == name
        want = want.detach().float().numpy()
        # Two roundings of one number apart, in the widest element of the row.
        assert np.abs(got.detach().float().numpy() - want).max() <= 2 * unit * np.abs(want).max()


@needs_torch
@pytest.mark.parametrize("name", HALVES)
def test_rules_of_halves_round_once(name: str) -> None:
    x = halves(name, (40, 30), 5)
    for call in ("softmax", "log_softmax"):
        wide = x.float().requires_grad_()
        y = getattr(torch, call)(wide, 1)
        g = halves(name, (40, 30), 6)
        y.backward(g.float())
        a = ours(x, True)
        getattr(a, call)(1).backward(ours(g))
        want = wide.grad.to(x.dtype).float().numpy()
        wrong = (a.grad.float().numpy() != want).mean()
        # The result that is saved is a half, so that a few elements differ by one rounding.
        unit = 2.0**-10 if name == "float16" else 2.0**-7
        assert np.abs(a.grad.float().numpy() - want).max() <= 4 * unit and wrong < 0.9


@pytest.mark.parametrize("name", HALVES)
def test_sums_of_halves_are_not_stuck(name: str) -> None:
    # In its own dtype such a sum would stop at 2048 or 256.
    assert cr.ones(4096, dtype=getattr(cr, name)).sum().item() == 4096
    assert cr.ones(4096, dtype=getattr(cr, name)).mean().item() == 1


def test_halves_overflow_and_keep_nan() -> None:
    x = cr.tensor([60000.0, float("nan"), float("-inf"), -0.0], dtype=cr.float16)
    assert (x + x)[0].item() == float("inf") and np.isnan((x + x)[1].item()) and (x + x)[2].item() == float("-inf")
    assert np.signbit(x.numpy()[3])
    assert cr.tensor([3e38], dtype=cr.bfloat16).isfinite().all()


@pytest.mark.parametrize("name", HALVES)
def test_optimizers_train_halves(name: str) -> None:
    w = cr.tensor([2.0, -3.0], dtype=getattr(cr, name), requires_grad=True)
    for opt in (cr.optim.SGD([w], lr=0.1, momentum=0.9), cr.optim.AdamW([w], lr=0.1)):
        before = w.square().sum().item()
        for _ in range(5):
            opt.zero_grad()
            w.square().sum().backward()
            opt.step()
        assert w.dtype.name == name and w.square().sum().item() < before


def test_sums_of_integers_are_int64_and_means_floats() -> None:
    x = cr.tensor([200, 100], dtype=cr.uint8)
    assert (x.sum().dtype, x.sum().item()) == (cr.int64, 300) and x.cumsum(0).tolist() == [200, 300]
    assert x.sum(dtype=cr.uint8).item() == 44 and (x / x).dtype == cr.float32
    assert (x + x).tolist() == [144, 200] and (x + 100).tolist() == [44, 200]


def test_numbers_that_only_uint64_holds() -> None:
    big = 2**64 - 1
    assert cr.tensor([big, 2**63, 5], dtype=cr.uint64).tolist() == [big, 2**63, 5] and cr.full((2,), big, dtype=cr.uint64).tolist() == [big, big]
    for dtype in (None, cr.int64, cr.float32):
        with pytest.raises(OverflowError):
            cr.tensor([big], dtype=dtype)


def test_shown_with_the_dtype() -> None:
    assert "dtype=chainrule.int32" in repr(cr.tensor([1, 2], dtype=cr.int32))
    assert "dtype=chainrule.bfloat16" in repr(cr.tensor([1.5], dtype=cr.bfloat16))


def test_methods_and_limits() -> None:
    x = cr.tensor([1.7, -1.2])
    names = {"half": "float16", "bfloat16": "bfloat16", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "long": "int64"}
    for method, name in names.items():
        assert getattr(x, method)().dtype.name == name
    assert x.int().tolist() == [1, -1] and (cr.iinfo(cr.uint8).max, cr.iinfo(cr.int32).min) == (255, -(2**31))
    assert cr.finfo(cr.bfloat16).eps == 2.0**-7 and cr.finfo(cr.float16).max == 65504


def test_programs_refuse_small_dtypes_before_the_first_run() -> None:
    @cr.compile
    def double(x: Any) -> Any:
        return x + x

    with pytest.raises(TypeError, match="programs do not have"):
        double(cr.ones(3, dtype=cr.float16))


def test_strided_broadcast_and_empty() -> None:
    a = np.arange(12, dtype=np.int16).reshape(3, 4)
    x = cr.tensor(a)
    assert np.array_equal((x.t()[::2] + x[:, 0]).numpy(), a.T[::2] + a[:, 0])
    assert (x[:0] * 2).shape == (0, 4) and x[:0].sum().item() == 0
    assert cr.cat([x, x.flip(1)]).dtype == cr.int16 and cr.where(x > 5, x, x * 0).max().item() == 11


def test_bools_take_one_bool_as_exponent():
    b = cr.tensor([True, False])
    for got, want in [(b**True, [True, False]), (b**False, [True, True]), (cr.pow(b, True), [True, False])]:
        assert got.dtype == cr.bool and got.tolist() == want
    with pytest.raises(TypeError, match="bools"):
        b**b
