"""Programs of daily use: sharing, gradients, settings and states."""

import collections
import copy
import io
import math
import pickle

import numpy as np


def names_that_share_and_names_that_copy(torch):
    out = []
    for f in (
        lambda x: torch.positive(x), lambda x: x.ravel(), lambda x: torch.atleast_2d(x), lambda x: x.view_as(x), lambda x: x.reshape_as(x),
        lambda x: x.mT, lambda x: torch.swapdims(x, 0, 1), lambda x: x.real, lambda x: x.conj(), lambda x: torch.asarray(x), lambda x: x.type_as(x),
        lambda x: x.expand_as(x), lambda x: torch.narrow(x, 0, 0, 1), lambda x: x[...], lambda x: x[:], lambda x: x[[0, 1]], lambda x: x[torch.tensor(True)],
        lambda x: torch.split_with_sizes(x, [1, 1])[0], lambda x: x.unsafe_chunk(2)[0], lambda x: torch.vsplit(x, 2)[1], lambda x: x.t().contiguous(),
        lambda x: x.to(torch.float32), lambda x: x.to(torch.float64), lambda x: x.to(torch.float32, copy=True), lambda x: x.clone(), lambda x: x.flip(0),
        lambda x: x.repeat(1, 1), lambda x: torch.tile(x, (1,)), lambda x: x.diag(), lambda x: x.roll(0), lambda x: torch.squeeze(x), lambda x: x.index_select(0, torch.tensor([0])),
        lambda x: torch.broadcast_tensors(x, torch.ones(2, 3))[0], lambda x: torch.as_strided(x, (3,), (1,)), lambda x: x.unflatten(1, (3, 1)), lambda x: x.cpu().float().detach(),
        lambda x: torch.movedim(x, 0, -1), lambda x: torch.meshgrid(x[0], x[1], indexing="ij")[0], lambda x: torch.rot90(x), lambda x: x.tril(), lambda x: torch.hsplit(x, 3)[2],
    ):
        x = torch.arange(6.0).view(2, 3)
        y = f(x)
        before = x.clone()
        y_before = y.clone()
        x.mul_(-3).sub_(1)
        out.append((not torch.equal(y, y_before), y.shape))
        del before
    return out


def functional_writes_by_unbound_methods(torch):
    x = torch.arange(12.0).view(3, 4)
    torch.Tensor.add_(x[0], 1)
    torch.Tensor.__setitem__(x, (slice(None), 1), -1)
    torch.Tensor.mul_(x.t()[3], 10)
    torch.Tensor.copy_(x[2, :2], torch.tensor([5, 6]))
    torch.Tensor.__iadd__(x[1], torch.ones(4))
    torch.neg(x[0], out=x[0])
    torch.clamp(x, -20, 20, out=x)
    torch.sub(x, 1, alpha=2, out=x)
    return x


