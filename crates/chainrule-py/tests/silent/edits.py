"""Writes in all spellings, hooks, edits of optimizers, schedulers, statistics."""




def out_into_column(torch, compile):
    x = torch.zeros(3, 4)

    def f(a):
        torch.mul(a, 2, out=x[:, 1])
        torch.cumsum(a, 0, out=x[:, 2])
        return x.sum()
    f = compile(f)
    return (f(torch.arange(3.0)), f(torch.ones(3)), x)


def out_resizes(torch, compile):
    o = torch.empty(0)
    f = compile(lambda a: torch.add(a, 1, out=o))
    r = f(torch.ones(3))
    return (r, o, r is o)


def out_minmax(torch, compile):
    v, i = (torch.zeros(2), torch.zeros(2, dtype=torch.long))
    f = compile(lambda a: torch.max(a, 1, out=(v, i)) and None)
    f(torch.tensor([[1.0, 5.0, 2.0], [7.0, 0.0, 3.0]]))
    return (v, i)


def iadd_through_slice_of_slice(torch, compile):
    x = torch.arange(24.0).reshape(4, 6)

    def f(a):
        y = x[1:][::2]
        y[:, 2:4] += a
        y[0].unsqueeze(0).squeeze(0)[-1:] *= -1
        return y * 1
    f = compile(f)
    return (f(torch.ones(2, 2)), f(torch.ones(2, 2)), x)


def scatter_family_in_place(torch, compile):
    x = torch.zeros(3, 4)
    i = torch.tensor([[0, 2], [1, 3], [0, 0]])

    def f(s):
        x.scatter_(1, i, s)
        x.scatter_add_(1, i, s * 2)
        x.index_add_(0, torch.tensor([0, 2]), torch.ones(2, 4), alpha=3)
        x.index_fill_(1, torch.tensor([3]), -1.0)
        x.index_copy_(0, torch.tensor([1]), torch.full((1, 4), 9.0))
        x.scatter_reduce_(1, i, s, "amax")
        return x.t()[0]
    f = compile(f)
    return (f(torch.ones(3, 2)), f(torch.ones(3, 2) * 2), x)


def put_take_mask(torch, compile):
    x = torch.arange(6.0).reshape(2, 3)

    def f(v):
        x.put_(torch.tensor([1, 4]), v)
        x.masked_scatter_(x < 2, torch.tensor([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]))
        x.clamp_(max=25)
        return x.take(torch.tensor([0, 5]))
    f = compile(f)
    return (f(torch.tensor([-1.0, -2.0])), f(torch.tensor([0.0, 1.0])), x)


def addcmul_lerp_on_views(torch, compile):
    x = torch.ones(4)
    a, b = (x[:2], x[2:])

    def f(t):
        a.addcmul_(t, b, value=0.5)
        b.lerp_(a, 0.25)
        x.addcdiv_(x, x + 1)
        a.sub_(b, alpha=2)
        return x.clone()
    f = compile(f)
    return (f(torch.tensor([1.0, 2.0])), f(torch.tensor([1.0, 2.0])), a, b)


def flip_roll_are_copies(torch, compile):
    x = torch.arange(4.0)

    def f(t):
        for y in (x.flip(0), x.roll(1), x[[0, 1]], x.repeat(2), x.clone(), torch.cat([x]), torch.stack([x])):
            y.fill_(-1)
        for y in (x.view(2, 2), x.reshape(2, 2), x.ravel(), x[None], torch.atleast_2d(x), x.view_as(t), x.movedim(0, 0)):
            y.add_(1)
        return x * 1
    f = compile(f)
    return (f(torch.ones(4)), x)


def unflatten_squeeze_tensor_split(torch, compile):
    x = torch.zeros(2, 6)

    def f(v):
        x.unflatten(1, (2, 3))[:, 1] += v
        for k, p in enumerate(torch.tensor_split(x, 4, dim=1)):
            p.add_(k)
        for h in torch.hsplit(x, 2):
            h[0, 0] = 7
        x.narrow(0, 1, 1).squeeze().copy_(x[0])
        return x.sum(0)
    f = compile(f)
    return (f(torch.ones(2, 3)), f(torch.ones(2, 3)), x)


def imag_of_loop_variable(torch, compile):
    rows = [torch.zeros(2) for _ in range(3)]

    def f(a):
        for i, r in enumerate(rows):
            r += a * i
        s = torch.stack(rows)
        s += 100
        return s
    f = compile(f)
    return (f(torch.ones(2)), f(torch.ones(2)), rows)


def hook_removed_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)
    calls = []
    h = w.register_hook(lambda g: g * 2)

    def f(x):
        (w * x).sum().backward()
    f = compile(f)
    f(torch.ones(2))
    a = w.grad.clone()
    h.remove()
    f(torch.ones(2))
    return (a, w.grad)


def retain_grad_and_hooks_order(torch, compile):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    got = []
    h = w * 3
    h.retain_grad()
    h.register_hook(lambda g: got.append(g.clone()) or g * 2)
    h.register_hook(lambda g: got.append(g.clone()))
    (h ** 2).sum().backward()
    return (h.grad, w.grad, got)


