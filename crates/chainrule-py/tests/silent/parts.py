"""Leaves whose memory is a part of another tensor's, and copies and files of them."""

import copy
import io


def _saved(torch, x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def parameters_in_one_block(torch, compile):
    block = torch.zeros(6)
    a, b = torch.nn.Parameter(block[:4].view(2, 2)), torch.nn.Parameter(block[4:])
    o = torch.optim.SGD([a, b], lr=0.5, momentum=0.9)

    @compile
    def step():
        o.zero_grad()
        (a.sum() * 2 + (b * 3).sum() + (a * a).sum()).backward()
        o.step()
    for _ in range(3):
        step()
    before = block.clone()
    block[3:] = 7.0
    return (before, block, a, b)


def memory_of_a_module_in_one_block(torch, compile):
    block, layer = torch.zeros(6), torch.nn.Linear(2, 2)
    layer.weight.data = block[:4].view(2, 2)
    layer.bias.data = block[4:]
    block.fill_(1)
    y = layer(torch.ones(1, 2)).detach().clone()
    layer.bias.data.fill_(3)
    return (y, block, layer.weight, layer.bias)


def rows_as_parameters(torch, compile):
    x = torch.zeros(4, 2)
    rows = [torch.nn.Parameter(row) for row in x]
    sum(((row - i) ** 2).sum() for i, row in enumerate(rows)).backward()
    torch.optim.Adam(rows, lr=0.1).step()
    x[0] += 100
    return (x, rows)


def part_of_an_embedding(torch, compile):
    e = torch.nn.Embedding(5, 2)
    torch.nn.init.ones_(e.weight)
    p = torch.nn.Parameter(e.weight.data[:2])
    p.data.mul_(3)
    a = e(torch.tensor([0, 3])).detach()
    e.weight.data.add_(1)
    (p.sum() + e(torch.tensor([0, 1])).sum()).backward()
    torch.optim.SGD([p], lr=1.0).step()
    return (a, e.weight, p, e.weight.grad, p.grad)


def turned_part(torch, compile):
    w = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
    p = torch.nn.Parameter(w.data.t())
    with torch.no_grad():
        p[0] = 10.0
        w[1] += 1
    q = p.detach()[1:].requires_grad_()
    (q * 2).sum().backward()
    with torch.no_grad():
        q.add_(q.grad)
    return (w, p, q)


def gradients_in_one_block(torch, compile):
    w, b = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2))
    block = torch.zeros(6)
    w.grad, b.grad = block[:4].view(2, 2), block[4:]
    (w.sum() * 2 + b.sum() * 3).backward()
    found = block.clone()
    block.div_(2)
    o = torch.optim.SGD([w, b], lr=1.0)
    o.step()
    o.zero_grad(set_to_none=False)
    zeros = block.clone()
    w.grad = None
    (w.sum() * 5).backward()
    return (found, zeros, block, w, b, w.grad, b.grad)


def gradient_of_two(torch, compile):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (a * 2).sum().backward()
    b.grad = a.grad
    (b * 3).sum().backward()
    first = a.grad.clone()
    a.grad.zero_()
    return (first, a.grad, b.grad)


def hook_and_other_memory(torch, compile):
    w = torch.nn.Parameter(torch.zeros(3))
    h = w.register_hook(lambda g: g * 2)
    q = torch.nn.Parameter(torch.full((3,), 4.0))
    w.data = q.data
    with torch.no_grad():
        q.add_(1)
    (w * 1).sum().backward()
    first = w.grad.clone()
    h.remove()
    w.data = w.data.double()
    (w * 1).sum().backward()
    return (w, first, q)


def vector_of_parameters(torch, compile):
    m = torch.nn.Linear(2, 2)
    held = [p.data for p in m.parameters()]
    with torch.no_grad():
        for x in held:
            x.fill_(9)
    v = torch.arange(6.0)
    torch.nn.utils.vector_to_parameters(v, m.parameters())
    v[0] = 50.0
    m.bias.data.fill_(-1)
    return (held, v, m.weight, m.bias)