def init_on_parts_of_weights(torch):
    torch.manual_seed(3)
    l = torch.nn.Linear(4, 6)
    torch.nn.init.constant_(l.weight[0], 1)
    torch.nn.init.normal_(l.weight[1:3], 0, 0.1)
    torch.nn.init.zeros_(l.bias[::2])
    torch.nn.init.eye_(l.weight[2:6, :])
    torch.nn.init.uniform_(l.weight.data[:, 0], -1, 1)
    r = torch.nn.LSTM(3, 2, 2)
    for name, p in r.named_parameters():
        if "bias" in name:
            n = p.size(0)
            p.data[n // 4 : n // 2].fill_(1.0)
        elif "weight_hh" in name:
            for part in p.chunk(4):
                torch.nn.init.orthogonal_(part)
        else:
            torch.nn.init.xavier_uniform_(p)
    return l.weight, l.bias, [p for p in r.parameters()]


def gradient_edited_between_backwards(torch):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (w**2).sum().backward()
    g = w.grad
    g[g > 3] = 3
    w.grad[0] = 7
    (w**3).sum().backward()
    first = w.grad.clone()
    w.grad.data = torch.zeros(3)
    (w * 2).sum().backward()
    w.grad.detach_()
    w.grad.requires_grad_(False)
    w.grad.div_(w.grad.norm())
    return g, first, w.grad, g is w.grad


def groups_rewritten(torch):
    a, b, c = (torch.nn.Parameter(torch.full((2,), float(i + 1))) for i in range(3))
    o = torch.optim.SGD([{"params": [a], "lr": 0.1}, {"params": [b], "momentum": 0.5}], lr=0.01)
    seen = []

    def step():
        o.zero_grad()
        ((a + b + c) ** 2).sum().backward()
        o.step()
        seen.append([p.tolist() for p in (a, b, c)])

    step()
    o.param_groups[0].update(lr=0.2, weight_decay=0.1)
    step()
    o.param_groups[1]["params"].append(c)
    step()
    o.param_groups[0], o.param_groups[1] = o.param_groups[1], o.param_groups[0]
    step()
    o.param_groups[0]["nesterov"] = True
    step()
    del o.param_groups[1]
    step()
    o.param_groups = [{**o.param_groups[0], "params": [a], "lr": 1e-3, "maximize": True}]
    step()
    return seen, len(o.state)


def adam_state_dropped_and_reset(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    o = torch.optim.Adam(m.parameters(), lr=0.05)
    out = []
    for i in range(9):
        if i == 3:
            o.state.pop(m.weight)
        if i == 5:
            o.state[m.bias]["step"] = torch.tensor(0.0)
            o.state[m.bias]["exp_avg"].zero_()
            o.state[m.bias]["exp_avg_sq"].zero_()
        if i == 7:
            o.state = collections.defaultdict(dict, o.state)
            o.param_groups[0]["eps"] = 0.1
        o.zero_grad()
        m(torch.ones(3, 2)).pow(2).mean().backward()
        o.step()
        out.append(m.weight.detach().clone())
    return out, o.state[m.weight]["step"], o.state[m.bias]["step"]


def rates_with_base_rates_changed(torch):
    p = torch.nn.Parameter(torch.ones(1))
    o = torch.optim.SGD([{"params": [p]}, {"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.5}], lr=1.0)
    s = torch.optim.lr_scheduler.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)])
    rates = []
    for i in range(6):
        if i == 2:
            s.base_lrs[0] = 4.0
        if i == 4:
            s.last_epoch = 0
        o.step()
        s.step()
        rates.append((list(s.get_last_lr()), [g["lr"] for g in o.param_groups], s.last_epoch))
    again = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.5**e, last_epoch=3)
    rates.append(again.get_last_lr())
    return rates, [g["initial_lr"] for g in o.param_groups]


def schedules_taken_up_again(torch):
    L = torch.optim.lr_scheduler
    out = []
    for make in (
        lambda o: L.MultiStepLR(o, [2, 4, 4], 0.5), lambda o: L.CosineAnnealingLR(o, 4, 0.01), lambda o: L.OneCycleLR(o, 1.0, 12, three_phase=True),
        lambda o: L.CyclicLR(o, 0.1, 1.0, 3, mode="exp_range", gamma=0.9, cycle_momentum=False), lambda o: L.CosineAnnealingWarmRestarts(o, 2, 2),
        lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9), L.StepLR(o, 2, 0.1)], [2, 4]), lambda o: L.PolynomialLR(o, 5, 2.0),
        lambda o: L.ChainedScheduler([L.LinearLR(o, 0.2, 1.0, 3), L.MultiplicativeLR(o, lambda e: 0.95)]),
    ):
        def fresh():
            o = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.3, momentum=0.9)
            return o, make(o)

        o, s = fresh()
        rates = []
        for _ in range(3):
            o.step()
            s.step()
            rates.append(o.param_groups[0]["lr"])
        kept = copy.deepcopy((o.state_dict(), s.state_dict()))
        o, s = fresh()
        o.load_state_dict(kept[0])
        s.load_state_dict(kept[1])
        for _ in range(6):
            o.step()
            s.step()
            rates.append(o.param_groups[0]["lr"])
        out.append(rates)
    return out


def plateaus(torch):
    out = []
    for kind in ({"mode": "max", "threshold_mode": "abs", "threshold": 0.1}, {"cooldown": 1, "min_lr": 0.02, "eps": 1e-3}, {"patience": 0, "factor": 0.5}):
        o = torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        s = torch.optim.lr_scheduler.ReduceLROnPlateau(o, **{"patience": 1, **kind})
        rates = []
        for loss in (1.0, 0.9, 0.95, 0.96, 0.97, torch.tensor(0.98), np.float32(0.5), 0.6, 0.7, 0.8, math.nan, 0.9):
            s.step(loss)
            rates.append((o.param_groups[0]["lr"], s.num_bad_epochs, float(s.best)))
        out.append(rates)
    return out


