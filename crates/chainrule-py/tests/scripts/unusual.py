"""Training scripts that do more than a forward, a backward and a step."""

import math


def gradient_penalty(torch, compile):
    """A critic whose gradient by its input is kept near one, through a second backward pass."""
    nn = torch.nn
    critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    generator = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 4))
    optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.0, 0.9))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.0, 0.9))

    @compile
    def train_critic(real):
        z = torch.randn(real.size(0), 2)
        with torch.no_grad():
            fake = generator(z)
        alpha = torch.rand(real.size(0), 1)
        between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        scores = critic(between)
        (grads,) = torch.autograd.grad(scores, between, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True)
        penalty = ((grads.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer_c.zero_grad()
        loss.backward()
        optimizer_c.step()
        return loss, penalty

    @compile
    def train_generator(n: int):
        loss = -critic(generator(torch.randn(n, 2))).mean()
        optimizer_g.zero_grad()
        loss.backward()
        optimizer_g.step()
        return loss

    losses, penalties = [], []
    for i in range(20):
        loss, penalty = train_critic(torch.randn(6, 4))
        losses.append(loss.item())
        penalties.append(penalty.item())
        if i % 4 == 3:
            losses.append(train_generator(6).item())
    return losses, [penalties, *critic.parameters(), *generator.parameters()]


def sharpness_aware(torch, compile):
    """Two passes in each step: the second one where the loss is worst nearby; weights are moved
    there and back.
    """
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    base = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    rho = 0.05

    @compile
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with torch.no_grad():
            norm = torch.norm(torch.stack([p.grad.norm(p=2) for p in model.parameters()]), p=2)
            kept = []
            for p in model.parameters():
                e = p.grad * (rho / (norm + 1e-12))
                p.add_(e)
                kept.append(e)
        base.zero_grad()
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for p, e in zip(model.parameters(), kept):
                p.sub_(e)
        base.step()
        base.zero_grad()
        return loss

    losses = [step(torch.randn(8, 5), torch.randint(0, 3, (8,))).item() for _ in range(20)]
    return losses, [*model.parameters(), [p.grad is None for p in model.parameters()]]


def adam_by_hand(torch, compile):
    """An optimizer of plain tensors, with its number of steps as a tensor, and noise on the
    gradients.
    """
    F = torch.nn.functional
    w, b = (torch.randn(3, 4) * 0.5).requires_grad_(), torch.zeros(3, requires_grad=True)
    state = [{"m": torch.zeros_like(p), "v": torch.zeros_like(p)} for p in (w, b)]
    count = torch.zeros(())

    @compile
    def step(x, y, lr: float):
        loss = F.cross_entropy(F.linear(x, w, b), y)
        grads = torch.autograd.grad(loss, [w, b])
        with torch.no_grad():
            count.add_(1)
            for p, g, s in zip((w, b), grads, state):
                g = g + 0.01 * torch.randn_like(g)
                s["m"].lerp_(g, 0.1)
                s["v"].mul_(0.99).addcmul_(g, g, value=0.01)
                m = s["m"] / (1 - 0.9**count)
                v = s["v"] / (1 - 0.99**count)
                p.addcdiv_(m, v.sqrt() + 1e-8, value=-lr)
        return loss.detach()

    losses = [step(torch.randn(8, 4), torch.randint(0, 3, (8,)), 0.05 if i < 10 else 0.01).item() for i in range(20)]
    return losses, [w, b, count, *(t for s in state for t in s.values())]


def quantized_autoencoder(torch, compile):
    """A codebook that is moved by running averages, with gradients straight through the nearest
    code.
    """
    nn, F = torch.nn, torch.nn.functional
    encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)

    class Codebook(nn.Module):
        def __init__(self, n=5, d=3):
            super().__init__()
            embed = torch.randn(n, d)
            self.register_buffer("embed", embed)
            self.register_buffer("size", torch.zeros(n))
            self.register_buffer("average", embed.clone())

        def forward(self, z):
            distance = z.pow(2).sum(1, keepdim=True) - 2 * z @ self.embed.t() + self.embed.pow(2).sum(1)
            code = distance.argmin(1)
            hot = F.one_hot(code, self.embed.shape[0]).to(z.dtype)
            q = F.embedding(code, self.embed)
            if self.training:
                self.size.data.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                self.average.data.mul_(0.9).add_(hot.t() @ z.detach(), alpha=0.1)
                n = self.size.sum()
                size = (self.size + 1e-5) / (n + 5e-5) * n
                self.embed.data.copy_(self.average / size.unsqueeze(1))
            loss = (q.detach() - z).pow(2).mean()
            return z + (q - z).detach(), loss, code

    book = Codebook()

    def hot_of(code):
        return F.one_hot(code, 5).to(torch.get_default_dtype())

    @compile
    def step(x):
        q, commit, code = book(encoder(x))
        loss = F.mse_loss(decoder(q), x) + 0.25 * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, hot_of(code).sum(0)

    losses, used = [], torch.zeros(5)
    for _ in range(20):
        loss, counts = step(torch.randn(8, 6))
        losses.append(loss.item())
        used += counts
    book.eval()
    with torch.no_grad():
        commit = book(encoder(torch.ones(2, 6)))[1].item()
    return losses, [used, commit, *book.state_dict().values(), *encoder.parameters(), *decoder.parameters()]


def mixup(torch, compile):
    """Pairs of a batch are mixed inside of the step; the head is reset halfway, and the optimizer
    made anew.
    """
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(5, 8), nn.ELU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(x, y, lam):
        index = torch.randperm(x.size(0))
        out = model(lam * x + (1 - lam) * x[index])
        loss = lam * F.cross_entropy(out, y) + (1 - lam) * F.cross_entropy(out, y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = compile(step)
    losses = []
    for i in range(20):
        if i == 10:
            nn.init.normal_(model[2].weight, std=0.1)
            model[2].bias.data.zero_()
            optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        losses.append(run(torch.randn(6, 5), torch.randint(0, 3, (6,)), torch.rand(1)).item())
    return losses, list(model.parameters())


def spectral_norm(torch, compile):
    """A weight divided by its largest singular value, by one step of power iteration in each
    forward pass.
    """
    nn, F = torch.nn, torch.nn.functional

    class SNLinear(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(o, i) * 0.3), nn.Parameter(torch.zeros(o))
            self.register_buffer("u", F.normalize(torch.randn(o), dim=0))

        def forward(self, x):
            w = self.weight
            with torch.no_grad():
                v = F.normalize(w.t() @ self.u, dim=0)
                if self.training:
                    self.u.copy_(F.normalize(w @ v, dim=0))
            sigma = self.u.clone() @ (w @ v)
            return F.linear(x, w / sigma, self.bias)

    net = nn.Sequential(SNLinear(4, 6), nn.LeakyReLU(0.1), SNLinear(6, 1))
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-2, alpha=0.9)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.softplus(-y * net(x).squeeze(1)).mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(torch.randn(8, 4), torch.sign(torch.randn(8))).item() for _ in range(20)]
    return losses, list(net.state_dict().values())


