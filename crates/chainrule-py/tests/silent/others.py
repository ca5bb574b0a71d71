"""Programs about modules whose options change, copies, hooks, schedules, checkpoints, dtypes and
shared memory, eager and compiled.
"""

import copy
import io
import pickle

import numpy as np


def _net(torch, layers=lambda nn: (nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))):
    torch.manual_seed(0)
    return torch.nn.Sequential(*layers(torch.nn)).double()


def _x(torch, *shape):
    return torch.arange(1, 1 + int(np.prod(shape)), dtype=torch.float64).reshape(shape) / 7


def reduction_changed(torch, compile):
    loss = torch.nn.MSELoss()
    f = compile(lambda x: loss(x, 0 * x))
    out = [f(_x(torch, 2, 3))]
    loss.reduction = "sum"
    return [*out, f(_x(torch, 2, 3))]


def slope_changed(torch, compile):
    m = torch.nn.Sequential(torch.nn.LeakyReLU(0.1), torch.nn.Softmax(dim=0), torch.nn.Hardtanh(-0.5, 0.3))
    f = compile(lambda x: m(x))
    x = _x(torch, 2, 3) - 0.5
    out = [f(x)]
    m[0].negative_slope, m[1].dim = 0.5, 1
    out.append(f(x))
    m[2].max_val = 0.6
    return [*out, f(x)]


def pool_changed(torch, compile):
    m = torch.nn.MaxPool2d(2)
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 1, 1, 6, 6))]
    m.stride = m.kernel_size = 3
    return [*out, f(_x(torch, 1, 1, 6, 6))]


def class_weights_written(torch, compile):
    w = torch.ones(3, dtype=torch.float64)
    loss = torch.nn.CrossEntropyLoss(weight=w)
    target = torch.tensor([0, 2])
    f = compile(lambda x: loss(x, target))
    out = [f(_x(torch, 2, 3))]
    w[0] = 5.0
    out.append(f(_x(torch, 2, 3)))
    loss.weight.mul_(2)[2] = 9
    return [*out, f(_x(torch, 2, 3)), w, sorted(loss.state_dict())]


def dropout_rate_changed(torch, compile):
    m = torch.nn.Dropout(0.0)
    f = compile(lambda x: m(x))
    torch.manual_seed(3)
    out = [f(_x(torch, 4, 4))]
    m.p = 0.5
    out += [f(_x(torch, 4, 4)), f(_x(torch, 4, 4))]
    m.p = 1.0
    return [*out, f(_x(torch, 4, 4)), torch.rand(2)]


def momentum_of_statistics_changed(torch, compile):
    m = torch.nn.BatchNorm1d(3).double()
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 4, 3))]
    m.momentum = 0.5
    out.append(f(_x(torch, 4, 3)))
    m.eps = 0.1
    return [*out, f(_x(torch, 4, 3)), m.running_mean, m.running_var, m.num_batches_tracked]


def cumulative_statistics(torch, compile):
    m = torch.nn.BatchNorm1d(3, momentum=None).double()
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 4, 3) * k) for k in (1, 2, 5)]
    return out, m.running_mean, m.running_var, m.num_batches_tracked


def one_child_in_evaluation(torch, compile):
    m = _net(torch, lambda nn: (nn.BatchNorm1d(3), nn.Linear(3, 3), nn.BatchNorm1d(3)))
    f = compile(lambda x: m(x).sum())
    out = [f(_x(torch, 4, 3))]
    m[0].eval()
    out.append(f(_x(torch, 4, 3) * 2))
    m[2].requires_grad_(False)
    out.append(f(_x(torch, 4, 3) * 3))
    return out, [b * 1.0 for b in m.buffers()]


def statistics_in_checkpoint(torch):
    m = _net(torch, lambda nn: (nn.Linear(3, 3), nn.BatchNorm1d(3)))
    x = _x(torch, 4, 3).requires_grad_()
    torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False).square().sum().backward()
    return [b * 1.0 for b in m.buffers()], x.grad, [p.grad for p in m.parameters()]


