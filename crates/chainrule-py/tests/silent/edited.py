"""Programs that edit modules, optimizers and states by hand between steps."""

import collections
import copy
import pickle


def modules_in_another_order(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Sequential(collections.OrderedDict(a=torch.nn.Linear(2, 2), b=torch.nn.Tanh(), c=torch.nn.Linear(2, 2)))
    f = compile(lambda x: net(x))
    x = torch.ones(1, 2)
    out = [f(x)]
    m = net._modules
    a = m.pop("a")
    m["a"] = a
    out.append(f(x))
    net[0], net[2] = (net[2], net[0])
    out.append(f(x))
    out.append(list(net.state_dict()))
    net.b = torch.nn.ReLU()
    out.append(f(x))
    del net.c
    out.append(f(x))
    setattr(net, "z", torch.nn.Linear(2, 1))
    out.append(f(x))
    return out


def schedule_of_another_optimizer(torch, compile):
    p = torch.nn.Parameter(torch.ones(1))
    o1, o2 = (torch.optim.SGD([p], lr=1.0), torch.optim.SGD([p], lr=0.5))
    s = torch.optim.lr_scheduler.StepLR(o1, 1, 0.5)
    out = []

    def step(o):
        o.zero_grad()
        (p * 2).sum().backward()
        o.step()
    step = compile(step)
    for i in range(4):
        if i == 2:
            s.optimizer = o2
        step(o1)
        step(o2)
        s.step()
        out += [o1.param_groups[0]["lr"], o2.param_groups[0]["lr"], p.item()]
    return out


def state_of_another_optimizer_loaded(torch, compile):
    torch.manual_seed(0)
    a, b = (torch.nn.Linear(2, 1), torch.nn.Linear(2, 1))
    oa, ob = (torch.optim.Adam(a.parameters(), 0.1), torch.optim.Adam(b.parameters(), 0.5, betas=(0.5, 0.9)))

    def mk(m, o):

        def step(x):
            o.zero_grad()
            l = m(x).pow(2).sum()
            l.backward()
            o.step()
            return l
        return compile(step)
    sa, sb = (mk(a, oa), mk(b, ob))
    x = torch.ones(2, 2)
    out = [sa(x), sb(x), sa(x), sb(x)]
    ob.load_state_dict(oa.state_dict())
    out += [sb(x), sb(x), sa(x)]
    ob.load_state_dict(copy.deepcopy(oa.state_dict()))
    out += [sb(x), ob.param_groups[0]["lr"], ob.state[b.weight]["step"], b.weight, a.weight]
    return out


def affine_parts_taken_away(torch, compile):
    torch.manual_seed(0)
    bn = torch.nn.BatchNorm1d(2)
    ln = torch.nn.LayerNorm(2)
    f = compile(lambda x: (bn(x), ln(x)))
    x = torch.randn(4, 2)
    torch.nn.init.constant_(bn.weight, 3.0)
    out = [f(x)]
    bn.weight = None
    bn.bias = None
    out.append(f(x))
    ln.bias = None
    out.append(f(x))
    ln.eps = 1.0
    bn.eps = 0.5
    out.append(f(x))
    bn.track_running_stats = False
    out.append(f(x))
    out.append(bn.running_mean)
    return out


def backward_for_some_inputs(torch, compile):
    a, b = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    out = []
    l = (a * b * 3).sum()
    l.backward(inputs=[a], retain_graph=True)
    out += [a.grad, b.grad]
    l.backward(inputs=[b])
    out += [a.grad, b.grad]
    torch.autograd.backward([(a * 2).sum(), (b * a).sum()], [torch.tensor(1.0), torch.tensor(0.5)])
    out += [a.grad.clone(), b.grad.clone()]
    y = a * b
    torch.autograd.backward(y, torch.tensor([1.0, 10.0]))
    out += [a.grad, b.grad]
    return out


def modules_shared_and_replaced(torch, compile):
    torch.manual_seed(0)
    shared = torch.nn.Linear(2, 2)

    class M(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.a = shared
            self.b = shared
            self.l = torch.nn.ModuleList([shared])

        def forward(self, x):
            return self.l[0](self.b(self.a(x)))
    m = M()
    f = compile(m)
    x = torch.ones(1, 2)
    out = [f(x), len(list(m.parameters())), len(m.state_dict())]
    m.b = copy.deepcopy(shared)
    m.b.weight.data.zero_()
    out += [f(x), len(list(m.parameters()))]
    m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})
    out += [f(x), shared.weight, m.b.weight]
    return out


def dropout_rate_and_seed_by_loop(torch, compile):
    d = torch.nn.Dropout(0.5)
    f = compile(lambda x: d(x) + torch.rand(2))
    out = []
    for i in range(4):
        torch.manual_seed(i)
        d.p = 0.2 * i
        out.append(f(torch.ones(2)))
        if i == 2:
            d.eval()
    return out


