"""Loops with schedulers, loaded states, target networks, buffers that are exchanged."""

import copy
import io


def inference_forms(torch, compile):
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode(False):
        a = ((w * 2).requires_grad, torch.is_inference_mode_enabled())

    @torch.inference_mode()
    def g(x):
        return x * w
    b = g(torch.ones(2)).requires_grad
    with torch.inference_mode(mode=True):
        with torch.enable_grad():
            c = (w * 2).requires_grad
        d = (torch.is_inference_mode_enabled(), torch.is_grad_enabled())
    with torch.no_grad():
        e = torch.is_inference_mode_enabled()
    return (a, b, c, d, e, torch.is_grad_enabled())


def exception_in_step(torch, compile):
    x = torch.zeros(2)
    w = torch.ones(2, requires_grad=True)
    bad = [True]

    def f(a):
        a.add_(1)
        (w * a).sum().backward()
        if bad[0]:
            raise ValueError("no")
        assert a.shape == (2,)
        return a * 1
    f = compile(f)
    try:
        f(x)
    except ValueError as e:
        s = str(e)
    bad[0] = False
    f(x)
    return (x, w.grad, s)


def partial_load(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    s = {k: torch.ones_like(v) for k, v in m.state_dict().items()}
    s["1.weight"] = torch.ones(5, 5)
    s["extra"] = torch.ones(1)
    r = []
    try:
        m.load_state_dict(s)
    except RuntimeError as e:
        r.append("size mismatch" in str(e))
    return (r, list(m.parameters()))


def cosine_restarts_with_batches(torch, compile):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2)
    L = []

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    for e in range(4):
        for i in range(2):
            f()
            s.step(e + i / 2)
            L.append(o.param_groups[0]["lr"])
    return (L, w)


def warmup_then_plateau(torch, compile):
    w = torch.ones(1, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)
    a = torch.optim.lr_scheduler.LambdaLR(o, lambda e: min(1, (e + 1) / 3))
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(o, "max", factor=0.5, patience=0, threshold=0.0)
    L = []

    def f():
        o.zero_grad()
        l = (w ** 2).sum()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    for i in range(6):
        l = f()
        a.step() if i < 3 else b.step(l)
        L.append(o.param_groups[0]["lr"])
    return (L, w, b.best, b.num_bad_epochs)


def grad_accum_with_scaled_loss_and_last_batch(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).double()
    o = torch.optim.AdamW(m.parameters(), lr=0.05)

    def fb(x):
        l = m(x).pow(2).mean() / 3
        l.backward()
        return l.detach()
    fb = compile(fb)
    L = []
    for i in range(7):
        L.append(fb(torch.randn(4, 3).double()))
        if (i + 1) % 3 == 0 or i == 6:
            torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            o.zero_grad(set_to_none=False)
    return (L, list(m.parameters()), dict(m.named_buffers()), [p.grad for p in m.parameters()])


def target_network(torch, compile):
    torch.manual_seed(0)
    q = torch.nn.Linear(3, 2)
    t = copy.deepcopy(q)
    o = torch.optim.Adam(q.parameters(), lr=0.1)
    F = torch.nn.functional

    def f(s, a, r, n):
        with torch.no_grad():
            y = r + 0.9 * t(n).max(1)[0]
        l = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
        o.zero_grad()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    L = []
    for i in range(5):
        L.append(f(torch.randn(4, 3), torch.tensor([0, 1, 1, 0]), torch.ones(4), torch.randn(4, 3)))
        if i % 2:
            t.load_state_dict(q.state_dict())
        else:
            for a, b in zip(t.parameters(), q.parameters()):
                a.data.mul_(0.9).add_(b.data, alpha=0.1)
    return (L, t.weight, q.weight)


def lstm_hidden_carried(torch, compile):
    torch.manual_seed(0)
    r = torch.nn.LSTM(2, 3, batch_first=True)
    o = torch.optim.SGD(r.parameters(), lr=0.1)

    def f(x, h, c):
        o.zero_grad()
        y, (h, c) = r(x, (h, c))
        l = y.pow(2).sum()
        l.backward()
        o.step()
        return (l.detach(), h.detach(), c.detach())
    f = compile(f)
    h = c = torch.zeros(1, 2, 3)
    L = []
    for _ in range(3):
        l, h, c = f(torch.randn(2, 4, 2), h, c)
        L.append(l)
    return (L, h, c, r.bias_hh_l0)


def embedding_maxnorm_and_sparse_index(torch, compile):
    torch.manual_seed(0)
    e = torch.nn.Embedding(5, 2, max_norm=1.0, padding_idx=0, scale_grad_by_freq=True)
    o = torch.optim.SGD(e.parameters(), lr=0.5)

    def f(i):
        o.zero_grad()
        e(i).sum().backward()
        o.step()
    f = compile(f)
    f(torch.tensor([0, 1, 1, 2]))
    f(torch.tensor([3, 3, 0]))
    return e.weight


def register_buffer_replaced(torch, compile):
    m = torch.nn.Module()
    m.register_buffer("b", torch.zeros(2))
    f = compile(lambda x: x + m.b)
    r = [f(torch.ones(2))]
    m.b = torch.ones(2) * 3
    r.append(f(torch.ones(2)))
    m._buffers["b"] = torch.ones(2) * 5
    r.append(f(torch.ones(2)))
    m.b.fill_(7)
    r.append(f(torch.ones(2)))
    del m.b
    m.b = torch.ones(2)
    r.append(f(torch.ones(2)))
    return (r, list(m.state_dict()))