def checkpoint_inside_compiled(torch, compile):
    m = _net(torch, lambda nn: (nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)))

    @compile
    def step(x):
        loss = torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False).square().sum()
        loss.backward()
        return loss

    torch.manual_seed(5)
    out = [step(_x(torch, 2, 3)) for _ in range(2)]
    return out, [p.grad for p in m.parameters()]


def nested_checkpoints(torch):
    m, drop = _net(torch), torch.nn.Dropout(0.3)
    ck = torch.utils.checkpoint.checkpoint
    torch.manual_seed(1)
    x = _x(torch, 2, 3).requires_grad_()
    ck(lambda a: drop(ck(m, drop(a), use_reentrant=False)), x, use_reentrant=False).sum().backward()
    return x.grad, [p.grad for p in m.parameters()], torch.rand(2)


def forward_hook_compiled(torch, compile):
    m = _net(torch)
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 2, 3))]
    handle = m[0].register_forward_hook(lambda module, args, output: output * 2)
    out.append(f(_x(torch, 2, 3)))
    handle.remove()
    before = m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    out.append(f(_x(torch, 2, 3)))
    before.remove()
    return [*out, f(_x(torch, 2, 3))]


def gradient_hooks(torch):
    m = _net(torch)
    seen = []
    for p in m.parameters():
        p.register_hook(lambda g: seen.append(g * 1) or g * 0.5)
    handle = m[0].weight.register_hook(lambda g: g + 1)
    m(_x(torch, 2, 3)).sum().backward()
    handle.remove()
    m(_x(torch, 2, 3)).sum().backward()
    return [p.grad for p in m.parameters()], len(seen)


def copied_with_its_optimizer(torch):
    m = _net(torch)
    opt = torch.optim.Adam(m.parameters(), lr=0.1)
    for k in (1, 2):
        opt.zero_grad()
        m(_x(torch, 2, 3)).sum().backward()
        opt.step()
    twin, twin_opt = copy.deepcopy((m, opt))
    twin_opt.zero_grad()
    (twin(_x(torch, 2, 3)) ** 2).sum().backward()
    twin_opt.step()
    return list(m.parameters()), list(twin.parameters()), [p.grad for p in m.parameters()]


def pickled_with_its_optimizer(torch):
    m = _net(torch)
    opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    m(_x(torch, 2, 3)).sum().backward()
    opt.step()
    twin, twin_opt = pickle.loads(pickle.dumps((m, opt)))
    for _ in range(2):
        twin_opt.zero_grad()
        (twin(_x(torch, 2, 3)) ** 2).sum().backward()
        twin_opt.step()
    return list(m.parameters()), list(twin.parameters())