def lstm_by_hand(torch, compile):
    """Gates in one matrix, states carried from batch to batch, gradients clipped by value,
    truncated by `detach`.
    """
    nn, F = torch.nn, torch.nn.functional

    class Cell(nn.Module):
        def __init__(self, i, h):
            super().__init__()
            self.ih, self.hh = nn.Linear(i, 4 * h), nn.Linear(h, 4 * h, bias=False)
            nn.init.constant_(self.ih.bias[h : 2 * h].data, 1.0)
            for p in self.hh.parameters():
                nn.init.uniform_(p, -0.2, 0.2)

        def forward(self, x, state):
            h, c = state
            i, f, g, o = (self.ih(x) + self.hh(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    cell, head, embedding = Cell(4, 6), nn.Linear(6, 9), nn.Embedding(9, 4, padding_idx=0)
    params = [*cell.parameters(), *head.parameters(), *embedding.parameters()]
    optimizer = torch.optim.SGD(params, lr=0.5)
    text = torch.randint(0, 9, (3, 101))

    @compile
    def step(x, y, state):
        outputs = []
        for t in range(x.size(1)):
            state = cell(embedding(x[:, t]), state)
            outputs.append(head(state[0]))
        loss = F.cross_entropy(torch.stack(outputs, 1).reshape(-1, 9), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        for p in params:
            p.grad.clamp_(-0.2, 0.2)
        optimizer.step()
        return loss, tuple(s.detach() for s in state)

    state = (torch.zeros(3, 6), torch.zeros(3, 6))
    losses = []
    for i in range(20):
        x, y = text[:, 5 * i : 5 * i + 5], text[:, 5 * i + 1 : 5 * i + 6]
        loss, state = step(x, y, state)
        losses.append(loss.item())
    return losses, [state, *params]


def two_losses(torch, compile):
    """A shared body with two heads: gradients of two losses, one of them turned round on the way,
    with weights that are learned.
    """
    nn, F = torch.nn, torch.nn.functional

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, strength):
            ctx.strength = strength
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -ctx.strength * grad, None

    body, label, domain = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 2)
    log_vars = nn.Parameter(torch.zeros(2))
    modules = nn.ModuleList([body, label, domain])
    optimizer = torch.optim.AdamW([{"params": modules.parameters()}, {"params": [log_vars], "lr": 1e-1, "weight_decay": 0.0}], lr=1e-2)

    @compile
    def step(x, y, d, strength: float):
        h = torch.tanh(body(x))
        first = F.cross_entropy(label(h), y)
        second = F.cross_entropy(domain(Reverse.apply(h, strength)), d)
        optimizer.zero_grad()
        (first * torch.exp(-log_vars[0]) + log_vars[0]).backward(retain_graph=True)
        (second * torch.exp(-log_vars[1]) + log_vars[1]).backward()
        optimizer.step()
        return first + second

    losses = []
    for i in range(20):
        strength = round(2 / (1 + math.exp(-(i // 5))) - 1, 3)
        losses.append(step(torch.randn(6, 4), torch.randint(0, 3, (6,)), torch.randint(0, 2, (6,)), strength).item())
    return losses, [log_vars, *modules.parameters()]


def averaged_checkpoints(torch, compile):
    """Weights are saved, restored and averaged through state dicts while a compiled step goes on;
    the optimizer is loaded too.
    """
    import copy

    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sigmoid(), nn.Linear(6, 1, bias=False))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
    x, y = torch.randn(16, 4), torch.randn(16, 1)

    @compile
    def step(x, y):
        model.train()
        optimizer.zero_grad()
        loss = F.huber_loss(model(x), y, delta=0.5)
        loss.backward()
        optimizer.step()
        return loss

    @compile
    @torch.no_grad()
    def evaluate(x, y):
        return F.mse_loss(model(x), y)

    losses, best, saved, tests = [], math.inf, None, []
    for i in range(20):
        losses.append(step(x[i % 2 :: 2], y[i % 2 :: 2]).item())
        model.eval()
        tests.append(evaluate(x, y).item())
        model.train()
        if i == 8:
            saved = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
        if i == 12:
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
        if i == 15:
            with torch.no_grad():
                for name, p in model.named_parameters():
                    p.copy_((p + saved[0][name]) / 2)
            for group in optimizer.param_groups:
                group["weight_decay"] = 0.1
    return losses, [tests, *model.state_dict().values()]


def loss_of_a_set(torch, compile):
    """Triplets with the hardest negatives of the batch, centres that are written with index_add_,
    masks and sorting.
    """
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Linear(5, 8), nn.LeakyReLU(0.2), nn.LayerNorm(8), nn.Linear(8, 3))
    centres, counts = torch.zeros(4, 3), torch.zeros(4)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)

    @compile
    def step(x, y):
        e = F.normalize(net(x), p=2, dim=1)
        d = (e[:, None] - e[None]).pow(2).sum(-1)
        same = y[:, None] == y[None]
        positive = d.masked_fill(~same, -1.0).max(1).values
        negative = torch.where(same, torch.full_like(d, 9.0), d).min(dim=1)[0]
        loss = F.relu(positive - negative + 0.3).mean()
        values, order = torch.sort(d.detach().sum(1), descending=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            counts.index_add_(0, y, torch.ones_like(y, dtype=counts.dtype))
            centres.index_add_(0, y, e.detach())
            centres.mul_(torch.where(counts > 5, 0.5, 1.0).to(centres.dtype)[:, None])
        return loss, order, values[:2]

    losses, kept = [], []
    for _ in range(20):
        loss, order, values = step(torch.randn(8, 5), torch.randint(0, 4, (8,)))
        losses.append(loss.item())
        kept += [order, values]
    return losses, [centres, counts, kept, *net.parameters()]
