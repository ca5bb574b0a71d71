"""Training scripts for text, graphs and tables."""

import math


def char_rnn_by_hand(torch, compile):
    """A recurrent network whose weights are plain tensors, updated by hand; the hidden state is
    carried on.
    """
    F = torch.nn.functional
    vocabulary, hidden_size = 7, 9
    w_xh = (torch.randn(hidden_size, vocabulary) * 0.1).requires_grad_()
    w_hh = (torch.randn(hidden_size, hidden_size) * 0.1).requires_grad_()
    w_hy = (torch.randn(vocabulary, hidden_size) * 0.1).requires_grad_()
    b_h, b_y = torch.zeros(hidden_size, requires_grad=True), torch.zeros(vocabulary, requires_grad=True)
    params = [w_xh, w_hh, w_hy, b_h, b_y]
    memory = [torch.zeros_like(p) for p in params]
    text = torch.randint(0, vocabulary, (101,))

    @compile
    def step(inputs, targets, h):
        loss = 0
        for t in range(5):
            x = F.one_hot(inputs[t], vocabulary).to(h.dtype)
            h = torch.tanh(w_xh @ x + w_hh @ h + b_h)
            loss = loss - F.log_softmax(w_hy @ h + b_y, dim=0)[targets[t]]
        for p in params:
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p, m in zip(params, memory):
                p.grad.clamp_(-5, 5)
                m += p.grad * p.grad
                p += -0.1 * p.grad / torch.sqrt(m + 1e-8)
        return loss, h.detach()

    h, losses = torch.zeros(hidden_size), []
    for i in range(20):
        loss, h = step(text[5 * i : 5 * i + 5], text[5 * i + 1 : 5 * i + 6], h)
        losses.append(loss.item())
    return losses, [h, *params, *memory]


