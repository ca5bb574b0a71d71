"""Copies, states, settings, schedules, statistics and hooks."""

import copy


def sd_is_live(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    sd = l.state_dict()
    l.weight.data.fill_(3)
    return sd["weight"]


def sd_write(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    l.state_dict()["weight"].zero_()
    return l.weight


def best_state_bug(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    best = l.state_dict()
    o = torch.optim.SGD(l.parameters(), lr=0.1)
    l(torch.ones(1, 2)).sum().backward()
    o.step()
    l.load_state_dict(best)
    return l.weight


def deepcopy_hooks(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    seen = []
    l.register_forward_hook(lambda *a: seen.append(1))
    c = copy.deepcopy(l)
    c(torch.ones(1, 2))
    return len(seen)


def deepcopy_grad(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    l(torch.ones(1, 2)).sum().backward()
    c = copy.deepcopy(l)
    return c.weight.grad


def deepcopy_optimizer(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    o = torch.optim.Adam(l.parameters(), lr=0.1)
    l(torch.ones(1, 2)).sum().backward()
    o.step()
    p = copy.deepcopy(o)
    p.step()
    return l.weight


def deepcopy_both(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    o = torch.optim.Adam(l.parameters(), lr=0.1)
    l(torch.ones(1, 2)).sum().backward()
    o.step()
    a, b = copy.deepcopy((l, o))
    a(torch.ones(1, 2)).sum().backward()
    b.step()
    return (l.weight, a.weight)


def copy_shallow(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    c = copy.copy(l)
    c.weight.data.zero_()
    return l.weight


def shallow_set(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    c = copy.copy(l)
    c.weight = torch.nn.Parameter(torch.zeros(1, 2))
    return l.weight


def group_lr_shared(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    o = torch.optim.SGD([{"params": [l.weight]}, {"params": [l.bias], "lr": 0.5}], lr=0.1)
    for g in o.param_groups:
        g["lr"] *= 2
    l(torch.ones(1, 2)).sum().backward()
    o.step()
    return (l.weight, l.bias)


def add_group_later(torch):
    torch.manual_seed(0)
    l, k = (torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
    o = torch.optim.Adam(l.parameters(), lr=0.1)
    k(l(torch.ones(1, 2))).sum().backward()
    o.step()
    o.add_param_group({"params": k.parameters(), "lr": 1.0})
    o.step()
    return (k.weight, l.weight, len(o.param_groups))


def momentum_change(torch):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for i in range(3):
        o.zero_grad()
        (w * w).sum().backward()
        o.param_groups[0]["momentum"] = 0.5 if i == 1 else 0.9
        o.step()
    return w


def betas_change(torch):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)
    for i in range(3):
        o.zero_grad()
        (w * w).sum().backward()
        o.param_groups[0]["betas"] = (0.5, 0.9)
        o.step()
    return w


def state_read(torch):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)
    (w * w).sum().backward()
    o.step()
    return (sorted(o.state[w]), float(o.state[w]["step"]), o.state[w]["exp_avg"])


def state_write(torch):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    (w * w).sum().backward()
    o.step()
    o.state[w]["momentum_buffer"].zero_()
    o.step()
    return w


def state_set(torch):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    (w * w).sum().backward()
    o.step()
    o.state[w]["momentum_buffer"] = torch.zeros(2)
    o.step()
    return w


def state_clear(torch):
    from collections import defaultdict
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)
    (w * w).sum().backward()
    o.step()
    o.state = defaultdict(dict)
    o.step()
    return w


def sched_resume(torch):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([{"params": [w], "initial_lr": 1.0}], lr=0.5)
    s = torch.optim.lr_scheduler.StepLR(o, 2, last_epoch=3)
    r = []
    for i in range(3):
        o.step()
        s.step()
        r.append(o.param_groups[0]["lr"])
    return r


def sched_lambda_state(torch):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.9 ** e)
    o.step()
    s.step()
    sd = s.state_dict()
    s2 = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.9 ** e)
    s2.load_state_dict(sd)
    s2.step()
    return o.param_groups[0]["lr"]


def lr_set_manual_then_sched(torch):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)
    o.step()
    s.step()
    o.param_groups[0]["lr"] = 10.0
    o.step()
    s.step()
    return o.param_groups[0]["lr"]


def lr_tensor(torch):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([w], lr=torch.tensor(0.1))
    (w * w).sum().backward()
    o.step()
    return w


def plateau(torch):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.1)
    r = []
    for v in [1.0, 1.0, 1.0, 1.0, 0.5, 0.6, 0.6, 0.6]:
        s.step(torch.tensor(v))
        r.append(o.param_groups[0]["lr"])
    return r


def bn_eval_freeze(torch):
    torch.manual_seed(0)
    b = torch.nn.BatchNorm1d(2)
    b.eval()
    b(torch.randn(4, 2))
    b.train()
    b(torch.randn(4, 2))
    return (b.running_mean, b.num_batches_tracked)


def bn_momentum_none(torch):
    torch.manual_seed(0)
    b = torch.nn.BatchNorm1d(2, momentum=None)
    [b(torch.randn(4, 2)) for _ in range(3)]
    return (b.running_mean, b.running_var)


def bn_track_off(torch):
    torch.manual_seed(0)
    b = torch.nn.BatchNorm1d(2)
    b.track_running_stats = False
    b(torch.randn(4, 2))
    return b.running_mean


def bn_no_grad_train(torch):
    torch.manual_seed(0)
    b = torch.nn.BatchNorm1d(2)
    with torch.no_grad():
        b(torch.randn(4, 2))
    return b.running_mean


def dropout_eval(torch):
    torch.manual_seed(0)
    d = torch.nn.Dropout(0.5)
    n = torch.nn.Sequential(torch.nn.Linear(2, 2), d)
    n.eval()
    d.train()
    return (n(torch.ones(3, 2)), n.training, d.training)


def train_override(torch):
    torch.manual_seed(0)

    class N(torch.nn.Module):

        def __init__(s):
            super().__init__()
            s.bn = torch.nn.BatchNorm1d(2)

        def train(s, mode=True):
            super().train(mode)
            s.bn.eval()
            return s
    n = N()
    n.train()
    return (n.bn.training, n.training)


def buffer_inplace(torch):
    torch.manual_seed(0)

    class N(torch.nn.Module):

        def __init__(s):
            super().__init__()
            s.register_buffer("c", torch.zeros(2))
            s.register_buffer("t", torch.ones(1), persistent=False)

        def forward(s, x):
            s.c += x.detach().mean(0)
            s.t = s.t * 2
            return x
    n = N()
    n(torch.ones(3, 2))
    n(torch.ones(3, 2))
    return (n.c, n.t, list(n.state_dict()), [k for k, _ in n.named_buffers()])


def buffer_none(torch):
    torch.manual_seed(0)
    n = torch.nn.Module()
    n.register_buffer("b", None)
    n.b = torch.ones(2)
    return list(n.state_dict())


def plain_attr(torch):
    torch.manual_seed(0)
    n = torch.nn.Module()
    n.t = torch.ones(2)
    n.l = [torch.nn.Linear(1, 1)]
    return (list(n.state_dict()), len(list(n.parameters())))


def param_to_attr(torch):
    torch.manual_seed(0)
    n = torch.nn.Linear(2, 1)
    n.weight = None
    return len(list(n.parameters()))


def del_param(torch):
    torch.manual_seed(0)
    n = torch.nn.Linear(2, 1)
    del n.bias
    n.bias = torch.nn.Parameter(torch.ones(1))
    return n(torch.zeros(1, 2))


def tie_after_load(torch):
    torch.manual_seed(0)

    class N(torch.nn.Module):

        def __init__(s):
            super().__init__()
            s.a = torch.nn.Linear(2, 2, bias=False)
            s.b = torch.nn.Linear(2, 2, bias=False)
            s.b.weight = s.a.weight
    n = N()
    sd = {k: torch.ones(2, 2) * (i + 1) for i, k in enumerate(n.state_dict())}
    n.load_state_dict(sd)
    return (n.a.weight, n.a.weight is n.b.weight, len(list(n.parameters())), list(n.state_dict()))


def freeze_mid(torch):
    torch.manual_seed(0)
    l = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    o = torch.optim.Adam(l.parameters(), lr=0.1)
    for i in range(4):
        if i == 2:
            l[0].requires_grad_(False)
        o.zero_grad()
        l(torch.ones(1, 2)).sum().backward()
        o.step()
    return list(l.parameters())


def freeze_stale_grad(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(l.parameters(), lr=0.1)
    l(torch.ones(1, 2)).sum().backward()
    l.weight.requires_grad_(False)
    o.step()
    return l.weight


def zero_grad_none(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    l(torch.ones(1, 2)).sum().backward()
    g = l.weight.grad
    l.zero_grad(set_to_none=False)
    a = g.clone()
    l(torch.ones(1, 2)).sum().backward()
    return (a, g, l.weight.grad is g)


def grad_alias(torch):
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    g = w.grad
    (w * 3).sum().backward()
    return g


def grad_assign(torch):
    w = torch.ones(2, requires_grad=True)
    g = torch.ones(2)
    w.grad = g
    (w * 3).sum().backward()
    return (g, w.grad)


def hook_modify(torch):
    w = torch.ones(2, requires_grad=True)
    h = w.register_hook(lambda g: g * 10)
    y = w * 2
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    h.remove()
    (w * 1).sum().backward()
    return w.grad


def hook_inplace_grad(torch):
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda g: g.mul_(10) and None if False else None)
    (w * 2).sum().backward()
    return w.grad