def shallow_copies(torch, compile):
    x, w = torch.zeros(3), torch.ones(3, requires_grad=True)
    x.note = "kept"
    y, v = copy.copy(x), copy.copy(w)
    y[0] = 3
    with torch.no_grad():
        v.mul_(5)
    (v * 2).sum().backward()
    p = copy.copy(torch.nn.Parameter(torch.ones(1)))
    return (x, y, y.note, w, v, v.grad, w.grad, isinstance(p, torch.nn.Parameter), v.is_leaf)


def deep_copies_of_one_memory(torch, compile):
    w = torch.ones(3, requires_grad=True)
    u, part = w.detach().requires_grad_(), w.detach()[1:].requires_grad_()
    (w * 2).sum().backward()
    w.note = [1]
    a, b, c, g = copy.deepcopy((w, u, part, w.grad))
    with torch.no_grad():
        b.fill_(5)
        c.fill_(6)
    g.fill_(9)
    w.note.append(2)
    return (w, u, part, a, b, c, a.grad, g is a.grad, a.note)


def saved_views(torch, compile):
    x = torch.arange(4.0).view(2, 2)
    row, turned, many = x[0], x.t(), x[1].expand(2, 2)
    a, b, c, d = _saved(torch, [x, row, turned, many])
    first = (a.clone(), b.clone(), c.clone(), d.clone())
    a[1, 0] = 9
    c[1, 0] = 8
    return (first, a, b, c, d)


def saved_leaves_of_one_memory(torch, compile):
    w = torch.ones(3, requires_grad=True)
    u = w.detach().requires_grad_()
    p = torch.nn.Parameter(torch.zeros(2))
    made = _saved(torch, {"w": w, "u": u, "p": p, "q": [p], "part": w.detach()[1:]})
    with torch.no_grad():
        made["u"].fill_(4)
        made["part"][1] = 6
    return (made["w"], made["u"], made["part"], made["q"][0] is made["p"], made["u"].requires_grad)


def saved_module_with_a_view(torch, compile):
    layer = torch.nn.Linear(2, 2)
    other = torch.nn.Parameter(layer.weight.data)
    layer.weight.note = "kept"
    made = _saved(torch, torch.nn.ParameterList([layer.weight, other]))
    with torch.no_grad():
        made[0].fill_(5)
    return (made[1], isinstance(made[0], torch.nn.Parameter), len(list(made.parameters())))


def graph_from_before_the_memory_changed(torch, compile):
    w, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.full((2,), 3.0))
    w.register_hook(lambda g: g * 10)
    loss = (w * 3).sum()
    part = w[:1]
    w.data = q.data
    (loss + part.sum()).backward()
    first = w.grad.clone()
    w.data = torch.zeros(4)[1:3]
    (w * 2).sum().backward()
    return (first, w.grad, w, q)


def memory_exchanged(torch, compile):
    a, b = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.zeros(3))
    va, vb = a.data, b.data
    a.data, b.data = b.data, a.data
    va.add_(5)
    a.data.sub_(1)
    vb.mul_(3)
    (a.sum() + b.sum()).backward()
    torch.optim.SGD([a, b], lr=1.0).step()
    return (a, b, va, vb)


def the_best_weights_kept(torch, compile):
    layer = torch.nn.Linear(2, 2)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.arange(float(p.numel())).view(p.shape))
    best = [p.data.clone() for p in layer.parameters()]
    for i in range(3):
        kept = [p.data for p in layer.parameters()]
        for p, b in zip(layer.parameters(), best):
            p.data = b + i
        if i == 1:
            best = [p.data for p in layer.parameters()]
        else:
            for p, k in zip(layer.parameters(), kept):
                p.data = k
        layer.weight.data.add_(1)
    return (best, list(layer.parameters()))


def optimizers_over_one_block(torch, compile):
    block = torch.nn.Parameter(torch.arange(6.0))
    w, b = torch.nn.Parameter(block.data[:4].view(2, 2)), torch.nn.Parameter(block.data[4:])
    block.grad = torch.zeros(6)
    w.grad, b.grad = block.grad[:4].view(2, 2), block.grad[4:]
    o = torch.optim.AdamW([block], lr=0.1)
    for _ in range(3):
        block.grad.zero_()
        ((w * w).sum() + (b * 3).sum()).backward()
        o.step()
    return (block, block.grad, w, b, w.grad)
