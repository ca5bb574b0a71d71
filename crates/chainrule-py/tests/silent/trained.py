"""Programs of daily use: whole trainings, some of their functions compiled."""

import copy


def compiled_accumulates_over_parts(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    o = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.1)

    @compile
    def part(x, n):
        loss = net(x).pow(2).mean() / n
        loss.backward()
        return loss.detach()

    out = []
    for i in range(6):
        out.append(part(torch.randn(2, 3), 3))
        if i % 3 == 2:
            out.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1))
            out.append(net.weight.grad.clone())
            o.step()
            o.zero_grad(set_to_none=i == 2)
    return out, net.weight


def optimizer_step_inside_with_grad_read_out(torch, compile):
    w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    o = torch.optim.SGD([w], lr=0.1)

    @compile
    def step():
        o.zero_grad()
        (w**2).sum().backward()
        norm = w.grad.norm()
        o.step()
        return norm, w.grad.clone()

    out = [step(), step()]
    o.zero_grad()
    (w * 3).sum().backward()
    return out, w.grad, w


def weights_made_from_other_networks(torch, compile):
    torch.manual_seed(0)
    hyper = torch.nn.Linear(2, 6)
    o = torch.optim.SGD(hyper.parameters(), lr=0.1)

    @compile
    def step(z, x):
        w = hyper(z).view(3, 2)
        y = torch.nn.functional.linear(x, w)
        loss = y.pow(2).mean()
        o.zero_grad()
        loss.backward()
        o.step()
        return loss

    return [step(torch.ones(2), torch.ones(4, 2) * k) for k in range(1, 4)], hyper.weight


def sharpness_aware_steps(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1)
    o = torch.optim.SGD(net.parameters(), lr=0.1)
    f = compile(lambda x: net(x).pow(2).mean())
    out = []
    for _ in range(3):
        x = torch.randn(4, 2)
        loss = f(x)
        loss.backward()
        kept = [p.data.clone() for p in net.parameters()]
        with torch.no_grad():
            scale = 0.05 / torch.norm(torch.stack([p.grad.norm() for p in net.parameters()]))
            for p in net.parameters():
                p.add_(p.grad * scale)
        o.zero_grad()
        f(x).backward()
        with torch.no_grad():
            for p, k in zip(net.parameters(), kept):
                p.data = k
        o.step()
        o.zero_grad()
        out.append(loss)
    return out, net.weight, net.bias


def evolution_without_gradients(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    flat = torch.nn.utils.parameters_to_vector(net.parameters()).detach()
    score = compile(lambda x: -net(x).pow(2).sum())
    with torch.no_grad():
        for _ in range(3):
            noise = torch.randn(4, flat.numel())
            rewards = []
            for n in noise:
                torch.nn.utils.vector_to_parameters(flat + 0.1 * n, net.parameters())
                rewards.append(score(torch.ones(2, 3)))
            r = torch.stack(rewards)
            flat += 0.05 * (noise * ((r - r.mean()) / (r.std() + 1e-8))[:, None]).mean(0)
            torch.nn.utils.vector_to_parameters(flat, net.parameters())
    return flat, net.weight, net.bias


def pruned_and_masked_training(torch, compile):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    mask = (net.weight.abs() > 0.2).float()
    net.weight.register_hook(lambda g: g * mask)
    net.weight.data *= mask
    o = torch.optim.Adam(net.parameters(), lr=0.05)
    out = []
    for i in range(4):
        o.zero_grad()
        net(torch.randn(3, 4)).pow(2).sum().backward()
        o.step()
        if i == 1:
            mask[0].zero_()
            with torch.no_grad():
                net.weight.mul_(mask)
        out.append(net.weight.detach().clone())
    return out, (net.weight == 0).sum()


def own_layers_with_states(torch, compile):
    class Quantizer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.linspace(-1, 1, 5)[:, None].repeat(1, 2))
            self.register_buffer("used", torch.zeros(5))

        def forward(self, x):
            with torch.no_grad():
                i = torch.cdist(x, self.table).argmin(1)
                if self.training:
                    hot = torch.nn.functional.one_hot(i, 5).float()
                    self.used.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                    self.table.lerp_((hot.t() @ x) / (hot.sum(0)[:, None] + 1), 0.2)
            q = self.table[i]
            return x + (q - x).detach()

    torch.manual_seed(0)
    q, l = Quantizer(), torch.nn.Linear(2, 2)
    step = compile(lambda x: q(l(x)).pow(2).sum())
    out = []
    for k in range(4):
        q.train(k != 2)
        loss = step(torch.randn(6, 2))
        loss.backward()
        out.append((loss, q.used.clone()))
    return out, q.table, l.weight.grad


