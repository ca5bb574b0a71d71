"""Averages of weights beside PyTorch's: means, decayed ones, statistics of batch norms, rates."""

import importlib

import chainrule as cr
import numpy as np
import pytest
from beside import torch_or_skip


def data(m):
    return [m.tensor(np.random.default_rng(i).normal(size=(4, 3))) for i in range(3)]


def trained(m, swa, kind, buffers):
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.Tanh(), m.nn.Linear(4, 1)).double()
    options = {"mean": {}, "decayed": {"avg_fn": swa.get_ema_avg_fn(0.7)}, "decayed all": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.7)}}
    mean = swa.AveragedModel(net, use_buffers=buffers, **options[kind])
    opt = m.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule, rates = swa.SWALR(opt, swa_lr=0.02, anneal_epochs=3), []
    for _ in range(5):
        for x in data(m):
            opt.zero_grad()
            net(x).square().mean().backward()
            opt.step()
        mean.update_parameters(net)
        schedule.step()
        rates.append(opt.param_groups[0]["lr"])
    state = {k: v.double().numpy().copy() for k, v in mean.state_dict().items()}
    swa.update_bn(data(m), mean)
    return state, {k: v.double().numpy().copy() for k, v in mean.state_dict().items()}, rates


@pytest.mark.parametrize("kind", ["mean", "decayed", "decayed all"])
@pytest.mark.parametrize("buffers", [False, True])
def test_averages_beside_torch(kind, buffers):
    torch = torch_or_skip()
    theirs = trained(torch, importlib.import_module("torch.optim.swa_utils"), kind, buffers)
    ours = trained(cr, cr.optim.swa_utils, kind, buffers)
    for a, b in zip(ours[:2], theirs[:2]):
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-14)


@pytest.mark.parametrize("epochs, strategy", [(0, "cos"), (1, "linear"), (4, "linear"), (4, "cos")])
def test_rates_beside_torch(epochs, strategy):
    torch = torch_or_skip()

    def run(m, swa):
        p = m.nn.Parameter(m.ones(1))
        opt = m.optim.SGD([{"params": [p]}, {"params": [m.nn.Parameter(m.ones(1))], "lr": 0.3}], lr=1.0)
        schedule, out = swa.SWALR(opt, [0.1, 0.5], epochs, strategy), []
        for _ in range(7):
            opt.step()
            schedule.step()
            out.append([g["lr"] for g in opt.param_groups])
        return out

    np.testing.assert_allclose(run(cr, cr.optim.swa_utils), run(torch, importlib.import_module("torch.optim.swa_utils")), rtol=1e-14)


def test_the_mean_is_the_mean():
    p = cr.nn.Linear(1, 1, bias=False)
    mean = cr.optim.swa_utils.AveragedModel(p)
    for value in (1.0, 2.0, 6.0):
        p.weight.data.fill_(value)
        mean.update_parameters(p)
    assert mean.module.weight.item() == 3.0 and int(mean.n_averaged) == 3 and p.weight.item() == 6.0
    with pytest.raises(ValueError, match="not both"):
        cr.optim.swa_utils.AveragedModel(p, avg_fn=lambda a, b, n: a, multi_avg_fn=lambda a, b, n: None)
