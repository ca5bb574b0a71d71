"""Leaves of one memory, results of compiled functions after their backward pass, and the order in
which elements lie in memory.
"""


def parameter_of_data(torch):
    a = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    b = torch.nn.Parameter(a.data)
    (b**2).sum().backward()
    torch.optim.SGD([b], lr=0.25).step()
    with torch.no_grad():
        a[0] = 9.0
    b.data.mul_(2)
    return a, b, a.grad, b.grad


def both_are_trained(torch):
    a = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    b = torch.nn.Parameter(a.detach())
    optimizer = torch.optim.Adam([a, b], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (a * b).sum().backward()
        optimizer.step()
    return a, b, a.grad, b.grad


def data_of_another_leaf(torch):
    torch.manual_seed(0)
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    second.weight.data = first.weight.data
    second(first(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    first.weight.data.add_(1)
    second.weight.data = torch.zeros(2, 2)
    return first.weight, second.weight, second.weight.grad


def array_of_a_shared_leaf(torch):
    a = torch.nn.Parameter(torch.ones(2))
    b = torch.nn.Parameter(a.data)
    shown = a.detach().numpy()
    with torch.no_grad():
        b.fill_(4)
    return shown.tolist()


def shared_leaves_compiled(torch, compile):
    a = torch.nn.Parameter(torch.ones(2))
    b = torch.nn.Parameter(a.data)
    optimizer = torch.optim.SGD([a], lr=0.25)

    @compile
    def step():
        optimizer.zero_grad()
        loss = (a * b * b).sum()
        loss.backward()
        optimizer.step()
        return loss.detach(), b.sum().detach()

    return [step() for _ in range(3)], a, b


def result_after_backward(torch, compile):
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    @compile
    def step(x):
        y = (w * x).square()
        loss = y.sum()
        loss.backward()
        return loss, y, loss.detach()

    return [[t.requires_grad, t.is_leaf, t.grad_fn is None, t] for t in step(torch.ones(2))]


def result_walked_again(torch, compile):
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    @compile
    def step():
        loss = w.square().sum()
        loss.backward()
        return loss

    loss = step()
    try:
        (loss * 2).backward()
    except RuntimeError as why:
        return "through the graph a second time" in str(why), w.grad
    return w.grad


def view_of_a_transposed(torch):
    x = torch.arange(12.0).view(3, 4)
    out = []
    for take in (
        lambda: x.t().view(12), lambda: x[:, :2].view(-1), lambda: x.expand(2, 3, 4).view(6, 4), lambda: x.t()[1:3].view(-1),
        lambda: x.t().contiguous().view(12), lambda: (x.t() @ x).view(-1), lambda: x.flip(0).view(-1), lambda: x.t().softmax(0).view(-1),
        lambda: (x[:, :2] * 1).view(-1), lambda: x.permute(1, 0)[None].view(4, 3), lambda: x.t().reshape(2, 6).view(12), lambda: (x > 2).nonzero().t().view(2, -1),
    ):
        try:
            out.append(take().tolist())
        except RuntimeError:
            out.append("refused")
    return out


def numbers_drawn_for_results(torch):
    torch.manual_seed(5)
    x = torch.ones(2, 3, 4)
    dropout = torch.nn.functional.dropout
    return (
        dropout(x.transpose(0, 1) + 1, 0.5), dropout((x + 0).permute(2, 0, 1).relu() * torch.ones(4, 1, 1), 0.3),
        torch.rand_like(x.permute(2, 0, 1) * 2), dropout(x.transpose(1, 2).clone().double().float(), 0.5), torch.zeros_like(x.transpose(0, 2)).uniform_(),
        dropout(torch.where(x.transpose(0, 1) > 0, 1.0, 2.0), 0.5),
    )


def numbers_drawn_behind_norms(torch):
    torch.manual_seed(5)
    x = torch.randn(2, 3, 4, requires_grad=True)
    dropout, norm = torch.nn.functional.dropout, torch.nn.BatchNorm1d(3)
    y = dropout(norm(x).relu(), 0.5)
    z = dropout((x * 2).softmax(1) + 1, 0.5)
    (y.sum() + z.sum()).backward()
    return y, z, x.grad


def numbers_drawn_compiled(torch, compile):
    torch.manual_seed(5)
    drop = torch.nn.Dropout(0.5)
    f = compile(lambda x: drop(x.transpose(0, 1) + 1).sum(2))
    return [f(torch.ones(2, 3, 4)) for _ in range(2)]


def capsules_there_and_back(torch):
    from importlib import import_module

    dlpack = import_module(torch.__name__ + ".utils.dlpack")
    x = torch.arange(4.0)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    row = torch.from_dlpack(torch.to_dlpack(x[1:]))
    x.add_(1)
    y[0] = 50
    row.mul_(2)
    capsule = dlpack.to_dlpack(x)
    del x
    return y, row, dlpack.from_dlpack(capsule)
