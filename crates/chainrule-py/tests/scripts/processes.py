"""Training scripts of Gaussian processes, differential equations, soft critics, distillation."""

import copy
import math


def gaussian_process(torch, compile):
    """The scales of a kernel by the marginal likelihood, through Cholesky's factor."""
    nn = torch.nn

    class Process(nn.Module):
        def __init__(self):
            super().__init__()
            self.length = nn.Parameter(torch.tensor(0.0))
            self.scale = nn.Parameter(torch.tensor(0.0))
            self.noise = nn.Parameter(torch.tensor(-2.0))

        def kernel(self, a, b):
            return self.scale.exp() ** 2 * torch.exp(-0.5 * (a.unsqueeze(1) - b.unsqueeze(0)).pow(2) / self.length.exp() ** 2)

        def forward(self, x, y):
            k = self.kernel(x, x) + self.noise.exp() ** 2 * torch.eye(len(x))
            root = torch.linalg.cholesky(k)
            alpha = torch.cholesky_solve(y.unsqueeze(1), root)
            return 0.5 * (y.unsqueeze(1) * alpha).sum() + torch.log(torch.diagonal(root)).sum() + 0.5 * len(x) * math.log(2 * math.pi)

    model = Process()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    x = torch.linspace(0, 5, 12)
    y = torch.sin(x) + 0.1 * torch.randn(12)

    @compile
    def step():
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step().item() for _ in range(20)]
    with torch.no_grad():
        new = torch.linspace(0, 5, 7)
        k = model.kernel(x, x) + model.noise.exp() ** 2 * torch.eye(12)
        mean = model.kernel(new, x) @ torch.linalg.solve(k, y)
    return losses, [mean, *model.parameters()]


def differential_equation(torch, compile):
    """A field learned from a spiral, by four stages of Runge and Kutta and a scan of batches."""
    nn = torch.nn
    field = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 2))
    for m in field.modules():
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, mean=0, std=0.1)
            nn.init.constant_(m.bias, val=0)
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-2)
    true = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    times = torch.linspace(0.0, 1.5, 7)

    def solve(f, y, times):
        out = [y]
        for a, b in zip(times[:-1], times[1:]):
            h = b - a
            k1 = f(y)
            k2 = f(y + h * k1 / 2)
            k3 = f(y + h * k2 / 2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            out.append(y)
        return torch.stack(out)

    with torch.no_grad():
        path = solve(lambda y: (y**3) @ true, torch.tensor([[2.0, 0.0]]), torch.linspace(0, 3, 40)).squeeze(1)

    @compile
    def step(start, wanted):
        optimizer.zero_grad()
        loss = torch.mean(torch.abs(solve(field, start, times) - wanted))
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(20):
        s = torch.randperm(40 - 7)[:5]
        losses.append(step(path[s], torch.stack([path[s + i] for i in range(7)], dim=0)).item())
    return losses, list(field.parameters())


def soft_actor_critic(torch, compile):
    """Two critics, their slow copies, a squashed Gaussian and a learned temperature."""
    nn, F, D = torch.nn, torch.nn.functional, torch.distributions

    def mlp(i, o):
        return nn.Sequential(nn.Linear(i, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, o))

    class Actor(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = mlp(3, 4)

        def forward(self, s):
            mean, log_std = self.net(s).chunk(2, dim=-1)
            normal = D.Normal(mean, torch.clamp(log_std, -5, 2).exp())
            u = normal.rsample()
            a = torch.tanh(u)
            return a, (normal.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1, keepdim=True)

    actor, one, two = Actor(), mlp(5, 1), mlp(5, 1)
    slow_one, slow_two = copy.deepcopy(one), copy.deepcopy(two)
    for p in [*slow_one.parameters(), *slow_two.parameters()]:
        p.requires_grad = False
    log_alpha = torch.zeros(1, requires_grad=True)
    optimizer_a = torch.optim.Adam(actor.parameters(), lr=3e-3)
    optimizer_q = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=3e-3)
    optimizer_t = torch.optim.Adam([log_alpha], lr=3e-3)

    @compile
    def step(s, a, r, s2, done):
        with torch.no_grad():
            a2, logp2 = actor(s2)
            sa2 = torch.cat([s2, a2], -1)
            q2 = torch.min(slow_one(sa2), slow_two(sa2)) - log_alpha.exp() * logp2
            target = r + 0.99 * (1 - done) * q2
        sa = torch.cat([s, a], -1)
        loss_q = F.mse_loss(one(sa), target) + F.mse_loss(two(sa), target)
        optimizer_q.zero_grad()
        loss_q.backward()
        optimizer_q.step()
        new, logp = actor(s)
        sn = torch.cat([s, new], -1)
        loss_a = (log_alpha.exp().detach() * logp - torch.min(one(sn), two(sn))).mean()
        optimizer_a.zero_grad()
        loss_a.backward()
        optimizer_a.step()
        loss_t = -(log_alpha * (logp + -2.0).detach()).mean()
        optimizer_t.zero_grad()
        loss_t.backward()
        optimizer_t.step()
        with torch.no_grad():
            for net, slow in ((one, slow_one), (two, slow_two)):
                for p, q in zip(net.parameters(), slow.parameters()):
                    q.data.mul_(0.995)
                    q.data.add_(0.005 * p.data)
        return loss_q, loss_a, loss_t

    losses = []
    for _ in range(20):
        s = torch.randn(8, 3)
        batch = s, torch.rand(8, 2) * 2 - 1, s.sum(1, keepdim=True), s + 0.1, (torch.rand(8, 1) < 0.2).to(s.dtype)
        losses += [x.item() for x in step(*batch)]
    return losses, [log_alpha, *actor.parameters(), *one.parameters(), *slow_two.parameters()]


def distilled_student(torch, compile):
    """A frozen teacher with batch norm, a student of depthwise convolutions and squeezes; epochs of
    a loader, the best weights kept.
    """
    from importlib import import_module

    nn, F = torch.nn, torch.nn.functional
    data = import_module(torch.__name__ + ".utils.data")

    class Squeeze(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.fc = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // 2, 1), nn.ReLU(inplace=True), nn.Conv2d(c // 2, c, 1), nn.Hardsigmoid())

        def forward(self, x):
            return x * self.fc(x)

    teacher = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 4)).eval()
    student = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4), nn.Hardswish(),
        nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(4), nn.ReLU6(), Squeeze(4), nn.Flatten(), nn.Dropout(0.1), nn.Linear(36, 4),
    )
    for p in teacher.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=24)
    x, y = torch.randn(24, 1, 6, 6), torch.randint(4, (24,))
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=4, shuffle=True)

    @compile
    def step(x, y):
        with torch.no_grad():
            wanted = F.softmax(teacher(x) / 3, dim=1)
        logits = student(x)
        soft = F.kl_div(F.log_softmax(logits / 3, dim=1), wanted, reduction="batchmean") * 9
        loss = 0.7 * soft + 0.3 * F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses, best, kept = [], float("inf"), None
    for _ in range(4):
        student.train()
        for a, b in loader:
            losses.append(step(a, b).item())
            schedule.step()
        student.eval()
        with torch.no_grad():
            value = F.cross_entropy(student(x), y).item()
        if value < best:
            best, kept = value, copy.deepcopy(student.state_dict())
    student.load_state_dict(kept)
    return losses, [best, optimizer.param_groups[0]["lr"], *student.parameters(), *[b.double() for b in student.buffers()]]
