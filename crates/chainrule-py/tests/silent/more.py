"""Further programs, written when those of the other files were right."""

import copy


def operator_iadd_on_view(torch):
    import operator

    x = torch.zeros(2, 2)
    operator.iadd(x[0], 1)
    x[1].__imul__(0).__iadd__(4)
    return x


def view_outlives_base(torch):
    def make():
        x = torch.arange(4.0)
        return x[1:], x.view(2, 2)

    a, b = make()
    a[0] = 50
    b[1] += 1
    return a, b


def gather_rows_then_write(torch):
    e = torch.nn.Embedding(3, 2)
    e.weight.data.zero_()
    rows = e.weight.data[[0, 2]]
    rows += 1
    e.weight.data[[0, 2]] += 2
    return e.weight, rows


def stack_copies(torch):
    x = torch.zeros(2)
    y = torch.stack([x, x])
    z = torch.cat([x])
    y += 1
    z += 1
    return x, y, z


def where_copies_and_clamp_out(torch):
    x = torch.tensor([-1.0, 2.0])
    y = torch.where(x > 0, x, torch.zeros(2))
    y[1] = 7
    z = x.clamp(min=0)
    z += 1
    return x, y, z


def broadcast_view_refused(torch):
    x = torch.zeros(1, 2)
    x.expand(3, 2).add_(1)
    return x


def in_place_shape_refused(torch):
    x = torch.zeros(2)
    x += torch.ones(3, 2)
    return x


def integer_in_place_float(torch):
    x = torch.ones(2, dtype=torch.int64)
    x += 0.5
    return x


def integer_division_in_place(torch):
    x = torch.ones(2, dtype=torch.int64)
    x /= 2
    return x


def float_in_place_double(torch):
    x = torch.ones(2)
    x += torch.ones(2, dtype=torch.float64) / 3
    return str(x.dtype).split(".")[-1], x


def set_item_of_integer_tensor(torch):
    x = torch.zeros(3, dtype=torch.int64)
    x[0] = 2.7
    x[1:] = torch.tensor([1.9, -1.9])
    return x


def no_grad_write_keeps_tape(torch):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    h = w * 3
    with torch.no_grad():
        h[0] = 50
        h.mul_(2)
    (h * 1).sum().backward()
    return h, h.requires_grad, w.grad


def detached_then_trained(torch):
    base = torch.zeros(2)
    p = base.detach().requires_grad_()
    opt = torch.optim.SGD([p], lr=1.0)
    (p * 3).sum().backward()
    opt.step()
    return base, p


def gradient_hook_in_place(torch):
    w = torch.ones(2, requires_grad=True)
    h = w * 2
    h.register_hook(lambda g: g * 3)
    h.sum().backward()
    return w.grad


def deepcopy_of_model_with_gradients(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    m(torch.ones(1, 2)).sum().backward()
    c = copy.deepcopy(m)
    c.weight.grad.zero_()
    return m.weight.grad, c.weight.grad, c.bias.grad


def two_optimizers_share(torch):
    w = torch.ones(2, requires_grad=True)
    a, b = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([w], lr=0.1)
    for opt in (a, b, a):
        opt.zero_grad()
        (w**2).sum().backward()
        opt.step()
    return w


def zero_grad_to_zeros(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    w.sum().backward()
    opt.step()
    g = w.grad
    opt.zero_grad(set_to_none=False)
    opt.step()
    return w, w.grad, g


def load_optimizer_state(torch):
    def run(steps, state=None, w=None):
        w = torch.ones(2, requires_grad=True) if w is None else w
        opt = torch.optim.Adam([w], lr=0.1)
        if state is not None:
            opt.load_state_dict(state)
        for _ in range(steps):
            opt.zero_grad()
            (w**2).sum().backward()
            opt.step()
        return w, opt

    w, opt = run(2)
    w, opt = run(2, opt.state_dict(), w)
    return w


def scheduler_state_restored(torch):
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.1)
    for _ in range(3):
        opt.step()
        s.step()
    state, rates = s.state_dict(), opt.state_dict()
    opt2 = torch.optim.SGD([w], lr=1.0)
    s2 = torch.optim.lr_scheduler.StepLR(opt2, 2, gamma=0.1)
    s2.load_state_dict(state)
    opt2.load_state_dict(rates)
    out = []
    for _ in range(3):
        opt2.step()
        s2.step()
        out.append(opt2.param_groups[0]["lr"])
    return out


def shared_module_in_list(torch):
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 2)
    m = torch.nn.Sequential(layer, torch.nn.Tanh(), layer)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    (m(torch.ones(1, 2)) ** 2).sum().backward()
    opt.step()
    return layer.weight, len(list(m.parameters())), sorted(m.state_dict())


