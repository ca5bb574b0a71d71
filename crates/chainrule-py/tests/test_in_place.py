"""Writes that change a handle's place or shape, take another dtype, or go to `out=`; the numbers
are what PyTorch documents and gives.
"""

import chainrule as cr
import pytest


def test_handles_take_the_place_of_a_view():
    x = cr.arange(6.0).reshape(2, 3)
    row = x[0]
    assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3)
    x[0, 0], row[2] = 9.0, 7.0
    assert x.tolist() == [[9, 3], [1, 4], [7, 5]] and row.tolist() == [9, 1, 7]
    x.unsqueeze_(0).mul_(2)
    assert x.shape == (1, 3, 2) and row.tolist() == [18, 2, 14]
    x.squeeze_().transpose_(0, 1).swapaxes_(0, 1)
    assert x.shape == (3, 2) and cr.zeros(1, 3, 1).squeeze_(0).shape == (3, 1)


def test_gradients_flow_through_a_handle_that_turned():
    x = cr.ones(2, 3, requires_grad=True)
    y = x * cr.arange(3.0)
    y.t_().unsqueeze_(0)
    (y * cr.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 2, 8], [0, 3, 10]]
    with pytest.raises(cr.GradientError, match="leaf"):
        x.unsqueeze_(0)
    with cr.no_grad():
        x.unsqueeze_(0)
    assert x.shape == (1, 2, 3) and x.requires_grad
    with pytest.raises(Exception, match="from outside"):
        outside = cr.ones(2)
        cr.compile(lambda x: (outside.unsqueeze_(0), x + 1)[1])(cr.ones(1))


def test_sizes_in_place():
    x = cr.arange(6.0)
    whole = x[:]
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    x[0, 0] = 5.0
    assert whole.tolist() == [5, 1, 2, 3, 4, 5]
    assert x.resize_(6).shape == (6,) and x.resize_as_(cr.ones(1, 2)).shape == (1, 2)
    y, z = cr.ones(2), cr.zeros(3)
    y.set_(z)
    z[0] = 5.0
    assert y.tolist() == [5, 0, 0]


def test_dtypes_of_writes():
    x = cr.ones(3, dtype=cr.int32)
    x += cr.ones(3, dtype=cr.int64) * 5
    assert x.dtype == cr.int32 and x.tolist() == [6, 6, 6]
    b = cr.ones(3, dtype=cr.uint8)
    b += cr.tensor([255, 1, 2])
    assert b.tolist() == [0, 2, 3]
    whole = cr.ones(3, dtype=cr.int64)
    for write in (lambda: whole.add_(1.5), lambda: whole.div_(2), lambda: whole.bool().add_(whole)):
        with pytest.raises(TypeError, match="keeps the dtype"):
            write()
    assert whole.copy_(cr.tensor([1.5, -2.5, 3.9])).tolist() == [1, -2, 3] and whole.fill_(2.7).tolist() == [2, 2, 2]
    assert cr.zeros(2, dtype=cr.bool).fill_(2).tolist() == [True, True]


def test_writes_to_elements_that_are_one_in_memory():
    x = cr.zeros(1, 3)
    for write in (lambda y: y.add_(1), lambda y: y.copy_(cr.ones(2, 3))):
        with pytest.raises(RuntimeError, match="one in memory"):
            write(x.expand(2, 3))
    x.expand(2, 3)[0].add_(1)
    assert x.tolist() == [[1, 1, 1]]


def test_sizes_of_one_before_what_is_put():
    x = cr.zeros(2, 3)
    x[0] = cr.ones(1, 1, 3)
    x[1, 2] = cr.tensor([[4.0]])
    assert x.tolist() == [[1, 1, 1], [0, 0, 4]]


def test_results_go_to_out():
    out = cr.empty(3)
    assert cr.add(cr.ones(3), 2, out=out) is out and out.tolist() == [3, 3, 3]
    rows = cr.zeros(3, 2)
    cr.mul(cr.ones(2), 4, out=rows[1])
    assert rows.tolist() == [[0, 0], [4, 4], [0, 0]]
    values, places = cr.empty(2), cr.empty(2, dtype=cr.int64)
    cr.max(cr.arange(4.0).reshape(2, 2), 1, out=(values, places))
    assert values.tolist() == [1, 3] and places.tolist() == [1, 1]
    product = cr.zeros(2, 2)
    cr.matmul(cr.ones(2, 3), cr.ones(3, 2), out=product)
    cr.stack([out, out], out=(both := cr.zeros(2, 3)))
    cr.arange(3, out=(numbers := cr.empty(3)))
    assert product.tolist() == [[3, 3], [3, 3]] and both.sum().item() == 18 and numbers.dtype == cr.float32
    assert cr.exp(cr.zeros(2), out=cr.empty(0)).tolist() == [1, 1] and cr.add(out, 1, out=None).tolist() == [4, 4, 4]
    with pytest.warns(UserWarning, match="becomes"):
        cr.add(cr.ones(3), 1, out=cr.ones(2))
    with pytest.raises(cr.GradientError, match="no gradient"):
        cr.add(cr.ones(3, requires_grad=True), 1, out=cr.empty(3))
    with pytest.raises(TypeError, match="keeps the dtype"):
        cr.div(cr.ones(2), 3, out=cr.ones(2, dtype=cr.int64))
    with pytest.raises(TypeError, match="unexpected keyword"):
        cr.add(cr.ones(1), 1, output=out)


