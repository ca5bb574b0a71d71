"""Programs of daily use: compiled functions, and what is around them."""

import collections
import dataclasses
import enum
import functools
from typing import NamedTuple

import numpy as np


def compiled_with_named_results(torch, compile):
    class Out(NamedTuple):
        loss: object
        parts: tuple

    @dataclasses.dataclass
    class Batch:
        x: object
        scale: float = 2.0

    w = torch.ones(2, requires_grad=True)

    @compile
    def f(batch):
        y = batch.x * w * batch.scale
        return Out(y.sum(), (y, y.detach() + 1))

    a = f(Batch(torch.tensor([1.0, 2.0])))
    b = f(Batch(torch.tensor([3.0, 4.0]), scale=0.5))
    return a.loss, a.parts, b.loss, b.parts, type(b).__name__


def compiled_with_enums_and_slices(torch, compile):
    class Mode(enum.Enum):
        SUM = 1
        MEAN = 2

    @compile
    def f(x, mode, part=slice(None), dtype=None, shape=None):
        y = x[part]
        y = y.sum() if mode is Mode.SUM else y.mean()
        y = y.to(dtype) if dtype is not None else y
        return y.expand(shape) if shape is not None else y

    x = torch.arange(6.0)
    out = [f(x, Mode.SUM), f(x, Mode.MEAN), f(x, Mode.MEAN, slice(1, 3)), f(x, Mode.SUM, part=slice(0, 6, 2)), f(x, Mode.SUM, dtype=torch.float64)]
    out.append(f(x, mode=Mode.SUM, shape=torch.Size([2, 2])))
    return out, str(out[4].dtype).split(".")[-1]


def compiled_partials_and_callables(torch, compile):
    class Affine:
        def __init__(self, a):
            self.a = a

        def __call__(self, x, b=1.0):
            return x * self.a + b

        @staticmethod
        def twice(x):
            return x * 2

        @classmethod
        def kind(cls, x):
            return x + len(cls.__name__)

    f = Affine(torch.tensor(3.0))
    g = compile(functools.partial(f, b=5.0))
    x = torch.ones(2)
    out = [g(x)]
    f.a.add_(1)
    out.append(g(x))
    f.a = torch.tensor(-1.0)
    out.append(g(x))
    h = compile(Affine.twice)
    k = compile(Affine.kind)
    m = compile(lambda *xs, **kw: sum(xs) * kw.get("k", 1) + kw["z"])
    return out, h(x), k(x), m(x, x, x, z=1), m(x, z=x, k=3), m(z=2.0, *[x, x])


def compiled_recursion_and_helpers(torch, compile):
    depth = {"n": 2}

    def tree(x, n):
        return x if n == 0 else tree(x * 2, n - 1) + tree(x + 1, n - 1)

    f = compile(lambda x: tree(x, depth["n"]))
    x = torch.tensor([1.0, -1.0])
    out = [f(x)]
    depth["n"] = 3
    out.append(f(x))
    f2 = compile(lambda x, n: tree(x, n), dynamic=True) if compile.__name__ == "compile" else compile(lambda x, n: tree(x, n))
    return out, f2(x, 1), f2(x, 2)


def compiled_identity_of_results(torch, compile):
    w = torch.ones(2)

    @compile
    def f(x):
        y = x + w
        return y, y, x, [y[0]], w

    x = torch.zeros(2)
    y, z, same, row, captured = f(x)
    y.add_(10)
    return y is z, same is x, captured is w, row[0], z, x


def compiled_under_modes(torch, compile):
    w = torch.tensor([2.0], requires_grad=True)

    @compile
    def f(x):
        y = x * w
        with torch.no_grad():
            z = y * 2
        return y, z, y.detach()

    out = []
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            out.append([t.requires_grad for t in f(torch.ones(1))])
    y, z, d = f(torch.ones(1, requires_grad=True))
    (y + z).sum().backward()
    w.requires_grad_(False)
    out.append([t.requires_grad for t in f(torch.ones(1))])
    return out, w.grad


def compiled_empty_and_broadcast(torch, compile):
    @compile
    def f(x, y):
        x.add_(y.sum())
        return x.sum(), (x + y).shape, x.numel()

    out = []
    for a, b in (((0,), (1,)), ((2, 3), (3,)), ((), (2, 2)), ((2, 1), (1, 4))):
        x = torch.ones(a)
        out.append((f(x, torch.ones(b)), x))
    return out


