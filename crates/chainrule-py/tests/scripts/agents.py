"""Scripts whose tensors are read as arrays of NumPy while they are written, and tables of words."""

import numpy as np


def proximal_policy(torch, compile):
    """Rollouts in buffers, whose values are read as arrays that stay alive over the next one."""
    nn, rng = torch.nn, np.random.default_rng(1)
    steps, places = 8, 2

    def layer(a, b, gain):
        new = nn.Linear(a, b)
        nn.init.orthogonal_(new.weight, gain)
        nn.init.constant_(new.bias, 0.0)
        return new

    critic = nn.Sequential(layer(3, 8, np.sqrt(2)), nn.Tanh(), layer(8, 1, 1.0))
    actor = nn.Sequential(layer(3, 8, np.sqrt(2)), nn.Tanh(), layer(8, 2, 0.01))
    parameters = [*critic.parameters(), *actor.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-2, eps=1e-5)
    obs, actions, logprobs, rewards, values = (torch.zeros((steps, places, *s)) for s in ((3,), (), (), (), ()))

    @compile
    def update(o, a, old, advantages, returns):
        dist = torch.distributions.Categorical(logits=actor(o))
        ratio = (dist.log_prob(a) - old).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        policy = torch.max(-advantages * ratio, -advantages * torch.clamp(ratio, 0.8, 1.2)).mean()
        loss = policy - 0.01 * dist.entropy().mean() + 0.5 * ((critic(o).view(-1) - returns) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        return loss

    losses = []
    state = torch.tensor(rng.normal(size=(places, 3)))
    for round in range(5):
        optimizer.param_groups[0]["lr"] = (1 - round / 5) * 1e-2
        for t in range(steps):
            obs[t] = state
            with torch.no_grad():
                dist = torch.distributions.Categorical(logits=actor(state))
                action = dist.sample()
                values[t] = critic(state).flatten()
                actions[t], logprobs[t] = action, dist.log_prob(action)
            right = action.cpu().numpy() == (state[:, 0].numpy() > 0)
            rewards[t] = torch.tensor(right.astype(float)).view(-1)
            state = torch.tensor(rng.normal(size=(places, 3)))
        with torch.no_grad():
            following = critic(state).reshape(1, -1)
            advantages, last = torch.zeros_like(rewards), 0
            for t in reversed(range(steps)):
                after = following if t == steps - 1 else values[t + 1]
                advantages[t] = last = rewards[t] + 0.99 * after - values[t] + 0.99 * 0.95 * last
            returns = advantages + values
        order = np.arange(steps * places)
        flat = obs.reshape((-1, 3)), actions.reshape(-1), logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
        for _ in range(2):
            rng.shuffle(order)
            for at in range(0, steps * places, 8):
                rows = order[at : at + 8]
                o, a, *others = (x[rows] for x in flat)
                losses.append(update(o, a.long(), *others).item())
        predicted, true = values.reshape(-1).cpu().numpy(), flat[-1].cpu().numpy()
        losses.append(float(1 - np.var(true - predicted) / np.var(true)))
    return losses, parameters


def skip_grams(torch, compile):
    """Two tables of words, of which a step changes few rows, with drawn negatives."""
    nn, F, rng = torch.nn, torch.nn.functional, np.random.default_rng(4)
    inner, outer = nn.Embedding(20, 6, sparse=True), nn.Embedding(20, 6, sparse=True)
    nn.init.uniform_(inner.weight.data, -1 / 6, 1 / 6)
    nn.init.constant_(outer.weight.data, 0)
    optimizer = torch.optim.SparseAdam([*inner.parameters(), *outer.parameters()], lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    weights, losses = torch.tensor(rng.random(20)).pow(0.75), []
    for _ in range(20):
        word, near = (torch.tensor(rng.integers(0, 20, 8)) for _ in range(2))
        others = torch.multinomial(weights, 8 * 3, replacement=True).view(8, 3)
        optimizer.zero_grad()
        u = inner(word)
        right = F.logsigmoid(torch.clamp((u * outer(near)).sum(1), min=-10, max=10))
        wrong = F.logsigmoid(-torch.clamp(torch.bmm(outer(others), u.unsqueeze(2)).squeeze(), min=-10, max=10))
        loss = -(right + wrong.sum(1)).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, [inner.weight, F.cosine_similarity(inner.weight[:1], inner.weight)]
