"""Derivatives as functions of what a function captured, rules by hand, hooks, and optimizers whose
groups are edited.
"""

import copy


def _close(torch, make):
    """A result made of a captured parameter, and that parameter's gradient."""
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    made = make(lambda x: (w * x**3).sum(), lambda x: w * x**3)
    made.sum().backward()
    return made, w.grad


def grad_of_a_captured_parameter(torch):
    f = torch.func
    x = torch.tensor(3.0)
    return [_close(torch, m) for m in (lambda u, h: f.grad(u)(x), lambda u, h: f.grad_and_value(u)(x)[1], lambda u, h: f.grad(f.grad(u))(x), lambda u, h: f.hessian(u)(x))]


def jacobians_of_a_captured_parameter(torch):
    f = torch.func
    x = torch.tensor(3.0)
    return [_close(torch, m) for m in (lambda u, h: f.jacrev(h)(x), lambda u, h: f.jacfwd(h)(x), lambda u, h: f.jacfwd(f.jacrev(h))(x), lambda u, h: f.hessian(h)(x))]


def products_of_a_captured_parameter(torch):
    f = torch.func
    x, one = torch.tensor(3.0), torch.ones(())
    return [
        _close(torch, m)
        for m in (
            lambda u, h: f.vjp(h, x)[0], lambda u, h: f.vjp(h, x)[1](torch.ones(2))[0], lambda u, h: f.jvp(h, (x,), (one,))[0], lambda u, h: f.jvp(h, (x,), (one,))[1],
        )
    ]


