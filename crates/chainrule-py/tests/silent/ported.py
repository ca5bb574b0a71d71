"""Programs around names that ports of public scripts use: strided views, names of shared modules,
the default dtype, functions with a rule of their own, hooks on the way back, tables of rows.
"""


def strided_view_written(torch):
    x = torch.arange(6.0)
    y = x.as_strided((2, 2), (2, 1))
    y[0, 0] = 9
    x[3] = 7
    return x, y


def strided_columns(torch):
    x = torch.arange(12.0)
    turned = torch.as_strided(x, (3, 4), (1, 3))
    turned[1] *= -1
    windows = torch.as_strided(x, (5, 3), (2, 1), 1)
    return x, turned, windows


def strided_gradient(torch):
    w = torch.arange(5.0, requires_grad=True)
    rows = w.as_strided((3, 3), (1, 1))
    (rows * torch.arange(9.0).view(3, 3)).sum().backward()
    return w.grad


def names_of_shared_modules(torch):
    nn = torch.nn
    l = nn.Linear(2, 2)
    m = nn.Sequential(l, nn.ReLU(), l)
    every = [n for n, _ in m.named_parameters(remove_duplicate=False)]
    inside = [n for n, _ in m.named_modules(remove_duplicate=False)]
    return len(list(m.parameters())), every, inside, [n for n, _ in m.named_modules(prefix="net")]


def _bits(x):
    return int(str(x.dtype).replace("float", "").split(".")[-1])


def default_dtype_beside_integers(torch):
    torch.set_default_dtype(torch.float64)
    try:
        i, b = torch.arange(1, 4), torch.tensor([True, False, True])
        made = [i * 0.1, 0.1 + i, 1.1 - i, i / 3, 1 / i, i / i, i**0.5, 2.5**i, i // 0.7, i % 0.7, b * 0.3, -i * 0.3]
        made += [i.mul(0.1), torch.add(i, 0.1), torch.div(i, 7), i.div(3), torch.pow(i, 0.5), torch.atan2(i, i), torch.where(b, i, 0.1)]
        made += [torch.deg2rad(i), i.copysign(-1), torch.exp(torch.arange(0, 4, 2) * -0.7), torch.fmod(i, 0.7)]
        kept = [i * 2, i // 2, i + b, i - i, torch.where(b, i, 2)]
        return made, [_bits(x) for x in made], [str(x.dtype).split(".")[-1] for x in kept], kept
    finally:
        torch.set_default_dtype(torch.float32)


def default_dtype_in_a_step(torch, compile):
    torch.set_default_dtype(torch.float64)
    try:

        @compile
        def f(i, x):
            return (i * 0.1 + x) / 3, i / 3

        made = f(torch.arange(4), torch.ones(4))
        return made, [_bits(x) for x in made]
    finally:
        torch.set_default_dtype(torch.float32)


def default_dtype_back_again(torch):
    torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)
    i = torch.arange(3)
    return _bits(i * 0.1), _bits(i / 3), _bits(torch.mul(i, 0.1))


def second_derivative_by_saved_tensors(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    out = []
    for leaf in (True, False):
        x = torch.tensor([3.0], requires_grad=True)
        y = x if leaf else x * 1
        (g,) = torch.autograd.grad(Square.apply(y), x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x)
        out += [g, h]
    return out


def second_derivative_by_saved_results(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            y = (x * scale).exp()
            ctx.scale = scale
            ctx.save_for_backward(y, None)
            return y

        @staticmethod
        def backward(ctx, g):
            y, nothing = ctx.saved_tensors
            assert nothing is None
            return g * y * ctx.scale, None

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    (g,) = torch.autograd.grad(Exp.apply(x, 2.0).sum(), x, create_graph=True)
    g.sum().backward()
    return g, x.grad


def adjoint_by_saved_parameters(torch):
    layer = torch.nn.Linear(2, 2)
    layer.weight.data.copy_(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    layer.bias.data.fill_(0.5)

    class Adjoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *parameters):
            ctx.save_for_backward(x, *parameters)
            return layer(x).tanh()

        @staticmethod
        def backward(ctx, g):
            x, *parameters = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                out = layer(y).tanh()
            return torch.autograd.grad(out, (y, *parameters), g)

    x = torch.ones(1, 2, requires_grad=True)
    Adjoint.apply(x, *layer.parameters()).sum().backward()
    return x.grad, layer.weight.grad, layer.bias.grad


def hooks_on_the_way_back(torch):
    nn, seen = torch.nn, []
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    for i, p in enumerate(m.parameters()):
        p.data.copy_(torch.arange(float(p.numel())).view_as(p) * 0.1 - 0.3 + i)
    for layer in m:
        layer.register_full_backward_hook(lambda m, given, up: seen.extend([*given, *up]))
    doubled = m[2].register_full_backward_hook(lambda m, given, up: (given[0] * 2,))
    m[1].register_full_backward_pre_hook(lambda m, up: (up[0] + 1,))
    m(torch.ones(2, 3)).sum().backward()
    first = m[0].weight.grad.clone()
    doubled.remove()
    x = torch.ones(1, 3, requires_grad=True)
    m(x).sum().backward()
    return [s for s in seen if s is not None], first, x.grad, m[0].weight.grad


def hooks_of_a_module_with_two_inputs(torch):
    class Both(torch.nn.Module):
        def forward(self, a, b, scale=2):
            return a * b, a + scale * b

    seen, both = [], Both()
    handle = both.register_full_backward_hook(lambda m, given, up: seen.extend([*given, *up]))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2) * 3
    p, q = both(a, b)
    (p * 2 + q).sum().backward()
    handle.remove()
    p, q = both(a, b)
    (p + q).sum().backward()
    return seen, a.grad


def hooks_with_keywords_and_order(torch):
    m, order = torch.nn.Identity(), []
    m.register_forward_pre_hook(lambda m, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True)
    m.register_forward_hook(lambda m, args, kwargs, out: order.append(len(kwargs)) or out + 1, with_kwargs=True)
    m.register_forward_hook(lambda m, args, out: order.append(10) or out * 10, prepend=True)
    return m(torch.ones(1)), order


def rows_of_a_largest_norm(torch):
    e = torch.nn.Embedding(4, 2, max_norm=1.0)
    e.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.1, 0.2], [6.0, 8.0], [5.0, 12.0]]))
    out = e(torch.tensor([[0, 1], [2, 0]]))
    (out * torch.arange(8.0).view(2, 2, 2)).sum().backward()
    return out, e.weight, e.weight.grad


