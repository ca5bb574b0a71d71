"""Training scripts of rarer kinds: contrastive, diffusion, graphs, adjoints, learning to learn."""

import math


def contrastive(torch, compile):
    """Pairs and triplets by several losses, NAdam."""
    nn, F = torch.nn, torch.nn.functional
    encoder = nn.Sequential(nn.Linear(6, 16), nn.PReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.NAdam(encoder.parameters(), lr=1e-2)
    triplet, cosine = nn.TripletMarginLoss(margin=1.0), nn.CosineEmbeddingLoss(margin=0.2)
    far = torch.eye(16).bool()
    target = torch.arange(16)
    target[0::2] += 1
    target[1::2] -= 1

    def loss_of(a, b, c, same):
        za, zb, zc = encoder(a), encoder(b), encoder(c)
        z = F.normalize(torch.stack([za, zb], 1).flatten(0, 1))
        near = F.cosine_similarity(z[:, None, :], z[None, :, :], dim=-1) / 0.5
        near = near.masked_fill(far, float("-inf"))
        return triplet(za, zb, zc) + cosine(za, zb, same) + F.cross_entropy(near, target)

    losses = []
    for _ in range(20):
        a, b, c = torch.randn(3, 8, 6).unbind()
        loss = loss_of(a, b, c, torch.randint(0, 2, (8,)) * 2 - 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(encoder.parameters())


def positions_of_integers(torch, compile):
    """Sines of positions that are integers times a float, and a rate that follows the width."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            place = torch.arange(12).unsqueeze(1)
            by = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
            table = torch.zeros(12, d)
            table[:, 0::2], table[:, 1::2] = torch.sin(place * by), torch.cos(place * by)
            self.register_buffer("table", table)
            self.embed, self.out = nn.Embedding(10, d), nn.Linear(d, 10)

        def forward(self, x):
            return self.out((self.embed(x) * math.sqrt(8) + self.table[: x.size(1)]).tanh().mean(1))

    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.1 * min((s + 1) ** -0.5, (s + 1) * 4**-1.5))
    x, y = torch.randint(0, 10, (6, 7)), torch.randint(0, 10, (6,))

    @compile
    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(20):
        losses.append(step().item())
        schedule.step()
    return losses, [*net.state_dict().values(), *schedule.get_last_lr()]


def mapped_actions(torch, compile):
    """A policy with squashed normal actions, and a temperature that is trained beside it."""
    nn, D = torch.nn, torch.distributions
    mean, spread, value = nn.Linear(3, 2), nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam([*mean.parameters(), *spread.parameters()], lr=1e-2)
    temperature = torch.zeros(1, requires_grad=True)
    second = torch.optim.Adam([temperature], lr=1e-2)
    losses = []
    for _ in range(20):
        s = torch.randn(8, 3)
        base = D.Normal(mean(s), spread(s).clamp(-20, 2).exp())
        policy = D.Independent(D.TransformedDistribution(base, [D.TanhTransform(cache_size=1)]), 1)
        action = policy.rsample()
        log = policy.log_prob(action)
        loss = (temperature.exp().detach() * log - value(torch.cat([s, action], 1)).squeeze(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        other = -(temperature * (log + 2.0).detach()).mean()
        second.zero_grad()
        other.backward()
        second.step()
        losses += [loss.item(), other.item()]
    return losses, [temperature, *mean.parameters()]


def adjoint(torch, compile):
    """A differential equation by Euler's steps, its gradient by a Function that goes back."""
    nn = torch.nn
    field = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 2))
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-2)

    class Flow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y, *parameters):
            path = [y]
            for _ in range(5):
                path.append(path[-1] + 0.1 * field(path[-1]))
            ctx.save_for_backward(torch.stack(path), *parameters)
            return path[-1]

        @staticmethod
        def backward(ctx, g):
            path, *parameters = ctx.saved_tensors
            total = [torch.zeros_like(p) for p in parameters]
            for i in range(4, -1, -1):
                with torch.enable_grad():
                    y = path[i].detach().requires_grad_()
                    out = y + 0.1 * field(y)
                g, *parts = torch.autograd.grad(out, (y, *parameters), g)
                total = [a + b for a, b in zip(total, parts)]
            return (g, *total)

    losses = []
    for _ in range(20):
        y = torch.randn(6, 2)
        loss = (Flow.apply(y, *field.parameters()) - y.flip(1)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(field.parameters())


def learning_to_learn(torch, compile):
    """Steps inside steps: by `create_graph`, and by functions of a dictionary of parameters."""
    nn, func = torch.nn, torch.func
    F = nn.functional
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)

    def inner(p, x, y):
        return F.mse_loss(func.functional_call(net, p, (x,)), y)

    losses = []
    for _ in range(20):
        x = torch.rand(6, 1) * 4 - 2
        y = torch.sin(x + torch.rand(1))
        p = dict(net.named_parameters())
        fast = dict(p)
        for _ in range(2):
            g = torch.autograd.grad(inner(fast, x[:3], y[:3]), list(fast.values()), create_graph=True)
            fast = {k: v - 0.1 * d for (k, v), d in zip(fast.items(), g)}
        g = func.grad(inner)(p, x[:3], y[:3])
        loss = inner(fast, x[3:], y[3:]) + inner({k: v - 0.1 * g[k] for k, v in p.items()}, x[3:], y[3:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(net.parameters())


def constrained_weights(torch, compile):
    """Orthogonal, normed and spectral weights through `parametrizations`."""
    nn = torch.nn
    Q = nn.utils.parametrizations
    net = nn.Sequential(
        Q.weight_norm(nn.Linear(4, 6)), nn.Tanh(), Q.spectral_norm(nn.Linear(6, 6)), Q.orthogonal(nn.Linear(6, 6)), nn.ReLU(), Q.orthogonal(nn.Linear(6, 3))
    )
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    x, y = torch.randn(16, 4), torch.randn(16, 3)
    losses = []
    for _ in range(20):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    return losses, [net(x), *net.state_dict().values()]
