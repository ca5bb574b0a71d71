"""Programs in which `x.data = t` gives a tensor other memory, and views of before stay with the old
one.
"""


def views_keep_the_old_storage(torch):
    p = torch.nn.Parameter(torch.zeros(2, 3))
    row, flat, all_of, data = p[0], p.view(-1), p.detach(), p.data
    p.data = torch.ones(2, 3)
    with torch.no_grad():
        p[0, 0] = 7
    out = [row.tolist(), flat.tolist(), all_of.tolist(), data.tolist(), p.tolist()]
    data[1, 1] = 5
    all_of[0] += 2
    return out, row, flat, all_of, data, p


def old_views_alias_each_other(torch):
    x = torch.arange(6.0)
    a, b = x[:4], x[2:]
    x.data = torch.zeros(6)
    a[3] = 50
    x[3] = 9
    b[0] = 40
    c = x[3:]
    c += 1
    return x, a, b, c


def storage_given_twice(torch):
    x = torch.zeros(3)
    a = x.view(3)
    x.data = torch.ones(3)
    b = x.view(3)
    x.data = torch.full((3,), 2.0)
    c = x.view(3)
    a[0], b[0], c[0] = 10, 20, 30
    return x, a, b, c


def another_shape(torch):
    p = torch.nn.Parameter(torch.arange(4.0))
    old = p.data[1:]
    p.data = torch.ones(2, 2)
    old += 5
    q = torch.nn.Linear(2, 2)
    w = q.weight.data
    before = w.clone()
    q.double()
    with torch.no_grad():
        q.weight.zero_()
    return p, old, bool((w == before).all()), q.weight


def gradient_through_an_old_view(torch):
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    old = p * 1
    row = p[0]
    p.data = torch.tensor([5.0, 6.0])
    (old.sum() * 2 + row * 3 + (p * p).sum()).backward()
    return p.grad, row, old


def gradient_data(torch):
    w = torch.ones(3, requires_grad=True)
    (w * torch.tensor([5.0, -7.0, 0.5])).sum().backward()
    held, part = w.grad, w.grad[:2]
    w.grad.data = w.grad.data.clamp(-1, 1)
    out = [w.grad.tolist(), held.tolist(), part.tolist()]
    w.grad.data = w.grad.data * 2
    torch.optim.SGD([w], lr=1.0).step()
    (w * 1).sum().backward()
    return out, w.grad, held, w


def a_view_gets_memory_of_its_own(torch):
    x = torch.zeros(2, 3)
    row = x[0]
    part = row[1:]
    row.data = torch.ones(3)
    x += 7
    row[0] = 9
    return x, row, part


def memory_of_a_part(torch):
    y = torch.arange(6.0).view(2, 3)
    x = torch.zeros(3)
    x.data = y[1]
    x[0] = 50
    y[1, 1] = 60
    z = torch.zeros(2)
    z.data = x[1:]
    z += 1
    return x, y, z


def memory_of_itself(torch):
    p = torch.nn.Parameter(torch.zeros(3))
    v = p.data
    p.data = p.data
    p.data = v
    v[0] = 4
    with torch.no_grad():
        p[1] = 5
    return p, v


def data_taken_over_and_stepped(torch):
    p, start = torch.nn.Parameter(torch.zeros(3)), torch.ones(3)
    p.data = start
    optimizer = torch.optim.SGD([p], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    out = [start.tolist(), p.tolist()]
    p.data = p.data - 1
    start += 100
    return out, p, start


def data_detached_and_taken_over(torch):
    p, x = torch.nn.Parameter(torch.zeros(2)), torch.ones(2)
    p.data = x.detach()
    with torch.no_grad():
        p += 1
    x[0] = 9
    return p, x


def result_gets_other_memory(torch):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    d = y.detach()
    y.data = torch.zeros(2)
    d += 1
    (y * y).sum().backward()
    return y, d, w.grad


def a_loop_of_data(torch):
    p = torch.nn.Parameter(torch.ones(2))
    first = p.data
    seen = []
    for i in range(4):
        p.grad = None
        (p * p).sum().backward()
        p.data = p.data - 0.1 * p.grad.data
        seen.append(p.data)
    return first, seen, p


def average_of_weights(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    average = {k: v.clone() for k, v in m.state_dict().items()}
    live = m.state_dict()
    for i in range(3):
        for p in m.parameters():
            p.data = p.data * 0.5
        for k, v in m.state_dict().items():
            average[k] = average[k] * 0.9 + v * 0.1
    return average, live, m.state_dict()


def numpy_of_the_old_memory(torch):
    x = torch.zeros(3)
    shown = x.numpy()
    x.data = torch.ones(3)
    x += 1
    return shown.tolist(), x


def compiled_data(torch, compile):
    w = torch.ones(2, requires_grad=True)

    @compile
    def step(x):
        w.grad = None
        loss = (w * w * x).sum()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        return loss

    return [step(torch.ones(2)) for _ in range(3)], w


def compiled_data_with_a_view(torch, compile):
    w = torch.ones(2, requires_grad=True)
    view = w.data

    @compile
    def step(x):
        w.data = w.data - 0.1 * x

    step(torch.ones(2))
    step(torch.ones(2))
    return w, view


def compiled_data_of_another(torch, compile):
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))

    @compile
    def step(x):
        w.data = v.data
        with torch.no_grad():
            v.add_(x)

    step(torch.ones(2))
    step(torch.ones(2))
    return w, v