def gpt(torch, compile):
    """A small transformer with causal attention, tied weights, dropout, clipping and a cosine
    schedule.
    """
    nn, F = torch.nn, torch.nn.functional
    block_size, n_embd, n_head, vocab = 6, 8, 2, 11

    class CausalSelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn = nn.Linear(n_embd, 3 * n_embd)
            self.c_proj = nn.Linear(n_embd, n_embd)
            self.attn_dropout, self.resid_dropout = nn.Dropout(0.1), nn.Dropout(0.1)
            self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(n_embd, dim=2)
            k = k.view(B, T, n_head, C // n_head).transpose(1, 2)
            q = q.view(B, T, n_head, C // n_head).transpose(1, 2)
            v = v.view(B, T, n_head, C // n_head).transpose(1, 2)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = self.attn_dropout(F.softmax(att, dim=-1))
            y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
            return self.resid_dropout(self.c_proj(y))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(n_embd), CausalSelfAttention(), nn.LayerNorm(n_embd)
            self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(n_embd, 4 * n_embd), act=nn.GELU(), c_proj=nn.Linear(4 * n_embd, n_embd)))

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            m = self.mlp
            return x + m["c_proj"](m["act"](m["c_fc"](self.ln_2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
            self.h = nn.ModuleList([Block() for _ in range(2)])
            self.ln_f = nn.LayerNorm(n_embd)
            self.lm_head = nn.Linear(n_embd, vocab, bias=False)
            self.lm_head.weight = self.wte.weight
            self.apply(self._init_weights)

        def _init_weights(self, module):
            if isinstance(module, nn.Linear):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if module.bias is not None:
                    torch.nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

        def forward(self, idx, targets=None):
            B, T = idx.size()
            x = self.wte(idx) + self.wpe(torch.arange(0, T))
            for block in self.h:
                x = block(x)
            logits = self.lm_head(self.ln_f(x))
            if targets is None:
                return logits, None
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    model = GPT()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    data = torch.randint(0, vocab, (60,))

    @compile
    def step(x, y):
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, norm

    losses, norms = [], []
    for it in range(20):
        rate = 1e-2 * 0.5 * (1.0 + math.cos(math.pi * it / 20))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ix = torch.randint(len(data) - block_size, (4,))
        x = torch.stack([data[i : i + block_size] for i in ix])
        y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
        loss, norm = step(x, y)
        losses.append(loss.item())
        norms.append(norm.item())
    model.eval()
    idx = torch.zeros((1, 1), dtype=torch.long)
    with torch.no_grad():
        for _ in range(5):
            logits, _ = model(idx[:, -block_size:])
            idx = torch.cat((idx, logits[:, -1, :].argmax(-1, keepdim=True)), dim=1)
    return losses, [norms, idx, *model.parameters()]


def matrix_factorization(torch, compile):
    """Ratings by embeddings of users and items with biases."""
    nn = torch.nn

    class MF(nn.Module):
        def __init__(self, users, items, k=3):
            super().__init__()
            self.user, self.item = nn.Embedding(users, k), nn.Embedding(items, k)
            self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
            self.user.weight.data.uniform_(0, 0.05)
            self.item.weight.data.uniform_(0, 0.05)
            self.user_bias.weight.data.zero_()
            self.item_bias.weight.data.fill_(0.1)

        def forward(self, u, v):
            return (self.user(u) * self.item(v)).sum(1) + self.user_bias(u).squeeze() + self.item_bias(v).squeeze()

    model = MF(8, 9)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, weight_decay=1e-4)
    users, items, ratings = torch.randint(0, 8, (40,)), torch.randint(0, 9, (40,)), torch.rand(40) * 5

    @compile
    def step(u, v, r):
        loss = ((model(u, v) - r) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for i in range(20):
        at = torch.randint(0, 40, (10,))
        losses.append(step(users[at], items[at], ratings[at]).item())
    return losses, list(model.parameters())


def graph_network(torch, compile):
    """Nodes of a graph by dense matrices; only some have labels."""
    nn, F = torch.nn, torch.nn.functional
    n = 10
    adjacency = (torch.rand(n, n) < 0.3).double()
    adjacency = ((adjacency + adjacency.t()) > 0).to(torch.get_default_dtype())
    adjacency.fill_diagonal_(1.0)
    degree = adjacency.sum(1).pow(-0.5)
    norm = torch.diag(degree) @ adjacency @ torch.diag(degree)
    x, y, mask = torch.randn(n, 4), torch.randint(0, 3, (n,)), torch.arange(n) % 2 == 0

    class GCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.w1 = nn.Parameter(torch.empty(4, 6))
            self.w2 = nn.Parameter(torch.empty(6, 3))
            nn.init.xavier_uniform_(self.w1)
            nn.init.kaiming_uniform_(self.w2, a=math.sqrt(5))

        def forward(self, x, adj):
            x = F.relu(adj @ (x @ self.w1))
            x = F.dropout(x, 0.3, training=self.training)
            return F.log_softmax(adj @ (x @ self.w2), dim=1)

    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)

    @compile
    def step(x, adj):
        model.train()
        optimizer.zero_grad()
        loss = F.nll_loss(model(x, adj)[mask], y[mask])
        loss.backward()
        optimizer.step()
        return loss

    losses, accuracy = [], []
    for i in range(20):
        losses.append(step(x, norm).item())
        if i % 5 == 4:
            model.eval()
            pred = model(x, norm).max(1)[1]
            accuracy.append(pred.eq(y)[~mask].double().mean().item())
            model.train()
    return losses, [accuracy, *model.parameters()]


def accumulated(torch, compile):
    """Gradients of several small batches, added up by a compiled part and used by an optimizer
    outside of it.
    """
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(40, 4), torch.randint(0, 2, (40,))

    @compile
    def micro(x, y, parts: int):
        loss = F.cross_entropy(model(x), y) / parts
        loss.backward()
        return loss.detach()

    losses, norms = [], []
    optimizer.zero_grad()
    for i in range(20):
        losses.append(micro(x[2 * i : 2 * i + 2], y[2 * i : 2 * i + 2], 4).item())
        if (i + 1) % 4 == 0:
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
            optimizer.step()
            optimizer.zero_grad()
    micro(x[:2], y[:2], 4)
    return losses, [norms, *model.parameters(), *(p.grad for p in model.parameters())]


def averaged(torch, compile):
    """A running average of the weights, kept in another model; both steps are compiled."""
    nn, F = torch.nn, torch.nn.functional
    import copy

    model = nn.Sequential(nn.Linear(3, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
    average = copy.deepcopy(model)
    for p in average.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @compile
    def step(x, y):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                a.mul_(0.9).add_(p.data, alpha=0.1)
            for a, b in zip(average.buffers(), model.buffers()):
                a.copy_(b)
            for name, p in model.named_parameters():
                shadow[name].copy_(0.5 * shadow[name] + 0.5 * p)
        return loss

    losses = [step(torch.randn(6, 3), torch.randn(6, 1)).item() for _ in range(20)]
    average.eval()
    return losses, [average(torch.ones(2, 3)), *average.state_dict().values(), *model.state_dict().values(), *shadow.values()]


def meta_steps(torch, compile):
    """Gradients through a step of gradient descent, taken by `autograd.grad` with a graph."""
    nn, F = torch.nn, torch.nn.functional
    w1, b1 = (torch.randn(1, 8) * 0.3).requires_grad_(), torch.zeros(8, requires_grad=True)
    w2 = (torch.randn(8, 1) * 0.3).requires_grad_()
    params = [w1, b1, w2]
    optimizer = torch.optim.Adam(params, lr=1e-2)

    def net(x, p):
        return torch.tanh(x @ p[0] + p[1]) @ p[2]

    @compile
    def step(x, y):
        loss = F.mse_loss(net(x[:4], params), y[:4])
        grads = torch.autograd.grad(loss, params, create_graph=True)
        fast = [p - 0.05 * g for p, g in zip(params, grads)]
        outer = F.mse_loss(net(x[4:], fast), y[4:])
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
        return outer

    losses = []
    for i in range(20):
        x = torch.rand(8, 1) * 4 - 2
        losses.append(step(x, torch.sin(x + i % 3)).item())
    return losses, params


def contrastive(torch, compile):
    """Two views of a batch drawn near each other; a temperature that is learned, and a queue of old
    keys written in place.
    """
    nn, F = torch.nn, torch.nn.functional
    encoder = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
    scale = nn.Parameter(torch.tensor(1.0))
    queue = F.normalize(torch.randn(12, 4), dim=1)
    pointer = 0
    optimizer = torch.optim.SGD([*encoder.parameters(), scale], lr=0.1, momentum=0.9, weight_decay=1e-4)

    @compile
    def step(a, b):
        q, k = F.normalize(encoder(a), dim=1), F.normalize(encoder(b), dim=1).detach()
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ queue.t()
        logits = torch.cat([positive, negative], dim=1) * scale.exp()
        loss = F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scale.data.clamp_(0.0, 2.0)
        return loss, k

    losses = []
    for _ in range(20):
        base = torch.randn(4, 5)
        loss, k = step(base + 0.1 * torch.randn(4, 5), base + 0.1 * torch.randn(4, 5))
        queue[pointer : pointer + 4] = k
        pointer = (pointer + 4) % 12
        losses.append(loss.item())
    return losses, [queue, scale, *encoder.parameters()]