def rows_by_frequency(torch):
    e = torch.nn.Embedding(3, 2, scale_grad_by_freq=True)
    e.weight.data.fill_(1.0)
    (e(torch.tensor([0, 2, 0, 0])) * torch.arange(8.0).view(4, 2)).sum().backward()
    return e.weight.grad


def sizes_by_name(torch):
    return torch.zeros(size=(2, 1)), torch.ones(size=[2]), torch.full(size=(1,), fill_value=3.0), torch.empty(size=(0, 2)).shape[1]


def nadam_in_double(torch):
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    torch.set_default_dtype(torch.float64)
    try:
        optimizer = torch.optim.NAdam([p], lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (p**4).sum().backward()
            optimizer.step()
    finally:
        torch.set_default_dtype(torch.float32)
    return (p.detach() * 1e5).frac() * 1e5  # the sixth digit to the tenth


def functions_that_write(torch):
    x = torch.tensor([-1.5, 0.25, 0.7, 2.0])
    rows = [getattr(torch, name)(x.clone()) for name in ("relu_", "sigmoid_", "tanh_", "exp_", "abs_", "sin_", "round_", "neg_")]
    w = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = w * 3
    torch.relu_(y)
    y.sum().backward()
    return rows, y, w.grad


def layers_as_functions(torch):
    x, w = torch.arange(9.0).view(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    out = [torch.conv2d(x, w, None, 1, 1), torch.max_pool2d(x, 2), torch.layer_norm(x, (3,)), torch.prelu(x - 4, torch.tensor([0.5]))]
    return out, torch.cosine_similarity(x, x + 1, dim=2), torch.dropout(x, 0.5, False), torch.slogdet(torch.eye(2) * 2)


def classes_by_their_modules(torch):
    import importlib

    inside = {name: importlib.import_module(f"{torch.__name__}.nn.modules.{name}") for name in ("batchnorm", "loss", "conv", "utils")}
    nn = torch.nn
    kinds = [
        isinstance(nn.BatchNorm2d(2), inside["batchnorm"]._BatchNorm), isinstance(nn.MSELoss(), inside["loss"]._Loss),
        isinstance(nn.Conv1d(1, 1, 1), inside["conv"]._ConvNd), isinstance(nn.LayerNorm(2), inside["batchnorm"]._BatchNorm),
    ]
    return kinds, inside["utils"]._pair(3), inside["utils"]._triple((1, 2, 3)), nn.init._calculate_fan_in_and_fan_out(torch.ones(4, 3, 2))


def rates_of_a_loaded_schedule(torch):
    S, out = torch.optim.lr_scheduler, []

    def made(kind):
        return kind(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))

    for kind in (lambda o: S.StepLR(o, 1, 0.5), lambda o: S.CosineAnnealingWarmRestarts(o, 4), lambda o: S.ReduceLROnPlateau(o, patience=0)):
        schedule = made(kind)
        for _ in range(3):
            schedule.optimizer.step()
            schedule.step(*([1.0] if isinstance(schedule, S.ReduceLROnPlateau) else []))
        schedule.optimizer.param_groups[0]["lr"] = 7.0
        other = made(kind)
        other.load_state_dict(schedule.state_dict())
        out += [schedule.get_last_lr(), other.get_last_lr(), other.last_epoch]
    return out


def compared_with_large_integers(torch):
    i = torch.tensor([16777217, 3])
    return (i > 16777216.5), (i == 3.0), torch.tensor(2) ** -1.0
