"""Settings and flags that change between calls, and gradients that flow on from results."""

import random


def adam_decoupled_option(torch, compile):
    w = torch.ones(2, requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1, weight_decay=0.5, decoupled_weight_decay=True)
    p = torch.optim.Adam([v], lr=0.1, weight_decay=0.5)

    def f():
        o.zero_grad()
        p.zero_grad()
        (w ** 2).sum().backward()
        (v ** 2).sum().backward()
        o.step()
        p.step()
    f = compile(f)
    f()
    f()
    p.param_groups[0]["decoupled_weight_decay"] = True
    f()
    return (w, v)


def attribute_flag_on_module(torch, compile):

    class M(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.scale = 1.0
            self.mode = "a"
            self.cfg = {"k": 2.0}
            self.hist = [1.0]

        def forward(self, x):
            return x * self.scale * (self.cfg["k"] if self.mode == "a" else -1) + self.hist[-1]
    m = M()
    f = compile(lambda x: m(x))
    x = torch.ones(1)
    r = [f(x)]
    m.scale = 3.0
    r.append(f(x))
    m.cfg["k"] = 5.0
    r.append(f(x))
    m.mode = "b"
    r.append(f(x))
    m.hist.append(9.0)
    r.append(f(x))
    return r


def class_attribute_and_property(torch, compile):

    class M(torch.nn.Module):
        K = 2.0

        @property
        def t(self):
            return self.K * 10

        def forward(self, x):
            return x * self.t
    m = M()
    f = compile(lambda x: m(x))
    a = f(torch.ones(1))
    M.K = 3.0
    b = f(torch.ones(1))
    m.K = 4.0
    return (a, b, f(torch.ones(1)))


def default_argument_mutable(torch, compile):

    def g(x, acc=[]):
        return x + len(acc)
    f = compile(g)
    a = f(torch.ones(1))
    g.__defaults__[0].append(1)
    return (a, f(torch.ones(1)))


def tensor_in_default_argument(torch, compile):
    t = torch.zeros(2)

    def g(x, b=t):
        b.add_(x)
        return b * 2
    f = compile(g)
    return (f(torch.ones(2)), f(torch.ones(2)), t)


def partial_and_lambda(torch, compile):
    import functools
    w = torch.ones(2)
    f = compile(functools.partial(lambda a, x: a * x + w, torch.full((2,), 3.0)))
    r = [f(torch.ones(2))]
    w.fill_(5)
    r.append(f(torch.ones(2)))
    return r


def generator_of_batches(torch, compile):
    torch.manual_seed(0)
    f = compile(lambda x: x.sum() * 2)
    return [f(b) for b in (torch.randn(3) for _ in range(3))]


def list_comprehension_over_params(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    f = compile(lambda: sum(((p ** 2).sum() for p in m.parameters())) if False else sum([p.pow(2).sum() for p in m.parameters()]))
    a = f().detach()
    m.weight.data.mul_(2)
    b = f()
    b.backward()
    return (a, b, m.weight.grad)


def l2_penalty_in_step(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    lam = [0.1]

    def f(x):
        o.zero_grad()
        l = m(x).sum() + lam[0] * sum([p.abs().sum() for p in m.parameters()])
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    a = f(torch.ones(1, 2))
    lam[0] = 1.0
    return (a, f(torch.ones(1, 2)), m.weight)


def grad_read_after_step_outside(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        l = m(x).pow(2).sum()
        l.backward()
        return l.detach()
    f = compile(f)
    r = []
    for k in range(3):
        o.zero_grad()
        f(torch.ones(1, 2))
        r.append(m.weight.grad.norm())
        o.step()
    return (r, m.weight)


def freeze_inside_loop(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    o = torch.optim.Adam(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        l = m(x).pow(2).sum()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    r = [f(torch.ones(1, 2))]
    m[0].requires_grad_(False)
    r.append(f(torch.ones(1, 2)))
    m[0].requires_grad_(True)
    r.append(f(torch.ones(1, 2)))
    return (r, list(m.parameters()))


def clone_detach_views_mixed(torch, compile):
    x = torch.arange(6.0).reshape(2, 3)

    def f(t):
        a = x.detach()
        b = a.clone()
        c = b.view(-1)
        c[0] = 9
        a[0] += t
        x.data[1] *= 2
        d = x.new_tensor([1.0, 2.0, 3.0])
        d[1] = 7
        return (b, a * 1, d)
    f = compile(f)
    return (f(torch.ones(3)), f(torch.ones(3)), x)


def copy_between_dtypes(torch, compile):
    a, b, c = (torch.zeros(3), torch.zeros(3, dtype=torch.long), torch.zeros(3, dtype=torch.bool))

    def f(x):
        a.copy_(x)
        b.copy_(x)
        c.copy_(x)
        b[0] = x[1]
        return a + b
    f = compile(f)
    return (f(torch.tensor([1.7, -2.5, 0.0])), a, b, c)


def where_with_inplace_out(torch, compile):
    o = torch.zeros(3)

    def f(x):
        torch.where(x > 0, x, -x, out=o)
        torch.clamp(o, max=2, out=o)
        torch.sum(x, 0, out=o[0])
        return o.sum()
    f = compile(f)
    return (f(torch.tensor([1.0, -3.0, 5.0])), o)


def batchnorm_two_inputs_one_step(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(a, b):
        o.zero_grad()
        l = (m(a) - m(b)).pow(2).mean() + m(a + b).sum()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    a, b = (torch.arange(6.0).reshape(3, 2), torch.arange(6.0).flip(0).reshape(3, 2) ** 2)
    return (f(a, b), f(b, a), dict(m.named_buffers()), m[0].weight)


def rnn_padded_in_step(torch, compile):
    torch.manual_seed(0)
    e, g, h = (torch.nn.Embedding(5, 3, padding_idx=0), torch.nn.GRU(3, 4, batch_first=True), torch.nn.Linear(4, 2))
    ps = [*e.parameters(), *g.parameters(), *h.parameters()]
    o = torch.optim.Adam(ps, lr=0.01)

    def f(t, y):
        o.zero_grad()
        s, _ = g(e(t))
        l = torch.nn.functional.cross_entropy(h(s[:, -1]), y, label_smoothing=0.1)
        l.backward()
        torch.nn.utils.clip_grad_value_(ps, 0.05)
        o.step()
        return l.detach()
    f = compile(f)
    t = torch.tensor([[1, 2, 0], [3, 4, 4]])
    y = torch.tensor([0, 1])
    return ([f(t, y) for _ in range(3)], e.weight)


def random_choice_of_branch(torch, compile):
    random.seed(1)
    m = torch.ones(2)
    f = compile(lambda x, k: x * k if k > 0.5 else x - k)
    return [f(m, random.random()) for _ in range(4)]


def shapes_change_each_call(torch, compile):
    buf = torch.zeros(6)

    def f(x):
        buf[:len(x)] += x
        return buf[:len(x)].sum() / x.shape[0]
    f = compile(f)
    return ([f(torch.ones(n)) for n in (1, 3, 6, 2)], buf)


def bool_argument_and_none(torch, compile):

    def f(x, y=None, flag=False):
        x = x + 1 if flag else x
        return x if y is None else x * y
    f = compile(f)
    x = torch.ones(2)
    return (f(x), f(x, flag=True), f(x, x * 2), f(x, None, True), f(x, y=3))


def returns_input_and_written(torch, compile):

    def f(x, y):
        x += 1
        return (x, y, x.view(-1), (x, y))
    f = compile(f)
    x, y = (torch.zeros(2, 2), torch.ones(1))
    a, b, c, d = f(x, y)
    c[0] = 9
    return (x, a is x, b is y, d[0] is x)


def double_write_same_base(torch, compile):
    x = torch.zeros(4)

    def f(a, b):
        a.add_(1)
        b.mul_(3)
        a[1] += b[0]
        return x.sum()
    f = compile(f)
    return (f(x[:2], x[1:3]), x, f(x, x))


def embedding_bag_and_onehot(torch, compile):
    torch.manual_seed(0)
    e = torch.nn.EmbeddingBag(5, 2, mode="mean")
    o = torch.optim.SGD(e.parameters(), lr=0.5)

    def f(i):
        o.zero_grad()
        l = (e(i) ** 2).sum() + torch.nn.functional.one_hot(i, 5).sum()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    return (f(torch.tensor([[0, 1], [3, 3]])), e.weight)


def one_of_two_losses(torch, compile):
    w, v, u = (torch.ones(2, requires_grad=True) for _ in range(3))

    def f(x):
        l1 = (w * x).sum()
        l2 = (v * x).sum()
        l1.backward()
        return l2
    f = compile(f)
    l2 = f(torch.ones(2))
    t = l2 + (u ** 2).sum()
    t.backward()
    return (w.grad, v.grad, u.grad)


def loss_and_output(torch, compile):
    w, u = (torch.ones(2, requires_grad=True) for _ in range(2))

    def f(x):
        h = w * x
        l = (h ** 2).sum()
        l.backward(retain_graph=True)
        return h
    f = compile(f)
    h = f(torch.ones(2))
    (h.sum() + u.sum()).backward()
    return (w.grad, u.grad)


def create_graph_result(torch, compile):
    w, u = (torch.ones(2, requires_grad=True) for _ in range(2))

    def f(x):
        g, = torch.autograd.grad((w ** 3 * x).sum(), w, create_graph=True)
        return g
    f = compile(f)
    g = f(torch.ones(2))
    (g.sum() + u.sum()).backward()
    return (w.grad, u.grad)


def create_graph_and_backward(torch, compile):
    w, u = (torch.ones(2, requires_grad=True) for _ in range(2))

    def f(x):
        g, = torch.autograd.grad((w ** 3 * x).sum(), w, create_graph=True)
        (u * x).sum().backward()
        return g
    f = compile(f)
    g = f(torch.ones(2))
    (g.sum() + u.sum()).backward()
    return (w.grad, u.grad)


def freed_then_added(torch, compile):
    w, u = (torch.ones(2, requires_grad=True) for _ in range(2))

    def f(x):
        l = (w * x).sum()
        l.backward()
        return l
    f = compile(f)
    l = f(torch.ones(2))
    (l + u.sum()).backward()
    return (w.grad, u.grad)


def freed_mul_then_added(torch, compile):
    w, u = (torch.ones(2, requires_grad=True) for _ in range(2))

    def f(x):
        l = (w * x * w).sum()
        l.backward()
        return l
    f = compile(f)
    l = f(torch.ones(2))
    (l + u.sum()).backward()
    return (w.grad, u.grad)


def kept_prediction_of_step(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad()
        p = w * x
        (p ** 2).sum().backward()
        o.step()
        return p
    f = compile(f)
    p = f(torch.ones(2))
    return (p.detach(), w)
