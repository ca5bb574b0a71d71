"""Programs whose compiled functions are called again after something changed: arguments, captured
tensors, flags, settings.
"""


def _model(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def written_argument_aliased_later(torch, compile):
    @compile
    def f(a, b):
        a += 1
        return a * b

    x = torch.arange(4.0)
    out = [f(torch.ones(4), torch.ones(4)), f(x, x.view(4)), f(x[:2], x[2:]), f(x, x)]
    return out, x


def argument_is_the_state_later(torch, compile):
    state = torch.ones(3)

    @compile
    def f(x):
        state.mul_(2)
        return x + state

    return [f(torch.zeros(3)), f(state), f(state.view(3)), f(torch.zeros(3))], state


def argument_shows_a_stepped_parameter(torch, compile):
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)

    @compile
    def f(x):
        optimizer.zero_grad()
        (w * x.sum()).sum().backward()
        optimizer.step()
        return x * 1

    return [f(torch.ones(3)), f(w.detach()), f(w.detach()), f(torch.ones(3))], w


def parameter_of_another_shape_later(torch, compile):
    w = torch.ones(3, requires_grad=True)

    @compile
    def f(x):
        return (w.detach() * x).sum()

    out = [f(torch.tensor(2.0))]
    w.data = torch.ones(5)
    out.append(f(torch.tensor(2.0)))
    w.data = torch.ones(5, dtype=torch.float64) * 3
    out.append(f(torch.tensor(2.0)))
    return out


def parameter_in_a_long_list_replaced(torch, compile):
    many = [torch.ones(1, requires_grad=True) for _ in range(300)]

    @compile
    def f(x):
        return sum((w.detach() * x).sum() for w in many[250:])

    out = [f(torch.tensor(1.0))]
    many[290].data = torch.ones(7)
    out.append(f(torch.tensor(1.0)))
    many[290].data.fill_(5)
    out.append(f(torch.tensor(1.0)))
    return out


def group_added_later(torch, compile):
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([a], lr=0.1)

    @compile
    def step(x):
        optimizer.zero_grad()
        loss = (a * b * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = torch.ones(2)
    out = [step(x)]
    b.grad = None
    optimizer.add_param_group({"params": [b], "lr": 0.5})
    out += [step(x), step(x)]
    return out, a, b


def settings_there_and_back(torch, compile):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    group = optimizer.param_groups[0]

    def step(x):
        optimizer.zero_grad()
        loss = (w * w * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    fast = compile(step)
    x = torch.ones(2)
    out = [fast(x)]
    group["momentum"] = 0.5
    out += [step(x), fast(x)]
    group["momentum"] = 0.9
    out += [fast(x), step(x)]
    group["lr"] = 0.3
    out += [fast(x), step(x), fast(x)]
    return out, w


def optimizer_in_an_object_of_a_library(torch, compile):
    import types

    w = torch.ones(2, requires_grad=True)
    box = types.SimpleNamespace(inner=types.SimpleNamespace(optimizer=torch.optim.SGD([w], lr=0.1)))

    @compile
    def step(x):
        box.inner.optimizer.zero_grad()
        (w * w * x).sum().backward()
        box.inner.optimizer.step()

    x = torch.ones(2)
    step(x)
    box.inner.optimizer.param_groups[0]["weight_decay"] = 0.5
    step(x)
    box.inner.optimizer = torch.optim.SGD([w], lr=1.0)
    step(x)
    return w


def optimizer_of_others_is_left_alone(torch, compile):
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))
    first, second = torch.optim.Adam([w], lr=0.1), torch.optim.Adam([v], lr=0.2)

    @compile
    def step(x):
        first.zero_grad()
        (w * w * x).sum().backward()
        first.step()

    for i in range(3):
        step(torch.ones(2))
        second.zero_grad()
        (v * v).sum().backward()
        second.param_groups[0]["weight_decay"] = 0.1 * i
        second.step()
    return w, v


def numbers_of_all_kinds(torch, compile):
    @compile
    def f(x, n=1, **others):
        return x * n + sum(others.values())

    x = torch.ones(2)
    return [f(x), f(x, 2), f(x, 2.5), f(x, True), f(x, n=0.0), f(x, n=-0.0) / 1, f(x, b=2, a=1), f(x, a=1, b=3), f(x, a=1), 1 / f(x, -0.0)]


def nests_of_all_kinds(torch, compile):
    @compile
    def f(batch, pair, flags=("a",)):
        a = batch["x"] * pair[0] + pair[1]
        return {"sum": a.sum(), "parts": [a, len(flags)]}

    x, y = torch.ones(2), torch.arange(2.0)
    return [
        f({"x": x}, [x, y]), f({"x": y}, [x, y]), f({"x": x}, (x, y)), f({"x": x}, [x, 3]), f({"x": x}, [x, 4]), f({"x": x, "y": y}, [x, y]),
        f({"x": x}, [x, y], ["a", "b"]), f({"x": x}, [x, y], flags=("a", "b", "c")), f({"x": x}, [x, x]),
    ]


def arguments_become_leaves(torch, compile):
    @compile
    def f(x):
        y = (x * x).sum()
        if y.requires_grad:
            y.backward()
        return y.detach()

    x = torch.ones(2)
    out = [f(x)]
    x.requires_grad_()
    out += [f(x), f(x)]
    grad = x.grad.clone()
    x.requires_grad_(False)
    out.append(f(x))
    return out, grad, x.grad


