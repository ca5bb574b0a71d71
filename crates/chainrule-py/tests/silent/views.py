"""Programs that write through views and other names of one memory. Each takes the module `torch`
and returns all that it changed.
"""


def row_of_row(torch):
    x = torch.zeros(3, 3)
    x[0][1] = 5
    return x


def row_fill(torch):
    x = torch.zeros(3, 3)
    row = x[1]
    row.fill_(2)
    return x, row


def base_seen_by_view(torch):
    x = torch.arange(6.0).view(2, 3)
    row, whole = x[1], x.view(-1)
    x[1, 0] = 100
    x *= 2
    return x, row, whole


def view_of_view(torch):
    x = torch.arange(24.0)
    y = x.view(2, 3, 4)[1][:, 1:3]
    y.t()[0] -= 10
    return x, y


def chunk_writes(torch):
    x = torch.arange(8.0)
    a, b = x.chunk(2)
    a.mul_(10)
    b[0] = -1
    return x, a, b


def split_unbind(torch):
    x = torch.arange(6.0).view(3, 2)
    for i, part in enumerate(x.split(1)):
        part += i
    for row in x.unbind(0):
        row[0] = 7
    return x


def iterate_rows(torch):
    x = torch.ones(3, 2)
    for i, row in enumerate(x):
        row *= i
    return x


def transposed(torch):
    x = torch.zeros(2, 3)
    x.t()[2, 0] = 4
    x.T.transpose(0, 1)[1].add_(1)
    return x


def strided_slice(torch):
    x = torch.arange(10.0)
    x[::2].zero_()
    x[1::4] *= -1
    return x


def detach_shares(torch):
    x = torch.arange(3.0)
    y = x.detach()
    y[0] = 9
    x[1] = 8
    return x, y


def squeeze_unsqueeze(torch):
    x = torch.zeros(2, 1, 3)
    x.squeeze(1)[0, 0] = 1
    x.unsqueeze(0)[0, 1, 0, 2] = 2
    x.squeeze()[1].sub_(3)
    return x


def permute_movedim(torch):
    x = torch.zeros(2, 3, 4)
    x.permute(2, 0, 1)[3] = 1
    x.movedim(0, 2)[:, :, 0] += 2
    return x


def narrow_select(torch):
    x = torch.arange(12.0).view(3, 4)
    x.narrow(1, 1, 2).fill_(0)
    x.select(0, 2).add_(1)
    return x


def diagonal_fill(torch):
    x = torch.zeros(3, 3)
    x.diagonal().fill_(1)
    x.diagonal(1)[0] = 5
    return x


def flatten_shares(torch):
    x = torch.zeros(2, 2)
    x.flatten()[3] = 1
    x.reshape(4)[0] = 2
    return x


def reshape_of_transposed_copies(torch):
    x = torch.zeros(2, 3)
    y = x.t().reshape(6)
    y[0] = 1
    return x, y


def advanced_index_copies(torch):
    x = torch.zeros(3)
    y = x[torch.tensor([0, 1])]
    y[0] = 1
    z = x[x == 0]
    z += 1
    return x, y, z


def chained_mask_write(torch):
    x = torch.arange(6.0).view(2, 3)
    x[0][x[0] > 0] = -1
    return x


def same_object_two_names(torch):
    x = torch.ones(2)
    y = x
    y += 1
    y.add_(1)
    return x, y


def argument_changed(torch):
    def scale(t, by):
        t *= by
        t[0] = 0

    x = torch.ones(2, 2)
    scale(x[1], 3)
    scale(x, 2)
    return x


def view_as_list_items(torch):
    x = torch.zeros(4)
    parts = [x[:2], x[2:]]
    for p in parts:
        p += 1
    parts[0][1] = 9
    return x, parts[0], parts[1]


def overlapping_windows(torch):
    x = torch.arange(5.0)
    a, b = x[:3], x[2:]
    a[2] = 50
    b += 1
    return x, a, b


def copy_between_views(torch):
    x = torch.arange(6.0)
    x[:3].copy_(x[3:])
    x[1:4] = x[0:3].clone()
    return x


def expand_reads_base(torch):
    x = torch.zeros(1, 2)
    y = x.expand(3, 2)
    x.fill_(4)
    return y


def contiguous_is_self(torch):
    x = torch.zeros(2, 2)
    x.contiguous()[0, 0] = 1
    y = x.t().contiguous()
    y[0, 1] = 5
    return x, y


def to_same_dtype_is_self(torch):
    x = torch.zeros(2)
    x.float()[0] = 1
    x.to(torch.float32)[1] = 2
    x.double()[0] = 7
    return x