def mapped_slopes_of_a_network(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    parameters = dict(net.named_parameters())
    f = torch.func

    def u(x):
        return f.functional_call(net, parameters, (x.view(1, 1),)).squeeze()

    x = torch.linspace(-1, 1, 4)
    loss = (f.vmap(f.grad(u))(x) ** 2).mean() + (f.vmap(f.jacfwd(f.jacrev(u)))(x) * x).mean()
    loss.backward()
    return loss, [p.grad for p in net.parameters()]


def slopes_of_a_constant_have_no_tape(torch):
    w = torch.tensor(2.0, requires_grad=True)
    f = torch.func
    x = torch.tensor(3.0)
    with torch.no_grad():
        inside = f.grad(lambda x: w * x**2)(x).requires_grad
    return [inside, f.grad(lambda x: x**3)(x).requires_grad, f.grad(lambda x: w + x**2)(x).requires_grad, f.jvp(lambda x: x**2, (x,), (x,))[1].requires_grad]


def compiled_physics_informed_step(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    @compile
    def step(x):
        optimizer.zero_grad()
        slopes = torch.func.vmap(torch.func.grad(lambda t: net(t.view(1, 1)).squeeze()))(x)
        loss = ((slopes + net(x.view(-1, 1)).squeeze(1)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [step(torch.linspace(0, 1, 4)) for _ in range(3)], list(net.parameters())


def _cube(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    return Cube


def once_differentiable_has_no_tape(torch):
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(_cube(torch).apply(x).sum(), x, create_graph=True)
    return g, g.requires_grad


def once_differentiable_twice(torch):
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((_cube(torch).apply(x) * x).sum(), x, create_graph=True)
    g.sum().backward()
    return x.grad


def gradients_that_are_not_materialized(torch):
    seen = []

    class Sorted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, places = x.sort()
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places)
            ctx.set_materialize_grads(False)
            return values, places

        @staticmethod
        def backward(ctx, g, of_places):
            seen.append(of_places is None)
            return torch.zeros(3).scatter(0, ctx.saved_tensors[0], g)

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, _ = Sorted.apply(x)
    (values * torch.arange(3.0)).sum().backward()
    return x.grad, seen


def rule_that_appends_compiled(torch, compile):
    seen = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(1)
            return g * 2

    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        w.grad = None
        Twice.apply(w * x).sum().backward()
        return w.grad.clone()

    return f(torch.ones(2)), f(torch.ones(2) * 3), len(seen)


def hooks_after_the_gradient_removed(torch, compile):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def stepped(p):
        optimizer.step()
        p.grad = None

    handle = w.register_post_accumulate_grad_hook(stepped)

    @compile
    def f(x):
        loss = (w * x).pow(2).sum()
        loss.backward()
        return loss.detach()

    losses = [f(torch.ones(2)), f(torch.ones(2))]
    handle.remove()
    losses += [f(torch.ones(2)), w.grad.clone()]
    w.grad = None
    w.register_post_accumulate_grad_hook(stepped)
    return losses, f(torch.ones(2)), f(torch.ones(2)), w.grad


def parameter_taken_out_of_its_group(torch, compile):
    torch.manual_seed(0)
    a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW([{"params": a.parameters()}, {"params": b.parameters()}], lr=0.1)

    @compile
    def step(x):
        optimizer.zero_grad()
        loss = b(a(x).tanh()).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    x = torch.ones(3, 2)
    losses = [step(x)]
    optimizer.param_groups[0]["params"].pop(0)
    losses += [step(x), step(x)]
    return losses, a.weight, a.bias, b.weight


def refused_optimizer_of_others(torch, compile):
    p, w = torch.nn.Parameter(torch.ones(1)), torch.ones(2, requires_grad=True)
    other = torch.optim.Adam([p], lr=0.1)
    p.grad = torch.ones(1)
    other.step()
    other.param_groups[0]["lr"] = -1.0
    f = compile(lambda x: (w * x).sum())
    f(torch.ones(2)).backward()
    return f(torch.ones(2) * 2), w.grad, len(other.param_groups)


def deepcopy_of_a_leaf_and_its_data(torch):
    w = torch.ones(2, requires_grad=True)
    t = copy.deepcopy({"view": w.data[:1], "leaf": w, "all": w.data})
    t["leaf"].data[0] = 9
    t["all"][1] = 5
    return t, w


def nan_found_in_backward(torch):
    w = torch.zeros(1, requires_grad=True)
    with torch.autograd.detect_anomaly():
        ((w * 0).sqrt() * 0).sum().backward()


def nan_is_not_looked_for_outside(torch):
    w = torch.zeros(1, requires_grad=True)
    torch.autograd.set_detect_anomaly(True)
    torch.autograd.set_detect_anomaly(False)
    with torch.autograd.detect_anomaly():
        (w * 2).sum().backward()
    with torch.autograd.set_detect_anomaly(False):
        ((w * 0).sqrt() * 0).sum().backward()
    return torch.isnan(w.grad), torch.is_anomaly_enabled()


def _trained(torch, kind, **settings):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    return m, getattr(torch.optim, kind)(m.parameters(), lr=0.1, **settings)


def _step(torch, m, optimizer):
    optimizer.zero_grad()
    m(torch.ones(1, 2)).pow(2).sum().backward()
    optimizer.step()


def _buffers(state):
    return [[t for name, t in sorted(found.items()) if name != "step"] for found in state["state"].values()]


def state_dict_that_steps_write_to(torch):
    out = []
    for kind, settings in (("Adam", {}), ("SGD", {"momentum": 0.9}), ("AdamW", {"amsgrad": True})):
        m, optimizer = _trained(torch, kind, **settings)
        _step(torch, m, optimizer)
        state, kept = optimizer.state_dict(), copy.deepcopy(optimizer.state_dict())
        for _ in range(3):
            _step(torch, m, optimizer)
        out += [_buffers(state), _buffers(kept), m.weight.detach().clone()]
        for found in state["state"].values():
            for name, t in found.items():
                if name != "step":
                    t.zero_()
        _step(torch, m, optimizer)
        out += [m.weight.detach().clone(), _buffers(state)]
        optimizer.load_state_dict(kept)
        _step(torch, m, optimizer)
        out += [m.weight, _buffers(state), _buffers(kept)]
    return out


def state_shared_by_two_optimizers(torch):
    out = []
    for kind, settings in (("SGD", {"momentum": 0.9}), ("RMSprop", {"momentum": 0.5})):
        m, first = _trained(torch, kind, **settings)
        _step(torch, m, first)
        n = copy.deepcopy(m)
        second = getattr(torch.optim, kind)(n.parameters(), lr=0.1, **settings)
        second.load_state_dict(first.state_dict())
        for m_, o in ((n, second), (m, first), (m, first), (n, second)):
            _step(torch, m_, o)
            out += [_buffers(first.state_dict()), _buffers(second.state_dict())]
        out += [m.weight, n.weight]
    return out


def state_dict_of_a_compiled_training(torch, compile):
    m, optimizer = _trained(torch, "Adam")
    step = compile(lambda: _step(torch, m, optimizer))
    step()
    state = optimizer.state_dict()
    for _ in range(3):
        step()
    first = copy.deepcopy(_buffers(state))
    for found in state["state"].values():
        found["exp_avg"].zero_()
    step()
    return first, _buffers(state), m.weight
