"""Training scripts of reinforcement learning, on worlds of a few numbers."""


def dqn(torch, compile):
    """Q-learning with a replay memory and a target network that is loaded now and then, and moved
    softly.
    """
    nn, F = torch.nn, torch.nn.functional
    make = lambda: nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 2))
    policy, target = make(), make()
    target.load_state_dict(policy.state_dict())
    target.eval()
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-2)
    states, following = torch.randn(50, 4), torch.randn(50, 4)
    actions, rewards, final = torch.randint(0, 2, (50, 1)), torch.randn(50), torch.rand(50) < 0.2

    @compile
    def optimize(state, action, reward, next_state, done):
        values = policy(state).gather(1, action)
        with torch.no_grad():
            ahead = target(next_state).max(1)[0]
            ahead[done] = 0.0
        expected = reward + 0.9 * ahead
        loss = F.smooth_l1_loss(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        for p in policy.parameters():
            p.grad.data.clamp_(-1, 1)
        optimizer.step()
        return loss

    losses = []
    for i in range(20):
        at = torch.randint(0, 50, (8,))
        losses.append(optimize(states[at], actions[at], rewards[at], following[at], final[at]).item())
        if i == 9:
            target.load_state_dict(policy.state_dict())
        for t, p in zip(target.parameters(), policy.parameters()):
            t.data.copy_(0.95 * t.data + 0.05 * p.data)
    return losses, [*policy.parameters(), *target.parameters()]


def policy_gradient(torch, compile):
    """REINFORCE: whole episodes are played, and the log chances of what was done are weighted with
    what came of it.
    """
    nn, F = torch.nn, torch.nn.functional
    policy = nn.Sequential(nn.Linear(3, 8), nn.Dropout(p=0.2), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

    @compile
    def learn(states, actions, returns):
        log_probs = torch.log(policy(states)).gather(1, actions.view(-1, 1)).squeeze(1)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        loss = (-log_probs * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for episode in range(20):
        state, states, actions, rewards = torch.randn(3), [], [], []
        for _ in range(6):
            with torch.no_grad():
                probs = policy(state)
            action = torch.multinomial(probs, 1).item()
            states.append(state)
            actions.append(action)
            rewards.append(float(state.sum()) * (1 if action else -1))
            state = torch.tanh(state * 0.9 + 0.3 * torch.randn(3))
        returns, R = [], 0.0
        for r in rewards[::-1]:
            R = r + 0.9 * R
            returns.insert(0, R)
        losses.append(learn(torch.stack(states), torch.tensor(actions), torch.tensor(returns)).item())
    return losses, list(policy.parameters())


def actor_critic(torch, compile):
    """Clipped surrogate objective over several epochs of one batch, with an entropy bonus and a
    value that is learned beside.
    """
    nn, F = torch.nn, torch.nn.functional

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh())
            self.actor, self.critic = nn.Linear(8, 3), nn.Linear(8, 1)
            nn.init.constant_(self.actor.bias, 0.0)

        def forward(self, x):
            h = self.body(x)
            return self.actor(h), self.critic(h).squeeze(-1)

    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2e-3, eps=1e-5)

    @compile
    def update(obs, act, old_log, adv, ret, clip: float = 0.2):
        logits, value = agent(obs)
        log = F.log_softmax(logits, dim=-1)
        chosen = log[torch.arange(len(act)), act]
        ratio = (chosen - old_log).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        policy_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - clip, 1 + clip)).mean()
        value_loss = 0.5 * ((value - ret) ** 2).mean()
        entropy = -(log.exp() * log).sum(-1).mean()
        loss = policy_loss - 0.01 * entropy + 0.5 * value_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        return loss, (ratio.detach() - 1).abs().max()

    losses, moved = [], []
    for batch in range(5):
        obs = torch.randn(16, 3)
        with torch.no_grad():
            logits, value = agent(obs)
            act = torch.multinomial(F.softmax(logits, -1), 1).squeeze(-1)
            old = F.log_softmax(logits, -1).gather(1, act[:, None])[:, 0]
        reward = obs.sum(1) * (act - 1)
        for epoch in range(4):
            at = torch.randperm(16)[:8]
            loss, far = update(obs[at], act[at], old[at], (reward - value)[at], reward[at], clip=0.2 if epoch < 2 else 0.1)
            losses.append(loss.item())
            moved.append(far.item())
        optimizer.param_groups[0]["lr"] *= 0.8
    return losses, [moved, *agent.parameters()]
