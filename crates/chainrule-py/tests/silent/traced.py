"""Compiled functions whose modules, optimizers and arguments are changed between their runs."""

import copy


def comp_out(torch, compile):
    o = torch.zeros(3)

    @compile
    def f(x):
        torch.add(x, 1, out=o)
        return o * 2
    return (f(torch.ones(3)), f(torch.ones(3) * 2), o)


def comp_t_(torch, compile):

    @compile
    def f(x):
        y = x * 2
        y.t_()
        y.unsqueeze_(0)
        y[0, 0] = 5
        return y
    return (f(torch.ones(2, 3)), f(torch.zeros(2, 3)))


def comp_reset(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    f = compile(lambda x: l(x))
    a = f(torch.ones(1, 2))
    l.reset_parameters()
    return (a, f(torch.ones(1, 2)))


def comp_load_assign(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    f = compile(lambda x: l(x))
    a = f(torch.ones(1, 2))
    l.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.ones(2)}, assign=True)
    return (a, f(torch.ones(1, 2)))


def comp_state_write(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(l.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        o.zero_grad()
        l(x).sum().backward()
        o.step()
        return l.weight.detach().clone()
    f = compile(step)
    f(torch.ones(1, 2))
    f(torch.ones(1, 2))
    for p in l.parameters():
        o.state[p]["momentum_buffer"].zero_()
    return (f(torch.ones(1, 2)), f(torch.ones(1, 2)), l.weight)


def comp_bn_off(torch, compile):
    torch.manual_seed(0)
    b = torch.nn.BatchNorm1d(2)
    f = compile(lambda x: b(x))
    f(torch.randn(4, 2))
    b.track_running_stats = False
    f(torch.randn(4, 2))
    return (b.running_mean, b.num_batches_tracked)


def comp_freeze(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    o = torch.optim.SGD(l.parameters(), lr=0.1)

    def step(x):
        o.zero_grad()
        y = l(x).sum()
        y.backward()
        o.step()
        return y.detach()
    f = compile(step)
    f(torch.ones(1, 2))
    l[0].requires_grad_(False)
    f(torch.ones(1, 2))
    f(torch.ones(1, 2))
    return list(l.parameters())


def comp_swap_layer(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    f = compile(lambda x: l(x))
    f(torch.ones(1, 2))
    l[1] = torch.nn.Tanh()
    a = f(torch.ones(1, 2))
    l.append(torch.nn.Linear(2, 1))
    return (a, f(torch.ones(1, 2)))


def comp_hook_added(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    f = compile(lambda x: l(x))
    f(torch.ones(1, 2))
    h = l.register_forward_hook(lambda *a: a[2] * 0)
    a = f(torch.ones(1, 2))
    h.remove()
    return (a, f(torch.ones(1, 2)))


def comp_global(torch, compile):
    g = {"s": 2.0}
    f = compile(lambda x: x * g["s"])
    a = f(torch.ones(2))
    g["s"] = 3.0
    return (a, f(torch.ones(2)))


def comp_int_arg(torch, compile):
    f = compile(lambda x, n: x * n if n > 1 else x - n)
    return (f(torch.ones(2), 1), f(torch.ones(2), 2), f(torch.ones(2), 5))


def comp_list_arg(torch, compile):
    f = compile(lambda xs, d: (xs[0] + d["a"], xs))
    return f([torch.ones(2), 3], {"a": torch.ones(2)})


def comp_shape_change(torch, compile):
    f = compile(lambda x: x.sum() / x.shape[0])
    return (f(torch.ones(2)), f(torch.ones(3)), f(torch.ones(2, 2)))


def comp_dtype(torch, compile):
    f = compile(lambda x: x * 2)
    return (f(torch.ones(2)), f(torch.ones(2, dtype=torch.float32)), f(torch.ones(2, dtype=torch.int64)))


def comp_arg_inplace(torch, compile):

    def f(x):
        x.add_(1)
        return x
    f = compile(f)
    x = torch.zeros(2)
    y = f(x)
    z = f(x)
    return (x, y, z, y is x)


def comp_view_arg(torch, compile):

    def f(x):
        x[0] = 7
        return x.sum()
    f = compile(f)
    b = torch.zeros(3, 2)
    f(b[1])
    f(b[2])
    return b


def comp_grad_acc(torch, compile):
    w = torch.ones(2, requires_grad=True)
    f = compile(lambda x: (w * x).sum())
    f(torch.ones(2)).backward()
    f(torch.ones(2) * 2).backward()
    return w.grad


def comp_backward_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)

    def s(x):
        (w * x).sum().backward()
        return x
    f = compile(s)
    f(torch.ones(2))
    f(torch.ones(2))
    w.grad = None
    f(torch.ones(2) * 5)
    return w.grad


def comp_dropout(torch, compile):
    torch.manual_seed(0)
    d = torch.nn.Dropout(0.5)
    f = compile(lambda x: d(x))
    a, b = (f(torch.ones(8)), f(torch.ones(8)))
    d.eval()
    return (a, b, f(torch.ones(8)))


def comp_rand(torch, compile):
    torch.manual_seed(0)
    f = compile(lambda x: x + torch.randn(2))
    a = f(torch.zeros(2))
    b = torch.randn(2)
    return (a, b, f(torch.zeros(2)))


def comp_lr(torch, compile):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)
    s = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)

    def st(x):
        o.zero_grad()
        (w * x).sum().backward()
        o.step()
    f = compile(st)
    for _ in range(4):
        f(torch.ones(1))
        s.step()
    return (w, o.param_groups[0]["lr"])


def comp_load_sd(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(1, 1)
    o = torch.optim.Adam(l.parameters(), lr=0.1)

    def st(x):
        o.zero_grad()
        l(x).sum().backward()
        o.step()
    f = compile(st)
    f(torch.ones(1, 1))
    sd, os = (copy.deepcopy(l.state_dict()), copy.deepcopy(o.state_dict()))
    f(torch.ones(1, 1))
    f(torch.ones(1, 1))
    l.load_state_dict(sd)
    o.load_state_dict(os)
    f(torch.ones(1, 1))
    return (l.weight, l.bias)


def comp_double(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(1, 1)
    f = compile(lambda x: l(x))
    f(torch.ones(1, 1))
    l.float()
    return f(torch.ones(1, 1, dtype=torch.float32)).dtype


def comp_nested(torch, compile):
    g = compile(lambda x: x * 2)
    f = compile(lambda x: g(x) + g(x + 1))
    return f(torch.ones(2))


def comp_module(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    k = compile(l) if torch.__name__ == "torch" else torch.compile(l)
    o = torch.optim.SGD(l.parameters(), lr=0.1)
    for _ in range(3):
        o.zero_grad()
        k(torch.ones(1, 2)).sum().backward()
        o.step()
    return l.weight


def comp_none(torch, compile):
    f = compile(lambda x, mask=None: x if mask is None else x * mask)
    return (f(torch.ones(2)), f(torch.ones(2), torch.zeros(2)), f(torch.ones(2), mask=None))


def comp_ema(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.Linear(1, 1)
    e = copy.deepcopy(l)
    o = torch.optim.SGD(l.parameters(), lr=0.1)

    def st(x):
        o.zero_grad()
        l(x).sum().backward()
        o.step()
        with torch.no_grad():
            for a, b in zip(e.parameters(), l.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
    f = compile(st)
    [f(torch.ones(1, 1)) for _ in range(4)]
    return (list(e.parameters()), list(l.parameters()))
