"""A last round of programs, written when those of all other files were right."""

import copy
import pickle


def swap_by_tuple(torch):
    x = torch.arange(4.0).view(2, 2)
    x[0], x[1] = x[1], x[0]
    return x


def swap_by_clone(torch):
    x = torch.arange(6.0).view(3, 2)
    x[[0, 2]] = x[[2, 0]]
    return x


def outputs_written_in_a_loop(torch):
    w = torch.tensor([[0.5, 0.1], [0.2, 0.3]], requires_grad=True)
    h, out = torch.ones(2), torch.zeros(4, 2)
    for t in range(4):
        h = torch.tanh(w @ h)
        out[t] = h
    (out**2).sum().backward()
    return out, w.grad


def cumulative_in_place_gradient(torch):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = w * 1
    for i in range(1, 3):
        x[i] = x[i] + x[i - 1] * x[i - 1].detach()
    x.sum().backward()
    return x, w.grad


def double_backward_through_write(torch):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = w * w
    x[0] *= w[1]
    (g,) = torch.autograd.grad((x**2).sum(), w, create_graph=True)
    (g**2).sum().backward()
    return g, w.grad


def retained_gradient_of_written_view(torch):
    w = torch.ones(2, 2, requires_grad=True)
    h = w * 2
    row = h[0]
    row.retain_grad()
    (row * 3).sum().backward()
    return row.grad, w.grad


def pickled_view(torch):
    x = torch.arange(6.0).view(2, 3)
    row = x[1]
    other = pickle.loads(pickle.dumps(row))
    third = copy.deepcopy(row)
    other += 1
    third *= 0
    return x, row, other, third


def deepcopy_keeps_aliases(torch):
    x = torch.zeros(3)
    both = copy.deepcopy([x, x])
    both[0][1] = 5
    return x, both[0], both[1], both[0] is both[1]


def shallow_copy_shares(torch):
    m = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(m.weight)
    c = copy.copy(m)
    with torch.no_grad():
        c.weight[0, 0] = 3
    return m.weight, c.weight is m.weight


def buffer_shares_its_tensor(torch):
    t = torch.zeros(2)
    m = torch.nn.Module()
    m.register_buffer("b", t)
    t[0] = 1
    m.b[1] = 2
    return t, m.b, m.state_dict()["b"]


def accumulate_by_index(torch):
    x = torch.zeros(3)
    i = torch.tensor([0, 0, 2])
    x[i] += 1
    y = torch.zeros(3)
    y.index_put_((i,), torch.ones(3), accumulate=True)
    z = torch.zeros(3)
    z.index_add_(0, i, torch.ones(3))
    return x, y, z


def copy_broadcasts(torch):
    x = torch.zeros(2, 3)
    x.copy_(torch.arange(3.0))
    x[:, 1] = 7
    x[1] = torch.tensor([4])
    x[..., -1] = torch.tensor([[8.0], [9.0]]).view(2)
    return x


