"""Training scripts with attention and routing: translation, patches, experts, graphs, speech."""

import math


def translation(torch, compile):
    """Encoder and decoder of GRUs with additive attention, teacher forcing, padded sentences."""
    nn, F = torch.nn, torch.nn.functional

    class Encoder(nn.Module):
        def __init__(self, words, width):
            super().__init__()
            self.embedding = nn.Embedding(words, width, padding_idx=0)
            self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
            self.fc = nn.Linear(2 * width, width)

        def forward(self, x):
            out, h = self.gru(self.embedding(x))
            return out, torch.tanh(self.fc(torch.cat((h[-2], h[-1]), dim=1)))

    class Attention(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.score = nn.Linear(3 * width, width)
            self.v = nn.Linear(width, 1, bias=False)

        def forward(self, h, out, mask):
            repeated = h.unsqueeze(1).repeat(1, out.shape[1], 1)
            scores = self.v(torch.tanh(self.score(torch.cat((repeated, out), dim=2)))).squeeze(2)
            return F.softmax(scores.masked_fill(mask == 0, -1e10), dim=1)

    class Decoder(nn.Module):
        def __init__(self, words, width):
            super().__init__()
            self.embedding, self.attention = nn.Embedding(words, width), Attention(width)
            self.cell = nn.GRUCell(3 * width, width)
            self.fc = nn.Linear(4 * width, words)

        def forward(self, token, h, out, mask):
            e = self.embedding(token)
            context = torch.bmm(self.attention(h, out, mask).unsqueeze(1), out).squeeze(1)
            h = self.cell(torch.cat((e, context), 1), h)
            return self.fc(torch.cat((h, context, e), 1)), h

    encoder, decoder = Encoder(9, 6), Decoder(7, 6)
    for p in [*encoder.parameters(), *decoder.parameters()]:
        nn.init.uniform_(p.data, -0.3, 0.3)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    criterion = nn.CrossEntropyLoss(ignore_index=0)

    @compile
    def step(source, target, forced):
        optimizer.zero_grad()
        out, h = encoder(source)
        mask = source != 0
        token, outputs = target[:, 0], []
        for t in range(1, target.size(1)):
            scores, h = decoder(token, h, out, mask)
            outputs.append(scores)
            token = torch.where(forced[t], target[:, t], scores.argmax(1))
        outputs = torch.stack(outputs, 1)
        loss = criterion(outputs.reshape(-1, outputs.size(-1)), target[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 1)
        optimizer.step()
        return loss

    losses = []
    for _ in range(20):
        source, target = torch.randint(1, 9, (4, 5)), torch.randint(1, 7, (4, 6))
        source[0, 3:] = 0
        target[1, 4:] = 0
        losses.append(step(source, target, torch.rand(6) < 0.5).item())
    return losses, [*encoder.parameters(), *decoder.parameters()]


def patches(torch, compile):
    """A vision transformer: patches by unfold, a class token, learned places, warm-up."""
    nn, F = torch.nn, torch.nn.functional

    class ViT(nn.Module):
        def __init__(self, width=8, heads=2):
            super().__init__()
            self.embed = nn.Linear(16, width)
            self.token = nn.Parameter(torch.zeros(1, 1, width))
            self.places = nn.Parameter(torch.randn(1, 5, width) * 0.02)
            layer = nn.TransformerEncoderLayer(width, heads, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
            self.head = nn.Linear(width, 3)

        def forward(self, x):
            x = x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(4).squeeze(1).flatten(1, 2)
            x = torch.cat([self.token.expand(x.size(0), -1, -1), self.embed(x)], dim=1) + self.places
            return self.head(self.encoder(x)[:, 0])

    model = ViT()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], lr=3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / 5, 0.5 * (1 + math.cos(math.pi * s / 20))))

    @compile
    def step(x, y):
        logits = model(x)
        loss = F.cross_entropy(logits, y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, (logits.argmax(-1) == y).double().mean()

    losses, shares = [], []
    for _ in range(20):
        loss, share = step(torch.randn(6, 1, 8, 8), torch.randint(3, (6,)))
        schedule.step()
        losses.append(loss.item())
        shares.append(share.item())
    return losses, [shares, *model.parameters()]


def experts(torch, compile):
    """Tokens go to two of four experts by a gate with noise; a second loss balances them."""
    nn, F = torch.nn, torch.nn.functional

    class Experts(nn.Module):
        def __init__(self, width, n, k):
            super().__init__()
            self.k, self.n = k, n
            self.gate = nn.Linear(width, n, bias=False)
            self.experts = nn.ModuleList([nn.Sequential(nn.Linear(width, 12), nn.GELU(), nn.Linear(12, width)) for _ in range(n)])

        def forward(self, x, noise):
            logits = self.gate(x)
            best, places = (logits + noise).topk(self.k, dim=-1)
            weights = torch.zeros_like(logits).scatter(-1, places, F.softmax(best, dim=-1))
            out = torch.stack([e(x) for e in self.experts], dim=-2)
            used = F.one_hot(places[..., 0], self.n).to(x.dtype).mean(0)
            balance = self.n * (used * F.softmax(logits, -1).mean(0)).sum()
            return x + (weights.unsqueeze(-1) * out).sum(-2), balance

    body, moe, head = nn.Linear(3, 6), Experts(6, 4, 2), nn.Linear(6, 1)
    parameters = [*body.parameters(), *moe.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)

    @compile
    def step(x, noise):
        h, balance = moe(torch.relu(body(x)), noise)
        loss = F.smooth_l1_loss(head(h).squeeze(-1), x.prod(-1)) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(torch.randn(10, 3), 0.1 * torch.randn(10, 4)).item() for _ in range(22)]
    return losses, parameters