def sequences_of_layers_edited(torch):
    nn = torch.nn
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    head = net[:2]
    net.insert(1, nn.Tanh())
    net.extend([nn.Linear(2, 2), nn.Sigmoid()])
    last = net.pop(5)
    net[0] = nn.Linear(3, 3)
    both = head + nn.Sequential(last)
    x = torch.ones(2, 3)
    head[0].weight.data.fill_(0.5)
    del net[2]
    layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    layers.insert(1, nn.Identity())
    layers += [nn.ReLU()]
    names = [n for n, _ in net.named_modules()], list(layers.state_dict()), [type(l).__name__ for l in layers[1:4]]
    return net(x), head(x), both(x), names, len(net), [n for n, _ in both.named_parameters()]


def dictionaries_of_layers_edited(torch):
    nn = torch.nn
    torch.manual_seed(1)
    d = nn.ModuleDict({"b": nn.Linear(1, 1), "a": nn.ReLU()})
    d.update([("c", nn.Linear(1, 2)), ("a", nn.Tanh())])
    gone = d.pop("b")
    d["b"] = gone
    p = nn.ParameterDict({"x": torch.ones(2), "y": nn.Parameter(torch.zeros(1))})
    p["z"] = p["x"]
    l = nn.ParameterList([torch.ones(1), torch.zeros(2)])
    l.append(torch.full((1,), 3.0))
    l[0] = nn.Parameter(torch.full((2,), 9.0))
    p["x"].data.add_(1)
    both = nn.ModuleList([d, p, l])
    return list(d.keys()), list(both.state_dict()), [tuple(v.shape) for v in both.parameters()], p["z"], [t.requires_grad for t in l], p["z"] is p["x"]


def parameters_by_private_dictionaries(torch):
    m = torch.nn.Linear(2, 2)
    m._parameters["weight"] = torch.nn.Parameter(torch.eye(2) * 3)
    m._parameters["bias"] = None
    m.register_parameter("scale", torch.nn.Parameter(torch.ones(2)))
    m._buffers["count"] = torch.zeros(1)
    m.register_buffer("hidden", torch.ones(1), persistent=False)
    m.count += 2
    y = m(torch.ones(1, 2)) * m.scale
    y.sum().backward()
    m.get_parameter("scale").data.mul_(4)
    return y, m.weight.grad, list(m.state_dict()), [n for n, _ in m.named_buffers()], m.scale, m.count, m.get_buffer("hidden")


def gradient_hooks_of_all_kinds(torch):
    x = torch.ones(2, requires_grad=True)
    seen = []
    first = x.register_hook(lambda g: seen.append(("a", g.tolist())) or g * 2)
    x.register_hook(lambda g: seen.append(("b", g.tolist())))
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g + 1)
    h = torch.autograd.graph.register_multi_grad_hook([x, y], lambda gs: seen.append([None if g is None else g.tolist() for g in gs]))
    (y**2).sum().backward()
    first.remove()
    h.remove()
    (x * 5).sum().backward()
    z = x.detach().requires_grad_()
    z.register_post_accumulate_grad_hook(lambda p: [p.grad.mul_(10)] and None)
    (z * 2).sum().backward()
    (z * 3).sum().backward()
    return seen, x.grad, y.grad, z.grad


def saved_tensors_in_another_form(torch):
    kept = []

    def pack(t):
        kept.append(tuple(t.shape))
        return t.numpy().copy() if not t.requires_grad else t.detach().numpy().copy()

    x = torch.tensor([0.5, 1.5], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda a: torch.from_numpy(a)):
        y = (x.exp() * x).sum()
    y.backward()
    first = x.grad.clone()
    with torch.autograd.graph.save_on_cpu():
        z = (x**3).sum()
    z.backward()
    return first, x.grad, len(kept) > 0


def checkpoint_forms(torch):
    from importlib import import_module

    checkpoint = import_module(torch.__name__ + ".utils.checkpoint")
    torch.manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(4), torch.nn.ReLU()).double()
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    out = []
    for reentrant in (False, True):
        for keep in (True, False):
            net.zero_grad()
            x.grad = None
            y = checkpoint.checkpoint(lambda a, k=1.0: net(a) * k, x, use_reentrant=reentrant, preserve_rng_state=True) if keep else checkpoint.checkpoint(net[2:], net[0](x), use_reentrant=reentrant)
            (y**2).sum().backward()
            out.append((y, x.grad.clone(), net[0].weight.grad.clone(), net[2].running_mean.clone(), net[2].num_batches_tracked.clone(), torch.rand(1)))
    y = checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=False)
    y.sum().backward()
    return out, x.grad, torch.rand(2)


