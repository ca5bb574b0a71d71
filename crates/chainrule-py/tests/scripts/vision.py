"""Training scripts for pictures: what people write around `nn`, `optim` and a step."""


def mlp(torch, compile):
    """Digits by a perceptron with dropout, Adam and a decaying rate."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(36, 24)
            self.fc2 = nn.Linear(24, 10)
            self.dropout = nn.Dropout(0.25)

        def forward(self, x):
            x = torch.flatten(x, 1)
            x = F.relu(self.fc1(x))
            x = self.dropout(x)
            return F.log_softmax(self.fc2(x), dim=1)

    images, labels = torch.randn(40, 1, 6, 6), torch.randint(0, 10, (40,))
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.7)

    @compile
    def train_step(data, target):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for epoch in range(4):
        model.train()
        for i in range(0, 40, 8):
            losses.append(train_step(images[i : i + 8], labels[i : i + 8]).item())
        scheduler.step()
        model.eval()
        with torch.no_grad():
            correct = (model(images).argmax(dim=1) == labels).sum().item()
    return losses, [correct, optimizer.param_groups[0]["lr"], *model.parameters()]


def cnn(torch, compile):
    """Digits by convolutions, with momentum, decay and clipped gradients."""
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5)
    )
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    images, labels = torch.randn(32, 1, 8, 8), torch.randint(0, 5, (32,))

    def step(x, y):
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, (out.argmax(1) == y).sum()

    step = compile(step)
    losses, right = [], 0
    for i in range(20):
        at = torch.randperm(32)[:8]
        loss, correct = step(images[at], labels[at])
        losses.append(loss.item())
        right += int(correct)
    model.eval()
    with torch.no_grad():
        held_out = F.cross_entropy(model(images), labels).item()
    return losses, [right, held_out, *model.state_dict().values()]


def residual(torch, compile):
    """Residual blocks with batch norm, a warm-up by LambdaLR and evaluation in between."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.shortcut = nn.Sequential()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.shortcut(x)
            return F.relu(out)

    net = nn.Sequential(Block(2, 4), Block(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 8))
    x, y = torch.randn(12, 2, 6, 6), torch.randint(0, 3, (12,))

    @compile
    def train(x, y):
        net.train()
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses, tests = [], []
    for i in range(20):
        losses.append(train(x, y).item())
        scheduler.step()
        if i % 5 == 4:
            net.eval()
            with torch.no_grad():
                tests.append(F.cross_entropy(net(x), y).item())
            net.train()
    return losses, [tests, *net.state_dict().values()]


def autoencoder(torch, compile):
    """An autoencoder of noisy pictures, whose weights are tied by hand."""
    nn, F = torch.nn, torch.nn.functional

    class Auto(nn.Module):
        def __init__(self, n=20, h=6):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(h, n) * 0.1)
            self.hidden = nn.Parameter(torch.zeros(h))
            self.visible = nn.Parameter(torch.zeros(n))

        def forward(self, x):
            h = torch.sigmoid(F.linear(x, self.weight, self.hidden))
            return torch.sigmoid(F.linear(h, self.weight.t(), self.visible))

    model = Auto()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5, centered=True)
    data = torch.rand(24, 20)

    @compile
    def step(clean, noise):
        noisy = (clean + 0.1 * noise).clamp(0.0, 1.0)
        out = model(noisy)
        loss = F.binary_cross_entropy(out, clean, reduction="sum") / clean.size(0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss, "error": ((out - clean) ** 2).mean()}

    losses, errors = [], []
    for i in range(20):
        batch = data[(i % 3) * 8 : (i % 3 + 1) * 8]
        out = step(batch, torch.randn_like(batch))
        losses.append(out["loss"].item())
        errors.append(float(out["error"]))
    return losses, [errors, *model.parameters()]


