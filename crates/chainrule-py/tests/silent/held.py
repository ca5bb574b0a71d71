"""Random streams, copies, gradients that are kept, tied weights, states that are held."""

import copy
import math
import pickle
import random

import numpy as np


def momentum_off_and_on(torch, compile):
    w = torch.ones(2, requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([{"params": [w]}, {"params": [v], "dampening": 0.3, "momentum": 0.5}], lr=0.1)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        (v ** 3).sum().backward()
        o.step()
    f = compile(f)
    f()
    f()
    r = [w.clone()]
    for m in (0.9, 0.9, 0.0, 0.0, 0.9, 0.5):
        for g in o.param_groups:
            g["momentum"] = m
        f()
        r.append(w.clone())
        r.append(v.clone())
    return r


def rms_momentum_off_on(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.RMSprop([w], lr=0.1, momentum=0.9)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    r = []
    for m in (0.0, 0.0, 0.9, 0.5):
        o.param_groups[0]["momentum"] = m
        f()
        r.append(w.clone())
    return r


def state_read_and_written(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    f()
    s = o.state[w]
    a = s["step"].item()
    s["step"] += 5
    f()
    s["step"].fill_(1)
    f()
    s["exp_avg"].zero_()
    f()
    return (a, w, s, list(s), o.state_dict()["state"])


def sgd_state_forms(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    a = (o.state_dict()["state"], len(o.state), w in o.state)
    o.param_groups[0]["momentum"] = 0.9
    f()
    return (a, o.state_dict()["state"], len(o.state))


def state_loaded_halfway(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9, dampening=0.5)

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    sd = o.state_dict()
    o2 = torch.optim.SGD([w], lr=0.1, momentum=0.9, dampening=0.5)
    o2.load_state_dict(sd)
    o2.zero_grad()
    (w ** 2).sum().backward()
    o2.step()
    f()
    return (w, o2.state_dict()["state"], sd["state"])


def deepcopy_after_compiled(torch, compile):
    import copy
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        o.step()
    f = compile(f)
    f(torch.ones(1, 2))
    best = copy.deepcopy(m)
    f(torch.ones(1, 2))
    return (best.weight, m.weight)


def rng_fork_and_state(torch, compile):
    torch.manual_seed(1)
    s = torch.get_rng_state()
    f = compile(lambda: torch.randn(3) + torch.rand(1))
    a = f()
    with torch.random.fork_rng():
        torch.manual_seed(99)
        b = f()
    c = f()
    torch.set_rng_state(s)
    return (a, b, c, f(), torch.initial_seed())


def rng_mixed_kinds(torch, compile):
    torch.manual_seed(3)
    f = compile(lambda x: (torch.randint(5, (3,)), torch.randn(17), torch.randperm(4), torch.bernoulli(x), torch.empty(3).uniform_(2, 3), torch.normal(x, 2.0), torch.empty(2).normal_(1, 2), torch.randint_like(x, 9)))
    return (f(torch.full((4,), 0.5)), f(torch.full((4,), 0.5)), torch.rand(1))


def checkpoint_in_loop(torch, compile):
    from_utils = __import__(torch.__name__ + ".utils.checkpoint", fromlist=["checkpoint"]).checkpoint
    torch.manual_seed(0)
    ls = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    d = torch.nn.Dropout(0.5)

    def f(x):
        for l in ls:
            x = from_utils(lambda t, l=l: d(torch.relu(l(t))), x, use_reentrant=False)
        x.sum().backward()
        return x.detach()
    f = compile(f)
    return (f(torch.ones(3, 2)), f(torch.ones(3, 2)), [p.grad for p in ls.parameters()], torch.rand(1))


def checkpoint_bn_twice(torch, compile):
    cp = __import__(torch.__name__ + ".utils.checkpoint", fromlist=["checkpoint"]).checkpoint
    torch.manual_seed(0)
    m = torch.nn.BatchNorm1d(2)
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    cp(m, x, use_reentrant=False).pow(2).sum().backward()
    return (dict(m.named_buffers()), x.grad)


def deepcopy_optimizer_with_model(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.Adam(m.parameters(), lr=0.1)

    def step(m, o, x):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        o.step()
    step(m, o, torch.ones(1, 2))
    m2, o2 = copy.deepcopy((m, o))
    f = compile(lambda x: step(m2, o2, x))
    f(torch.ones(1, 2))
    f(torch.ones(1, 2))
    return (m.weight, m2.weight, o.state_dict()["state"], o2.state_dict()["state"])


def pickle_module_with_grad_and_hooks(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    m(torch.arange(4.0).reshape(2, 2)).sum().backward()
    m.eval()
    m[0].weight.requires_grad_(False)
    n = pickle.loads(pickle.dumps(m))
    f = compile(lambda x: n(x))
    return (n.training, [p.requires_grad for p in n.parameters()], [p.grad for p in n.parameters()], f(torch.ones(1, 2)), dict(n.named_buffers()))


def retain_graph_twice_accumulates(torch, compile):
    w = torch.tensor([2.0], requires_grad=True)

    def f(x):
        y = (w ** 3 * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        g = torch.autograd.grad((w * x).sum(), [w])
        return g
    f = compile(f)
    f(torch.ones(1))
    return (f(torch.ones(1)), w.grad)


def accumulate_mixed_none(torch, compile):
    a, b = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))

    def f(x, both):
        l = (a * x).sum() + ((b * x).sum() if both else 0)
        l.backward()
        return l.detach()
    f = compile(f)
    f(torch.ones(2), False)
    r = [a.grad.clone(), b.grad]
    f(torch.ones(2), True)
    f(torch.ones(2), False)
    a.grad = None
    f(torch.ones(2), True)
    return (r, a.grad, b.grad)


def grad_data_edits(torch, compile):
    m = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.ones_(m.weight)

    def f(x):
        m(x).sum().backward()
    f = compile(f)
    f(torch.ones(1, 2))
    m.weight.grad.data.mul_(10)
    f(torch.ones(1, 2))
    m.weight.grad[0] = 0
    f(torch.ones(1, 2))
    m.weight.grad = m.weight.grad * 2
    f(torch.ones(1, 2))
    return m.weight.grad


def grad_shared_into_other(torch, compile):
    a, b = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))

    def f(x):
        (a * x).sum().backward()
    f = compile(f)
    f(torch.ones(2))
    b.grad = a.grad.clone()
    f(torch.ones(2))
    return (a.grad, b.grad)


def set_grad_enabled_forms(torch, compile):
    w = torch.ones(2, requires_grad=True)

    def f(x, on):
        with torch.set_grad_enabled(on):
            y = w * x
        with torch.no_grad():
            z = w * 2
            with torch.enable_grad():
                q = w * 3
        return (y.requires_grad, z.requires_grad, q.requires_grad, torch.is_grad_enabled())
    f = compile(f)
    return (f(torch.ones(2), True), f(torch.ones(2), False))


def buffers_of_submodules_written(torch, compile):

    class C(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros((), dtype=torch.long))
            self.register_buffer("h", torch.zeros(3))
            self.i = 0

        def forward(self, x):
            self.n += 1
            self.h[self.n % 3] = x.sum()
            self.h.roll(1)
            return self.h * self.n
    m = C()
    f = compile(lambda x: m(x))
    return ([f(torch.full((2,), float(k))) for k in range(4)], m.state_dict())


def state_dict_prefix_alias(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    sd = m.state_dict()
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).sum().backward()
        o.step()
    f = compile(f)
    f(torch.ones(1, 2))
    a = (sd["0.weight"] == m[0].weight).all()
    sd["1.bias"].fill_(5)
    f(torch.ones(1, 2))
    return (a, sd, m[1].bias, list(sd))


def tied_three_ways(torch, compile):
    torch.manual_seed(0)
    e = torch.nn.Embedding(4, 2)
    l = torch.nn.Linear(2, 4, bias=False)
    l.weight = e.weight
    m = torch.nn.ModuleDict({"e": e, "l": l, "k": torch.nn.Linear(2, 4, bias=False)})
    m["k"].weight = e.weight
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    F = torch.nn.functional

    def f(i):
        o.zero_grad()
        h = e(i)
        l2 = F.cross_entropy(l(h) + m["k"](h), i)
        l2.backward()
        o.step()
        return l2.detach()
    f = compile(f)
    r = [f(torch.tensor([0, 1, 3])) for _ in range(3)]
    c = copy.deepcopy(m)
    m.load_state_dict({k: v * 0 for k, v in m.state_dict().items()})
    return (r, e.weight, c["k"].weight, c["k"].weight is c["e"].weight, len(list(m.parameters())), len(m.state_dict()))


def functional_call_tied_and_buffers(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    p = {k: torch.ones_like(v) for k, v in m.named_parameters()}
    f = compile(lambda x, p: torch.func.functional_call(m, p, (x,)))
    y = f(torch.arange(4.0).reshape(2, 2), p)
    return (y, dict(m.named_buffers()), m[0].weight)


def vmap_with_randomness_and_in_dims(torch, compile):
    torch.manual_seed(0)
    w = torch.ones(3)
    f = compile(lambda x: torch.vmap(lambda a, b: (a * b).sum() + w.sum(), in_dims=(0, 1))(x, x.t()))
    g = torch.vmap(torch.func.grad(lambda a: (a ** 3).sum()))
    return (f(torch.arange(6.0).reshape(2, 3)), g(torch.arange(4.0).reshape(2, 2)))


def loader_workers_seed(torch, compile):
    D = __import__(torch.__name__ + ".utils.data", fromlist=["DataLoader"])
    torch.manual_seed(2)

    class S(D.Dataset):

        def __len__(self):
            return 5

        def __getitem__(self, i):
            return (i, torch.rand(1), np.float32(i), {"a": str(i)})
    r = []
    for b in D.DataLoader(S(), 2, shuffle=True):
        r.append([b[0], b[1], b[2], b[3]["a"]])
    return (r, torch.rand(1), [x for x in D.DataLoader(range(4), batch_size=None)], [x for x in D.DataLoader([1, 2, 3], 2, collate_fn=sum)])


def random_samplers(torch, compile):
    D = __import__(torch.__name__ + ".utils.data", fromlist=["DataLoader"])
    torch.manual_seed(2)
    return (list(D.RandomSampler(range(5), replacement=True, num_samples=7)), list(D.RandomSampler(range(5))), list(D.SubsetRandomSampler([3, 5, 7])), list(D.BatchSampler(D.SequentialSampler(range(5)), 2, False)), [list(s) for s in D.random_split(range(6), [0.5, 0.5])], torch.rand(1))


def clip_then_step_inside(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(m.parameters(), lr=1.0)
    n = []

    def f(x):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        t = torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1)
        o.step()
        return t
    f = compile(f)
    return (f(torch.ones(1, 2)), f(torch.ones(1, 2) * 3), m.weight, m.bias)


def data_swap_between_models(torch, compile):
    torch.manual_seed(0)
    a, b = (torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    fa, fb = (compile(lambda x: a(x)), compile(lambda x: b(x)))
    x = torch.ones(1, 2)
    r = [fa(x), fb(x)]
    a.weight.data, b.weight.data = (b.weight.data, a.weight.data)
    return (r, fa(x), fb(x))


def assign_parameter_in_dict(torch, compile):
    m = torch.nn.Linear(2, 2, bias=False)
    f = compile(lambda x: m(x))
    f(torch.ones(1, 2))
    m._parameters["weight"] = torch.nn.Parameter(torch.eye(2))
    a = f(torch.ones(1, 2))
    m.weight.data[0, 0] = 5
    b = f(torch.ones(1, 2))
    setattr(m, "weight", torch.nn.Parameter(torch.zeros(2, 2)))
    return (a, b, f(torch.ones(1, 2)))


def int_and_bool_in_place(torch, compile):
    x = torch.arange(6)
    m = torch.zeros(6, dtype=torch.bool)

    def f(k):
        x.bitwise_and_(k)
        x.add_(1)
        x[2:].floor_divide_(2)
        m.logical_or_(x > 2)
        m[0] ^= True
        return x.sum()
    f = compile(f)
    return (f(torch.tensor(7)), f(torch.tensor(3)), x, m)


def accumulate_metric_tensor(torch, compile):
    total = torch.zeros(())
    n = torch.zeros((), dtype=torch.long)
    best = torch.full((), -math.inf)

    def f(p, y):
        total.add_((p.argmax(1) == y).sum())
        n.add_(len(y))
        torch.maximum(best, p.max(), out=best)
        return total / n
    f = compile(f)
    return (f(torch.eye(3), torch.tensor([0, 1, 1])), f(torch.eye(3)[:2], torch.tensor([0, 0])), total, n, best)


def views_returned_then_written(torch, compile):
    x = torch.zeros(2, 3)
    f = compile(lambda t: (t.view(-1), t[0], t.chunk(3, 1)))
    a, b, c = f(x)
    a[0] = 1
    b[1] = 2
    c[2].fill_(3)
    x[1] = 9
    return (x, a, b, c)


def running_mean_by_data(torch, compile):

    class M(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.mean = torch.nn.Parameter(torch.zeros(2), requires_grad=False)

        def forward(self, x):
            if self.training:
                self.mean.data = 0.9 * self.mean.data + 0.1 * x.mean(0)
            return x - self.mean
    m = M()
    f = compile(lambda x: m(x))
    f(torch.ones(3, 2))
    f(torch.ones(3, 2) * 2)
    m.eval()
    return (f(torch.ones(1, 2)), m.mean)
