"""Names of PyTorch that scripts have and that mean little here: typed constructors, devices,
switches.
"""

import copy
import pickle

import chainrule as cr
import pytest
from chainrule.autograd import Variable


def test_typed_constructors():
    x = cr.FloatTensor([1, 2])
    assert x.dtype == cr.float32 and cr.LongTensor([[1]]).dtype == cr.int64
    assert cr.FloatTensor(2, 3).shape == (2, 3) and cr.FloatTensor(x.size()).shape == (2,)
    assert cr.Tensor(x.size()).shape == (2,)
    assert x.type(cr.DoubleTensor).dtype == cr.float64 and x.type("torch.LongTensor").dtype == cr.int64
    assert isinstance(x, cr.FloatTensor) and not isinstance(x, (cr.LongTensor, cr.cuda.FloatTensor))
    assert x.type_as(cr.tensor([1])).dtype == cr.int64 and x.new(2, 2).dtype == cr.float32


@pytest.mark.parametrize("call, words", [
    (lambda: cr.cuda.FloatTensor(2), "one device"), (lambda: cr.cuda.ByteTensor([1]), "one device"),
    (lambda: cr.ones(1).to("complex32"), "one device"), (lambda: cr.zeros(2, dtype="complex32"), "no dtype"),
    (lambda: cr.tensor([1j], dtype="float32"), "complex"), (lambda: cr.ones(1).cuda(), "one device"), (lambda: cr.device("cuda"), "one device"),
    (lambda: cr.jit.script(abs), "use chainrule.compile"), (lambda: cr.FloatTensor(cr.tensor([1])), "int64 is not taken"),
    (lambda: cr.ones(1).type(cr.cuda.FloatTensor), "one device"), (lambda: cr.cuda.synchronize(), "one device"),
    (lambda: cr.iinfo(cr.float32), "use finfo"), (lambda: Variable([1]), "a tensor is needed"),
])
def test_what_is_not_there_says_so_in_one_line(call, words):
    with pytest.raises((TypeError, ValueError, RuntimeError, NotImplementedError), match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_variables():
    x = cr.ones(2)
    v = Variable(x, requires_grad=True)
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2, 2] and isinstance(x, Variable) and not x.requires_grad
    v.data[0] = 9
    assert x[0] == 9
    assert not Variable(v * 2).requires_grad


def test_devices_and_switches():
    d = cr.device("cuda" if cr.cuda.is_available() else "cpu")
    assert d.type == "cpu" and d == "cpu" == str(d) and cr.ones(1).device == d
    assert pickle.loads(pickle.dumps(d)) == copy.deepcopy(d) == d and repr(d) == "device(type='cpu')"
    assert cr.ones(1).to(d).is_cuda is False
    cr.backends.cudnn.benchmark = True
    assert not (cr.backends.mps.is_available() or cr.accelerator.is_available() or cr.cuda.device_count())
    cr.cuda.manual_seed_all(1)


def test_mixed_precision_keeps_what_is_no_product():
    w = cr.ones(2, requires_grad=True)
    opt, scaler = cr.optim.SGD([w], lr=0.5), cr.amp.GradScaler()
    with cr.autocast("cpu", dtype=cr.bfloat16):
        loss = (w * 2).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [0, 0]


def test_limits():
    torch = pytest.importorskip("torch")
    for name in ("float32", "float64"):
        ours, theirs = cr.finfo(getattr(cr, name)), torch.finfo(getattr(torch, name))
        assert all(getattr(ours, k) == getattr(theirs, k) for k in ("bits", "eps", "max", "min", "tiny", "resolution"))
    assert cr.iinfo(cr.int64).max == torch.iinfo(torch.int64).max


def random(m):
    m.manual_seed(4)
    return (
        m.zeros(3, dtype=m.int64).random_().tolist(), m.zeros(2).random_(0, 100).tolist(), m.zeros(2).exponential_().tolist(),
        m.zeros(4).bernoulli_(0.5).tolist(),
    )


def test_random_in_place_as_pytorch_wrote_it_down():
    whole, some, waits, coins = random(cr)
    assert whole == [8615179906827886766, 871281288361132741, 8719487306291607912]
    assert some == [19, 76] and coins == [1, 0, 1, 1]
    assert waits == pytest.approx([2.96875, 0.8013946413993835], rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("bounds", [(), (10,), (-3, 7)])
def test_random_integers_beside_torch(dtype, bounds):
    torch = pytest.importorskip("torch")
    if dtype == "bool" and bounds:
        return
    cr.manual_seed(1)
    torch.manual_seed(1)
    ours, theirs = cr.zeros(5, dtype=getattr(cr, dtype)), torch.zeros(5, dtype=getattr(torch, dtype))
    assert ours.random_(*bounds).tolist() == theirs.random_(*bounds).tolist()
    with pytest.raises(ValueError, match="no integer from 3"):
        ours.random_(3, 3)
