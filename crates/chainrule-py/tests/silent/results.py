"""Programs about results that are their arguments, written gradients, and functions of tensors
inside compiled ones.
"""

import numpy as np


def _x(torch, *shape):
    return torch.arange(1, 1 + int(np.prod(shape)), dtype=torch.float64).reshape(shape) / 7


def results_that_are_the_argument(torch):
    F, out = torch.nn.functional, []
    for f in (
        lambda x: F.dropout(x, 0.5, training=False), lambda x: F.dropout(x, 0.0), lambda x: F.dropout2d(x, 0.5, training=False),
        lambda x: F.alpha_dropout(x, 0.5, False), lambda x: +x, lambda x: x.contiguous(), lambda x: x.to(torch.float64), lambda x: x.double(),
        lambda x: x.type(torch.float64), lambda x: x.cpu(), lambda x: x.reshape(2, 1, 3), lambda x: x.flatten(), lambda x: x.expand_as(x),
        lambda x: torch.broadcast_to(x, (2, 1, 3)), lambda x: torch.atleast_1d(x), lambda x: torch.squeeze(x, 1), lambda x: x.view_as(x),
        lambda x: torch.nn.Identity()(x), lambda x: torch.nn.Flatten()(x), lambda x: torch.nn.Dropout(0.3).eval()(x), lambda x: x.real,
        lambda x: torch.atleast_3d(x), lambda x: x.detach(), lambda x: x.data, lambda x: x.unflatten(2, (3, 1)), lambda x: x.swapaxes(0, 2),
        lambda x: torch.as_tensor(x), lambda x: x.type_as(x), lambda x: x.positive(), lambda x: x.narrow(0, 0, 2), lambda x: x.mT,
        lambda x: x.expand(2, 1, 3), lambda x: x.movedim(0, 1), lambda x: x.requires_grad_(False), lambda x: torch.ravel(x), lambda x: x[...],
        lambda x: x[None], lambda x: x.select(0, 1), lambda x: x.unfold(2, 2, 1), lambda x: torch.asarray(x), lambda x: x.squeeze(), lambda x: x.tile(1),
        lambda x: x.repeat(1, 1, 1), lambda x: x.clone(), lambda x: x[[0, 1]], lambda x: torch.tensor(x.tolist()), lambda x: F.relu(x), lambda x: x.abs(),
        lambda x: x.where(x > -1, x), lambda x: x.clamp(-100, 100), lambda x: torch.cat([x]), lambda x: x.float(), lambda x: x.roll(0), lambda x: x.flip(0),
        lambda x: x.float().double(), lambda x: x.index_select(0, torch.tensor([0, 1])), lambda x: torch.nn.functional.pad(x, (0, 0)), lambda x: x.tril(9),
    ):
        x = _x(torch, 2, 1, 3)
        y = f(x)
        x.fill_(9)
        out.append(float(y.double().sum()) == 9.0 * y.numel())
    return out


def weights_computed_inside(torch, compile):
    F = torch.nn.functional
    y = torch.tensor([2, 0])

    @compile
    def f(x, w):
        a = F.cross_entropy(x, y, weight=w * 2, reduction="sum") + F.cross_entropy(x, y, weight=w, label_smoothing=0.2)
        b = F.nll_loss(x.log_softmax(1), y, weight=w.exp())
        return a, b, F.cross_entropy(x, x.softmax(1), weight=w, label_smoothing=0.1), F.cross_entropy(x, y, weight=w, ignore_index=0, reduction="none")

    out = []
    for k in (1.0, 2.0, 3.0):
        w = _x(torch, 3) + k
        out.append(f(_x(torch, 2, 3) * k, w))
    x = _x(torch, 2, 3).requires_grad_()
    sum(t.sum() for t in f(x, _x(torch, 3))).backward()
    return out, x.grad


