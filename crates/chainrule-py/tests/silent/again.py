"""Programs that were written to break what the other files had right."""


def returns_gradient(torch, compile):
    w = torch.ones(3, requires_grad=True)

    @compile
    def f(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad
    a = f(torch.arange(3.0))
    b = f(torch.arange(3.0) * 2)
    return (a, b, w.grad)


def gradient_scaled_in_place_then_outside_step(torch, compile):
    w = torch.ones(3, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)

    @compile
    def f(x):
        loss = (w * w * x).sum()
        loss.backward()
        w.grad.mul_(0.5)
        return loss
    out = []
    for i in range(3):
        o.zero_grad()
        out.append(f(torch.arange(3.0)))
        o.step()
    return (out, w, w.grad)


def zero_grad_false(torch, compile):
    w = torch.ones(3, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)

    @compile
    def f(x):
        o.zero_grad(set_to_none=False)
        loss = (w * w * x).sum()
        loss.backward()
        return loss
    for i in range(3):
        f(torch.arange(3.0))
        o.step()
    return (w, w.grad)


def grads_of_two_functions(torch, compile):
    w = torch.ones(3, requires_grad=True)
    f = compile(lambda x: (w * x).sum().backward())
    g = compile(lambda x: (w * w * x).sum().backward())
    x = torch.arange(3.0)
    f(x)
    g(x)
    f(x)
    a = w.grad.clone()
    w.grad = None
    g(x)
    return (a, w.grad)


def buffers_swapped(torch, compile):
    a, b = (torch.zeros(2), torch.ones(2))

    @compile
    def f(x):
        t = a.clone()
        a.copy_(b + x)
        b.copy_(t)
        return a - b
    return ([f(torch.ones(2) * i) for i in range(4)], a, b)


def view_of_state_written(torch, compile):
    table = torch.zeros(4, 3)
    row = table[1]
    col = table[:, 2]

    @compile
    def f(x):
        row.add_(x)
        col.mul_(2)
        return table.sum()
    return ([f(torch.ones(3) * i) for i in range(4)], table, row, col)


def state_index_by_tensor(torch, compile):
    mem = torch.zeros(5, 2)

    @compile
    def f(i, x):
        mem[i] = x
        return mem[i] * 2
    return ([f(torch.tensor([i % 5, (i + 2) % 5]), torch.ones(2, 2) * i) for i in range(4)], mem)


def ring_by_tensor_pointer(torch, compile):
    mem, p = (torch.zeros(4, 2), torch.zeros(1, dtype=torch.int64))

    @compile
    def f(x):
        mem[p] = x
        p.add_(1).remainder_(4)
        return p * 1
    return ([f(torch.ones(1, 2) * i) for i in range(6)], mem, p)


def state_grows(torch, compile):
    hist = torch.zeros(0, 2)

    def f(x):
        nonlocal hist
        hist = torch.cat([hist, x])
        return hist.sum()
    g = compile(f)
    return ([g(torch.ones(1, 2)) for _ in range(3)], hist)


def parameter_init_inside(torch, compile):
    m = torch.nn.Linear(2, 2)

    @compile
    def f(x):
        torch.nn.init.ones_(m.weight)
        torch.nn.init.zeros_(m.bias)
        return m(x)
    with torch.no_grad():
        return (f(torch.ones(1, 2)), m.weight)


def load_inside(torch, compile):
    m, n = (torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    torch.nn.init.ones_(n.weight)
    torch.nn.init.zeros_(n.bias)

    @compile
    def f(x):
        m.load_state_dict(n.state_dict())
        with torch.no_grad():
            return m(x)
    a = f(torch.ones(1, 2))
    with torch.no_grad():
        n.weight.mul_(3)
    return (a, f(torch.ones(1, 2)), m.weight)


def two_models_in_list(torch, compile):
    torch.manual_seed(0)
    ms = [torch.nn.Linear(2, 1) for _ in range(2)]
    o = [torch.optim.SGD(m.parameters(), lr=0.1) for m in ms]

    def make(i):

        def s(x):
            o[i].zero_grad()
            l = (ms[i](x) ** 2).sum()
            l.backward()
            o[i].step()
            return l
        return compile(s)
    st = [make(0), make(1)]
    out = [s(torch.ones(1, 2)) for _ in range(3) for s in st]
    ms[0], ms[1] = (ms[1], ms[0])
    out += [s(torch.ones(1, 2)) for s in st]
    return (out, [p for m in ms for p in m.parameters()])


def deepcopy_inside(torch, compile):
    import copy
    m = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(m.weight)
    torch.nn.init.zeros_(m.bias)

    @compile
    def f(x):
        n = copy.deepcopy(m)
        with torch.no_grad():
            n.weight.mul_(2)
            return n(x)
    return (f(torch.ones(1, 2)), m.weight, f(torch.ones(1, 2)))


def argument_default_mutable(torch, compile):

    @compile
    def f(x, acc=torch.zeros(2)):
        acc.add_(x)
        return acc * 1
    return [f(torch.ones(2)) for _ in range(3)]


def results_alias_each_other(torch, compile):

    @compile
    def f(x):
        y = x * 2
        return (y, y[0], y.view(-1))
    a, b, c = f(torch.ones(2, 2))
    a[0, 0] = 9
    return (a, b, c)


def results_same_object(torch, compile):

    @compile
    def f(x):
        y = x * 2
        return (y, y)
    a, b = f(torch.ones(2))
    a += 1
    a2, b2 = f(torch.ones(2))
    a2 += 1
    return (a, b, a is b, a2, b2, a2 is b2)


def result_is_state_view(torch, compile):
    s = torch.zeros(2, 2)

    @compile
    def f(x):
        s.add_(x)
        return s[0]
    a = f(torch.ones(2, 2))
    b = f(torch.ones(2, 2))
    b += 10
    return (a, b, s)


def hooks_on_leaf(torch, compile):
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda g: g * 3)

    @compile
    def f(x):
        (w * x).sum().backward()
    f(torch.ones(2))
    f(torch.ones(2))
    return w.grad


def hook_added_later(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        (w * x).sum().backward()
    f(torch.ones(2))
    h = w.register_hook(lambda g: g * 3)
    f(torch.ones(2))
    h.remove()
    f(torch.ones(2))
    return w.grad


def large_array_changed(torch, compile):
    import numpy as np
    a = np.zeros(100000)

    @compile
    def f(x):
        return x + torch.tensor(a).sum().float()
    o = [f(torch.ones(1))]
    a[5] = 7
    o.append(f(torch.ones(1)))
    return o


def optimizer_state_written(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    @compile
    def f(x):
        o.zero_grad()
        (w * x).sum().backward()
        o.step()
    f(torch.ones(2))
    f(torch.ones(2))
    sd = o.state_dict()
    f(torch.ones(2))
    return w


def default_dtype_changed(torch, compile):

    @compile
    def f(x):
        return x * torch.ones(2)
    a = f(torch.ones(2))
    torch.set_default_dtype(torch.float64)
    try:
        b = f(torch.ones(2))
    finally:
        torch.set_default_dtype(torch.float32)
    return (a, b, str(b.dtype).split('.')[-1])


def exception_by_state(torch, compile):
    s = torch.zeros(2)

    @compile
    def f(x, bad=False):
        s.add_(x)
        if bad:
            raise KeyError('x')
        return s * 1
    out = [f(torch.ones(2))]
    try:
        f(torch.ones(2), True)
    except KeyError:
        pass
    out.append(f(torch.ones(2)))
    return (out, s)


def mean_of_list_attr(torch, compile):

    class C:

        def __init__(s):
            s.ws = [torch.ones(2) for _ in range(3)]

        @compile
        def f(s, x):
            return sum((w * x for w in s.ws))
    c = C()
    o = [c.f(torch.ones(2))]
    c.ws.append(torch.ones(2))
    o.append(c.f(torch.ones(2)))
    c.ws[0] = torch.ones(2) * 5
    o.append(c.f(torch.ones(2)))
    c.ws[1][0] = 7
    o.append(c.f(torch.ones(2)))
    return o


def scheduler_and_groups(torch, compile):
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))
    o = torch.optim.SGD([{'params': [w]}, {'params': [v], 'lr': 0.01}], lr=0.1)
    sch = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)

    @compile
    def f(x):
        o.zero_grad()
        (w * v * x).sum().backward()
        o.step()
    for _ in range(4):
        f(torch.ones(2))
        sch.step()
    return (w, v, [g['lr'] for g in o.param_groups])