def swap_parameters_between(torch, compile):
    torch.manual_seed(0)
    a, b = (torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    f = compile(lambda x: b(a(x)))
    x = torch.ones(1, 2)
    r = [f(x)]
    a.weight, b.weight = (b.weight, a.weight)
    r.append(f(x))
    a.bias = None
    r.append(f(x))
    return r


def parameter_list_and_dict(torch, compile):
    P = torch.nn.Parameter
    m = torch.nn.Module()
    m.l = torch.nn.ParameterList([P(torch.ones(2)) for _ in range(2)])
    m.d = torch.nn.ParameterDict({"a": P(torch.ones(2))})
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f():
        o.zero_grad()
        ((m.l[0] * m.l[1] * m.d["a"]) ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    m.l[0] = P(torch.zeros(2))
    f()
    m.l.append(P(torch.ones(1)))
    f()
    return (list(m.parameters()), list(m.state_dict()))


def grads_of_two_losses(torch, compile):
    torch.manual_seed(0)
    s = torch.nn.Linear(2, 2)
    a, b = (torch.nn.Linear(2, 1), torch.nn.Linear(2, 1))
    o1 = torch.optim.SGD([*s.parameters(), *a.parameters()], lr=0.1)
    o2 = torch.optim.SGD(b.parameters(), lr=0.2)

    def f(x):
        h = torch.tanh(s(x))
        l1, l2 = (a(h).sum(), b(h).sum())
        o1.zero_grad()
        o2.zero_grad()
        l1.backward(retain_graph=True)
        l2.backward()
        o1.step()
        o2.step()
        return (l1.detach(), l2.detach())
    f = compile(f)
    return ([f(torch.ones(1, 2)) for _ in range(3)], s.weight, a.weight, b.weight)


def where_grad_in_place_mask(torch, compile):
    w = torch.arange(6.0).reshape(2, 3).requires_grad_()

    def f(m):
        x = w * 2
        x[m] = 0
        x[:, 0] *= 3
        y = x.clone()
        y[y > 6] = 1
        y.sum().backward()
        return y.detach()
    f = compile(f)
    m = torch.tensor([[True, False, False], [False, True, False]])
    return (f(m), f(~m), w.grad)


def cumulative_buffers_ring(torch, compile):
    buf = torch.zeros(4, 2)
    p = torch.zeros(1, dtype=torch.long)

    def f(x):
        buf[p] = x
        p.add_(1)
        p.remainder_(4)
        return buf.mean(0)
    f = compile(f)
    return ([f(torch.full((1, 2), float(i))) for i in range(6)], buf, p)


def save_load_train_state(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    o = torch.optim.Adam(m.parameters(), lr=0.1)
    s = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)

    def f(x):
        o.zero_grad()
        l = m(x).pow(2).sum()
        l.backward()
        o.step()
        return l.detach()
    f = compile(f)
    f(torch.ones(2, 2))
    s.step()
    b = io.BytesIO()
    torch.save({"m": m.state_dict(), "o": o.state_dict(), "s": s.state_dict(), "r": torch.get_rng_state(), "e": 3}, b)
    a = [f(torch.ones(2, 2)), f(torch.ones(2, 2))]
    b.seek(0)
    d = torch.load(b)
    m.load_state_dict(d["m"])
    o.load_state_dict(d["o"])
    s.load_state_dict(d["s"])
    torch.set_rng_state(d["r"])
    return (a, [f(torch.ones(2, 2)), f(torch.ones(2, 2))], o.param_groups[0]["lr"], d["e"])


def numpy_shared_observer(torch, compile):
    x = torch.zeros(3)
    a = x.numpy()
    f = compile(lambda t: x.add_(t) and None if False else x.add_(t))
    f(torch.ones(3))
    r = a.tolist()
    f(torch.ones(3))
    return (r, a.tolist(), x)


def detach_then_requires(torch, compile):
    w = torch.ones(2, requires_grad=True)
    y = (w * 2).detach().requires_grad_()
    z = (y ** 2).sum()
    z.backward()
    f = compile(lambda g: (w * 2 * g).sum().backward())
    f(y.grad)
    return (w.grad, y.grad)


def multi_output_function(torch, compile):

    class S(torch.autograd.Function):

        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            ctx.save_for_backward(x)
            return (x * k, x + k)

        @staticmethod
        def backward(ctx, a, b):
            x, = ctx.saved_tensors
            return (a * ctx.k + b * x, None)
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        a, b = S.apply(w * x, 3.0)
        (a.sum() + (b * b).sum()).backward()
        return a.detach()
    f = compile(f)
    return (f(torch.ones(2)), f(torch.ones(2)), w.grad)


def modules_train_flag_nested(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.2)))
    f = compile(lambda x: m(x))
    x = torch.arange(6.0).reshape(3, 2)
    r = [f(x)]
    m[1].eval()
    r.append(f(x))
    m[1][1].train()
    r.append(f(x))
    m.eval()
    r.append(f(x))
    m[0].p = 0.1
    m[0].train()
    r.append(f(x))
    return (r, dict(m.named_buffers()), torch.rand(1))
