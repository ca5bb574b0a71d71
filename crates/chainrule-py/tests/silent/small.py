"""Views, random streams, loaders, files, and the small print of functions."""

import io
import pickle


def fwd_hook_change(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    l.register_forward_hook(lambda mod, i, o: o * 0)
    l.register_forward_pre_hook(lambda mod, i: (i[0] + 1,))
    return l(torch.ones(1, 2))


def hook_order(torch):
    torch.manual_seed(0)
    l = torch.nn.Identity()
    r = []
    l.register_forward_hook(lambda *a: r.append("a"))
    l.register_forward_hook(lambda *a: r.append("b"), prepend=True)
    l(torch.ones(1))
    return r


def full_bwd_hook(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 2)
    r = []
    l.register_full_backward_hook(lambda mod, gi, go: r.append((gi[0], go[0])))
    x = torch.ones(1, 2, requires_grad=True)
    l(x).sum().backward()
    return (r[0][1], x.grad)


def detach_inplace(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.detach_()
    return y.requires_grad


def inplace_ok(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.mul_(3)
    y[0] = 0
    y.sum().backward()
    return x.grad


def slice_assign_grad(torch):
    x = torch.ones(3, requires_grad=True)
    y = torch.zeros(5)
    y[1:4] = x * 2
    (y * torch.arange(5.0)).sum().backward()
    return x.grad


def masked_inplace(torch):
    torch.manual_seed(0)
    x = torch.randn(4, requires_grad=True)
    y = x.clone()
    y[y < 0] = 0
    y.masked_fill_(y > 1, 1.0)
    (y ** 2).sum().backward()
    return x.grad


def expand_grad(torch):
    x = torch.ones(1, 3, requires_grad=True)
    y = x.expand(4, 3).clone()
    y[2] = 0
    y.sum().backward()
    return x.grad


def chunk_write(torch):
    x = torch.arange(6.0)
    a, b = x.chunk(2)
    a += 10
    b[0] = -1
    p, q, r = x.view(3, 2).unbind(0)
    q.zero_()
    return x


def split_list(torch):
    x = torch.arange(6.0)
    s = list(x.split([1, 2, 3]))
    s[1] *= 0
    s[2] = s[2] + 1
    return x


def narrow_select(torch):
    x = torch.zeros(3, 3)
    x.select(0, 1).fill_(1)
    x.narrow(1, 0, 1).add_(2)
    x.diagonal().mul_(5)
    x.T[2] = 7
    return x


def reshape_view(torch):
    x = torch.zeros(2, 3)
    x.reshape(-1)[0] = 1
    x.t().reshape(-1)[1] = 5
    x.flatten()[2] = 4
    x.contiguous()[1, 1] = 9
    return x


def adv_index_copy(torch):
    x = torch.zeros(4)
    y = x[[0, 1]]
    y += 1
    x[torch.tensor([1, 2])] += 5
    x[x > 1] *= 2
    return x


def swap(torch):
    x = torch.arange(4.0)
    x[0], x[1] = (x[1], x[0])
    y = torch.arange(4.0)
    y[0], y[1] = (y[1].clone(), y[0].clone())
    x[[2, 3]] = x[[3, 2]]
    return (x, y)


def iter_rows(torch):
    x = torch.zeros(2, 2)
    for r in x:
        r += 1
    for i, r in enumerate(x):
        x[i] = r * 2
    return x


def list_of_params(torch):
    ps = [torch.ones(2, requires_grad=True) for _ in range(2)]
    s = sum(((p * p).sum() for p in ps))
    s.backward()
    with torch.no_grad():
        for p in ps:
            p -= 0.1 * p.grad
            p.grad = None
    return ps


def rebind(torch):
    w = torch.ones(2, requires_grad=True)
    (w * w).sum().backward()
    w = w - 0.1 * w.grad
    return (w.requires_grad, w.is_leaf)


def rng_state(torch):
    torch.manual_seed(0)
    s = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(s)
    b = torch.rand(2)
    g = torch.Generator().manual_seed(3)
    c = torch.rand(2, generator=g)
    d = torch.rand(2)
    return (a, b, c, d)


def fork(torch):
    torch.manual_seed(0)
    a = torch.rand(1)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        torch.rand(5)
    return (a, torch.rand(1))


def loader_seed(torch):
    torch.manual_seed(0)
    g = torch.Generator()
    g.manual_seed(0)
    dl = torch.utils.data.DataLoader(list(range(8)), batch_size=3, shuffle=True, generator=g)
    return ([b.tolist() for b in dl], [b.tolist() for b in dl])


def loader_dict(torch):
    torch.manual_seed(0)
    d = [{"a": torch.ones(2) * i, "b": i, "c": str(i), "d": (i, [i])} for i in range(4)]
    return [b for b in torch.utils.data.DataLoader(d, batch_size=2)]


def weighted(torch):
    torch.manual_seed(0)
    s = torch.utils.data.WeightedRandomSampler([0.1, 0.9, 0.5], 6)
    return list(s)


def pickle_param(torch):
    torch.manual_seed(0)
    l = torch.nn.Linear(2, 1)
    k = pickle.loads(pickle.dumps(l))
    o = torch.optim.SGD(k.parameters(), lr=0.1)
    k(torch.ones(1, 2)).sum().backward()
    o.step()
    return (k.weight, l.weight, isinstance(k.weight, torch.nn.Parameter))


def save_grad(torch):
    x = torch.ones(2, requires_grad=True)
    f = io.BytesIO()
    torch.save(x, f)
    f.seek(0)
    return torch.load(f).requires_grad


def save_param(torch):
    torch.manual_seed(0)
    p = torch.nn.Parameter(torch.ones(2))
    f = io.BytesIO()
    torch.save({"p": p}, f)
    f.seek(0)
    q = torch.load(f)["p"]
    return (q.requires_grad, isinstance(q, torch.nn.Parameter))


def save_set(torch):
    f = io.BytesIO()
    torch.save({"s": {1, 2}, "b": b"x", "c": 1 + 2j, "sz": torch.Size([2]), "dt": torch.float32}, f)
    f.seek(0)
    d = torch.load(f)
    return (sorted(d["s"]), str(d["b"]), str(d["c"]), list(d["sz"]))


def requires_grad_view(torch):
    x = torch.zeros(3)
    v = x[:2]
    v.requires_grad_()
    (v * 2).sum().backward()
    return (v.grad, x.requires_grad)


def leaf_of_no_grad(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
    return (y.requires_grad, y.is_leaf)


def inference(torch):
    with torch.inference_mode():
        x = torch.ones(2) * 2
    return x.requires_grad


def div_floor(torch):
    x = torch.tensor([-7, 7])
    return (x // 2, x % 3, x / 2, torch.div(x, 2, rounding_mode="trunc"), torch.fmod(x, 3))


def argmax_ties(torch):
    x = torch.tensor([1.0, 3.0, 3.0])
    return (x.argmax(), x.max(0).indices, torch.tensor([[1, 1], [1, 1]]).argmin(1), x.sort(descending=True, stable=True).indices)


def max_grad_ties(torch):
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    x.max().backward()
    a = x.grad.clone()
    x.grad = None
    x.max(0).values.backward()
    b = x.grad.clone()
    x.grad = None
    x.amax().backward()
    return (a, b, x.grad)


def abs_grad0(torch):
    x = torch.zeros(1, requires_grad=True)
    (x.abs() + x.relu() + x.clamp(0, 1) + x.norm()).backward()
    return x.grad


def topk_sorted(torch):
    return (torch.arange(10.0).topk(3, largest=False).values, torch.tensor([3.0, 1.0, 2.0]).kthvalue(2).values)


def std_unbiased(torch):
    x = torch.arange(4.0)
    return (x.std(), x.std(unbiased=False), x.var(0, correction=0), torch.var_mean(x)[0])


def ce_variants(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    x = torch.randn(3, 4)
    y = torch.tensor([0, 1, -100])
    return (F.cross_entropy(x, y), F.cross_entropy(x, y, reduction="sum"), F.cross_entropy(x, y, weight=torch.arange(4.0) + 1), F.cross_entropy(x, torch.softmax(x, 1)), F.cross_entropy(x, y, label_smoothing=0.1, weight=torch.arange(4.0) + 1))


def bce_pos(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    x = torch.randn(3)
    y = torch.tensor([0.0, 1.0, 1.0])
    return (F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor(2.0)), F.binary_cross_entropy(x.sigmoid(), y, weight=torch.tensor([1.0, 2.0, 3.0])))


def kl_reduction(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    a, b = (torch.randn(3, 4).log_softmax(1), torch.randn(3, 4).softmax(1))
    return (F.kl_div(a, b, reduction="batchmean"), F.kl_div(a, b, reduction="sum"), F.kl_div(a, b.log(), log_target=True, reduction="mean"))


def embed_pad(torch):
    torch.manual_seed(0)
    e = torch.nn.Embedding(4, 2, padding_idx=0)
    e(torch.tensor([0, 1, 0])).sum().backward()
    a = e.weight.grad.clone()
    e.weight.data[0] = 5
    return (a, e(torch.tensor([0])))


def interp(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    x = torch.arange(4.0).view(1, 1, 2, 2)
    return (F.interpolate(x, scale_factor=1.5), F.interpolate(x, size=(3, 3), mode="bilinear"), F.interpolate(x, scale_factor=2, mode="nearest-exact"), F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True))


def pad_modes(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    x = torch.arange(6.0).view(1, 2, 3)
    return (F.pad(x, (1, 2)), F.pad(x, (-1, 0)), F.pad(x, (1, 1), mode="circular"), F.pad(x, (2, 0), value=3.0))


def gelu_etc(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    x = torch.linspace(-2, 2, 5)
    return (F.gelu(x), F.gelu(x, approximate="tanh"), F.softplus(x, beta=2, threshold=1), F.hardtanh(x, -1, 0.5), F.threshold(x, 0.1, 20), F.glu(torch.arange(4.0)), F.celu(x, 2.0))