def copy_trained_beside(torch, compile):
    m = _net(torch)
    twin = copy.deepcopy(m)
    opt = torch.optim.SGD(twin.parameters(), lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        loss = ((twin(x) - m(x).detach() - 1) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    out = [step(_x(torch, 2, 3)) for _ in range(3)]
    m.load_state_dict(twin.state_dict())
    out.append(step(_x(torch, 2, 3)))
    with torch.no_grad():
        for a, b in zip(m.parameters(), twin.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)
    return [*out, step(_x(torch, 2, 3))], list(m.parameters())


def averages_by_lerp(torch, compile):
    m = _net(torch)
    shadow = {k: v.clone() for k, v in m.state_dict().items()}
    opt = torch.optim.SGD(m.parameters(), lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        m(x).square().sum().backward()
        opt.step()
        with torch.no_grad():
            for k, v in m.state_dict().items():
                shadow[k].lerp_(v, 0.25)

    for _ in range(3):
        step(_x(torch, 2, 3))
    return shadow, list(m.parameters())


def group_added_under_a_schedule(torch):
    a, b = torch.nn.Parameter(_x(torch, 2)), torch.nn.Parameter(_x(torch, 3))
    opt = torch.optim.SGD([a], lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    rates = []
    for k in range(4):
        if k == 2:
            opt.add_param_group({"params": [b], "lr": 1.0, "initial_lr": 1.0})
            schedule.base_lrs.append(1.0)
        opt.zero_grad()
        ((a**2).sum() + (b**2).sum()).backward()
        opt.step()
        schedule.step()
        rates.append([g["lr"] for g in opt.param_groups])
    return a, b, rates


def one_cycle_moves_momentum(torch):
    p = torch.nn.Parameter(_x(torch, 2))
    opt = torch.optim.Adam([p], lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=6)
    seen = []
    for _ in range(5):
        opt.zero_grad()
        (p**2).sum().backward()
        opt.step()
        schedule.step()
        seen.append((opt.param_groups[0]["lr"], opt.param_groups[0]["betas"][0]))
    return p, seen


def plateau_with_floors(torch):
    a, b = torch.nn.Parameter(_x(torch, 2)), torch.nn.Parameter(_x(torch, 3))
    opt = torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.01}], lr=1.0)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.1, patience=1, min_lr=[0.05, 0.002], cooldown=1)
    rates = []
    for loss in (3.0, 2.0, 2.0, 2.0, 2.5, 2.5, 2.5, 2.5, 1.0):
        plateau.step(torch.tensor(loss))
        rates.append([g["lr"] for g in opt.param_groups])
    return rates


def rate_as_a_schedule_in_compiled_steps(torch, compile):
    m = _net(torch)
    opt = torch.optim.AdamW(m.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)

    @compile
    def step(x):
        opt.zero_grad()
        loss = m(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_value_(m.parameters(), 0.05)
        opt.step()
        return loss

    out = []
    for k in range(5):
        out.append(step(_x(torch, 2, 3)))
        schedule.step()
        if k == 2:
            opt.param_groups[0]["weight_decay"] = 0.5
    return out, list(m.parameters()), opt.param_groups[0]["lr"]


def optimizer_state_of_a_file(torch):
    m = _net(torch)
    opt = torch.optim.Adam(m.parameters(), lr=0.1, amsgrad=True)
    m(_x(torch, 2, 3)).sum().backward()
    opt.step()
    file = io.BytesIO()
    torch.save({"m": m.state_dict(), "o": opt.state_dict()}, file)
    m(_x(torch, 2, 3)).sum().backward()
    opt.step()
    file.seek(0)
    state = torch.load(file)
    m.load_state_dict(state["m"])
    opt.load_state_dict(state["o"])
    opt.zero_grad()
    m(_x(torch, 2, 3)).sum().backward()
    opt.step()
    return list(m.parameters())


def detached_hidden_state(torch):
    torch.manual_seed(0)
    cell = torch.nn.RNNCell(2, 3).double()
    h = torch.zeros(1, 3, dtype=torch.float64)
    for k in range(4):
        h = cell(_x(torch, 1, 2) * k, h)
        if k % 2:
            h.sum().backward()
            h.detach_()
    return h, h.requires_grad, [p.grad for p in cell.parameters()]


def hidden_state_by_data(torch):
    torch.manual_seed(0)
    rnn = torch.nn.LSTM(2, 3, batch_first=True).double()
    state = None
    for k in range(3):
        if state is not None:
            state = tuple(s.data for s in state)
        out, state = rnn(_x(torch, 1, 4, 2) * k, state)
        out.sum().backward()
    return state, [p.grad for p in rnn.parameters()]


def losses_added_up(torch):
    w = _x(torch, 3).requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    parts = []
    for k in range(3):
        part = (w * k).square().sum()
        total += part
        parts.append(part)
    loss = sum(parts) + total
    loss /= 2
    loss.backward()
    return total, loss, w.grad


def stacked_then_written(torch):
    rows = [torch.zeros(2) for _ in range(3)]
    s, c = torch.stack(rows), torch.cat(rows)
    rows[1] += 5
    s[0] = 7
    return rows, s, c


def fast_weights(torch):
    w = _x(torch, 3).requires_grad_()
    params = [w]
    for _ in range(2):
        loss = (params[0] ** 3).sum()
        (g,) = torch.autograd.grad(loss, params, create_graph=True)
        params = [p - 0.1 * g for p in params]
    (params[0] ** 2).sum().backward()
    return params, w.grad, w


def functional_call_leaves_the_module(torch):
    m = _net(torch)
    new = {k: torch.zeros_like(v) for k, v in m.state_dict().items()}
    out = torch.func.functional_call(m, new, (_x(torch, 2, 3),))
    return out, m(_x(torch, 2, 3)), list(m.parameters())


def scaler_skips_a_step(torch):
    p = torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    out = []
    for factor in (1.0, float("inf"), 1.0, 1.0, 1.0):
        opt.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(opt)
        scaler.update()
        out.append((p * 1, scaler.get_scale()))
    return out


def unscaled_then_clipped(torch):
    p = torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    scaler.scale((p * 3).sum()).backward()
    scaler.unscale_(opt)
    norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
    scaler.step(opt)
    scaler.update()
    return p, norm, p.grad


def function_with_a_state(torch):
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, low):
            ctx.low = low
            y = x.clamp(min=low)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * (x > ctx.low) + y * 0 if ctx.needs_input_grad[0] else None, None

    x = (_x(torch, 4) - 0.3).requires_grad_()
    y = Clip.apply(x, 0.1)
    y.sum().backward()
    return y, x.grad