def vae(torch, compile):
    """A variational autoencoder: noise is drawn inside of the step."""
    nn, F = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(16, 12)
            self.fc21 = nn.Linear(12, 3)
            self.fc22 = nn.Linear(12, 3)
            self.fc3 = nn.Linear(3, 12)
            self.fc4 = nn.Linear(12, 16)

        def encode(self, x):
            h1 = F.relu(self.fc1(x))
            return self.fc21(h1), self.fc22(h1)

        def reparameterize(self, mu, logvar):
            std = torch.exp(0.5 * logvar)
            eps = torch.randn_like(std)
            return mu + eps * std

        def decode(self, z):
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

        def forward(self, x):
            mu, logvar = self.encode(x.view(-1, 16))
            return self.decode(self.reparameterize(mu, logvar)), mu, logvar

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = torch.rand(20, 4, 4)

    def loss_function(recon_x, x, mu, logvar):
        bce = F.binary_cross_entropy(recon_x, x.view(-1, 16), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return bce + kld

    @compile
    def step(data):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(data[:10] if i % 2 else data[10:]).item() for i in range(20)]
    with torch.no_grad():
        sample = model.decode(torch.randn(2, 3))
    return losses, [sample, *model.parameters()]


def gan(torch, compile):
    """Two networks and two optimizers; one step for each, and labels that are made once and filled
    anew.
    """
    nn = torch.nn
    generator = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 6), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid())
    criterion = nn.BCELoss()
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    label = torch.zeros(5)

    @compile
    def step_d(real, noise):
        discriminator.zero_grad()
        label.fill_(1.0)
        loss_real = criterion(discriminator(real).view(-1), label)
        loss_real.backward()
        fake = generator(noise)
        label.fill_(0.0)
        loss_fake = criterion(discriminator(fake.detach()).view(-1), label)
        loss_fake.backward()
        optimizer_d.step()
        return loss_real + loss_fake

    @compile
    def step_g(noise):
        generator.zero_grad()
        label.fill_(1.0)
        loss = criterion(discriminator(generator(noise)).view(-1), label)
        loss.backward()
        optimizer_g.step()
        return loss

    losses = []
    for _ in range(10):
        noise = torch.randn(5, 4)
        losses += [step_d(torch.randn(5, 6), noise).item(), step_g(noise).item()]
    return losses, [label, *discriminator.parameters(), *generator.parameters()]


def wgan(torch, compile):
    """A critic whose weights are clipped through `.data`."""
    nn = torch.nn
    generator = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(True), nn.Linear(8, 1))
    optimizer_g = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
    optimizer_c = torch.optim.RMSprop(critic.parameters(), lr=5e-4)

    @compile
    def critic_step(real, z):
        optimizer_c.zero_grad()
        fake = generator(z).detach()
        loss = -torch.mean(critic(real)) + torch.mean(critic(fake))
        loss.backward()
        optimizer_c.step()
        for p in critic.parameters():
            p.data.clamp_(-0.05, 0.05)
        return loss

    @compile
    def generator_step(z):
        for p in critic.parameters():
            p.requires_grad = False
        optimizer_g.zero_grad()
        loss = -torch.mean(critic(generator(z)))
        loss.backward()
        optimizer_g.step()
        for p in critic.parameters():
            p.requires_grad = True
        return loss

    losses = []
    for i in range(20):
        losses.append(critic_step(torch.randn(6, 4), torch.randn(6, 3)).item())
        if i % 3 == 2:
            losses.append(generator_step(torch.randn(6, 3)).item())
    return losses, [p for m in (generator, critic) for p in m.state_dict().values()]


def frozen_in_cycles(torch, compile):
    """A network whose halves are trained in turn, with rates of their own."""
    nn, F = torch.nn, torch.nn.functional
    body, head = nn.Sequential(nn.Linear(5, 7), nn.ReLU()), nn.Linear(7, 3)
    optimizer = torch.optim.SGD([{"params": body.parameters(), "lr": 0.01}, {"params": head.parameters()}], lr=0.1, momentum=0.9)
    x, y = torch.randn(10, 5), torch.randint(0, 3, (10,))

    @compile
    def step(x, y):
        loss = F.cross_entropy(head(body(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for i in range(20):
        train_body = i // 4 % 2 == 1
        for p in body.parameters():
            p.requires_grad = train_body
        head.requires_grad_(not train_body or i > 12)
        losses.append(step(x, y).item())
        if i == 9:
            optimizer.param_groups[1]["lr"] *= 0.1
    return losses, [*body.parameters(), *head.parameters()]
