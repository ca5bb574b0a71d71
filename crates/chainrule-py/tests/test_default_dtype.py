"""The dtype of tensors that are made without one."""

import chainrule as cr
import numpy as np
import pytest


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_class_makes_tensors_of_the_default_dtype(name):
    cr.set_default_dtype(getattr(cr, name))
    try:
        third = np.array([1 / 3])
        for x in (cr.Tensor(), cr.Tensor(2, 3), cr.Tensor([1, 2]), cr.Tensor(third), cr.Tensor(cr.Size([2])), cr.Tensor(third.astype("float32"))):
            assert x.dtype.name == name
        assert cr.Tensor(third).item() == (1 / 3 if name == "float64" else np.float32(1 / 3))
    finally:
        cr.set_default_dtype(cr.float32)


def test_the_class_shows_a_tensor_as_it_is():
    for dtype in (cr.float64, cr.float32, cr.int64, cr.bool):
        x = cr.zeros(2, 3, dtype=dtype)
        y = cr.Tensor(x)
        assert y.dtype == dtype and y.shape == (2, 3)
        y[0, 1] = 1
        assert x[0, 1].item() == 1
        x[1, 2] = 1
        assert y[1, 2].item() == 1
    w = cr.ones(2, requires_grad=True)
    (cr.Tensor(w) * 3).sum().backward()
    assert w.grad.tolist() == [3, 3]