def dropout_kinds_in_training(torch):
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(2)
    x = torch.randn(3, 4, 5)
    out = [nn.Dropout1d(0.4)(x), nn.AlphaDropout(0.2)(x), F.feature_alpha_dropout(x, 0.3, True), F.dropout(x, 1.0), F.dropout(x, 0.0), F.rrelu(x, training=True)]
    lstm = nn.LSTM(5, 4, 3, dropout=0.5, batch_first=True, bidirectional=True)
    out.append(lstm(x)[0])
    lstm.dropout = 0.0
    out.append(lstm(x)[0])
    d = nn.Dropout(0.5)
    out.append(d(x))
    d.p = 0.1
    out.append(d(x))
    d.training = False
    out += [d(x), F.gumbel_softmax(x, hard=True), F.gumbel_softmax(x, tau=0.3, dim=1), torch.rand(3)]
    return out


def transformer_layers_in_training(torch):
    nn = torch.nn
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.2, batch_first=True, norm_first=True, activation="gelu")
    enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    dec = nn.TransformerDecoderLayer(8, 2, 16, 0.2)
    x = torch.randn(2, 5, 8)
    pad = torch.tensor([[False] * 5, [False, False, False, True, True]])
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    y = enc(x, mask=mask, src_key_padding_mask=pad, is_causal=False)
    z = dec(x.transpose(0, 1), y.transpose(0, 1), tgt_mask=mask)
    (y.sum() + z.pow(2).sum()).backward()
    return y, z, [p.grad for p in enc.parameters()][:4], [p.grad for p in dec.parameters()][-4:], torch.rand(1)


def loaders_take_from_the_stream(torch):
    from importlib import import_module

    data = import_module(torch.__name__ + ".utils.data")
    torch.manual_seed(11)

    class Set(data.Dataset):
        scale = 1

        def __init__(self):
            self.rows = [torch.full((2,), float(i)) for i in range(7)]

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            return {"x": self.rows[i] * self.scale, "i": i, "name": f"n{i}", "pair": (i, float(i))}

    s = Set()
    loader = data.DataLoader(s, 3, shuffle=True, drop_last=True)
    out = [[b["x"].tolist(), b["i"].tolist(), b["name"], b["pair"][1].tolist()] for b in loader]
    out.append(torch.rand(1).item())
    s.scale = 10
    s.rows[0].fill_(99)
    s.rows.append(torch.zeros(2))
    out += [[b["x"].tolist()] for b in loader]
    a, b = data.random_split(s, [0.6, 0.4], generator=torch.Generator().manual_seed(1))
    out += [list(a.indices), list(b.indices), torch.rand(1).item()]
    weighted = data.WeightedRandomSampler([0.1, 5, 1, 1, 1, 1, 1, 1], 5, replacement=False)
    out.append([int(i) for i in weighted])
    batches = data.BatchSampler(data.RandomSampler(s, num_samples=5, generator=torch.Generator().manual_seed(9)), 2, False)
    out.append([[int(i) for i in b] for b in batches])
    out.append([b.tolist() for b in data.DataLoader(range(5), batch_sampler=data.BatchSampler(data.SequentialSampler(range(5)), 2, False))])
    out.append([len(loader), next(iter(data.DataLoader(s, batch_size=None)))["i"], torch.rand(1).item()])
    return out


def streams_of_numbers_in_turn(torch):
    torch.manual_seed(77)
    g = torch.Generator().manual_seed(77)
    out = [torch.randn(3), torch.randn(17), torch.normal(torch.zeros(3), torch.tensor([1.0, 2.0, 3.0])), torch.normal(2.0, 0.5, (4,))]
    out += [torch.rand(2, dtype=torch.float64), torch.randint(5, (4,), dtype=torch.int32), torch.randint(-(2**40), 2**40, (3,)), torch.randperm(6), torch.bernoulli(torch.full((5,), 0.3))]
    state = torch.get_rng_state()
    a = torch.randn(5)
    torch.set_rng_state(state)
    out += [a, torch.randn(5), torch.poisson(torch.tensor([1.0, 4.0])), torch.multinomial(torch.tensor([0.2, 0.3, 0.5]), 4, True)]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        out.append(torch.rand(2))
    out += [torch.rand(2), torch.randn(2, generator=g), torch.initial_seed(), g.initial_seed()]
    held = g.get_state()
    out += [torch.empty(3).uniform_(2, 3, generator=g), torch.empty(3).exponential_(2, generator=g), torch.empty(3).geometric_(0.4, generator=g)]
    g.set_state(held)
    h = g.clone_state()
    out += [torch.empty(3).uniform_(generator=g), torch.empty(3).uniform_(generator=h), torch.empty(4, dtype=torch.int64).random_(3, 9, generator=g), torch.randn_like(torch.ones(2, 2))]
    out += [torch.empty(3).log_normal_(), torch.empty(3).cauchy_(), torch.empty(4, dtype=torch.int64).random_(), torch.empty(3).normal_(1, 2), torch.empty(20).normal_()]
    return out


