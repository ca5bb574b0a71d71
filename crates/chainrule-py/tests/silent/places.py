"""Places in memory, files of modules, hooks of states and steps, and `out=`."""

import io


def save_model(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    net.eval()
    f = io.BytesIO()
    torch.save(net, f)
    f.seek(0)
    n = torch.load(f, weights_only=False)
    return (n(torch.ones(1, 2)), n.training, [p.requires_grad for p in n.parameters()])


def post_acc(torch):
    w = torch.ones(3, requires_grad=True)
    log = []
    h = w.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
    (w * 2).sum().backward()
    (w * 3).sum().backward()
    h.remove()
    (w * 3).sum().backward()
    return (log, w.grad)


def post_acc_opt(torch):
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 2)
    ds = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}

    def hook(p):
        ds[p].step()
        ds[p].zero_grad()
    for p in net.parameters():
        p.register_post_accumulate_grad_hook(hook)
    for i in range(3):
        net(torch.ones(1, 2)).pow(2).sum().backward()
    return (list(net.parameters()), [p.grad for p in net.parameters()])


def out_add(torch):
    o = torch.empty(3)
    r = torch.add(torch.ones(3), 2, out=o)
    return (o, r is o)


def out_matmul(torch):
    o = torch.zeros(2, 2)
    torch.matmul(torch.ones(2, 3), torch.ones(3, 2), out=o)
    torch.mm(torch.eye(2), o.clone(), out=o)
    return o


def out_view(torch):
    o = torch.zeros(3, 2)
    torch.mul(torch.ones(2), 4, out=o[1])
    return o


def out_resize(torch):
    o = torch.empty(0)
    torch.add(torch.ones(3), 1, out=o)
    return o


def out_max(torch):
    v = torch.empty(2)
    i = torch.empty(2, dtype=torch.int64)
    torch.max(torch.arange(4.0).reshape(2, 2), 1, out=(v, i))
    return (v, i)


def out_more(torch):
    o = torch.zeros(3)
    torch.exp(torch.ones(3), out=o)
    torch.clamp(o, max=2, out=o)
    torch.cumsum(o, 0, out=o)
    a = torch.zeros(2, 3)
    torch.stack([o, o], out=a)
    c = torch.zeros(6)
    torch.cat([o, o], 0, out=c)
    s = torch.tensor(0.0)
    torch.sum(o, 0, out=s)
    return (o, a, c, s)


def out_create(torch):
    torch.manual_seed(0)
    o = torch.empty(3)
    torch.zeros(3, out=o)
    torch.arange(3, out=o)
    torch.linspace(0, 1, 3, out=o)
    r = torch.empty(3)
    torch.randn(3, out=r)
    torch.ones(3, out=o)
    return (o, r)


def unsq(torch):
    x = torch.arange(3.0)
    y = x[1:]
    r = x.unsqueeze_(0)
    x.mul_(2)
    return (r is x, x.shape, y, x)


def sq(torch):
    x = torch.zeros(1, 3, 1)
    x.squeeze_()
    a = x.shape
    y = torch.zeros(1, 3, 1)
    y.squeeze_(0)
    return (a, y.shape)


def t_(torch):
    x = torch.arange(6.0).reshape(2, 3)
    v = x[0]
    x.t_()
    x[0, 0] = 9
    v[2] = 7
    return (x, v, x.is_contiguous(), x.stride())


def transpose_(torch):
    x = torch.arange(6.0).reshape(1, 2, 3)
    x.transpose_(1, 2)
    x.swapaxes_(0, 1)
    return x


