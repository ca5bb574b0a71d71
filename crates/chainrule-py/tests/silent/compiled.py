"""Programs with compiled functions. `compile` is that of the module, or the identity where results
are expected as in the eager mode.
"""


def argument_written(torch, compile):
    @compile
    def f(x):
        x += 1
        x[0] = 9
        return x * 2

    a = torch.zeros(2)
    out = [f(a) for _ in range(2)]
    return a, out


def captured_written(torch, compile):
    state = torch.zeros(2)

    @compile
    def f(x):
        state.mul_(0.5).add_(x)
        return state * 1

    out = [f(torch.ones(2) * i) for i in range(3)]
    return state, out


def captured_written_outside(torch, compile):
    scale = torch.ones(2)

    @compile
    def f(x):
        return x * scale

    out = [f(torch.ones(2))]
    scale += 1
    out.append(f(torch.ones(2)))
    scale[0] = 10
    out.append(f(torch.ones(2)))
    return out


def captured_row_written(torch, compile):
    table = torch.zeros(3, 2)

    @compile
    def f(x):
        table[1] = x
        return table.sum()

    out = [f(torch.ones(2) * i) for i in range(3)]
    return out, table


def evaluation_mode(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))

    @compile
    def f(x):
        return m(x)

    x = torch.ones(4, 2)
    m.eval()
    a = f(x)
    m.train()
    b = f(x)
    m.eval()
    return a, bool((b == 0).any()), f(x)