def buffer_reassigned_in_forward(torch):
    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
            return x - self.mean

    m = Mean()
    out = [m(torch.ones(3, 2) * i) for i in range(3)]
    return out, m.mean, list(m.state_dict())


def buffer_reassigned_compiled(torch, compile):
    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
            return x - self.mean

    m = Mean()
    f = compile(m)
    out = [f(torch.ones(3, 2) * i) for i in range(3)]
    return out, m.mean


def buffer_copied_into_compiled(torch, compile):
    m = torch.nn.Module()
    m.register_buffer("mean", torch.zeros(2))

    @compile
    def f(x):
        m.mean.copy_(0.9 * m.mean + 0.1 * x.mean(0))
        m.mean[0] += 1
        return x - m.mean

    out = [f(torch.ones(3, 2) * i) for i in range(3)]
    return out, m.mean, m.state_dict()["mean"]


def captured_view_compiled(torch, compile):
    x = torch.zeros(2, 2)
    row = x[0]

    @compile
    def f(v):
        row.add_(v)
        return x.sum() + row.sum()

    out = [f(torch.ones(2)) for _ in range(3)]
    x[0, 0] = 100
    out.append(f(torch.ones(2)))
    return out, x, row


def weight_view_compiled(torch, compile):
    w = torch.ones(2, 2, requires_grad=True)
    row = w.detach()[0]

    @compile
    def f(v):
        return (row * v).sum()

    out = [f(torch.ones(2))]
    with torch.no_grad():
        w.mul_(3)
    out.append(f(torch.ones(2)))
    return out


def schedule_inside_compiled(torch, compile):
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)

    @compile
    def step(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()
        s.step()

    for _ in range(3):
        step(torch.ones(1))
    return w, opt.param_groups[0]["lr"]


def grad_mode_switched_inside_compiled(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        with torch.no_grad():
            target = w * x
        loss = ((w - target * 2) ** 2).sum()
        loss.backward()
        return loss

    return f(torch.ones(2)), f(torch.ones(2)), w.grad


def leftover_gradient_compiled(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        opt.step()
        return loss

    step(torch.ones(2))
    return w.grad


def leftover_gradient_added_to(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()

    step(torch.ones(2))
    (w * 5).sum().backward()
    return w.grad


def leftover_gradient_stepped(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()

    step(torch.ones(2))
    opt.step()
    return w


def zero_grad_last_compiled(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)

    @compile
    def step(x):
        (w * x).sum().backward()
        opt.step()
        opt.zero_grad()

    for i in range(3):
        step(torch.ones(2) * i)
    return w, w.grad is None


def two_functions_one_state(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.BatchNorm1d(2)
    train, test = compile(lambda x: m(x)), compile(lambda x: m(x))
    x = torch.randn(4, 2)
    train(x)
    m.eval()
    a = test(x)
    m.train()
    train(x)
    m.eval()
    return a, test(x), m.running_mean


def default_argument_tensor(torch, compile):
    kept = torch.ones(2)

    @compile
    def f(x, scale=kept):
        return x * scale

    a = f(torch.ones(2))
    kept.mul_(4)
    return a, f(torch.ones(2)), f(torch.ones(2), torch.zeros(2))


def list_of_layers_changed(torch, compile):
    layers = [lambda x: x + 1]

    @compile
    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    a = f(torch.ones(2))
    layers.append(lambda x: x * 10)
    return a, f(torch.ones(2))


def random_state_python(torch, compile):
    import random

    random.seed(0)
    f = compile(lambda x: x + random.random())
    return f(torch.zeros(1)), f(torch.zeros(1))


def generator_argument(torch, compile):
    g = torch.Generator().manual_seed(0)
    f = compile(lambda x: x + torch.rand(2, generator=g))
    return [f(torch.zeros(2)) for _ in range(2)], torch.rand(2, generator=g)


def output_list_reused(torch, compile):
    f = compile(lambda x: [x * 2, {"n": 3}])
    a = f(torch.ones(1))
    a[1]["n"] = 7
    a.append(None)
    return f(torch.ones(1))


def results_written(torch, compile):
    f = compile(lambda x: x * 2)
    a = f(torch.ones(2))
    a += 1
    b = f(torch.ones(2))
    b[0] = 9
    return a, b


def closed_over_loop_variable(torch, compile):
    out = []
    for i in range(3):
        f = compile(lambda x: x * i)
        out.append(f(torch.ones(2)))
    return out


def exception_inside(torch, compile):
    w = torch.ones(2)

    @compile
    def f(x, fail):
        w.add_(1)
        if fail:
            raise ValueError("no")
        return w * x

    a = f(torch.ones(2), False)
    try:
        f(torch.ones(2), True)
    except ValueError:
        pass
    w.sub_(w.sum() * 0)
    return a