def graph_attention(torch, compile):
    """Attention over the edges of a graph by `index_add_` and `scatter_reduce`, dropout on it."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, i, o, heads):
            super().__init__()
            self.heads, self.width = heads, o
            self.lin = nn.Linear(i, heads * o, bias=False)
            self.a = nn.Parameter(torch.empty(1, heads, 2 * o))
            self.bias = nn.Parameter(torch.zeros(heads * o))
            nn.init.xavier_uniform_(self.lin.weight)
            nn.init.xavier_uniform_(self.a)

        def forward(self, x, edges):
            n = x.size(0)
            h = self.lin(x).view(n, self.heads, self.width)
            source, target = edges
            e = F.leaky_relu((torch.cat([h[target], h[source]], -1) * self.a).sum(-1), 0.2)
            index = target.unsqueeze(-1).expand_as(e)
            most = torch.full((n, self.heads), float("-inf"), dtype=e.dtype).scatter_reduce(0, index, e.detach(), "amax")
            e = (e - most[target]).exp()
            total = torch.zeros(n, self.heads, dtype=e.dtype).index_add_(0, target, e)
            alpha = F.dropout(e / (total[target] + 1e-16), 0.3, self.training)
            out = torch.zeros_like(h).index_add(0, target, alpha.unsqueeze(-1) * h[source])
            return out.flatten(1) + self.bias

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = Attention(4, 3, 2), Attention(6, 3, 1)

        def forward(self, x, edges):
            x = F.dropout(x, p=0.2, training=self.training)
            return F.log_softmax(self.two(F.elu(self.one(x, edges)), edges), dim=1)

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    x, y = torch.randn(10, 4), torch.randint(0, 3, (10,))
    edges = torch.cat([torch.randint(0, 10, (2, 30)), torch.arange(10).repeat(2, 1)], dim=1)
    learned = torch.zeros(10, dtype=torch.bool)
    learned[:6] = True
    places = learned.nonzero().squeeze(1)

    @compile
    def step():
        model.train()
        optimizer.zero_grad()
        loss = F.nll_loss(model(x, edges)[places], y[places])
        loss.backward()
        optimizer.step()
        return loss

    model.train()
    losses = [step().item() for _ in range(20)]
    model.eval()
    with torch.no_grad():
        shown = model(x, edges)[~learned]
    return losses, [shown, *model.parameters()]


def speech(torch, compile):
    """Convolutions over time, a bidirectional LSTM, CTC with lengths, clipping by value."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Sequential(nn.Conv1d(3, 6, 3, padding=1, bias=False), nn.BatchNorm1d(6), nn.Hardtanh(0, 6))
            self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True)
            self.out = nn.Linear(10, 5)

        def forward(self, x):
            h, _ = self.lstm(self.conv(x).permute(2, 0, 1))
            return F.log_softmax(self.out(h), dim=-1)

    model = Net()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    lengths = torch.tensor([10, 8, 9])

    @compile
    def step(x, targets, target_lengths):
        loss = F.ctc_loss(model(x), targets, lengths, target_lengths, zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.2)
        optimizer.step()
        return loss

    losses = []
    sizes = torch.tensor([4, 2, 3])
    for _ in range(20):
        losses.append(step(torch.randn(3, 3, 10), torch.randint(1, 5, (3, 4)), sizes).item())
    return losses, [*model.parameters(), *model.buffers()]