def memory_of_others(torch):
    out = []
    raw = bytearray(np.arange(4, dtype=np.float32).tobytes())
    t = torch.frombuffer(raw, dtype=torch.float32)
    raw[0:4] = np.float32(9).tobytes()
    out.append(t.clone())
    a = np.arange(6, dtype=np.float64).reshape(2, 3)
    x = torch.from_numpy(a[:, ::2])
    y = torch.as_tensor(a)
    z = torch.from_dlpack(a)
    a[0] += 100
    out += [x, y, z, torch.tensor(a), torch.as_tensor([a[0], a[1]]), torch.tensor([np.float32(2), 1])]
    w = torch.arange(4.0)
    v = np.from_dlpack(w.detach())
    w.mul_(2)
    out += [np.asarray(w).tolist(), float(np.sum(w.numpy())), w.numpy(force=True).tolist(), np.stack([w, w]).tolist(), np.float32(2) * w]
    del v
    return out, x.dtype, x.stride(), str(np.asarray(w).dtype)


def statistics_of_several_kinds(torch):
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    out = []
    bn = nn.BatchNorm1d(2, momentum=0.5)
    x = torch.tensor([[1.0, 2.0], [3.0, 7.0], [0.0, 1.0]])
    bn(x)
    bn.momentum = None
    bn(x * 2)
    bn(x * 3)
    out += [bn.running_mean.clone(), bn.running_var.clone(), bn.num_batches_tracked.clone()]
    bn.reset_running_stats()
    out += [bn.running_mean.clone(), bn(x), bn.eval()(x)]
    held = torch.zeros(3, 2)
    mean, var = held[0], held[1].fill_(1)
    F.batch_norm(x, mean, var, training=True, momentum=0.3)
    out += [held.clone(), F.batch_norm(x, mean, var, training=False)]
    bn.running_mean = None
    bn.running_var = None
    out.append(bn(x + 1))
    g = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)
    g(torch.randn(2, 2, 4))
    out += [g.running_mean, g.running_var, list(g.state_dict())]
    return out


def module_cast_keeps_its_integers(torch):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(2, 2)
            self.register_buffer("ids", torch.arange(3))
            self.register_buffer("scale", torch.ones(1))
            self.bn = torch.nn.BatchNorm1d(2)

    torch.manual_seed(0)
    m = M()
    w = m.l.weight
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    m.to(torch.float64)
    kinds = [str(t.dtype).split(".")[-1] for t in m.state_dict().values()]
    m.bn(m.l(torch.ones(4, 2, dtype=torch.float64))).sum().backward()
    o.step()
    same = w is m.l.weight
    m.to(torch.bfloat16)
    kinds += [str(t.dtype).split(".")[-1] for t in m.state_dict().values()]
    m.float()
    return kinds, same, m.l.weight, m.ids, m.l.weight.grad.dtype == torch.float32


def exponents_and_places_changed_after_the_forward(torch):
    out = []
    for change in (lambda t: t.detach().numpy().copy(), lambda t: t.data.clone().zero_(), lambda t: copy.deepcopy(t.detach()).add_(5)):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        h = w * 3
        y = (h * h).sum()
        change(h)
        y.backward()
        out.append(w.grad)
    i = torch.tensor([0, 1, 1])
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w[i].pow(2).sum() + w.gather(0, i).sum()
    y.backward()
    i.zero_()
    out.append(w.grad)
    return out