def tensors_as_options(torch, compile):
    @compile
    def f(x, k):
        return [
            x.clamp(min=k), x.clamp(max=k.mean()), torch.lerp(x, x * 2, k), torch.where(x > k, x, k),
            torch.bucketize(x, k.sort().values), torch.searchsorted(k.sort().values, x), torch.pow(x, k), torch.addcmul(x, x, k, value=2),
            torch.nn.functional.binary_cross_entropy_with_logits(x, x.sigmoid(), weight=k, pos_weight=k), torch.nn.functional.prelu(x, k[:1]),
            torch.nn.functional.gaussian_nll_loss(x, x * 0, k.expand(2, 3)), torch.cumsum(k, 0), torch.diff(k), torch.nn.functional.layer_norm(x, (3,), k, k),
            torch.nn.functional.batch_norm(x, k, k, k, k), x.masked_fill(x > k, 0.0), x.index_fill(0, torch.tensor([0]), 2.0), torch.dist(x, k),
            torch.nn.functional.huber_loss(x, k.expand(2, 3)), torch.outer(k, k), torch.einsum("ij,j->i", x, k), torch.linalg.norm(k), x / k.norm(),
        ]

    return [f(_x(torch, 2, 3) * s, _x(torch, 3) + s) for s in (1.0, 0.3, 2.0)]


def captured_options(torch, compile):
    k = _x(torch, 3)

    @compile
    def f(x):
        return [
            x.clamp(min=k), torch.bucketize(x, k), torch.lerp(x, x * 2, k), torch.nn.functional.prelu(x, k[:1]),
            torch.nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid(), weight=k), torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 2]), weight=k),
            torch.nn.functional.multilabel_soft_margin_loss(x, x, weight=k), torch.nn.functional.embedding(torch.tensor([0, 1]), x), torch.addcdiv(x, x, k),
        ]

    out = [f(_x(torch, 2, 3))]
    k.add_(1).sub_(0.5)
    out.append(f(_x(torch, 2, 3)))
    k[1] = 0.25
    return [*out, f(_x(torch, 2, 3))]


def places_of_the_largest(torch, compile):
    @compile
    def f(x):
        z, there = x.max(2)
        return z, there, x.argsort(2), x.topk(2).indices, x.sort().indices, x.kthvalue(2).indices, x.median(2).indices, x.argmin(2)

    return [f(torch.tensor([[v]], dtype=torch.float64)) for v in ([1.0, 5.0, 2.0, 4.0], [9.0, 0.0, 3.0, 7.0])]


def places_of_a_pool(torch, compile):
    f = compile(lambda x: torch.nn.functional.max_pool1d(x, 2, return_indices=True))
    return [f(torch.tensor([[v]], dtype=torch.float64)) for v in ([1.0, 5.0, 2.0, 4.0], [9.0, 0.0, 3.0, 7.0])]


def quantile_by_a_tensor(torch, compile):
    q = torch.tensor(0.25, dtype=torch.float64)
    f = compile(lambda x: torch.quantile(x, q))
    out = [f(_x(torch, 5))]
    q.fill_(0.75)
    return [*out, f(_x(torch, 5))]


def class_weights_that_need_a_gradient(torch):
    w = torch.ones(3, requires_grad=True)
    return torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]), w)


