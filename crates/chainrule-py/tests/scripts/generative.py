"""Training scripts of models that draw: diffusion with a U-Net, flows, mixtures, deconvolutions."""

import math


def diffusion(torch, compile):
    """A small U-Net learns the noise of pictures; embeddings of time, group norm, skips."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, i, o, t):
            super().__init__()
            self.norm1, self.conv1 = nn.GroupNorm(2, i), nn.Conv2d(i, o, 3, padding=1)
            self.time = nn.Linear(t, o)
            self.norm2, self.conv2 = nn.GroupNorm(2, o), nn.Conv2d(o, o, 3, padding=1)
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            h = self.conv1(F.silu(self.norm1(x)))
            h = h + self.time(F.silu(t))[:, :, None, None]
            return self.skip(x) + self.conv2(F.silu(self.norm2(h)))

    class UNet(nn.Module):
        def __init__(self, c=4, t=8):
            super().__init__()
            self.width = t
            self.inp = nn.Conv2d(1, c, 3, padding=1)
            self.down1, self.down2 = Block(c, c, t), Block(c, 2 * c, t)
            self.pool = nn.MaxPool2d(2)
            self.middle = Block(2 * c, 2 * c, t)
            self.up = nn.Upsample(scale_factor=2, mode="nearest")
            self.up1 = Block(4 * c, c, t)
            self.deconv = nn.ConvTranspose2d(c, c, 2, stride=2)
            self.up2 = Block(2 * c, c, t)
            self.out = nn.Sequential(nn.GroupNorm(2, c), nn.SiLU(), nn.Conv2d(c, 1, 3, padding=1))

        def embedded(self, t):
            half = self.width // 2
            rates = torch.exp(-math.log(10000) * torch.arange(half) / half)
            angles = t[:, None].float() * rates[None]
            return torch.cat([angles.sin(), angles.cos()], dim=-1).to(self.inp.weight.dtype)

        def forward(self, x, t):
            t = self.embedded(t)
            a = self.down1(self.inp(x), t)
            b = self.down2(self.pool(a), t)
            m = self.middle(self.pool(b), t)
            u = self.up1(torch.cat([self.up(m), b], 1), t)
            return self.out(self.up2(torch.cat([self.deconv(u), a], 1), t))

    steps = 50
    betas = torch.linspace(1e-4, 0.02, steps)
    kept = torch.cumprod(1 - betas, 0)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    @compile
    def step(x, t, noise):
        a = kept[t].view(-1, 1, 1, 1)
        loss = F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    losses = []
    for _ in range(20):
        x = torch.rand(3, 1, 8, 8)
        losses.append(step(x, torch.randint(0, steps, (3,)), torch.randn_like(x)).item())
    model.eval()
    with torch.no_grad():
        x = torch.randn(1, 1, 8, 8)
        for i in reversed(range(0, steps, 10)):
            e = model(x, torch.full((1,), i, dtype=torch.long))
            x = (x - betas[i] / (1 - kept[i]).sqrt() * e) / (1 - betas[i]).sqrt()
    return losses, [x, *model.parameters()]


def coupling_flow(torch, compile):
    """Real NVP: masked coupling layers as buffers, the base a distribution."""
    nn = torch.nn
    D = torch.distributions

    class Coupling(nn.Module):
        def __init__(self, mask):
            super().__init__()
            self.register_buffer("mask", mask)
            self.scale = nn.Sequential(nn.Linear(4, 12), nn.LeakyReLU(), nn.Linear(12, 4), nn.Tanh())
            self.shift = nn.Sequential(nn.Linear(4, 12), nn.LeakyReLU(), nn.Linear(12, 4))

        def forward(self, x):
            held = x * self.mask
            s, t = self.scale(held) * (1 - self.mask), self.shift(held) * (1 - self.mask)
            return held + (1 - self.mask) * (x * torch.exp(s) + t), s.sum(dim=1)

        def inverse(self, z):
            held = z * self.mask
            s, t = self.scale(held) * (1 - self.mask), self.shift(held) * (1 - self.mask)
            return held + (1 - self.mask) * ((z - t) * torch.exp(-s))

    masks = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]] * 2)
    layers = nn.ModuleList([Coupling(m) for m in masks])
    base = D.MultivariateNormal(torch.zeros(4), torch.eye(4))
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)

    @compile
    def step(x):
        z, log_det = x, torch.zeros(x.size(0))
        for layer in layers:
            z, part = layer(z)
            log_det = log_det + part
        loss = -(base.log_prob(z) + log_det).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(20):
        a = torch.randn(16, 2)
        losses.append(step(torch.cat([a, a**2 + 0.1 * torch.randn(16, 2)], 1)).item())
        schedule.step()
    with torch.no_grad():
        x = base.sample((5,))
        for layer in reversed(layers):
            x = layer.inverse(x)
    return losses, [x, *layers.parameters()]


def mixture_density(torch, compile):
    """A network gives weights, means and widths of a mixture; drawn from afterwards."""
    nn, D = torch.nn, torch.distributions

    class Mixture(nn.Module):
        def __init__(self, k=3):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(1, 16), nn.Tanh())
            self.pi, self.mu, self.sigma = nn.Linear(16, k), nn.Linear(16, k), nn.Linear(16, k)

        def forward(self, x):
            h = self.body(x)
            return D.MixtureSameFamily(D.Categorical(logits=self.pi(h)), D.Normal(self.mu(h), torch.exp(self.sigma(h))))

    model = Mixture()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3, alpha=0.9, momentum=0.5, centered=True)

    @compile
    def step(x, y):
        loss = -model(x).log_prob(y.squeeze(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(25):
        y = torch.empty(12, 1).uniform_(-1, 1)
        losses.append(step(y + 0.3 * torch.sin(2 * math.pi * y) + 0.05 * torch.randn(12, 1), y).item())
    with torch.no_grad():
        drawn = model(torch.linspace(-1, 1, 6).unsqueeze(1)).sample()
    return losses, [drawn, *model.parameters()]


def deconvolution_gan(torch, compile):
    """The initial weights by `apply`, batch norm in both networks, one step of each per batch."""
    nn = torch.nn

    def initial(m):
        name = m.__class__.__name__
        if name.find("Conv") != -1:
            nn.init.normal_(m.weight.data, 0.0, 0.02)
        elif name.find("BatchNorm") != -1:
            nn.init.normal_(m.weight.data, 1.0, 0.02)
            nn.init.constant_(m.bias.data, 0)

    g = nn.Sequential(
        nn.ConvTranspose2d(5, 8, 2, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(True), nn.ConvTranspose2d(4, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )
    d = nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(4, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8),
        nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(8, 1, 2, 1, 0, bias=False), nn.Sigmoid(),
    )
    g.apply(initial)
    d.apply(initial)
    criterion = nn.BCELoss()
    optimizer_d, optimizer_g = (torch.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999)) for m in (d, g))

    @compile
    def step(real, noise):
        d.zero_grad()
        label = torch.full((real.size(0),), 1.0, dtype=real.dtype)
        a = criterion(d(real).view(-1), label)
        a.backward()
        fake = g(noise)
        label.fill_(0.0)
        b = criterion(d(fake.detach()).view(-1), label)
        b.backward()
        optimizer_d.step()
        g.zero_grad()
        label.fill_(1.0)
        c = criterion(d(fake).view(-1), label)
        c.backward()
        optimizer_g.step()
        return a + b, c

    losses = []
    for _ in range(20):
        losses += [x.item() for x in step(torch.rand(4, 1, 8, 8) * 2 - 1, torch.randn(4, 5, 1, 1))]
    g.eval()
    with torch.no_grad():
        shown = g(torch.randn(2, 5, 1, 1))
    return losses, [shown, *g.parameters(), *d.parameters(), *g.buffers(), *d.buffers()]
