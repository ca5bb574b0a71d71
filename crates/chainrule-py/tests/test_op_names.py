"""Custom functions under the names of the library's own ops: they are none of these."""

import functools
import re

import chainrule as cr
import numpy as np
import pytest

NAMES = [name for row in cr.op_table() for name in row[0].split(", ")]
f64 = cr.float64


def product(name):
    """`tanh(a) * b` under a name, with its gradient."""

    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.tanh() * b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b * (1 - a.tanh() ** 2), g * a.tanh()

    return type(name, (cr.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def test_the_table_is_long():
    assert len(NAMES) >= 174


def reports(name):
    """The verdict on three wrong gradients of that function, with the name left out."""
    rng = np.random.default_rng(0)
    a, b = (cr.tensor(rng.standard_normal((3, 3)), dtype=f64, requires_grad=True) for _ in range(2))
    y, factor = a.detach().tanh(), b.detach()
    out = []
    for wrong in (-factor * (1 - y**2), factor, factor * (1 - y)):
        loss = product(name).apply(a, b).sum()
        report = cr.check.verdict(loss, [(a, wrong), (b, y)])
        assert not report.passed
        out.append(without(name, str(report)))
    return out


def without(name, text):
    """A report without that name, the numbers of tensors, and the width of columns."""
    return " ".join(re.sub(r"#\d+", "#", re.sub(rf"\b{name}\b", "op", text)).split())


@functools.cache
def of_no_op():
    return reports("nobodys")


@pytest.mark.parametrize("name", NAMES)
def test_a_function_named_like_an_op_gets_none_of_its_mistakes(name):
    # The name may be a word of the report, too.
    assert reports(name) == [without(name, text) for text in of_no_op()]
