"""Whole models compiled, transforms of functions, arrays and loaders."""

import copy
import pickle

import numpy as np


def compiled_model_whole_loop(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
    c = compile(m)
    o = torch.optim.SGD(c.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    L = []
    for k in range(3):
        o.zero_grad()
        l = torch.nn.functional.cross_entropy(c(torch.randn(4, 1, 4, 4)), torch.tensor([0, 1, 1, 0]))
        l.backward()
        o.step()
        L.append(l.item())
    c.eval()
    with torch.no_grad():
        y = c(torch.ones(1, 1, 4, 4))
    return (L, y, m.state_dict(), m.training)


def compiled_model_state_dict_load(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    c = compile(m)
    x = torch.ones(1, 2)
    a = c(x).detach()
    m.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    b = c(x).detach()
    c.weight.data.fill_(2)
    return (a, b, c(x).detach(), m.weight)


def lbfgs_closure_compiled(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.LBFGS(m.parameters(), lr=0.5, max_iter=3, line_search_fn="strong_wolfe")
    x, y = (torch.randn(6, 2), torch.randn(6, 1))
    f = compile(lambda: (m(x) - y).pow(2).mean())

    def c():
        o.zero_grad()
        l = f()
        l.backward()
        return l
    return ([float(o.step(c)) for _ in range(3)], m.weight)


def closure_of_sgd_in_step(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.SGD([w], lr=0.1)

    def c():
        o.zero_grad()
        l = (w ** 2).sum()
        l.backward()
        return l
    f = compile(lambda: o.step(c).detach())
    return (f(), f(), w)


def vmap_of_grad_per_sample(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    p = {k: v.detach() for k, v in m.named_parameters()}

    def loss(p, x, y):
        return (torch.func.functional_call(m, p, (x[None],)) - y).pow(2).sum()
    f = compile(lambda x, y: torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(p, x, y))
    a = f(torch.ones(3, 2), torch.zeros(3))
    p["weight"].fill_(0)
    return (a, f(torch.ones(3, 2), torch.ones(3)))


def jacobians(torch, compile):
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    f = compile(lambda x: (torch.func.jacrev(lambda z: (w @ z).tanh())(x), torch.func.hessian(lambda z: (w @ z).pow(3).sum())(x), torch.func.jvp(lambda z: z * w.sum(), (x,), (x,))))
    a = f(torch.ones(2))
    w.mul_(0.1)
    return (a, f(torch.ones(2)))


def stack_ensemble(torch, compile):
    torch.manual_seed(0)
    ms = [torch.nn.Linear(2, 1) for _ in range(3)]
    ps, bs = torch.func.stack_module_state(ms)
    f = compile(lambda x: torch.vmap(lambda p, x: torch.func.functional_call(ms[0], p, (x,)), in_dims=(0, None))(ps, x))
    y = f(torch.ones(1, 2))
    y.sum().backward()
    return (y, ps["weight"].grad, ms[0].weight.grad)


def numpy_view_sees_compiled_writes(torch, compile):
    x = torch.zeros(3)
    w = torch.nn.Parameter(torch.ones(2))
    a, b = (x.numpy(), w.detach().numpy())
    o = torch.optim.SGD([w], lr=0.1)

    def f():
        x.add_(1)
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    f()
    f()
    return (a.tolist(), b.tolist())


def from_numpy_changes_between(torch, compile):
    a = np.ones(3)
    t = torch.from_numpy(a)
    f = compile(lambda x: x + t)
    r = [f(torch.zeros(3))]
    a[0] = 7
    r.append(f(torch.zeros(3)))
    a *= 2
    r.append(f(torch.zeros(3)))
    return r


def loader_workers_two(torch, compile):
    D = __import__(torch.__name__ + ".utils.data", fromlist=["DataLoader"])
    torch.manual_seed(4)
    ds = D.TensorDataset(torch.arange(6.0), torch.arange(6))
    f = compile(lambda x, y: (x * y).sum())
    return ([f(x, y) for _ in range(2) for x, y in D.DataLoader(ds, 4, shuffle=True)], torch.rand(1))


def scheduler_in_python_loop_with_compiled(torch, compile):
    w = torch.ones(2, requires_grad=True)
    o = torch.optim.Adam([w], lr=0.1)
    s = torch.optim.lr_scheduler.ChainedScheduler([torch.optim.lr_scheduler.ConstantLR(o, 0.1, 2), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)])
    L = []

    def f():
        o.zero_grad()
        (w ** 2).sum().backward()
        o.step()
    f = compile(f)
    for _ in range(4):
        f()
        s.step()
        L.append(s.get_last_lr()[0])
    return (w, L)


def swa_in_loop(torch, compile):
    U = torch.optim.swa_utils
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    a = U.AveragedModel(m, use_buffers=True)
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).pow(2).mean().backward()
        o.step()
    f = compile(f)
    for _ in range(3):
        f(torch.randn(4, 2))
        a.update_parameters(m)
    return (list(a.parameters()), a.n_averaged, dict(a.module[1].named_buffers()), copy.deepcopy(a).module[0].weight)


def pickled_optimizer_goes_on(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    o = torch.optim.Adam(m.parameters(), lr=0.1)
    s = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)

    def mk(m, o):

        def f(x):
            o.zero_grad()
            m(x).pow(2).sum().backward()
            o.step()
        return compile(f)
    mk(m, o)(torch.ones(1, 2))
    s.step()
    m2, o2, s2 = pickle.loads(pickle.dumps((m, o, s)))
    f2 = mk(m2, o2)
    f2(torch.ones(1, 2))
    s2.step()
    f2(torch.ones(1, 2))
    return (m.weight, m2.weight, o2.param_groups[0]["lr"], s2.optimizer is o2, o.param_groups[0]["lr"])


def masked_loss_ignore_index(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 3)
    f = compile(lambda x, y: torch.nn.functional.cross_entropy(m(x), y, ignore_index=-1, weight=torch.tensor([1.0, 2.0, 3.0])).backward())
    f(torch.ones(3, 2), torch.tensor([0, -1, 2]))
    f(torch.ones(3, 2), torch.tensor([1, 1, -1]))
    return m.weight.grad


def attention_dropout_causal(torch, compile):
    torch.manual_seed(0)
    a = torch.nn.MultiheadAttention(4, 2, dropout=0.3, batch_first=True)
    f = compile(lambda x: a(x, x, x, is_causal=True, attn_mask=torch.triu(torch.full((3, 3), float("-inf")), 1), need_weights=False)[0].sum().backward())
    f(torch.randn(2, 3, 4))
    a.eval()
    f(torch.ones(2, 3, 4))
    return (a.in_proj_weight.grad, torch.rand(1))


def transformer_layer_step(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True, norm_first=True)
    o = torch.optim.AdamW(m.parameters(), lr=0.01)

    def f(x):
        o.zero_grad(set_to_none=True)
        l = m(x).pow(2).mean()
        l.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        return l.detach()
    f = compile(f)
    return ([f(torch.randn(2, 3, 4)) for _ in range(3)], m.linear1.weight)


def weight_norm_param_step(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        o.step()
    f = compile(f)
    f(torch.ones(1, 2))
    f(torch.ones(1, 2))
    return (m.weight, sorted(m.state_dict()))