def batch_norm_modes(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.BatchNorm1d(2)

    @compile
    def f(x):
        return m(x)

    x = torch.randn(4, 2)
    a = f(x)
    b = f(x)
    m.eval()
    return a, b, f(x), m.running_mean, m.running_var, int(m.num_batches_tracked)


def batch_norm_copied(torch, compile):
    import copy

    torch.manual_seed(0)
    m = copy.deepcopy(torch.nn.BatchNorm1d(2)).double()
    f = compile(lambda x: m(x))
    x = torch.randn(4, 2).double()
    f(x)
    f(x)
    return m.running_mean, m.running_var, int(m.num_batches_tracked)


def flag_changed(torch, compile):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.square = False

        def forward(self, x):
            return x * x if self.square else x + 1

    m = Net()
    f = compile(lambda x: m(x))
    a = f(torch.ones(2) * 3)
    m.square = True
    return a, f(torch.ones(2) * 3)


_power = 2


def global_changed(torch, compile):
    global _power
    _power = 2

    @compile
    def f(x):
        return x**_power

    a = f(torch.ones(2) * 3)
    _power = 3
    return a, f(torch.ones(2) * 3)


def nonlocal_changed(torch, compile):
    k = 2.0

    @compile
    def f(x):
        return x * k

    a = f(torch.ones(2))
    k = 5.0
    return a, f(torch.ones(2))


def dictionary_changed(torch, compile):
    config = {"scale": 2.0, "bias": [1.0, 2.0]}
    f = compile(lambda x: x * config["scale"] + config["bias"][1])
    a = f(torch.ones(2))
    config["scale"] = 3.0
    b = f(torch.ones(2))
    config["bias"][1] = 10.0
    return a, b, f(torch.ones(2))


def object_field_changed(torch, compile):
    class Trainer:
        def __init__(self):
            self.beta = 1.0
            self.w = torch.ones(2)

        def run(self, x):
            return x * self.beta + self.w

    t = Trainer()
    f = compile(t.run)
    a = f(torch.ones(2))
    t.beta = 4.0
    b = f(torch.ones(2))
    t.w = torch.zeros(2)
    return a, b, f(torch.ones(2))


def helper_reads_flag(torch, compile):
    flags = {"double": False}

    def helper(x):
        return x * 2 if flags["double"] else x

    f = compile(lambda x: helper(x) + 1)
    a = f(torch.ones(2))
    flags["double"] = True
    return a, f(torch.ones(2))


def rate_changed(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    @compile
    def step(x):
        opt.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        opt.step()
        return loss

    out = []
    for i in range(4):
        opt.param_groups[0]["lr"] = 0.1 * (i + 1)
        out.append(step(torch.ones(2)))
    return out, w


def decay_changed(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.AdamW([w], lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        opt.step()
        return loss

    for i in range(4):
        opt.param_groups[0]["weight_decay"] = 0.3 * i
        step(torch.ones(2))
    return w


def gradients_accumulate(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)

    @compile
    def f(x):
        loss = m(x).sum()
        loss.backward()
        return loss

    for i in range(3):
        f(torch.ones(1, 2) * i)
    return m.weight.grad, m.bias.grad


def step_outside(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)

    @compile
    def f(x):
        loss = (m(x) ** 2).sum()
        loss.backward()
        return loss

    out = []
    for i in range(3):
        opt.zero_grad()
        out.append(f(torch.ones(1, 2)))
        opt.step()
    return out, m.weight


def accumulate_then_step(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    f = compile(lambda x: (m(x) ** 2).mean().backward())
    for i in range(6):
        f(torch.ones(1, 2) * i)
        if i % 3 == 2:
            opt.step()
            opt.zero_grad()
    return m.weight, m.bias


def gradient_zeroed_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad * 1

    a = f(torch.ones(2))
    b = f(torch.ones(2) * 5)
    return a, b, w.grad


def manual_update_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        loss = ((w * x) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
        w.grad = None
        return loss

    out = [f(torch.ones(2)) for _ in range(3)]
    return out, w, w.grad is None


def data_update_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        loss = ((w * x) ** 2).sum()
        loss.backward()
        w.data -= 0.1 * w.grad
        w.grad.zero_()
        return loss

    out = [f(torch.ones(2)) for _ in range(3)]
    return out, w, w.grad


def backward_outside(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    f = compile(m)
    for i in range(2):
        loss = (f(torch.ones(1, 2) * (i + 1)) ** 2).sum()
        loss.backward()
    return m.weight.grad, m.bias.grad, loss


def argument_gradient_outside(torch, compile):
    f = compile(lambda x: x.exp().sum())
    x = torch.ones(2, requires_grad=True)
    (f(x) * 2).backward()
    y = x * 3
    f(y).backward()
    return x.grad


def result_trained_outside(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    f = compile(m)
    opt = torch.optim.Adam(m.parameters(), lr=0.01)
    out = []
    for i in range(4):
        opt.zero_grad()
        loss = (f(torch.ones(2, 2) * i) ** 2).mean()
        loss.backward()
        opt.step()
        out.append(loss)
    return out


def keyword_arguments(torch, compile):
    @compile
    def f(x, scale=1.0, shift=None, *, flip=False):
        y = x * scale
        y = y if shift is None else y + shift
        return y.flip(0) if flip else y

    x = torch.arange(2.0)
    return f(x), f(x, 2.0), f(x, scale=3.0), f(x, shift=torch.ones(2)), f(x, flip=True), f(x=x, shift=1)


def nested_arguments(torch, compile):
    @compile
    def f(batch, names):
        return {"sum": batch["x"] + batch["rest"][0], "n": len(names), "pair": (batch["x"], None, [batch["x"] * 2])}

    x = torch.ones(2)
    out = f({"x": x, "rest": [x * 3]}, ("a", "b"))
    again = f({"x": x * 2, "rest": [x]}, ("a", "b"))
    return out, again


def numpy_argument(torch, compile):
    import numpy as np

    @compile
    def f(x, a):
        return x * torch.from_numpy(a) if not isinstance(a, torch.Tensor) else x * a

    return f(torch.ones(2), np.array([1.0, 2.0], dtype=np.float32)), f(torch.ones(2), np.array([3.0, 4.0], dtype=np.float32))


def numbers_change(torch, compile):
    f = compile(lambda x, n: x * n)
    return [f(torch.ones(2), n) for n in (1, 2, 3.5)]


def nested_compile(torch, compile):
    inner = compile(lambda x: x * 2)
    outer = compile(lambda x: inner(x) + inner(x + 1))
    return outer(torch.ones(2)), outer(torch.ones(2) * 2), inner(torch.ones(2))


def method_compiled(torch, compile):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(2, 1)
            torch.nn.init.constant_(self.lin.weight, 0.5)
            torch.nn.init.constant_(self.lin.bias, 0.0)

        def loss(self, x, y):
            return ((self.lin(x) - y) ** 2).mean()

    m = Net()
    f = compile(m.loss)
    loss = f(torch.ones(3, 2), y=torch.zeros(3, 1))
    loss.backward()
    return loss, m.lin.weight.grad


def index_of_zero_dims(torch, compile):
    x = torch.arange(6.0).view(3, 2)
    f = compile(lambda i: x[i] * 2)
    return f(torch.tensor(1)), f(torch.tensor(2)), f(torch.tensor(-1))


def item_inside(torch, compile):
    @compile
    def f(x):
        return x * 2 if x.sum().item() > 0 else x

    return f(torch.ones(2)), f(-torch.ones(2))


def branch_on_value(torch, compile):
    @compile
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    return f(torch.ones(2)), f(-torch.ones(2))


def hidden_state_kept(torch, compile):
    class Cell(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.zeros(2)

        def forward(self, x):
            self.h = self.h * 0.5 + x
            return self.h * 1

    m = Cell()
    f = compile(lambda x: m(x))
    out = [f(torch.ones(2)) for _ in range(3)]
    return out, m.h


def list_appended(torch, compile):
    seen = []

    @compile
    def f(x):
        y = x * 2
        seen.append(y)
        return y

    f(torch.ones(2))
    f(torch.ones(2) * 3)
    return seen


def counter_incremented(torch, compile):
    class C:
        n = 0

    c = C()

    @compile
    def f(x):
        c.n += 1
        return x * c.n

    return [f(torch.ones(1)) for _ in range(3)], c.n


def random_inside(torch, compile):
    torch.manual_seed(0)
    f = compile(lambda x: x + torch.rand(2))
    out = [f(torch.zeros(2)) for _ in range(2)]
    return out, torch.rand(2)


def dropout_inside(torch, compile):
    torch.manual_seed(0)
    f = compile(lambda x: torch.nn.functional.dropout(x, 0.5))
    return [f(torch.ones(8)) for _ in range(2)], torch.rand(1)


def parameter_replaced(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    f = compile(lambda x: m(x))
    a = f(torch.ones(1, 2))
    m.weight = torch.nn.Parameter(torch.zeros(1, 2))
    return a, f(torch.ones(1, 2)), m.bias


def module_replaced(torch, compile):
    m = torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())
    f = compile(lambda x: m(x))
    a = f(-torch.ones(2))
    m[1] = torch.nn.Identity()
    return a, f(-torch.ones(2))


def frozen_between(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)

    @compile
    def f(x):
        m(x).sum().backward()

    f(torch.ones(1, 2))
    m.bias.requires_grad_(False)
    f(torch.ones(1, 2))
    return m.weight.grad, m.bias.grad


def cast_between(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    f = compile(lambda x: m(x))
    a = f(torch.ones(1, 2))
    m.double()
    return a, f(torch.ones(1, 2).double())


def same_argument_twice(torch, compile):
    @compile
    def f(a, b):
        a += 1
        return a * b

    x = torch.ones(2)
    return f(x, x), x


def view_argument_written(torch, compile):
    @compile
    def f(row):
        row *= 3

    x = torch.ones(2, 2)
    f(x[0])
    f(x[1])
    f(x[0])
    return x


def argument_is_captured(torch, compile):
    w = torch.ones(2)

    @compile
    def f(x):
        x += 1
        return w * 2

    return f(w), f(w), w


def no_grad_around(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    f = compile(m)
    with torch.no_grad():
        a = f(torch.ones(1, 2))
    b = f(torch.ones(1, 2))
    b.sum().backward()
    return a.requires_grad, b.requires_grad, m.weight.grad


def returned_argument(torch, compile):
    f = compile(lambda x: x)
    x = torch.zeros(2)
    y = f(x)
    y += 1
    return x, y


def returned_captured(torch, compile):
    w = torch.zeros(2)
    f = compile(lambda x: w)
    y = f(torch.ones(1))
    y += 1
    return w, y


def module_attributes_through(torch, compile):
    m = torch.nn.Linear(2, 1)
    f = compile(m)
    return len(list(f.parameters())), f.training, sorted(k.replace("_orig_mod.", "") for k in f.state_dict()), f.weight is m.weight


def hook_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda g: g * 2)
    f = compile(lambda x: (w * x).sum().backward())
    f(torch.ones(2))
    f(torch.ones(2))
    return w.grad


def autograd_grad_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        (g,) = torch.autograd.grad((w**2 * x).sum(), w)
        return g

    return f(torch.ones(2)), f(torch.ones(2) * 2), w.grad is None


def grad_read_inside(torch, compile):
    w = torch.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    f = compile(lambda x: w.grad * x)
    a = f(torch.ones(2))
    w.grad.mul_(2)
    return a, f(torch.ones(2))


def clip_inside(torch, compile):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        loss = (m(x) ** 2).sum() * 100
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        return loss

    return [step(torch.ones(1, 2)) for _ in range(3)], m.weight


def print_none(torch, compile):
    @compile
    def f(x):
        x.mul_(2)

    x = torch.ones(2)
    return f(x), f(x), x