def no_grad_decorated_state(torch, compile):
    m = torch.nn.Linear(2, 2)
    e = torch.nn.Linear(2, 2)
    for p in [*m.parameters(), *e.parameters()]:
        torch.nn.init.ones_(p)

    @compile
    @torch.no_grad()
    def ema():
        for a, b in zip(e.parameters(), m.parameters()):
            a.lerp_(b, 0.1)
    for i in range(3):
        with torch.no_grad():
            m.weight.add_(1)
        ema()
    return list(e.parameters())


def tuple_state(torch, compile):
    h = (torch.zeros(2), torch.zeros(2))

    @compile
    def f(x):
        h[0].add_(x)
        h[1].copy_(h[0] * 2)
        return h[1] + 0
    return ([f(torch.ones(2)) for _ in range(3)], h)


def bool_state(torch, compile):
    seen = torch.zeros(4, dtype=torch.bool)

    @compile
    def f(i):
        seen[i] = True
        return seen.sum()
    return ([f(torch.tensor([i])) for i in (0, 2, 2)], seen)


def masked_ops(torch, compile):

    @compile
    def f(x):
        y = x.clone()
        y[y < 0] = 0
        y[y > 2] = 2.0
        z = x.clone()
        z[0] = torch.tensor(5.0)
        z[:, 1] = y[:, 0]
        m = torch.zeros_like(x, dtype=torch.bool)
        m[0, 1] = True
        y[m] = -1
        return (y, z, m)
    a = torch.arange(6.0).view(3, 2) - 2
    return (f(a), f(a * 2))


def mask_rows(torch, compile):

    @compile
    def f(x, k):
        y = x * 1
        y[k] = 7.0
        return y
    a = torch.arange(6.0).view(3, 2)
    return (f(a, torch.tensor([True, False, True])), f(a, torch.tensor([False, False, True])))


def mask_with_gradient(torch, compile):
    w = torch.arange(4.0).requires_grad_()
    v = torch.tensor(3.0, requires_grad=True)

    @compile
    def f(m):
        w.grad = v.grad = None
        y = w * 2
        y[m] = v
        (y * y).sum().backward()
        return y.detach()
    return (f(torch.tensor([True, False, True, False])), w.grad, v.grad, f(torch.tensor([True, True, True, False])), w.grad, v.grad)


def nan_flags(torch, compile):
    c = {'x': float('nan')}

    @compile
    def f(x):
        return x + c['x']
    f(torch.ones(1))
    c['x'] = 1.0
    return f(torch.ones(1))