def compiled_rounds_with_python_between(torch, compile):
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    o = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    s = torch.optim.lr_scheduler.StepLR(o, 3, 0.5)
    best, best_state, log = float("inf"), None, collections.deque(maxlen=4)

    @compile
    def step(x, y):
        o.zero_grad()
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        o.step()
        return loss

    for i in range(12):
        x = torch.randn(5, 3)
        loss = step(x, x.sum(1, keepdim=True))
        log.append(loss.item())
        s.step()
        if loss.item() < best:
            best, best_state = loss.item(), {k: v.clone() for k, v in net.state_dict().items()}
        if i == 5:
            for p in net.parameters():
                p.data.mul_(0.9)
        if i == 7:
            o.param_groups[0]["momentum"] = 0.5
        if i == 9:
            net.load_state_dict(best_state)
    return list(log), best, net[0].weight, o.state[net[0].weight]["momentum_buffer"], o.param_groups[0]["lr"]


def compiled_discriminator_and_generator(torch, compile):
    torch.manual_seed(1)
    F = torch.nn.functional
    g, d = torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.LeakyReLU(0.2), torch.nn.Linear(4, 1))
    og, od = torch.optim.Adam(g.parameters(), 0.02, betas=(0.5, 0.999)), torch.optim.Adam(d.parameters(), 0.02, betas=(0.5, 0.999))

    @compile
    def train_d(real, z):
        od.zero_grad()
        a = F.binary_cross_entropy_with_logits(d(real), torch.ones(len(real), 1))
        b = F.binary_cross_entropy_with_logits(d(g(z).detach()), torch.zeros(len(z), 1))
        (a + b).backward()
        od.step()
        return a + b

    @compile
    def train_g(z):
        og.zero_grad()
        loss = F.binary_cross_entropy_with_logits(d(g(z)), torch.ones(len(z), 1))
        loss.backward()
        og.step()
        return loss

    out = []
    for _ in range(4):
        out.append((train_d(torch.randn(3, 2) + 2, torch.randn(3, 2)), train_g(torch.randn(3, 2))))
    return out, g.weight, d[0].weight


def compiled_clips_weights_in_place(torch, compile):
    torch.manual_seed(1)
    net = torch.nn.Linear(3, 2)
    o = torch.optim.RMSprop(net.parameters(), lr=0.05)

    @compile
    def step(x):
        o.zero_grad()
        loss = -net(x).mean()
        loss.backward()
        o.step()
        for p in net.parameters():
            p.data.clamp_(-0.3, 0.3)
        with torch.no_grad():
            net.weight[0].div_(net.weight[0].norm())
        return loss

    return [step(torch.randn(4, 3)) for _ in range(4)], net.weight, net.bias


def compiled_average_and_swap(torch, compile):
    torch.manual_seed(1)
    net = torch.nn.Linear(2, 2)
    shadow = {k: p.detach().clone() for k, p in net.named_parameters()}
    o = torch.optim.SGD(net.parameters(), lr=0.1)

    @compile
    def step(x):
        o.zero_grad()
        net(x).pow(2).sum().backward()
        o.step()
        with torch.no_grad():
            for k, p in net.named_parameters():
                shadow[k].mul_(0.9).add_(p, alpha=0.1)

    @compile
    def value(x):
        with torch.no_grad():
            return net(x).sum()

    x, out = torch.ones(1, 2), []
    for i in range(5):
        step(x * (i + 1))
        out.append(value(x))
        if i % 2:
            kept = {k: p.data.clone() for k, p in net.named_parameters()}
            for k, p in net.named_parameters():
                p.data.copy_(shadow[k])
            out.append(value(x))
            for k, p in net.named_parameters():
                p.data = kept[k]
            out.append(value(x))
    return out, shadow, net.weight