def objects_as_arguments(torch, compile):
    class Settings:
        def __init__(self, scale):
            self.scale = scale

    @compile
    def f(x, settings):
        return x * settings.scale

    a, b, x = Settings(2.0), Settings(3.0), torch.ones(2)
    out = [f(x, a), f(x, b), f(x, a)]
    a.scale = 7.0
    out += [f(x, a), f(x, b)]
    return out


def modules_changed_between_calls(torch, compile):
    m = _model(torch)

    @compile
    def f(x):
        return m(x).detach()

    x = torch.ones(2, 3)
    out = [f(x)]
    m[1] = torch.nn.ReLU()
    out.append(f(x))
    m.append(torch.nn.Linear(2, 1)) if hasattr(m, "append") else None
    with torch.no_grad():
        m[0].weight.zero_()
    out.append(f(x))
    handle = m[0].register_forward_hook(lambda module, inputs, output: output + 1)
    out.append(f(x))
    handle.remove()
    out.append(f(x))
    m[0].weight.requires_grad_(False)
    out.append(f(x))
    m[0].bias = torch.nn.Parameter(torch.ones(4) * 2)
    out.append(f(x))
    return out


def frozen_between_steps(torch, compile):
    m = _model(torch)
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)

    @compile
    def step(x):
        optimizer.zero_grad()
        loss = m(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    x, out = torch.ones(2, 3), []
    for i in range(6):
        m[0].requires_grad_(i % 2 == 0)
        out.append(step(x))
    return out, list(m.parameters())


_flag = {"scale": 1.0}
_number = 1.0


def globals_changed_between_calls(torch, compile):
    global _number
    _number, _flag["scale"] = 1.0, 1.0

    @compile
    def f(x):
        return x * _number + _flag["scale"]

    x = torch.ones(2)
    out = [f(x)]
    _number = 2.0
    out.append(f(x))
    _flag["scale"] = 5.0
    out.append(f(x))
    _number = float("2.0")
    out.append(f(x))
    _flag["other"] = 1
    out.append(f(x))
    return out


def closures_changed_between_calls(torch, compile):
    import numpy as np

    scale, rows, names, table = 2.0, [1.0, 2.0], {"a"}, np.array([1.0, 2.0])

    class Model:
        power = 2

        def __call__(self, x):
            return x**self.power

    model = Model()

    @compile
    def f(x, extra=[0.0]):
        return model(x) * scale + sum(rows) + len(names) + float(table.sum()) + extra[0]

    x = torch.ones(2) * 3
    out = [f(x)]
    scale = 3.0
    out.append(f(x))
    rows[1] = 7.0
    out.append(f(x))
    rows.append(1.0)
    out.append(f(x))
    names.add("b")
    out.append(f(x))
    names.remove("a")
    out.append(f(x))
    table[0] = 9.0
    out.append(f(x))
    Model.power = 3
    out.append(f(x))
    model.power = 1
    out.append(f(x))
    return out


def shapes_in_turn(torch, compile):
    total = torch.zeros(())

    @compile
    def f(x):
        total.add_(x.sum())
        return x * 2

    out = [f(torch.ones(n)) for n in (1, 2, 3, 1, 4, 5, 6, 2, 1, 3)]
    return out, total


def no_grad_in_turn(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        return w * x

    x = torch.ones(2)
    out = [f(x).requires_grad]
    with torch.no_grad():
        out.append(f(x).requires_grad)
    out.append(f(x).requires_grad)
    return out


def numpy_shows_a_stepped_parameter(torch, compile):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)

    @compile
    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    step(torch.ones(2))
    shown = w.detach().numpy()
    step(torch.ones(2))
    return shown.tolist(), w


def numpy_shows_running_statistics(torch, compile):
    m = torch.nn.BatchNorm1d(2)

    @compile
    def f(x):
        return m(x).detach()

    x = torch.arange(4.0).view(2, 2)
    f(x)
    shown = m.running_mean.numpy()
    f(x)
    return shown.tolist()


def result_written_between_calls(torch, compile):
    w = torch.ones(2)

    @compile
    def f(x):
        return w + x

    a = f(torch.ones(2))
    a += 5
    b = f(torch.ones(2))
    w += a
    return a, b, f(torch.ones(2)), w


def a_view_as_argument_written(torch, compile):
    x = torch.zeros(3, 2)

    @compile
    def f(row, value):
        row.copy_(value)
        return row.sum()

    out = [f(x[i], torch.ones(2) * i) for i in range(3)]
    out.append(f(x[0], x[2]))
    out.append(f(x[0], x[0]))
    return out, x


def two_views_of_one_tensor_read(torch, compile):
    x = torch.arange(8.0)

    @compile
    def f(a, b):
        return (a * b).sum()

    return [f(x[:4], x[4:]), f(x[::2], x[1::2]), f(x[:4], x[:4]), f(x[:4], x[4:])]


def generators_of_others(torch, compile):
    import random

    import numpy as np

    rng, numbers, legacy = np.random.default_rng(0), random.Random(0), np.random.RandomState(0)
    return [compile(lambda x: x * draw())(torch.ones(2)) for draw in (rng.normal, numbers.random, legacy.rand)]