def argument_written_in_a_function(torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.expand(3) * 5

    x = torch.ones(3)
    y = torch.ones(3).requires_grad_() * 1
    return Doubled.apply(x), x, Doubled.apply(y), y


def gradient_written_then_stepped(torch):
    p = torch.nn.Parameter(_x(torch, 3))
    opt = torch.optim.SGD([p], lr=0.1)
    (p**2).sum().backward()
    g = p.grad
    g.mul_(0.5)
    p.grad[0] = 0
    p.grad.data.clamp_(max=0.3)
    p.grad += 0.01 * p.detach()
    opt.step()
    opt.zero_grad()
    return p, g, p.grad


def gradients_added_by_hand(torch):
    m = torch.nn.Parameter(_x(torch, 2, 2))
    grads = [torch.zeros_like(m) for _ in range(2)]
    for i in range(2):
        m.grad = None
        (m * (i + 1)).sum().backward()
        grads[i] += m.grad
    m.grad = sum(grads) / 2
    torch.optim.SGD([m], lr=1.0).step()
    m.grad.zero_()
    return m, grads


def swapped_parameters(torch, compile):
    a, b = torch.nn.Linear(2, 2).double(), torch.nn.Linear(2, 2).double()
    with torch.no_grad():
        for m, v in ((a, 1.0), (b, 2.0)):
            for p in m.parameters():
                p.fill_(v)
    f = compile(lambda x: a(x) - b(x))
    out = [f(_x(torch, 1, 2))]
    a.weight, b.weight = b.weight, a.weight
    out.append(f(_x(torch, 1, 2)))
    a.bias.data, b.bias.data = b.bias.data.clone(), a.bias.data.clone()
    out.append(f(_x(torch, 1, 2)))
    b.weight = a.weight
    a.weight.data[0, 0] = 50
    return [*out, f(_x(torch, 1, 2))]


def noise_added_to_weights(torch, compile):
    w = torch.nn.Parameter(_x(torch, 2, 2))

    @compile
    def f(x):
        with torch.no_grad():
            w.add_(torch.randn_like(w) * 0.1)
        return x @ w

    torch.manual_seed(4)
    return [f(_x(torch, 1, 2)) for _ in range(3)], w, torch.rand(1)


def iterations_counted_in_a_tensor(torch, compile):
    step = torch.zeros((), dtype=torch.long)
    best = torch.full((), float("inf"))

    @compile
    def f(x):
        step.add_(1)
        best.copy_(torch.minimum(best, x.min()))
        return x / step, best * 1

    return [f(torch.tensor([float(v), 9.0])) for v in (5, 7, 2)], step, best


def queue_of_features(torch, compile):
    queue, at = torch.zeros(4, 2), torch.zeros(1, dtype=torch.long)

    @compile
    def push(x):
        queue.index_copy_(0, (at + torch.arange(2)) % 4, x)
        at.copy_((at + 2) % 4)
        return queue.sum()

    return [push(torch.full((2, 2), float(v))) for v in (1, 2, 3)], queue, at


def results_kept_over_calls(torch, compile):
    f = compile(lambda x: (x * 2, x.view(-1)[1:], x))
    kept = []
    for v in (1.0, 2.0, 3.0):
        kept.append(f(torch.full((2, 2), v)))
    kept[0][0].add_(100)
    kept[1][1].zero_()
    return kept


def arguments_written_by_the_caller(torch, compile):
    f = compile(lambda x: x * x)
    x = torch.ones(3)
    out = []
    for k in range(3):
        out.append(f(x))
        x += k + 1
        x[k] = 0
    return out, x


def masks_of_other_sizes(torch, compile):
    f = compile(lambda x, n: torch.where(torch.arange(x.shape[0]) < n, x, torch.zeros_like(x)).sum())
    return [f(_x(torch, s), n) for s, n in ((4, 2), (4, 3), (5, 2), (4, 2))]


def defaults_of_functions_changed(torch, compile):
    class Layer(torch.nn.Module):
        gain = 2.0

        def __init__(self):
            super().__init__()
            self.layers = {"a": torch.nn.Parameter(_x(torch, 2))}
            self.mode = "add"

        def forward(self, x):
            w = self.layers["a"]
            return (x + w if self.mode == "add" else x * w) * self.gain

    m = Layer()
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 2))]
    m.mode = "mul"
    out.append(f(_x(torch, 2)))
    Layer.gain = 5.0
    out.append(f(_x(torch, 2)))
    m.gain = 7.0
    m.layers["a"] = torch.nn.Parameter(_x(torch, 2) * 3)
    return [*out, f(_x(torch, 2)), list(m.parameters())]


def method_replaced(torch, compile):
    m = torch.nn.Linear(2, 2).double()
    with torch.no_grad():
        m.weight.fill_(1), m.bias.fill_(0)
    f = compile(lambda x: m(x))
    out = [f(_x(torch, 2))]
    m.forward = lambda x: x * 3
    out.append(f(_x(torch, 2)))
    del m.forward
    return [*out, f(_x(torch, 2))]


def double_step_of_one_gradient(torch, compile):
    p = torch.nn.Parameter(_x(torch, 2))
    a, b = torch.optim.SGD([p], lr=0.1), torch.optim.SGD([p], lr=0.01, momentum=0.5)

    @compile
    def step(x):
        a.zero_grad()
        loss = (p * x).square().sum()
        loss.backward()
        a.step()
        b.step()
        return loss

    return [step(_x(torch, 2)) for _ in range(3)], p


def lookahead_weights(torch, compile):
    fast = torch.nn.Parameter(_x(torch, 2))
    slow = fast.detach().clone()
    opt = torch.optim.Adam([fast], lr=0.1)

    @compile
    def step(x):
        opt.zero_grad()
        (fast * x).square().sum().backward()
        opt.step()

    for k in range(4):
        step(_x(torch, 2))
        if k % 2:
            slow += 0.5 * (fast.data - slow)
            fast.data.copy_(slow)
    return fast, slow
