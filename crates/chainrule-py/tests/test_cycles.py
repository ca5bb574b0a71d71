"""Cycles of references through tensors, hooks, modules and views are collected, unless in use."""

import gc
import weakref

import chainrule as cr
import pytest


class Marker:
    pass


def of_a_leaf(marker):
    x = cr.ones(3, requires_grad=True)
    x.register_hook(lambda g, held=(x, marker): g)


def of_a_result(marker):
    x = cr.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, held=(y, marker): g)


def of_a_leaf_by_its_result(marker):
    x = cr.ones(3, requires_grad=True)
    y = (x * 2).sum()
    x.register_hook(lambda g, held=(y, marker): g)


def of_an_attribute(marker):
    x = cr.ones(3)
    x.held = (x, marker)


def of_a_view(marker):
    x = cr.ones(3)
    x.held = (x[:2], x.detach(), marker)


def of_a_gradient(marker):
    x = cr.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    x.grad.held = (x, marker)


def of_a_module(marker):
    layer = cr.nn.Linear(2, 2)
    layer.register_forward_hook(lambda *_, held=(layer, marker): None)
    layer(cr.ones(1, 2)).sum().backward()


def of_a_parameter(marker):
    layer = cr.nn.Linear(2, 2)
    layer.weight.register_hook(lambda g, held=(layer, marker): g)
    layer(cr.ones(1, 2)).sum().backward()


def of_a_function(marker):
    class Double(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.held = (ctx, marker)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Double.apply(cr.ones(3, requires_grad=True)).sum().backward()


def of_a_compiled_function(marker):
    x = cr.ones(3, requires_grad=True)

    @cr.compile
    def f(a):
        return (a * x).sum()

    f(cr.ones(3))
    x.held = (f, marker)


CYCLES = [
    of_a_leaf, of_a_result, of_a_leaf_by_its_result, of_an_attribute, of_a_view, of_a_gradient, of_a_module, of_a_parameter,
    of_a_function, of_a_compiled_function,
]


@pytest.mark.parametrize("make", CYCLES, ids=lambda f: f.__name__)
def test_a_cycle_is_collected(make):
    marker = Marker()
    alive = weakref.ref(marker)
    make(marker)
    del marker
    gc.collect()
    assert alive() is None


def test_a_hook_in_use_is_kept():
    """Also where the graph alone holds the tensor with the hook, or several graphs do."""
    seen = []
    x = cr.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, held=Marker(): seen.append(held))
    x.register_hook(lambda g, held=(x, Marker()): seen.append(held))
    a, b = y.sum(), (y * y).sum()
    del y
    for _ in range(3):
        gc.collect()
    a.backward(retain_graph=True)
    del a
    gc.collect()
    b.backward()
    assert len(seen) == 4 and x.grad.tolist() == [10, 10, 10]
    leaf = cr.ones(2, requires_grad=True)
    leaf.register_hook(lambda g, held=Marker(): seen.append(held))
    loss = (leaf * 3).sum()
    alias = leaf
    del leaf, alias
    gc.collect()
    loss.backward()
    assert len(seen) == 5


def test_a_removed_hook_lets_go():
    marker = Marker()
    alive = weakref.ref(marker)
    x = cr.ones(3, requires_grad=True)
    handle = x.register_hook(lambda g, held=marker: g)
    del marker
    gc.collect()
    assert alive() is not None
    handle.remove()
    gc.collect()
    assert alive() is None and x.requires_grad


def test_a_view_in_use_keeps_its_memory():
    x = cr.arange(4.0)
    x.held = view = x[1:3]
    del x
    gc.collect()
    assert view.tolist() == [1, 2]
    view.add_(1)
    assert view.tolist() == [2, 3]
