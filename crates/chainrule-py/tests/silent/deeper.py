"""Loops with gradients of gradients, and arguments that hold others."""

import copy
import random

import numpy as np


def adam_state_shared_dict_copy(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    s = copy.deepcopy(o.state_dict())
    f()
    f()
    o.load_state_dict(s)
    f()
    return (w, o.state[w]["step"], s["state"][0]["exp_avg"])


def add_group_then_load(torch, compile):
    a, b = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    o = torch.optim.Adam([a], lr=0.1)

    def f():
        o.zero_grad()
        ((a * b) ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    o.add_param_group({"params": b, "lr": 0.5, "betas": (0.5, 0.5)})
    f()
    s = o.state_dict()
    o2 = torch.optim.Adam([{"params": [a]}, {"params": [b]}])
    o2.load_state_dict(s)
    o2.zero_grad()
    ((a * b) ** 2).sum().backward()
    o2.step()
    return (a, b, [g["lr"] for g in o2.param_groups])


def lr_as_tensor_shared(torch, compile):
    w, v = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    lr = torch.tensor(0.1)
    o = torch.optim.Adam([{"params": [w]}, {"params": [v]}], lr=lr)

    def f():
        o.zero_grad()
        (w ** 2 + v ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    lr.mul_(0.1)
    f()
    o.param_groups[0]["lr"] = 0.5
    f()
    return (w, v)


def step_post_hook(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)
    n = []
    o.register_step_post_hook(lambda opt, a, k: n.append(opt.param_groups[0]["lr"]))
    o.register_step_pre_hook(lambda opt, a, k: opt.param_groups[0].update(lr=opt.param_groups[0]["lr"] / 2))

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    f()
    return (w, n)


def grad_hook_on_tied(torch, compile):
    w = torch.ones(2, requires_grad=True)
    c = []
    w.register_hook(lambda g: c.append(float(g.sum())))

    def f(x):
        ((w * x).sum() + (w ** 2).sum()).backward()
    f = compile(f)
    f(torch.ones(2))
    f(torch.ones(2))
    return (w.grad, c)


def inplace_on_leaf_view_under_no_grad_in_compile(torch, compile):
    w = torch.ones(3, 3, requires_grad=True)

    def f(x):
        with torch.no_grad():
            w[0].copy_(x)
            w.diagonal().mul_(2)
            w.t()[1] -= 1
            w.clamp_(-1, 1.5)
        (w ** 2).sum().backward()
    f = compile(f)
    f(torch.arange(3.0))
    f(torch.arange(3.0))
    return (w, w.grad)


def renorm_rows_after_step(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    def f(x):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        o.step()
        with torch.no_grad():
            m.weight.div_(m.weight.norm(dim=1, keepdim=True))
            m.bias.data[m.bias.data > 0] = 0
    f = compile(f)
    f(torch.ones(1, 3))
    f(torch.ones(1, 3))
    return (m.weight, m.bias)


def weight_masking_prune(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    mask = (m.weight.abs() > 0.3).to(m.weight.dtype)
    h = m.weight.register_hook(lambda g: g * mask)
    m.weight.data *= mask
    o = torch.optim.Adam(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        o.step()
    f = compile(f)
    f(torch.ones(1, 3))
    mask[0] = 0
    f(torch.ones(1, 3))
    return (m.weight, mask)


def ema_buffers_and_params_swap(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).double()
    shadow = {k: v.clone() for k, v in m.state_dict().items()}
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).pow(3).sum().backward()
        o.step()
        for k, v in m.state_dict().items():
            if v.dtype.is_floating_point:
                shadow[k].mul_(0.5).add_(v, alpha=0.5)
            else:
                shadow[k].copy_(v)
    f = compile(f)
    f(torch.arange(6.0).reshape(3, 2).double())
    f(torch.arange(6.0).reshape(3, 2).double())
    back = copy.deepcopy(m.state_dict())
    m.load_state_dict(shadow)
    m.eval()
    y = m(torch.ones(1, 2).double())
    m.load_state_dict(back)
    m.train()
    f(torch.ones(3, 2).double())
    return (y.detach(), shadow, m.state_dict())


def gradient_penalty(torch, compile):
    torch.manual_seed(0)
    D = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    o = torch.optim.Adam(D.parameters(), lr=0.1, betas=(0.0, 0.9))

    def f(r, k):
        e = torch.rand(r.size(0), 1)
        x = (e * r + (1 - e) * k).requires_grad_(True)
        g = torch.autograd.grad(D(x).sum(), x, create_graph=True)[0]
        l = D(k).mean() - D(r).mean() + 10 * ((g.norm(2, 1) - 1) ** 2).mean()
        o.zero_grad()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    return ([f(torch.ones(3, 2), torch.zeros(3, 2)) for _ in range(3)], D[0].weight, torch.rand(1))


def maml_inner_loop(torch, compile):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)

    def f(x):
        fast = w
        for _ in range(2):
            g, = torch.autograd.grad(((fast * x) ** 2).sum(), fast, create_graph=True)
            fast = fast - 0.1 * g
        o.zero_grad()
        ((fast - 1) ** 2).sum().backward()
        o.step()
    f = compile(f)
    f(torch.ones(2))
    f(torch.ones(2))
    return w


def adversarial_example(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    F = torch.nn.functional

    def f(x, y):
        a = x.clone().detach().requires_grad_(True)
        F.cross_entropy(m(a), y).backward()
        s = a.grad.sign()
        m.zero_grad()
        return ((x + 0.1 * s).clamp(0, 1), a.grad)
    f = compile(f)
    return (f(torch.full((2, 3), 0.5), torch.tensor([0, 1])), [p.grad for p in m.parameters()])


def input_optimised(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 1).requires_grad_(False)
    x = torch.zeros(1, 3, requires_grad=True)
    o = torch.optim.Adam([x], lr=0.1)

    def f():
        o.zero_grad()
        l = (m(x) - 1).pow(2).sum()
        l.backward()
        o.step()
        x.data.clamp_(-0.2, 0.2)
        return l.detach()
    f = compile(f)
    return ([f() for _ in range(4)], x)


def buffer_swap_inside_compiled(torch, compile):

    class M(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(2))
            self.register_buffer("b", torch.ones(2))

        def forward(self, x):
            self.a.copy_(x + self.b)
            self.a, self.b = (self.b, self.a)
            return self.a * 1
    m = M()
    f = compile(lambda x: m(x))
    return (f(torch.ones(2)), f(torch.ones(2)), m.state_dict())


def list_argument_written(torch, compile):
    xs = [torch.zeros(2), torch.zeros(2)]
    d = {"k": torch.ones(1)}

    def f(xs, d):
        xs[0].add_(1)
        d["k"].mul_(3)
        return xs[0] + xs[1]
    f = compile(f)
    f(xs, d)
    xs[1].fill_(5)
    return (f(xs, d), xs, d)


def list_argument_grown(torch, compile):
    xs = []

    def f(xs, x):
        xs.append(x * 2)
        return x
    f = compile(f)
    f(xs, torch.ones(1))
    f(xs, torch.ones(1))
    return xs


def global_seed_then_numpy(torch, compile):
    np.random.seed(0)
    f = compile(lambda x: x + torch.from_numpy(np.random.rand(2)))
    return (f(torch.zeros(2)), f(torch.zeros(2)))


def python_scalar_from_tensor_outside(torch, compile):
    x = torch.tensor(3.0)
    f = compile(lambda t, k: t * k)
    return (f(torch.ones(2), x.item()), f(torch.ones(2), float(x) + 1), f(torch.ones(2), int(x)))


def cat_of_views_gradient(torch, compile):
    w = torch.arange(4.0).requires_grad_()

    def f(k):
        a, b = (w * k).chunk(2)
        a = a.clone()
        a += b
        b2 = torch.cat([a, b])
        b2[1:3] *= a
        b2.sum().backward()
    f = compile(f)
    f(2.0)
    f(2.0)
    f(3.0)
    return w.grad


def fill_diagonal_and_tril(torch, compile):
    x = torch.ones(3, 3)

    def f():
        x.fill_diagonal_(5).tril_()
        x.triu_(-1)
        x.t_() if False else None
        x.transpose(0, 1).add_(1)
        return x.trace()
    f = compile(f)
    return (f(), x, f())


def uniform_in_place_views(torch, compile):
    torch.manual_seed(0)
    x = torch.zeros(2, 4)

    def f():
        x[:, 1:3].uniform_()
        x[0].normal_()
        x.t()[3].bernoulli_(0.5)
        torch.nn.init.xavier_uniform_(x[:, :2])
        return x * 1
    f = compile(f)
    return (f(), f(), torch.rand(1))


def sequential_slicing_shares(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(3)])
    h = m[:2]
    o = torch.optim.SGD(h.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).sum().backward()
        o.step()
    f = compile(f)
    f(torch.ones(1, 2))
    f(torch.ones(1, 2))
    return (list(m.parameters()), h[0] is m[0], m[2].weight.grad)


def module_list_edit(torch, compile):
    torch.manual_seed(0)
    l = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])

    def g(x):
        for k in l:
            x = k(x)
        return x
    f = compile(g)
    x = torch.ones(1, 2)
    r = [f(x)]
    l.insert(0, torch.nn.Tanh())
    r.append(f(x))
    del l[1]
    r.append(f(x))
    l[1].weight.data.zero_()
    r.append(f(x))
    l.extend([torch.nn.ReLU()])
    r.append(f(x))
    return (r, list(dict(l.named_parameters())))


def zero_grad_none_then_hooked_step(torch, compile):
    a = torch.nn.Parameter(torch.ones(2))
    b = torch.nn.Parameter(torch.ones(2))
    o = torch.optim.Adam([a, b], lr=0.1, weight_decay=0.5)

    def f(use):
        o.zero_grad()
        ((a ** 2).sum() + ((b ** 2).sum() if use else 0)).backward()
        o.step()
    f = compile(f)
    f(True)
    f(False)
    f(False)
    f(True)
    return (a, b, o.state_dict()["state"])


def loss_accumulated_in_float(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    t = 0.0

    def f(x):
        o.zero_grad()
        l = m(x).pow(2).mean()
        l.backward()
        o.step()
        return l
    f = compile(f)
    for i in range(3):
        t += f(torch.ones(2, 2)).item() * 2
    return t


def list_grown(torch, compile):
    xs = []

    def f(xs, x):
        xs.append(x * 2)
        return x
    f = compile(f)
    f(xs, torch.ones(1))
    f(xs, torch.ones(1) * 2)
    return xs


def dict_entry_rebound(torch, compile):

    def f(b):
        b["x"] = b["x"] * 2 + b["k"]
        b["n"] += 1
        b.setdefault("new", []).append(b["x"].sum())
        return b["x"] + 1
    f = compile(f)
    b = {"x": torch.ones(2), "n": 0, "k": torch.ones(2)}
    o = b["x"]
    r = [f(b), f(b), f(b)]
    return (r, b, o)


def nested_lists(torch, compile):

    def f(s, x):
        s[0][1] = s[0][0]
        s[0][0] = x + 1
        s.pop()
        s.append(x)
        s[1]
        return x
    f = compile(f)
    s = [[torch.zeros(1), torch.ones(1)], torch.ones(3)]
    f(s, torch.ones(1))
    f(s, torch.ones(1) * 5)
    return s


def popped(torch, compile):

    def f(q, x):
        y = q.pop(0)
        q.append(x)
        return y + x
    f = compile(f)
    q = [torch.ones(1) * i for i in range(3)]
    r = [f(q, torch.ones(1) * (10 + i)) for i in range(4)]
    return (r, q)


def aliases_in_containers(torch, compile):

    def f(q, x):
        q.append(q[0][0])
        q.append(x)
        x.add_(1)
        return None
    f = compile(f)
    q = [torch.zeros(2, 2)]
    x = torch.ones(2)
    f(q, x)
    q[1].fill_(7)
    q[2].add_(1)
    return (q, x, q[2] is x)


def kwargs_dict(torch, compile):

    def f(x, opts=None):
        opts["seen"] = x * 2
        return x
    f = compile(f)
    d = {}
    f(torch.ones(2), opts=d)
    f(torch.ones(2) * 2, opts=d)
    return d


def object_put(torch, compile):

    class A:
        pass

    def f(x, d):
        d["a"] = A()
        return x * 2
    f = compile(f)
    d = {}
    f(torch.ones(1), d)
    f(torch.ones(1), d)
    return list(d)


def grad_through_container(torch, compile):
    w = torch.ones(2, requires_grad=True)

    def f(x, acc):
        acc.append((w * x).sum())
        return x
    f = compile(f)
    acc = []
    f(torch.ones(2), acc)
    f(torch.ones(2), acc)
    sum(acc).backward()
    return w.grad