def contrastive_with_a_queue(torch, compile):
    torch.manual_seed(0)
    F = torch.nn.functional
    net, slow = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    slow.load_state_dict(net.state_dict())
    for p in slow.parameters():
        p.requires_grad = False
    queue, place = F.normalize(torch.randn(8, 2), dim=1), 0
    o = torch.optim.SGD(net.parameters(), lr=0.1)

    @compile
    def loss_of(a, b, q):
        x = F.normalize(net(a), dim=1)
        with torch.no_grad():
            y = F.normalize(slow(b), dim=1)
        logits = torch.cat([(x * y).sum(1, keepdim=True), x @ q.t()], 1) / 0.2
        return F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long)), y

    out = []
    for _ in range(5):
        x = torch.randn(3, 3)
        loss, y = loss_of(x + 0.1, x - 0.1, queue.clone().detach())
        o.zero_grad()
        loss.backward()
        o.step()
        for p, s in zip(net.parameters(), slow.parameters()):
            s.data = s.data * 0.9 + p.data * 0.1
        end = min(place + 3, 8)
        queue[place:end] = y[: end - place]
        place = end % 8
        out.append(loss)
    return out, queue, slow.weight


def loss_scaled_by_learned_weights(torch, compile):
    log_vars = torch.nn.Parameter(torch.zeros(2))
    a, b = torch.nn.Parameter(torch.tensor(2.0)), torch.nn.Parameter(torch.tensor(-1.0))
    o = torch.optim.Adam([{"params": [a, b]}, {"params": [log_vars], "lr": 0.5, "weight_decay": 0.1}], lr=0.1)

    @compile
    def step(target):
        losses = torch.stack([(a - target) ** 2, (b + target) ** 2])
        loss = (losses * torch.exp(-log_vars) + log_vars).sum()
        o.zero_grad(set_to_none=True)
        loss.backward()
        o.step()
        return loss, losses.detach()

    out = [step(float(k)) for k in range(3)] + [step(torch.tensor(0.5))]
    return out, a, b, log_vars, o.state[log_vars]["exp_avg"]


def several_models_in_one_vmap(torch, compile):
    from importlib import import_module

    func = import_module(torch.__name__ + ".func")
    torch.manual_seed(0)
    nets = [torch.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = func.stack_module_state(nets)
    base = copy.deepcopy(nets[0])

    def loss(p, x):
        return func.functional_call(base, p, (x,)).pow(2).mean()

    x = torch.ones(4, 2)
    grads = func.vmap(func.grad(loss), in_dims=(0, None))(params, x)
    with torch.no_grad():
        for k in params:
            params[k] -= 0.1 * grads[k]
    per_sample = func.vmap(func.grad(lambda p, t: loss(p, t[None])), in_dims=(None, 0))(dict(nets[1].named_parameters()), x * torch.arange(4.0)[:, None])
    jac = func.jacrev(lambda t: nets[0](t).sin())(x[0])
    return params, per_sample, jac, nets[0].weight


def a_state_for_the_whole_run(torch, compile):
    import random

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    o = torch.optim.AdamW(net.parameters(), lr=0.1, amsgrad=True)
    s = torch.optim.lr_scheduler.CosineAnnealingLR(o, 10)
    step_of = lambda net, o: compile(lambda x: (o.zero_grad(), net(x).pow(2).mean().backward(), o.step())[0])

    def train(net, o, s, n):
        step = step_of(net, o)
        for _ in range(n):
            step(torch.randn(3, 2))
            s.step()

    train(net, o, s, 3)
    kept = copy.deepcopy({"m": net.state_dict(), "o": o.state_dict(), "s": s.state_dict(), "r": torch.get_rng_state(), "p": random.getstate()})
    train(net, o, s, 3)
    right = net[0].weight.clone()
    other = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    o2 = torch.optim.AdamW(other.parameters(), lr=5.0)
    s2 = torch.optim.lr_scheduler.CosineAnnealingLR(o2, 99)
    other.load_state_dict(kept["m"])
    o2.load_state_dict(kept["o"])
    s2.load_state_dict(kept["s"])
    torch.set_rng_state(kept["r"])
    train(other, o2, s2, 3)
    return right, other[0].weight, torch.equal(right, other[0].weight), s2.get_last_lr(), sorted(k for k in o2.state[other[0].weight])