def saved_values_written_are_refused_or_right(torch):
    out = []
    for f in (lambda x: x.exp(), lambda x: x.sigmoid(), lambda x: x.tanh(), lambda x: x.sqrt(), lambda x: x.softmax(0)):
        w = torch.tensor([0.5, 1.5], requires_grad=True)
        y = f(w)
        z = y.clone()
        z.mul_(2).add_(1)
        (y.sum() + (z * y).sum()).backward()
        out.append(w.grad)
    w = torch.tensor([0.5, -1.5], requires_grad=True)
    y = (w * 2).relu_().clone()
    y = y.add_(1).mul_(3)
    y.sum().backward()
    out.append(w.grad)
    w = torch.tensor([0.5, 1.5], requires_grad=True)
    y = w.clone().mul_(w).sigmoid_().neg_()
    y.sum().backward()
    out.append(w.grad)
    return out


def losses_kept_with_their_graphs(torch):
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    total = torch.zeros(())
    losses = []
    for k in range(4):
        loss = (w * (k + 1)).pow(2).sum()
        total += loss
        losses.append(loss)
        if k == 1:
            total.backward(retain_graph=True)
    total.backward()
    mean = torch.stack(losses[2:]).mean()
    return total, w.grad, mean.requires_grad, sum(l.item() for l in losses), total.is_leaf


def pickles_of_parts(torch):
    torch.manual_seed(1)
    m = torch.nn.Sequential(torch.nn.Linear(2, 3, bias=False), torch.nn.BatchNorm1d(3))
    m[1].shared = m[0].weight
    o = torch.optim.AdamW(m.parameters(), lr=0.1)
    for _ in range(2):
        o.zero_grad()
        m(torch.randn(4, 2)).pow(3).mul(torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        o.step()
    n, p = pickle.loads(pickle.dumps((m, o)))
    x = torch.randn(4, 2)
    for net, opt in ((m, o), (n, p)):
        opt.zero_grad()
        net(x).exp().sum().backward()
        opt.step()
    file = io.BytesIO()
    torch.save({"m": n.state_dict(), "o": p.state_dict(), "view": n[0].weight[1]}, file)
    file.seek(0)
    back = torch.load(file)
    return m[0].weight, n[0].weight, n[1].shared is n[0].weight, n[0].weight.grad, back["m"]["0.weight"], back["view"], back["o"]["param_groups"][0]["lr"], n[1].running_mean


def copies_with_a_memo(torch):
    w = torch.nn.Parameter(torch.arange(4.0))
    held = {"w": w, "again": [w, w.data], "n": torch.arange(3.0)}
    held["row"] = held["n"][1:]
    other = copy.deepcopy(held)
    with torch.no_grad():
        other["w"][0] = 100
        held["row"].add_(1)
        other["row"].mul_(5)
    (w**2).sum().backward()
    third = copy.deepcopy(w.detach().requires_grad_())
    return held["w"], other["w"], other["again"], other["n"], held["n"], w.grad, third.grad, type(third).__name__, other["w"] is other["again"][0]


def tied_through_lists_and_casts(torch):
    torch.manual_seed(0)
    e, h = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    h.weight = e.weight
    net = torch.nn.ModuleDict({"e": e, "h": h})
    o = torch.optim.Adam(net.parameters(), lr=0.01)
    n = len(list(net.parameters())), len(net.state_dict()), [k for k, _ in net.named_parameters(remove_duplicate=False)]
    for i in range(3):
        o.zero_grad()
        torch.nn.functional.cross_entropy(h(e(torch.tensor([0, 1, 4]))), torch.tensor([1, 4, 0])).backward()
        o.step()
        if i == 0:
            net.load_state_dict({k: v * 0.5 for k, v in net.state_dict().items()})
        if i == 1:
            net = copy.deepcopy(net)
            e, h = net["e"], net["h"]
            o = torch.optim.Adam(net.parameters(), lr=0.01)
    with torch.no_grad():
        h.weight[0] = 0
    return n, e.weight, h.weight is e.weight


def leaf_in_no_grad_and_its_views(torch):
    w = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        v = w[0]
        u = w.view(-1)
        u[4] = 7
        w[1].mul_(2)
        d = w.detach()
        d.add_(1)
        t = w.t().clone()
    (w * w).sum().backward()
    return w, w.grad, v, u, t.requires_grad, d


def complex_and_real_views_written(torch):
    z = torch.zeros(3, dtype=torch.complex64)
    r = torch.view_as_real(z)
    r[:, 0] = torch.arange(3.0)
    r[1, 1] = -4
    z.imag[2] = 5
    return torch.view_as_real(z), r, z.abs(), z.real