def t_grad(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = x * torch.arange(3.0)
    y.t_()
    y.unsqueeze_(0)
    (y * torch.arange(6.0).reshape(3, 2)).sum().backward()
    return (x.grad, y.shape)


def unsq_nograd_leaf(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        x.unsqueeze_(0)
    (x * 2).sum().backward()
    return (x.shape, x.grad)


def resize_(torch):
    x = torch.arange(6.0)
    x.resize_(2, 3)
    return x


def resize_smaller(torch):
    x = torch.arange(6.0)
    x.resize_(2, 2)
    return x


def bool_and(torch):
    x = torch.tensor([True, False])
    x &= torch.tensor([True, True])
    x |= torch.tensor([False, True])
    return x


def half_inplace(torch):
    x = torch.ones(3, dtype=torch.float16)
    x += torch.ones(3, dtype=torch.float64) / 3
    return x


def setitem_cast(torch):
    x = torch.ones(3, dtype=torch.int64)
    x[0] = 2.7
    x[1:] = torch.tensor([3.9, -1.2])
    x.copy_(torch.tensor([1.5, 2.5, 3.5]))
    y = torch.zeros(2, dtype=torch.bool)
    y[0] = 3
    y.fill_(2)
    return (x, y)


def expand_same(torch):
    x = torch.zeros(2, 3)
    y = x.expand(2, 3)
    y.add_(1)
    y = x.expand(2, -1)
    y[0] = 4
    return x


def lazy_linear(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(2))
    r = net(torch.ones(1, 3))
    return (r, list(net.parameters()), type(net[0]).__name__, list(net.state_dict()))


def lazy_conv(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.LazyConv2d(4, 3, padding=1), torch.nn.LazyBatchNorm2d(), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    with torch.no_grad():
        net(torch.ones(2, 3, 5, 5))
    o = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.randn(2, 3, 5, 5)).sum().backward()
    o.step()
    return (list(net.parameters()), repr(net))


def lazy_state(torch):
    torch.manual_seed(0)
    l = torch.nn.LazyLinear(3)
    k = torch.nn.Linear(2, 3)
    l.load_state_dict(k.state_dict())
    return l(torch.ones(1, 2))


def lsd_pre_hook(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    sd = {"x." + k: v for k, v in l.state_dict().items()}

    def hook(sd, prefix, meta, strict, missing, unexpected, errs):
        for k in list(sd):
            sd[k[2:]] = sd.pop(k)
    l._register_load_state_dict_pre_hook(hook)
    r = l.load_state_dict(sd)
    return list(r.missing_keys)


def lsd_pre_hook2(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    seen = []
    l.register_load_state_dict_pre_hook(lambda mod, sd, prefix, meta, strict, missing, unexpected, errs: seen.append((type(mod).__name__, prefix, strict)))
    l.register_load_state_dict_post_hook(lambda mod, keys: seen.append(list(keys.missing_keys)))
    s = torch.nn.Sequential(l)
    s.load_state_dict(s.state_dict())
    return seen


def sd_hook(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    l._register_state_dict_hook(lambda mod, sd, prefix, meta: sd.pop(prefix + "bias") is None or None)
    return list(torch.nn.Sequential(l).state_dict())


def load_from_override(torch):
    torch.manual_seed(0)

    class L(torch.nn.Module):

        def __init__(s):
            super().__init__()
            s.w = torch.nn.Parameter(torch.zeros(2))
            s.register_buffer("b", torch.zeros(1))

        def _load_from_state_dict(s, sd, prefix, meta, strict, missing, unexpected, errs):
            k = prefix + "old"
            if k in sd:
                sd[prefix + "w"] = sd.pop(k)
            super()._load_from_state_dict(sd, prefix, meta, strict, missing, unexpected, errs)

        def _save_to_state_dict(s, dest, prefix, keep_vars):
            super()._save_to_state_dict(dest, prefix, keep_vars)
            dest[prefix + "extra"] = torch.ones(1)
    l = torch.nn.Sequential(L())
    l.load_state_dict({"0.old": torch.ones(2), "0.b": torch.ones(1)})
    return l.state_dict()


def extra_state(torch):
    torch.manual_seed(0)

    class L(torch.nn.Module):

        def __init__(s):
            super().__init__()
            s.n = 1

        def get_extra_state(s):
            return {"n": s.n}

        def set_extra_state(s, st):
            s.n = st["n"]
    a = L()
    a.n = 7
    b = torch.nn.Sequential(L())
    c = torch.nn.Sequential(a)
    b.load_state_dict(c.state_dict())
    return (b[0].n, list(c.state_dict()))


def keep_vars(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    sd = l.state_dict(keep_vars=True)
    return sd["weight"] is l.weight


def sd_prefix(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    d = {}
    l.state_dict(destination=d, prefix="a.")
    return list(d)


def assign(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    sd = {k: v + 1 for k, v in l.state_dict().items()}
    l.load_state_dict(sd, assign=True)
    sd["weight"].zero_()
    return (l.weight, l.weight.requires_grad)


def to_empty(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    l.to_empty(device="cpu")
    return l.weight.shape


def set_sub(torch):
    torch.manual_seed(0)
    s = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.ReLU()))
    s.set_submodule("1.0", torch.nn.Tanh())
    return s(torch.ones(1, 2))


def compile_mod(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    r = l(torch.ones(1, 2))
    return r


def opt_hooks(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(1, 1)
    o = torch.optim.SGD(l.parameters(), lr=0.1)
    seen = []
    o.register_step_pre_hook(lambda o, a, k: seen.append("pre"))
    h = o.register_step_post_hook(lambda o, a, k: seen.append("post"))
    l(torch.ones(1, 1)).sum().backward()
    o.step()
    h.remove()
    o.step()
    return seen


def opt_sd_hooks(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(1, 1)
    o = torch.optim.SGD(l.parameters(), lr=0.1)
    seen = []
    o.register_state_dict_post_hook(lambda o, sd: sd.update(extra=1))
    o.register_load_state_dict_pre_hook(lambda o, sd: seen.append("lp"))
    o.register_load_state_dict_post_hook(lambda o: seen.append("lpost"))
    sd = o.state_dict()
    o.load_state_dict(sd)
    return (seen, "extra" in sd)


def as_strided(torch):
    x = torch.arange(9.0)
    y = x.as_strided((2, 2), (1, 2))
    y.add_(10)
    z = x.as_strided((3, 3), (1, 1), 2)
    return (x, y, z)


def set_(torch):
    x = torch.ones(2)
    y = torch.zeros(3)
    x.set_(y)
    y[0] = 5
    return x


def bbox(torch):
    x = torch.arange(6.0).reshape(2, 3)
    x.transpose(0, 1).contiguous().view(-1).add_(1)
    return x


def cum_(torch):
    x = torch.ones(3)
    x.cumsum_(0)
    x.cumprod_(0)
    return x


def index_put(torch):
    x = torch.zeros(3)
    i = (torch.tensor([0, 2, 0]),)
    a = torch.index_put(x, i, torch.ones(3), accumulate=True)
    x.index_put_(i, torch.ones(3) * 2)
    return (a, x)


def masked_scatter(torch):
    return torch.masked_scatter(torch.zeros(4), torch.tensor([True, False, True, True]), torch.arange(3.0))


def base(torch):
    x = torch.zeros(3)
    v = x[1:]
    return (v._base is x, x._base is None, v._is_view(), x._is_view())


def retains(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    a = y.retains_grad
    y.retain_grad()
    return (a, y.retains_grad)