def closures_over_loop_variables(torch, compile):
    fs = [compile(lambda x: x * i) for i in range(3)]
    gs = [compile(lambda x, i=i: x * i) for i in range(3)]
    x = torch.ones(1)
    return ([f(x) for f in fs], [g(x) for g in gs])


def written_through_iterators(torch, compile):
    x = torch.zeros(3, 2)
    for i, row in enumerate(x):
        row += i
    for a, b in zip(x, x.flip(0)):
        a[0] = b[1]
    for p in x.unbind(1):
        p.mul_(2)
    a, b, c = x
    c[:] = -1
    *r, last = x.t()
    last.add_(5)
    x[1], x[2] = (x[2].clone(), x[1].clone())
    return (x, a, b, c)


def averages_over_models(torch, compile):
    torch.manual_seed(0)
    ms = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)) for _ in range(3)]
    for i, m in enumerate(ms):
        m(torch.randn(4 + i, 2))
    avg = copy.deepcopy(ms[0])
    sd = avg.state_dict()
    for k in sd:
        sd[k] = torch.stack([m.state_dict()[k].float() for m in ms]).mean(0)
    avg.load_state_dict(sd)
    f = compile(lambda x: avg(x))
    avg.eval()
    return (f(torch.ones(1, 2)), avg.state_dict())


def weights_interpolated(torch, compile):
    torch.manual_seed(0)
    a, b = (torch.nn.Linear(2, 1), torch.nn.Linear(2, 1))
    c = torch.nn.Linear(2, 1)
    f = compile(lambda x: c(x))
    out = []
    for t in (0.0, 0.5, 1.0):
        with torch.no_grad():
            for p, q, r in zip(a.parameters(), b.parameters(), c.parameters()):
                r.copy_(torch.lerp(p, q, t))
        out.append(f(torch.ones(1, 2)))
    c.weight.data, a.weight.data = (a.weight.data, c.weight.data)
    out += [f(torch.ones(1, 2)), a.weight]
    a.weight.data.zero_()
    out.append(f(torch.ones(1, 2)))
    return out


def momentum_inside_buffers(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    vel = {n: torch.zeros_like(p) for n, p in m.named_parameters()}

    def step(x):
        for p in m.parameters():
            p.grad = None
        l = m(x).pow(2).mean()
        l.backward()
        with torch.no_grad():
            for n, p in m.named_parameters():
                vel[n].mul_(0.9).add_(p.grad)
                p -= 0.1 * vel[n]
        return l
    step = compile(step)
    out = [step(torch.ones(2, 2)) for _ in range(3)]
    vel["bias"].zero_()
    out.append(step(torch.ones(2, 2)))
    vel["weight"] = torch.ones(2, 2)
    out.append(step(torch.ones(2, 2)))
    return (out, m.weight, vel)


def tensors_as_keys_and_defaults(torch, compile):
    p, q = (torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1)))
    d = {p: 1, q: 2}
    s = {p, q, p}

    class C:
        shared = torch.zeros(2)

        def __call__(self, x, acc=torch.zeros(2)):
            acc += x
            self.shared[0] += 1
            return acc * self.shared
    f = compile(C())
    return (len(d), d[p], len(s), p in d, [f(torch.ones(2)) for _ in range(3)], C.shared)