def module_hook_order_and_global(torch, compile):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    log = []
    for n, k in m.named_modules():
        k.register_forward_hook(lambda mod, i, o, n=n: log.append("f" + n))
        k.register_forward_pre_hook(lambda mod, i, n=n: log.append("p" + n))
        k.register_full_backward_pre_hook(lambda mod, g, n=n: log.append("bp" + n))
        k.register_full_backward_hook(lambda mod, gi, g, n=n: log.append("b" + n))
    m(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return log


def always_call_hook(torch, compile):

    class M(torch.nn.Module):

        def forward(self, x):
            raise ValueError("no")
    m = M()
    log = []
    m.register_forward_hook(lambda *a: log.append("h"), always_call=True)
    try:
        m(torch.ones(1))
    except ValueError:
        log.append("e")
    return log


def prepend_hook_changes_input(torch, compile):
    m = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.eye_(m.weight)
    m.register_forward_pre_hook(lambda mod, a: (a[0] + 1,))
    m.register_forward_pre_hook(lambda mod, a: (a[0] * 10,), prepend=True)
    f = compile(lambda x: m(x))
    return f(torch.ones(1, 2))


def adam_groups_betas_later(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    o = torch.optim.Adam([{"params": [m.weight]}, {"params": [m.bias], "lr": 0.5}], lr=0.1)

    def f(x):
        o.zero_grad()
        l = m(x).pow(2).mean()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    L = []
    for i in range(5):
        if i == 2:
            o.param_groups[0]["betas"] = (0.5, 0.9)
            o.param_groups[1]["eps"] = 0.01
        if i == 3:
            o.param_groups[0]["weight_decay"] = 0.1
            o.param_groups[1]["lr"] = 0.0
        L.append(f(torch.ones(2, 3)))
    return (L, m.weight, m.bias)


def amsgrad_later(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.RMSprop([w], lr=0.1)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    o.param_groups[0]["alpha"] = 0.5
    f()
    o.param_groups[0]["maximize"] = True
    f()
    return w


def group_removed(torch, compile):
    a, b = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    o = torch.optim.SGD([{"params": [a]}, {"params": [b]}], lr=0.1, momentum=0.9)

    def f():
        o.zero_grad()
        ((a * b) ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    f()
    g = o.param_groups.pop(1)
    f()
    o.param_groups.append(g)
    f()
    return (a, b)


def params_list_replaced(torch, compile):
    a, b = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    o = torch.optim.SGD([a], lr=0.1)

    def f():
        o.zero_grad()
        ((a * b) ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    o.param_groups[0]["params"][0] = b
    f()
    o.param_groups[0]["params"].append(a)
    f()
    return (a, b)


def lr_inside_closure_group(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.AdamW([w], lr=0.1)
    s = torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.5, total_steps=6)
    L = []

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    for _ in range(5):
        f()
        s.step()
        L += [o.param_groups[0]["lr"], o.param_groups[0]["betas"][0]]
    return (w, L)


def cyclic_and_poly(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    S = torch.optim.lr_scheduler
    ss = [S.CyclicLR(o, 0.1, 0.5, step_size_up=2, mode="triangular2"), S.PolynomialLR(o, 4, 2.0)]
    L = []

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    for i in range(5):
        f()
        ss[i % 2].step()
        L += [o.param_groups[0]["lr"], o.param_groups[0]["momentum"]]
    return (w, L)


def bn_stats_frozen_affine(torch, compile):
    m = torch.nn.BatchNorm2d(2, momentum=0.3, affine=False)
    f = compile(lambda x: m(x))
    x = torch.arange(16.0).reshape(2, 2, 2, 2)
    a = f(x)
    m.eval()
    b = f(x)
    m.train()
    m.momentum = None
    c = f(x * 2)
    m.reset_running_stats()
    d = f(x)
    return (a, b, c, d, dict(m.named_buffers()))


def bn_under_no_grad_updates(torch, compile):
    m = torch.nn.BatchNorm1d(2)
    f = compile(lambda x: m(x))
    with torch.no_grad():
        f(torch.arange(4.0).reshape(2, 2))
    with torch.inference_mode():
        f(torch.arange(4.0).reshape(2, 2) + 1)
    return dict(m.named_buffers())


def instance_norm_tracks(torch, compile):
    m = torch.nn.InstanceNorm1d(2, track_running_stats=True, affine=True)
    f = compile(lambda x: m(x))
    x = torch.arange(12.0).reshape(2, 2, 3)
    a = f(x)
    f(x * 2)
    m.eval()
    return (a, f(x), dict(m.named_buffers()))


def dropout_streams(torch, compile):
    torch.manual_seed(5)
    d = torch.nn.Dropout(0.4)
    F = torch.nn.functional
    f = compile(lambda x: (d(x), F.dropout(x, 0.2, training=False), F.alpha_dropout(x, 0.3, True), F.dropout1d(x[None], 0.5, True), torch.rand_like(x)))
    a = f(torch.ones(2, 3))
    b = f(torch.ones(2, 3))
    d.eval()
    c = f(torch.ones(2, 3))
    d.p = 0.9
    d.train()
    e = f(torch.ones(2, 3))
    return (a, b, c, e, torch.rand(2))