def numpy_writes_tensor(torch):
    import numpy as np

    a = np.zeros(3, dtype=np.float32)
    t = torch.from_numpy(a)
    a[0] = 5
    return t


def tensor_writes_numpy(torch):
    x = torch.zeros(3)
    a = x.numpy()
    x[0] = 5
    x += 1
    return list(map(float, a))


def numpy_view_writes_tensor(torch):
    x = torch.zeros(3)
    a = x.numpy()
    a[1] = 4
    return x


def from_numpy_written(torch):
    import numpy as np

    a = np.zeros(3)
    t = torch.from_numpy(a)
    t[0] = 5
    t.add_(1)
    return list(map(float, a)), t


def tensor_copies(torch):
    import numpy as np

    a = np.zeros(3)
    t = torch.tensor(a)
    a[0] = 1
    u = t.clone()
    u[1] = 2
    return t, u


def weight_row_zeroed(torch):
    torch.manual_seed(0)
    e = torch.nn.Embedding(4, 2)
    e.weight.data[0].fill_(0)
    return e.weight


def bias_part_filled(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 6)
    m.bias.data[2:4].fill_(1)
    m.weight.data[1:, 0] = 0.5
    return m.bias, m.weight


def lstm_forget_bias(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 8)
    with torch.no_grad():
        m.bias[2:4].fill_(1)
        m.bias[4:].zero_()
        m.weight[0].mul_(2)
    return m.bias, m.weight


def grad_row_zeroed(torch):
    w = torch.ones(3, 2, requires_grad=True)
    (w * w).sum().backward()
    w.grad[0].zero_()
    w.grad[1:].mul_(0.5)
    return w.grad


def manual_descent(torch):
    w = torch.ones(2, requires_grad=True)
    for _ in range(3):
        (w * w).sum().backward()
        w.data -= 0.1 * w.grad.data
        w.grad.data.zero_()
    return w, w.grad


def grad_clipped_by_data(torch):
    p = torch.tensor([3.0, -4.0], requires_grad=True)
    (p**2).sum().backward()
    p.grad.data.clamp_(-1, 1)
    return p.grad


def grad_kept_and_added(torch):
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    g = w.grad
    (w * 3).sum().backward()
    return w.grad, g


def grad_zeroed_seen(torch):
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    g = w.grad
    w.grad.zero_()
    g += 1
    return w.grad, g


def data_kept(torch):
    w = torch.ones(2, requires_grad=True)
    d = w.data
    opt = torch.optim.SGD([w], lr=0.5)
    w.sum().backward()
    opt.step()
    d[0] = 10
    return w, d