def load_into_tied(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    m[1].weight = m[0].weight
    state = {k: torch.ones(2, 2) * (i + 1) for i, k in enumerate(m.state_dict())}
    m.load_state_dict(state)
    return m[0].weight, m[1].weight is m[0].weight, sorted(state)


def loaded_state_is_copied(torch):
    m = torch.nn.Linear(2, 1)
    state = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    m.load_state_dict(state)
    state["weight"][0, 0] = 9
    with torch.no_grad():
        m.bias.add_(5)
    return m.weight, state["bias"]


def gradient_replaced_by_hand(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)
    w.grad = torch.tensor([1.0, 2.0])
    opt.step()
    w.grad.add_(1)
    opt.step()
    w.grad = w.grad * 2
    opt.step()
    return w


def gradient_wrong_shape_refused(torch):
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(3)
    return w.grad


def optimizer_of_a_result_refused(torch):
    w = torch.ones(2, requires_grad=True)
    return torch.optim.SGD([w * 2], lr=0.1)


def data_of_a_view(torch):
    w = torch.ones(2, 2, requires_grad=True)
    w.data[0].data[1] = 4
    w[1].data.fill_(6)
    w[0].detach().mul_(2)
    return w


def in_place_under_enable_grad(torch):
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        with torch.enable_grad():
            y = w * 2
        y += 1
    y.sum().backward()
    return y, w.grad


def decorated_no_grad(torch):
    w = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    def clip():
        w.clamp_(max=0.5)
        w[0].sub_(1)

    clip()
    return w, w.requires_grad, w.is_leaf


def fill_by_flat_view(torch):
    x = torch.zeros(2, 3)
    flat = x.view(-1)
    for i in range(6):
        flat[i] = i
    x.view(3, 2)[2] *= -1
    return x, flat


def transposed_contiguous_view(torch):
    x = torch.arange(6.0).view(2, 3).t()
    y = x.contiguous().view(-1)
    y[0] = 9
    x[0, 1] = 5
    return x, y


def mode_set_inside_compiled(torch, compile):
    m = torch.nn.Dropout(0.5)

    @compile
    def f(x):
        m.eval()
        return m(x)

    a = f(torch.ones(4))
    return a, m.training


def seed_inside_compiled(torch, compile):
    @compile
    def f(x):
        torch.manual_seed(3)
        return x + torch.rand(2)

    return f(torch.zeros(2)), f(torch.zeros(2)), torch.rand(1)


_table = None


def global_tensor_rebound_compiled(torch, compile):
    global _table
    _table = torch.ones(2)

    @compile
    def f(x):
        return x * _table

    a = f(torch.ones(2))
    _table = torch.ones(2) * 5
    return a, f(torch.ones(2))


def gradient_assigned_inside_compiled(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)

    @compile
    def f(x):
        w.grad = x * 2
        opt.step()

    f(torch.ones(2))
    f(torch.ones(2) * 3)
    return w, w.grad


def star_arguments_compiled(torch, compile):
    f = compile(lambda *xs, **named: sum(xs) + sum(named.values()))
    return f(torch.ones(2), torch.ones(2)), f(torch.ones(2)), f(torch.ones(2), a=torch.ones(2), b=2)


def decorated_method_compiled(torch, compile):
    class Model:
        def __init__(self, k):
            self.w = torch.ones(2) * k
            self.n = 1.0

        @compile
        def run(self, x):
            return x * self.w + self.n

    a, b = Model(2), Model(3)
    out = [a.run(torch.ones(2)), b.run(torch.ones(2))]
    a.n = 10.0
    out.append(a.run(torch.ones(2)))
    return out


def property_changes_compiled(torch, compile):
    class Config:
        def __init__(self):
            self._k = 1.0

        @property
        def k(self):
            return self._k

    c = Config()
    f = compile(lambda x: x * c.k)
    a = f(torch.ones(2))
    c._k = 4.0
    return a, f(torch.ones(2))


def numpy_array_captured_compiled(torch, compile):
    import numpy as np

    a = np.ones(2, dtype=np.float32)
    f = compile(lambda x: x * torch.from_numpy(a))
    out = [f(torch.ones(2))]
    a[0] = 5
    out.append(f(torch.ones(2)))
    return out


def numpy_number_captured_compiled(torch, compile):
    import numpy as np

    box = {"k": np.float64(2.0)}
    f = compile(lambda x: x * float(box["k"]))
    out = [f(torch.ones(2))]
    box["k"] = np.float64(3.0)
    out.append(f(torch.ones(2)))
    return out


def set_and_deque_compiled(torch, compile):
    import collections

    names, scales = {"a"}, collections.deque([1.0, 2.0])
    f = compile(lambda x: x * len(names) + scales[-1])
    out = [f(torch.ones(2))]
    names.add("b")
    out.append(f(torch.ones(2)))
    scales.append(7.0)
    out.append(f(torch.ones(2)))
    return out


def momentum_buffer_read_compiled(torch, compile):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.5)

    @compile
    def step(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()

    step(torch.ones(2))
    opt.zero_grad()
    (w * 2).sum().backward()
    opt.step()
    step(torch.ones(2))
    return w


def slots_compiled(torch, compile):
    class Box:
        __slots__ = ("k",)

    box = Box()
    box.k = 1.0
    f = compile(lambda x: x * box.k)
    out = [f(torch.ones(2))]
    box.k = 3.0
    out.append(f(torch.ones(2)))
    return out


def closure_in_list_compiled(torch, compile):
    scale = 2.0

    def helper(x):
        return x * scale

    table = {"f": [helper]}
    f = compile(lambda x: table["f"][0](x))
    out = [f(torch.ones(2))]
    scale = 5.0
    out.append(f(torch.ones(2)))
    return out


def iterator_consumed_compiled(torch, compile):
    batches = iter([torch.ones(1), torch.ones(1) * 2, torch.ones(1) * 3])
    f = compile(lambda x: x * next(batches))
    return [f(torch.ones(1)) for _ in range(3)]


def generator_function_consumed_compiled(torch, compile):
    def numbers():
        n = 0
        while True:
            n += 1
            yield n

    it = numbers()
    f = compile(lambda x: x * next(it))
    return [f(torch.ones(1)) for _ in range(3)]


def tape_into_detached(torch):
    x, w = torch.zeros(3), torch.tensor([2.0, 3.0], requires_grad=True)
    y = x.detach()
    y[0] = w[0] * 2
    y[1:] *= 5
    y[2] = w[1] ** 2
    y.sum().backward()
    return x, y, x.requires_grad, y.requires_grad, w.grad


def tape_into_view_of_detached(torch):
    x, w = torch.zeros(2, 2), torch.tensor([2.0, 3.0], requires_grad=True)
    y = x.detach()
    row = y[0]
    row[1] = w[0] * 2
    y[1] = w
    (y.sum() + row.sum()).backward()
    x += 1
    return x, y, row, w.grad


def tape_into_data_of_result(torch):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    h = w * 2
    d = h.detach()
    d.mul_(10)
    g = h.detach()
    g += w
    (h.sum() + g.sum()).backward()
    return h, d, g, w.grad


def parameter_of_a_part(torch):
    p = torch.nn.Parameter(torch.arange(6.0).view(2, 3)[0])
    with torch.no_grad():
        p += 1
    return p, p.is_leaf, p.requires_grad


def attack_loop(torch):
    x = torch.zeros(2)
    for _ in range(3):
        adv = x.clone().detach().requires_grad_(True)
        (adv * torch.tensor([1.0, -1.0])).sum().backward()
        x = (x + 0.1 * adv.grad.sign()).clamp(-0.2, 0.2)
    return x


def numpy_element_read_compiled(torch, compile):
    import numpy as np

    a = np.ones(2)
    f = compile(lambda x: x * float(a[0]))
    out = [f(torch.ones(2))]
    a[0] = 5
    out.append(f(torch.ones(2)))
    return out


def copied_model_with_compiled_method(torch, compile):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        @compile
        def score(self, x):
            return (self.w.detach() * x).sum()

    m = Net()
    a = m.score(torch.ones(2))
    c = copy.deepcopy(m)
    with torch.no_grad():
        c.w.mul_(3)
    return a, m.score(torch.ones(2)), c.score(torch.ones(2))