def function_that_writes(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    w = _x(torch, 2).requires_grad_()
    y = w * 2
    z = AddOne.apply(y)
    z.sum().backward()
    return y, z, w.grad


def padding_row_has_no_gradient(torch):
    torch.manual_seed(0)
    e = torch.nn.Embedding(4, 2, padding_idx=1).double()
    opt = torch.optim.SGD(e.parameters(), lr=1.0, weight_decay=0.1)
    e(torch.tensor([0, 1, 1, 3])).sum().backward()
    grad = e.weight.grad.clone()
    opt.step()
    e.weight.data[1] = 8
    return grad, e.weight, e(torch.tensor(1))


def tied_weights_with_adam(torch, compile):
    torch.manual_seed(0)
    e, out = torch.nn.Embedding(4, 3).double(), torch.nn.Linear(3, 4, bias=False).double()
    out.weight = e.weight
    opt = torch.optim.Adam([*e.parameters(), *out.parameters()][:1], lr=0.1)

    @compile
    def step(i, y):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(out(e(i)), y)
        loss.backward()
        opt.step()
        return loss

    losses = [step(torch.tensor([0, 3]), torch.tensor([1, 2])) for _ in range(3)]
    return losses, e.weight, out.weight, e.weight is out.weight


def weight_norm_trained(torch, compile):
    m = _net(torch, lambda nn: (nn.utils.weight_norm(nn.Linear(3, 2)),))
    opt = torch.optim.SGD(m.parameters(), lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        loss = m(x).square().sum()
        loss.backward()
        opt.step()
        return loss

    out = [step(_x(torch, 2, 3)) for _ in range(3)]
    return out, m[0].weight_g, m[0].weight_v, m(_x(torch, 2, 3))


def dropout_of_functions(torch):
    torch.manual_seed(2)
    F = torch.nn.functional
    x = _x(torch, 3, 4)
    m = torch.nn.Dropout(0.5).eval()
    return F.dropout(x), F.dropout(x, training=m.training), m(x), F.dropout(x, 0.5, inplace=True), x, torch.rand(1)


def as_tensor_and_tensor(torch):
    a = np.ones(3)
    t = torch.ones(3)
    return_value = []
    u = torch.as_tensor(t)
    u[0] = 5
    v = torch.as_tensor(t, dtype=torch.float64)
    v[1] = 6
    w = t.to(torch.float32)
    w[2] = 7
    x = t.float()
    x += 1
    y = t.clone().detach()
    y *= 0
    c = torch.tensor(a)
    a[0] = 9
    return_value += [t, u, v, w, x, y, c]
    return return_value


def arrays_of_tensors(torch):
    t = torch.arange(4.0)
    a = np.asarray(t)
    b = np.array(t).tolist()
    c = np.sqrt(t.numpy())
    d = t.numpy().copy()
    d[0] = 9
    before = a.sum()
    return t, b, c.tolist(), d.tolist(), float(before), t.tolist(), a.dtype.name


def promotion_of_numbers(torch):
    i, u, b, f, h = torch.tensor([7, -7]), torch.tensor([250], dtype=torch.uint8), torch.tensor([True]), torch.tensor([1.5]), torch.tensor([1.5], dtype=torch.float16)
    out = [i / 2, i // 2, i % 3, i * 0.5, u + 10, u * 2, b + b, b + 1, b * 1.0, f + 1, h * 2.5, i + f, u + i, -i, i**2, 2**i.abs(), 1 / i, i.float().mean(), b.sum(), u.sum(), u.float() / 3, i > 0.5, i.true_divide(2), h.sum()]
    return [(x, str(x.dtype).split(".")[-1]) for x in out]


def dtypes_of_results(torch):
    x, i = torch.ones(2), torch.tensor([1, 2])
    out = [torch.cat([x, i]), torch.stack([x, x.double()]), torch.where(x > 0, x, i), torch.tensor([1, 2.5]), torch.tensor([True, 2]), torch.arange(0, 1, 0.25), torch.arange(3), torch.full((2,), 3), torch.full((2,), 3.0), x.argmax(), x.new_zeros(2), i.new_tensor([1.5]), torch.zeros_like(i), torch.ones_like(i, dtype=torch.float64), torch.linspace(0, 1, 3), torch.eye(2), i.sum(), i.cumsum(0), i.prod(), x.double().sum(dtype=torch.float32), torch.max(i, i.int()), x.bool(), i.bool().long()]
    return [(x, str(x.dtype).split(".")[-1]) for x in out]


def default_dtype_for_modules(torch):
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        m = torch.nn.Linear(2, 2)
        out = m(torch.tensor([1.0, 2.0]))
        return out, str(out.dtype).split(".")[-1], torch.rand(2), torch.tensor(1.5) * torch.ones(2, dtype=torch.float32)
    finally:
        torch.set_default_dtype(torch.float32)


def cast_of_a_running_training(torch, compile):
    m = _net(torch).float()
    opt = torch.optim.Adam(m.parameters(), lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        loss = m(x).square().sum()
        loss.backward()
        opt.step()
        return loss

    out = [float(step(_x(torch, 2, 3).float())) for _ in range(2)]
    m.double()
    for state in opt.state.values():
        for k, v in state.items():
            if torch.is_tensor(v) and v.ndim:
                state[k] = v.double()
    return out, [p.double() for p in m.parameters()], [str(p.dtype).split(".")[-1] for p in m.parameters()]


def zeroed_rows_by_mask(torch, compile):
    w = torch.nn.Parameter(_x(torch, 3, 2))
    mask = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    @compile
    def step(x):
        opt.zero_grad()
        (w @ x).square().sum().backward()
        w.grad.mul_(mask.unsqueeze(1))
        opt.step()

    for k in range(3):
        step(_x(torch, 2))
        mask[k] = 1 - mask[k]
    return w, w.grad, mask


def objects_and_dataclasses(torch, compile):
    class Box:
        def __init__(self, scale):
            self.scale = scale
            self.seen = torch.zeros(2)

    box = Box(2.0)

    @compile
    def f(x):
        box.seen.add_(x)
        return {"y": x * box.scale, "pair": (box.seen * 1, [x.sum()])}

    out = [f(torch.ones(2))]
    box.scale = 3.0
    out.append(f(torch.ones(2)))
    box.seen = torch.full((2,), 10.0)
    return [*out, f(torch.ones(2))], box.seen


def compiled_module_saved_and_loaded(torch, compile):
    m = _net(torch)
    f = compile(m)
    first = f(_x(torch, 2, 3))
    state = {k: v * 0 + 0.5 for k, v in m.state_dict().items()}
    m.load_state_dict(state)
    second = f(_x(torch, 2, 3))
    m.eval()
    m[1] = torch.nn.ReLU()
    third = f(-_x(torch, 2, 3))
    third.sum().backward()
    return first, second, third, [p.grad for p in m.parameters()]


def layer_appended(torch, compile):
    m = _net(torch)
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 2, 3))]
    m.append(torch.nn.Softmax(-1))
    out.append(f(_x(torch, 2, 3)))
    m.train(False)
    m.insert(0, torch.nn.ReLU())
    return [*out, f(-_x(torch, 2, 3)), [c.training for c in m]]


def loop_over_lists(torch, compile):
    layers = [torch.nn.Parameter(_x(torch, 2, 2)), torch.nn.Parameter(-_x(torch, 2, 2))]
    flags = [True, False]

    @compile
    def f(x, n=2):
        for w, flag in zip(layers[:n], flags):
            x = x @ w
            x = x.tanh() if flag else x
        return x.sum()

    out = [f(_x(torch, 1, 2)), f(_x(torch, 1, 2), n=1)]
    flags[1] = True
    out.append(f(_x(torch, 1, 2)))
    layers.reverse()
    out.append(f(_x(torch, 1, 2)))
    out[-1].backward()
    return out, [p.grad for p in layers]


def gradients_of_gradients_compiled(torch, compile):
    w = torch.nn.Parameter(_x(torch, 3))
    opt = torch.optim.SGD([w], lr=0.01)

    @compile
    def step(x):
        opt.zero_grad()
        y = (w * x).tanh().sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        loss = (g.norm() - 1) ** 2
        loss.backward()
        opt.step()
        return loss

    return [step(_x(torch, 3)) for _ in range(3)], w, w.grad


def random_streams_in_turn(torch, compile):
    f = compile(lambda x: x + torch.randn(2) * torch.rand(2))
    torch.manual_seed(11)
    out = [f(torch.zeros(2)), torch.rand(1), f(torch.zeros(2)), torch.randint(0, 100, (2,)), torch.randperm(5), torch.normal(0.0, 1.0, (2,)), torch.bernoulli(torch.full((3,), 0.5))]
    state = torch.get_rng_state()
    out += [f(torch.zeros(2)), torch.rand(1)]
    torch.set_rng_state(state)
    return [*out, f(torch.zeros(2)), torch.rand(1)]


def retained_then_freed(torch):
    w = _x(torch, 2).requires_grad_()
    y = (w * w).sum()
    y.backward(retain_graph=True)
    y.backward()
    first = w.grad.clone()
    w.grad.zero_()
    z = w.exp()
    z.retain_grad()
    z.sum().backward()
    return first, w.grad, z.grad


def frozen_backbone(torch, compile):
    m = _net(torch)
    for p in m[0].parameters():
        p.requires_grad = False
    opt = torch.optim.Adam(filter(lambda p: p.requires_grad, m.parameters()), lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        m(x).square().sum().backward()
        opt.step()

    step(_x(torch, 2, 3))
    for p in m[0].parameters():
        p.requires_grad_(True)
    opt.add_param_group({"params": list(m[0].parameters()), "lr": 0.01})
    step(_x(torch, 2, 3))
    return list(m.parameters()), [p.grad for p in m.parameters()]