def detached_snapshot_follows(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    before = {k: v for k, v in m.state_dict().items()}
    copy = {k: v.clone() for k, v in m.state_dict().items()}
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    m(torch.ones(1, 2)).sum().backward()
    opt.step()
    return before["weight"], copy["weight"], m.weight


def state_dict_written(torch):
    m = torch.nn.Linear(2, 1)
    m.state_dict()["weight"].fill_(3)
    m.state_dict()["bias"][0] = 1
    return m.weight, m.bias


def ema_by_parameters(torch):
    torch.manual_seed(0)
    m, ema = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    with torch.no_grad():
        for e, p in zip(ema.parameters(), m.parameters()):
            e.mul_(0.9).add_(p.data, alpha=0.1)
    for e, p in zip(ema.parameters(), m.parameters()):
        e.data.lerp_(p.data, 0.5)
    return ema.weight, ema.bias


def flat_parameters(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    flat = torch.cat([p.data.view(-1) for p in m.parameters()])
    flat += 1
    at = 0
    for p in m.parameters():
        n = p.numel()
        p.data.copy_(flat[at : at + n].view_as(p))
        at += n
    return m.weight, m.bias


def buffer_part(torch):
    class Queue(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("queue", torch.zeros(4, 2))
            self.register_buffer("at", torch.zeros(1).long())

        def push(self, rows):
            i = int(self.at)
            self.queue[i : i + len(rows)] = rows
            self.queue[0][1] = 7
            self.at[0] = (i + len(rows)) % 4

    q = Queue()
    seen = q.queue
    q.push(torch.ones(2, 2))
    q.push(torch.ones(2, 2) * 2)
    return q.queue, q.at, seen, q.state_dict()["queue"]


def gradient_through_slice_write(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[0] = 10
    y[1:] *= 3
    y.sum().backward()
    return x.grad, y


def gradient_through_view_write(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    row = y[0]
    row.mul_(5)
    col = y[:, 1]
    col += row.sum()
    (y * y).sum().backward()
    return x.grad, y, row, col


def gradient_into_constant(torch):
    w = torch.tensor([2.0], requires_grad=True)
    out = torch.zeros(3)
    for i in range(3):
        out[i] = w[0] * i
    view = torch.zeros(2, 2)
    view[1][0] = w[0] ** 2
    (out.sum() + view.sum()).backward()
    return w.grad, out, view


def leaf_in_place_refused(torch):
    w = torch.ones(2, requires_grad=True)
    w += 1
    return w


def leaf_view_in_place_refused(torch):
    w = torch.ones(2, 2, requires_grad=True)
    w[0].mul_(2)
    return w


def leaf_index_refused(torch):
    w = torch.ones(2, requires_grad=True)
    w[0] = 3
    return w


def view_made_in_no_grad(torch):
    w = torch.ones(2, 2, requires_grad=True)
    with torch.no_grad():
        row = w[0]
        row.mul_(3)
        w.view(-1)[3] = 8
    (w * w).sum().backward()
    return w, row, w.grad


def detach_write_keeps_tape(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.detach()[0] = 100
    z = (y * 2).sum()
    z.backward()
    return y, z, x.grad


def data_write_before_backward(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.data[0] = 100
    y.sum().backward()
    return y, x.grad


def view_requires_grad_after_write(torch):
    base = torch.zeros(3)
    part = base[1:]
    w = torch.tensor(2.0, requires_grad=True)
    base[1] = w * 2
    part.sum().backward()
    return base, part, part.requires_grad, w.grad


def swap_rows(torch):
    x = torch.arange(4.0).view(2, 2)
    a, b = x[0], x[1]
    a_copy = a.clone()
    a[:] = b
    b[:] = a_copy
    return x, a, b


def augmented_items(torch):
    x = torch.zeros(2, 3)
    x[0] += 1
    x[1][2] += 5
    x[:, 0] -= 2
    x[0][0] /= 2
    return x


def in_place_returns_self(torch):
    x = torch.zeros(2)
    y = x.add_(1).mul_(3)
    y[0] = 7
    return x, y, x is y


def mask_rows_of_view(torch):
    x = torch.zeros(3, 2)
    x[1:][torch.tensor([True, False])] = 5
    x[:2].masked_fill_(x[:2] == 0, -1)
    return x


def scatter_into_view(torch):
    x = torch.zeros(2, 4)
    x[0].scatter_(0, torch.tensor([1, 3]), 2.0)
    x[1].index_fill_(0, torch.tensor([0]), 9.0)
    x.t().index_add_(0, torch.tensor([0, 0]), torch.ones(2, 2))
    return x


def random_into_view(torch):
    torch.manual_seed(3)
    x = torch.zeros(2, 3)
    x[1].normal_()
    x[0].uniform_(1, 2)
    return x


def int_tensor_views(torch):
    x = torch.zeros(2, 2, dtype=torch.int64)
    x[0][0] += 3
    x.view(-1)[3] = 2
    m = torch.zeros(3, dtype=torch.bool)
    m[:2].fill_(True)
    return x, m


def causal_mask(torch):
    m = torch.ones(3, 3).tril()
    m[m == 0] = -5
    m[0].masked_fill_(m[0] < 0, -9)
    return m


def zero_grad_keeps_view(torch):
    w = torch.ones(2, requires_grad=True)
    w.sum().backward()
    g = w.grad
    torch.optim.SGD([w], lr=1.0).zero_grad()
    return g, w.grad is None


def set_data(torch):
    w = torch.ones(2, requires_grad=True)
    view = w.detach()
    new = torch.zeros(2)
    w.data = new
    new[0] = 4
    return w, view


def grad_assigned_shares(torch):
    w = torch.ones(2, requires_grad=True)
    g = torch.ones(2)
    w.grad = g
    g[0] = 5
    w.grad[1] = 7
    return w.grad, g


def zero_dim_views(torch):
    x = torch.zeros(2)
    a = x[0]
    a += 3
    x[1].fill_(2)
    s = torch.tensor(1.0)
    s.view(1)[0] = 9
    return x, a, s


def sum_of_aliases(torch):
    x = torch.ones(3)
    y = x[1:]
    x += torch.cat([y, y[:1]])
    x[1:] += x[:2]
    return x, y


def list_of_rows_trained(torch):
    w = torch.zeros(2, 2, requires_grad=True)
    rows = [w[0], w[1]]
    loss = (rows[0] * 2 + rows[1] * 3).sum()
    loss.backward()
    with torch.no_grad():
        w -= w.grad
    return w, w.grad, rows[0]