def pickled_between_steps(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.RMSprop(m.parameters(), 0.1, momentum=0.5)
    out = []
    for i in range(4):
        o.zero_grad()
        m(torch.ones(1, 2)).pow(2).sum().backward()
        o.step()
        m, o = pickle.loads(pickle.dumps((m, o)))
        out.append((m.weight, o.param_groups[0]["params"][0] is m.weight))
    return out


def schedulers_and_edited_groups(torch, compile):
    L = torch.optim.lr_scheduler
    out = []
    for mk in (lambda o: L.StepLR(o, 2, 0.5), lambda o: L.CosineAnnealingLR(o, 5), lambda o: L.LambdaLR(o, lambda e: 0.9 ** e), lambda o: L.ExponentialLR(o, 0.9), lambda o: L.LinearLR(o, 0.5, 1.0, 4)):
        a, b, c = (torch.nn.Parameter(torch.full((1,), float(i + 1))) for i in range(3))
        o = torch.optim.SGD([{"params": [a], "lr": 1.0}, {"params": [b], "lr": 0.5}], momentum=0.9, lr=0.1)
        s = mk(o)

        def step():
            o.zero_grad()
            (a * b * c * 0.1).sum().backward()
            o.step()
        step = compile(step)
        for i in range(6):
            if i == 2:
                o.param_groups.reverse()
            if i == 4:
                o.param_groups[0]["lr"] *= 0.1
            step()
            s.step()
            out.append((a.item(), b.item(), [g["lr"] for g in o.param_groups], s.get_last_lr()))
    return out


def parameter_swapped_inside_a_group(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    o = torch.optim.AdamW(m.parameters(), lr=0.1)
    out = []

    def step(x):
        o.zero_grad()
        l = m(x).pow(2).sum()
        l.backward()
        o.step()
        return l
    step = compile(step)
    for i in range(6):
        if i == 2:
            new = torch.nn.Parameter(m.weight.detach() * 0.5)
            st = o.state.pop(m.weight)
            o.state[new] = st
            o.param_groups[0]["params"][0] = new
            m.weight = new
        if i == 4:
            new = torch.nn.Parameter(torch.cat([m.weight.detach(), torch.ones(1, 2)]))
            st = o.state.pop(m.weight)
            for k in ("exp_avg", "exp_avg_sq"):
                st[k] = torch.cat([st[k], torch.zeros(1, 2)])
            o.state[new] = st
            o.param_groups[0]["params"][0] = new
            m.weight = new
            m.bias = None
            o.param_groups[0]["params"].pop()
        out.append(step(torch.ones(1, 2)))
    return (out, m.weight, [v["step"] for k, v in o.state.items() if k is m.weight])


def pruned_rows_of_a_parameter(torch, compile):
    torch.manual_seed(0)
    pts = torch.nn.Parameter(torch.randn(6, 2))
    o = torch.optim.Adam([{"params": [pts], "name": "xyz"}], lr=0.05)
    out = []
    for i in range(6):
        o.zero_grad()
        loss = (pts.norm(dim=1) - 1).pow(2).mean()
        loss.backward()
        o.step()
        out.append(loss)
        if i % 2:
            keep = pts.detach().norm(dim=1) > 0.6
            g = o.param_groups[0]
            st = o.state.get(g["params"][0])
            st["exp_avg"] = st["exp_avg"][keep]
            st["exp_avg_sq"] = st["exp_avg_sq"][keep]
            del o.state[g["params"][0]]
            g["params"][0] = torch.nn.Parameter(pts[keep].detach().requires_grad_(True))
            o.state[g["params"][0]] = st
            pts = g["params"][0]
    return (out, pts, o.state[pts]["exp_avg"], o.state[pts]["step"])


def averaged_model_and_buffers(torch, compile):
    from importlib import import_module
    swa = import_module(torch.__name__ + ".optim.swa_utils")
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    out = []
    for kw in ({}, {"use_buffers": True}, {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)}):
        a = swa.AveragedModel(m, **kw)
        for i in range(3):
            m(torch.randn(4, 2))
            m[0].weight.data.add_(i)
            a.update_parameters(m)
        out += [list(a.state_dict().values()), a.module[1].running_mean]
        swa.update_bn([torch.randn(4, 2), torch.randn(4, 2)], a)
        out.append(a.module[1].running_mean)
    return out


def optimizer_copied_over_a_new_model(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.Adam(m.parameters(), 0.1)
    m(torch.ones(1, 2)).sum().backward()
    o.step()
    m2, o2 = copy.deepcopy((m, o))
    o3 = copy.copy(o)
    out = [o2.param_groups[0]["params"][0] is m2.weight, o3.param_groups is o.param_groups]
    for q, w in ((o2, m2), (o3, m), (o, m)):
        q.zero_grad()
        w(torch.ones(1, 2)).sum().backward()
        q.step()
    return (out, m.weight, m2.weight, o.state[m.weight]["step"], o3.state[m.weight]["step"], o2.state[m2.weight]["step"])


def defaults_of_the_optimizer_changed(torch, compile):
    a, b = (torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1)))
    o = torch.optim.SGD([a], lr=0.1)
    o.defaults["lr"] = 5.0
    o.defaults["momentum"] = 0.5
    (a * b).sum().backward()
    o.step()
    o.add_param_group({"params": b})
    o.step()
    o.step()
    return (a, b, [{k: v for k, v in g.items() if k in ("lr", "momentum")} for g in o.param_groups])


def clip_by_groups_and_foreach(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    out = []
    m(torch.ones(1, 2)).pow(2).sum().mul(50).backward()
    out.append(torch.nn.utils.clip_grad_norm_(m[0].parameters(), 1.0, norm_type=float("inf")))
    out.append([p.grad.clone() for p in m.parameters()])
    out.append(torch.nn.utils.clip_grad_norm_([p for p in m.parameters()], 0.5))
    torch.nn.utils.clip_grad_value_(m.parameters(), 0.1)
    out.append([p.grad.clone() for p in m.parameters()])
    torch._foreach_mul_([p.grad for p in m.parameters()], 2.0)
    out.append([p.grad for p in m.parameters()])
    return out


def lbfgs_and_state(torch, compile):
    p = torch.nn.Parameter(torch.tensor([1.5, -1.0], dtype=torch.float64))
    o = torch.optim.LBFGS([p], lr=0.5, max_iter=3, history_size=2, line_search_fn="strong_wolfe")
    out = []

    def closure():
        o.zero_grad()
        l = (1 - p[0]) ** 2 + 10 * (p[1] - p[0] ** 2) ** 2
        l.backward()
        return l
    for i in range(4):
        out.append(o.step(closure))
        if i == 1:
            o2 = torch.optim.LBFGS([p], lr=1.0)
            o2.load_state_dict(copy.deepcopy(o.state_dict()))
            o = o2
    return (out, p)
