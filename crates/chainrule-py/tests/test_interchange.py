"""Memory to and from others."""

import chainrule as cr
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("take", [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[1], lambda a: a[:0]])
def test_numpy_without_copies(dtype, take):
    a = take(np.arange(12).reshape(3, 4).astype(dtype))
    x = cr.from_numpy(a)
    np.testing.assert_array_equal(x.numpy(), a)
    assert x.dtype.name == dtype
    if a.size:
        assert x.data_ptr() == a.__array_interface__["data"][0]
    b = x.numpy()
    assert not b.flags.writeable and b.strides == a.strides or not a.size
    np.testing.assert_array_equal(cr.tensor(a).T.numpy(), a.T)
    np.testing.assert_array_equal(np.asarray(x), a)


def test_memory_outlives_its_maker():
    x = cr.from_numpy(np.arange(1000.0))
    a = (x + 1).numpy()
    del x
    cr.zeros(1000, dtype=cr.float64)
    assert a.sum() == 500500.0


def test_other_dtypes():
    assert cr.tensor(np.array([1, 2], dtype=np.int32)).dtype == cr.int32
    assert cr.tensor(np.array([1, 2], dtype=np.float16)).dtype == cr.float16
    assert cr.tensor(np.array([1, 2], dtype=">f8")).tolist() == [1.0, 2.0]
    for bad in (np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError):
            cr.tensor(bad)


def test_array_protocol():
    x = cr.ones(2, requires_grad=True)
    with pytest.raises(cr.GradientError, match="detach"):
        np.asarray(x)
    assert np.asarray(x.detach(), dtype=np.float64).dtype == np.float64
    y = np.ones(2) + x
    assert isinstance(y, cr.Tensor) and y.requires_grad


def test_dlpack():
    x = cr.arange(6).reshape(2, 3)
    a = np.from_dlpack(x)
    assert a.tolist() == x.tolist() and not a.flags.writeable
    y = cr.from_dlpack(np.arange(4.0))
    assert y.tolist() == [0, 1, 2, 3]
    assert cr.from_dlpack(np.arange(4.0), copy=True).tolist() == [0, 1, 2, 3]
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        x.__dlpack__(copy=False)
    with pytest.raises(cr.GradientError):
        cr.ones(1, requires_grad=True).__dlpack__()


def test_consumers_that_write_into_capsules_change_nothing():
    torch = pytest.importorskip("torch")
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = (w * w).sum()
    torch.from_dlpack(w.detach()).zero_()
    torch.from_dlpack(w.detach(), copy=True).zero_()
    loss.backward()
    assert w.grad.tolist() == [2, 4, 6] and w.tolist() == [1, 2, 3]


@pytest.mark.parametrize("lives", [True, False])
@pytest.mark.parametrize("how", ["backward", "grad"])
def test_writes_into_shared_memory_are_told(lives, how):
    torch = pytest.importorskip("torch")
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = (w * w).sum()
    t = torch.from_dlpack(w.detach(), copy=False)
    assert t.data_ptr() == w.data_ptr()
    go = loss.backward if how == "backward" else lambda: cr.autograd.grad(loss, w)
    t.zero_()
    if not lives:
        del t
    with pytest.raises((ValueError, RuntimeError), match="wrote into the read-only memory"):
        go()
    if lives:
        t.copy_(torch.tensor([1.0, 2.0, 3.0]))
        go()
        del t
    # The next one is not concerned.
    x = cr.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == 6


def test_bools_of_any_byte():
    a = np.array([0, 1, 2, 255, 0, 128], dtype=np.uint8).view(bool)
    for x in (cr.from_numpy(a), cr.tensor(a), cr.from_dlpack(a), cr.from_numpy(a[::-1]).flip(0)):
        assert x.tolist() == [False, True, True, True, False, True]
        assert x.sum().item() == 4 and x.count_nonzero().item() == 4 and x.to(cr.float32).sum().item() == 4
        assert (x == True).sum().item() == 4 and (~x).sum().item() == 2  # noqa: E712


def test_safetensors(tmp_path):
    path = tmp_path / "a.safetensors"
    state = {"w": cr.randn(2, 3), "n": cr.tensor(3)}
    cr.save(state, path)
    again = cr.load(path)
    assert set(again) == {"w", "n"} and cr.equal(again["w"], state["w"])
    with pytest.raises(FileNotFoundError):
        cr.load(tmp_path / "none")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises((ValueError, OSError), match="damaged"):
        cr.load(path)
    path.write_bytes(b"rubbish")
    with pytest.raises((ValueError, OSError)):
        cr.load(path)


def test_torch_state():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    ours = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.BatchNorm1d(4), cr.nn.Linear(4, 2))
    ours.load_state_dict(theirs.state_dict())
    x = np.random.randn(5, 3).astype("float32")
    np.testing.assert_allclose(ours(cr.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)
    theirs.load_state_dict(cr.io.to_torch(ours.state_dict()))
    t = torch.from_dlpack(cr.arange(3))
    assert t.tolist() == [0, 1, 2]


def test_functions_of_numpy():
    a = np.zeros(2)
    b, x = a, cr.tensor([1.0, 4.0], dtype=cr.float64)
    a += x
    a *= x
    assert a is b and b.tolist() == [1, 16]
    for f in (np.add, np.subtract, np.multiply, np.true_divide, np.power, np.less, np.greater_equal):
        found = f(np.array([2.0, 3.0]), x)
        assert isinstance(found, cr.Tensor) and found.tolist() == f(np.array([2.0, 3.0]), x.numpy()).tolist()
    assert np.maximum(x, 2.0).tolist() == [2, 4] and np.add.reduce(x).item() == 5
    assert [p.tolist() for p in np.divmod(x, 3.0)] == [[0, 1], [1, 1]]
    with pytest.raises(TypeError, match="out= of a function of NumPy is an array"):
        np.add(a, 1.0, out=x)
    with pytest.raises(cr.GradientError, match="detach"):
        np.sqrt(x.requires_grad_())


def test_negated_views_of_pytorch_keep_their_sign():
    torch = pytest.importorskip("torch")
    negated = torch.complex(torch.ones(2), torch.tensor([3.0, -4.0])).conj().imag
    assert negated.is_neg()
    assert cr.from_dlpack(negated).tolist() == [-3.0, 4.0]
    assert cr.torch.to_chainrule(negated).tolist() == [-3.0, 4.0]
    assert cr.io.of_torch(negated.bfloat16()).tolist() == [-3.0, 4.0]
    with pytest.raises(BufferError, match="negates its memory"):
        cr.from_dlpack(negated, copy=False)
