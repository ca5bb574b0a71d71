"""Modules beside PyTorch's: the same weights and inputs, and then outputs and gradients in f64."""

import chainrule as cr
import numpy as np
import pytest


def numbers(m, seed, *shape):
    return m.tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=True)


def pair(torch, kind, *args, **kwargs):
    """Our module and PyTorch's, made by the same seed; their first weights are compared, and the
    names.
    """
    made = []
    for m in (cr, torch):
        m.manual_seed(3)
        made.append(getattr(m.nn, kind)(*args, **kwargs))
    ours, theirs = made
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for (name, p), q in zip(ours.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=2e-6, atol=1e-7, err_msg=name)
    ours.double()
    theirs.double()
    theirs.load_state_dict(cr.io.to_torch(ours.state_dict()))
    return ours, theirs


def flat(x):
    if x is None:
        return []
    return [x] if hasattr(x, "shape") else [y for part in x for y in flat(part)]


def all_of(m, module, call, *inputs):
    """Outputs of `call(*inputs)`, and the gradients of a weighted sum of them for the inputs and
    the parameters.
    """
    m.manual_seed(9)
    outs = flat(call(*inputs))
    loss = sum((o.nan_to_num() * m.tensor(np.random.default_rng(i).normal(size=tuple(o.shape)))).sum() for i, o in enumerate(outs))
    leaves = [*inputs, *module.parameters()]
    for x in leaves:
        x.grad = None
    loss.backward()
    return [o.detach().numpy() for o in outs] + [np.zeros(0) if x.grad is None else x.grad.numpy() for x in leaves]


def same(ours, theirs, tolerance=1e-12):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def torch_or_skip():
    return pytest.importorskip("torch")