def test_views_know_their_base():
    x = cr.zeros(3)
    assert x[1:]._base is x and x._base is None and x[1:]._is_view() and not x._is_view()
    y = cr.ones(1, requires_grad=True) * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_a_view_of_a_view_in_another_order_is_refused():
    x = cr.zeros(3, 2)
    for turned in (x.t(), x[:, :1].expand(3, 2), cr.zeros(3, 4)[:, :2], x.detach().t()[1:].detach()):
        if turned.shape[0] > 1:
            with pytest.raises(RuntimeError, match="use reshape"):
                turned.view(-1)
    assert x.t().view(2, 3, 1).shape == (2, 3, 1) and x.t().contiguous().view(-1).shape == (6,) and x.flip(0).view(-1).shape == (6,)


def test_a_view_of_turned_elements_is_one():
    # The layout of the result of an op may be another one in PyTorch.
    x = cr.zeros(3, 2).t() + 0
    flat = x.view(-1)
    flat[4] = 9
    assert x.tolist() == [[0, 0, 0], [0, 9, 0]]
    x[0, 1] = 5
    assert flat.tolist() == [0, 5, 0, 0, 9, 0]
    x.view(3, 2)[2].fill_(7)
    assert flat.tolist() == [0, 5, 0, 0, 7, 7]
    w = cr.arange(6.0).reshape(3, 2).requires_grad_()
    y = w.t() * 2
    y.view(-1)[1:3] *= 10
    (y * y).sum().backward()
    assert w.grad.tolist() == (8 * w.detach() * cr.tensor([[1.0, 1], [100, 1], [100, 1]])).tolist()

    @cr.compile
    def write(x):
        x.view(-1)[0] = 3
        return x * 1

    for turned in (cr.zeros(3, 2).t() + 0, cr.zeros(2, 3)):
        assert write(turned)[0, 0].item() == 3 and turned[0, 0].item() == 3
    # A copy keeps its own elements.
    copied = x.reshape(-1)
    copied[0] = -1
    assert x[0, 0].item() == 0


WRITES = {
    "t": lambda x: x.t().add_(1), "rows of t": lambda x: x.t()[0].fill_(2), "t copy": lambda x: x.t().copy_(cr.ones(3, 2)), "row": lambda x: x.copy_(cr.arange(3.0)),
    "other order": lambda x: x.add_(cr.ones(3, 2).t()), "all": lambda x: x.__setitem__(..., cr.ones(3, 2).t()), "out": lambda x: cr.add(cr.ones(3, 2).t(), 1, out=x),
    "data": lambda x: x.data.t().mul_(3), "row of data": lambda x: x.data.copy_(cr.arange(3.0)), "diagonal": lambda x: x.diagonal().fill_(4), "swap": lambda x: x.swapaxes(0, 1)[1:].uniform_(),
}


@pytest.mark.parametrize("name", WRITES)
def test_elements_stay_where_they_lie(name):
    for turned in (False, True):
        x = cr.zeros(3, 2).t() if turned else cr.zeros(2, 3)
        strides = x.stride()
        WRITES[name](x)
        assert x.stride() == strides
        flat = x.reshape(-1)
        flat[4] = 77
        assert (x[1, 1].item() == 77) is not turned and flat[4].item() == 77


def test_a_detached_handle_lies_as_its_tensor_does():
    x = cr.arange(12.0).reshape(3, 4)
    for y, strides in ((x.detach(), (4, 1)), (x.detach().diagonal(), (5,)), (x.data.t(), (1, 4))):
        y.copy_(cr.ones(y.shape[-1]))
        assert y.stride() == strides
        row = y.contiguous().reshape(-1)
        row[1] = 7.0
        assert (x == 7).any().item() is (strides == (4, 1))
        x.zero_()