def compiled_module_in_and_out_of_training(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    c = compile(net)
    o = torch.optim.SGD(c.parameters(), lr=0.1)
    out = []
    for i in range(4):
        c.train(i % 2 == 0)
        y = c(torch.randn(6, 3))
        if c.training:
            o.zero_grad()
            y.pow(2).mean().backward()
            o.step()
        else:
            with torch.no_grad():
                out.append(c(torch.ones(2, 3)))
        out.append((y, net.training, net[1].running_mean.clone()))
    return out, net[0].weight, net[0].weight.grad


def compiled_grad_of_an_input_outside(torch, compile):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    f = compile(lambda x: (x * w).sin().sum())
    x = torch.tensor([0.3, 0.7], requires_grad=True)
    g = torch.autograd.grad(f(x), [x, w], create_graph=True)
    h = torch.autograd.grad(g[0].sum(), [w])
    f(x).backward()
    f(x * 2).backward()
    return g, h, x.grad, w.grad


def compiled_in_compiled_with_writes(torch, compile):
    count = torch.zeros(())
    memory = torch.zeros(3)

    @compile
    def inner(x, i=0):
        count.add_(1)
        memory[i] += x.sum()
        return x * count

    @compile
    def outer(x):
        y = inner(x)
        z = inner(y, i=2)
        x.mul_(0.5)
        return y + z, memory.clone()

    x = torch.ones(2)
    out = [outer(x), inner(x, i=1), outer(x)]
    return out, count, memory, x


def compiled_hooks_count(torch, compile):
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda g: g * 3)
    net = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.ones_(net.weight)
    net.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    handle = net.register_forward_hook(lambda m, a, y: y * 10)

    @compile
    def f(x):
        loss = net(x * w).sum()
        loss.backward()
        return loss

    out = [f(torch.ones(2))]
    handle.remove()
    out.append(f(torch.ones(2)))
    return out, w.grad, net.weight.grad


def compiled_exceptions_leave_things(torch, compile):
    total = torch.zeros(1)

    @compile
    def f(x, limit):
        total.add_(x.sum())
        if limit < 0:
            raise ValueError("limit")
        return total * limit

    out = [f(torch.ones(2), 1.0)]
    for k in (-1.0, 2.0):
        try:
            out.append(f(torch.ones(2), k))
        except ValueError as e:
            out.append(str(e))
    return out, total


def compiled_arguments_overlap(torch, compile):
    x = torch.arange(6.0)

    @compile
    def f(a, b):
        a.add_(1)
        b.mul_(2)
        return (a * b).sum()

    out = [f(x[:3], x[2:5]), f(x, x), f(x[:2], x[4:])]
    y = torch.ones(2, 2)
    out.append(f(y[0], y.t()[0]))
    return out, x, y


def compiled_gradient_penalty(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Softplus(), torch.nn.Linear(4, 1))
    o = torch.optim.Adam(net.parameters(), lr=0.01)

    @compile
    def step(a, b, mix):
        x = (mix * a + (1 - mix) * b).requires_grad_(True)
        y = net(x)
        (g,) = torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True, only_inputs=True)
        loss = y.mean() + 10 * ((g.norm(2, dim=1) - 1) ** 2).mean()
        o.zero_grad()
        loss.backward()
        o.step()
        return loss

    return [step(torch.randn(3, 2), torch.randn(3, 2), torch.rand(3, 1)) for _ in range(4)], net[0].weight


def compiled_sequence_with_memory(torch, compile):
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(2, 3)
    o = torch.optim.Adagrad(cell.parameters(), lr=0.1)

    @compile
    def chunk(xs, h):
        o.zero_grad()
        loss = 0.0
        for x in xs:
            h = cell(x, h)
            loss = loss + h.pow(2).mean()
        loss.backward()
        o.step()
        return loss, h.detach()

    h, out = torch.zeros(1, 3), []
    for k in (3, 3, 2, 4):
        loss, h = chunk(list(torch.randn(k, 1, 2)), h)
        out.append(loss)
    return out, h, cell.weight_hh


def compiled_tables_of_python_numbers(torch, compile):
    table = [1.0, 2.0, 3.0]
    weights = {"a": 0.5, "b": (1, 2)}
    n = np.array([1.0, 2.0], dtype=np.float32)

    @compile
    def f(x):
        return x * torch.tensor(table).sum() + weights["a"] + sum(weights["b"]) + torch.tensor(n)

    x = torch.ones(2)
    out = [f(x)]
    table[0] = 10.0
    out.append(f(x))
    weights["b"] = (1, 2, 3)
    out.append(f(x))
    n[1] = -5
    out.append(f(x))
    table.append(4.0)
    out.append(f(x))
    return out


def compiled_frozen_batch_norm(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    net(torch.zeros(1, 1, 5, 5))
    o = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)

    @compile
    def step(x):
        o.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        o.step()
        return loss

    out = [step(torch.randn(3, 1, 5, 5))]
    net[1].eval()
    out.append(step(torch.randn(3, 1, 5, 5)))
    for p in net[1].parameters():
        p.requires_grad_(False)
    out.append(step(torch.randn(3, 1, 5, 5)))
    net[1].train()
    net[1].momentum = 0.9
    out.append(step(torch.randn(3, 1, 5, 5)))
    return out, net[1].running_mean, net[1].running_var, net[1].weight, net[0].weight
