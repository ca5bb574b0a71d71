"""Loops of PyTorch of kinds that tests elsewhere lack: right ones, and ones with a mistake each."""

from __future__ import annotations

import copy
import math
from typing import Any

import chainrule as cr
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def pictures(n: int, size: int = 12) -> torch.Tensor:
    """Bright squares on a dark ground."""
    x = torch.zeros(n, 1, size, size)
    for i in range(n):
        a, b = torch.randint(0, size - 5, (2,)).tolist()
        x[i, 0, a : a + 4, b : b + 5] = 1.0
    return x


def waves(n: int, length: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy waves of one of three frequencies."""
    y = torch.arange(n) % 3
    t = torch.arange(length) / length
    phase = 6.28 * torch.rand(n, 1)
    return torch.sin(6.28 * (y[:, None] + 1) * t + phase)[..., None] + 0.2 * torch.randn(n, length, 1), y


def table(n: int, columns: int = 8, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.arange(n) % classes
    return 1.5 * torch.randn(classes, columns)[y] + torch.randn(n, columns), y


class Unet(nn.Module):
    def __init__(self, end: nn.Module | None = None) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(16, 1, 3, padding=1)
        self.end = end or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = F.relu(self.down(x))
        return self.end(self.out(torch.cat([high, F.relu(self.up(F.relu(self.deep(high))))], 1)))


class Recurrent(nn.Module):
    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, 24, batch_first=batch_first), nn.Linear(24, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(1, 24)
        self.place = nn.Parameter(0.1 * torch.randn(24, 24))
        self.block = nn.TransformerEncoderLayer(24, 4, 48, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.into(x) + self.place).mean(1))


def batches(data: tuple[torch.Tensor, ...], size: int, epochs: int) -> Any:
    for _ in range(epochs):
        for part in torch.randperm(len(data[0])).split(size):
            yield tuple(t[part] for t in data)


def run(model: nn.Module, optimizer: Any, data: Any, loss: Any, schedule: Any = None, clip: float | None = None) -> Any:
    with cr.torch.monitor(model, optimizer) as m:
        for x, y in data:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if schedule is not None:
                schedule.step()
    return m.findings()


# Right loops


def denoises() -> Any:
    """A net with a way around, whose rate rises and falls."""
    model, clean = Unet(), pictures(256)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=240)
    return run(model, optimizer, batches((clean + 0.3 * torch.randn_like(clean), clean), 32, 30), F.mse_loss, schedule)


def listens(batch_first: bool = True) -> Any:
    model, data = Recurrent(batch_first), waves(240)
    return run(model, torch.optim.Adam(model.parameters(), 5e-3), batches(data, 30, 40), F.cross_entropy, clip=1.0)


def trains_a_head() -> Any:
    """Features that were learned before, at rest, and a head on them."""
    (x, y), backbone = table(320), nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU())
    model = nn.Sequential(backbone, nn.Linear(32, 4))
    before = torch.optim.Adam(model.parameters(), 0.01)
    for a, b in batches((x, y), 32, 5):
        before.zero_grad()
        F.cross_entropy(model(a), b).backward()
        before.step()
    model[1] = nn.Linear(32, 4)
    backbone.requires_grad_(False).eval()
    return run(model, torch.optim.Adam(model[1].parameters(), 3e-3), batches((x, y), 16, 20), F.cross_entropy)


def judges(label: float = 0.0) -> Any:
    """The judge of a game is watched, and the maker is stepped beside it."""
    makes = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    judge = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    by_maker, by_judge = torch.optim.Adam(makes.parameters(), 1e-3), torch.optim.Adam(judge.parameters(), 1e-3)
    loss = F.binary_cross_entropy_with_logits
    with cr.torch.monitor(judge, by_judge) as m:
        for _ in range(400):
            real = torch.randn(64, 2) @ torch.tensor([[1.0, 0.5], [0.0, 0.5]]) + 2.0
            made = makes(torch.randn(64, 4))
            both = torch.cat([real, made.detach()])
            by_judge.zero_grad()
            loss(judge(both), torch.cat([torch.ones(64, 1), torch.full((64, 1), label)])).backward()
            by_judge.step()
            by_maker.zero_grad()
            loss(judge(made), torch.ones(64, 1)).backward()
            by_maker.step()
    return m.findings()


def accumulates(zeroes: bool = True) -> Any:
    """Eight small batches for a step, the rate warmed up and lowered along a cosine."""
    model, data = nn.Sequential(nn.Linear(8, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4)), table(512)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, i / 20) * 0.5 * (1 + math.cos(math.pi * min(1.0, i / 160))))
    with cr.torch.monitor(model, optimizer) as m:
        for i, (x, y) in enumerate(batches(data, 8, 20)):
            (F.cross_entropy(model(x), y) / 8).backward()
            if i % 8 == 7:
                optimizer.step()
                schedule.step()
                if zeroes:
                    optimizer.zero_grad()
    return m.findings()


def encodes() -> Any:
    """A variational autoencoder, whose second loss comes in slowly."""
    into, out = nn.Sequential(nn.Flatten(), nn.Linear(144, 64), nn.ReLU(), nn.Linear(64, 16)), nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 144))
    model, x = nn.ModuleDict({"into": into, "out": out}), pictures(512)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    with cr.torch.monitor(model, optimizer) as m:
        for i, (a,) in enumerate(batches((x,), 64, 50)):
            mean, log = into(a).chunk(2, 1)
            made = out(mean + (log / 2).exp() * torch.randn_like(mean))
            of_code = -0.5 * (1 + log - mean.square() - log.exp()).sum(1).mean()
            loss = F.binary_cross_entropy_with_logits(made, a.flatten(1), reduction="sum") / len(a) + min(1.0, i / 200) * of_code
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return m.findings()


def compares() -> Any:
    """Twins, whose loss becomes exactly zero."""
    model, (x, y) = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), table(256)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with cr.torch.monitor(model, optimizer) as m:
        for _ in range(300):
            a = torch.randint(0, 256, (32,))
            b, c = (a + 4 * torch.randint(1, 60, (32,))) % 256, (a + 1) % 256
            optimizer.zero_grad()
            F.triplet_margin_loss(model(x[a]), model(x[b]), model(x[c]), 0.5).backward()
            optimizer.step()
    return m.findings()


def attends(rate: float = 3e-3) -> Any:
    """Batches of four, smoothed labels and a rate that is warmed up."""
    model, (x, y) = Attentive(), waves(240)
    data = (x + 0.4 * (y[:, None, None] - 1), y)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=60)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    return run(model, optimizer, batches(data, 4, 10), loss, schedule)


class TwoHeads(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.body, self.kind, self.size = nn.Linear(8, 32), nn.Linear(32, 4), nn.Linear(32, 1)
        self.logs, self.cut = nn.Parameter(torch.zeros(2)), cut

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.tanh(self.body(x))
        size = self.size(h)
        return self.kind(h), size.detach() if self.cut else size


def weighs(cut: bool = False) -> Any:
    """Two losses, weighted by uncertainties that are learned: their sum goes below zero."""
    model, (x, y) = TwoHeads(cut), table(320)
    size = x @ torch.randn(8, 1) * 0.5
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    with cr.torch.monitor(model, optimizer) as m:
        for a, b, c in batches((x, y, size), 32, 40):
            kind, guess = model(a)
            losses = torch.stack([F.cross_entropy(kind, b), F.mse_loss(guess, c)])
            optimizer.zero_grad()
            ((-model.logs).exp() * losses + model.logs / 2).sum().backward()
            optimizer.step()
    return m.findings()


def plays(scale: float = 1.0) -> Any:
    """Values of moves by their own estimate a step later, of a net that follows slowly."""
    model = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 3))
    late, effect = copy.deepcopy(model), 0.5 * torch.randn(3, 4)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    with cr.torch.monitor(model, optimizer) as m:
        for _ in range(500):
            x, move = torch.randn(64, 4), torch.randint(0, 3, (64,))
            new = 0.7 * x + effect[move]
            with torch.no_grad():
                wanted = scale * -new.square().sum(1) / 4 + 0.8 * late(new).max(1).values
            optimizer.zero_grad()
            F.smooth_l1_loss(model(x).gather(1, move[:, None])[:, 0], wanted).backward()
            optimizer.step()
            for p, q in zip(late.parameters(), model.parameters()):
                p.data.lerp_(q.data, 0.05)
    return m.findings()


class OfNeighbours(nn.Module):
    def __init__(self, links: torch.Tensor, end: nn.Module) -> None:
        super().__init__()
        self.first, self.last, self.end = nn.Linear(8, 24), nn.Linear(24, 4), end
        self.register_buffer("links", links)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.end(self.last(self.links @ F.relu(self.first(self.links @ x))))


def of_a_graph(end: nn.Module | None = None) -> Any:
    """All nodes in each step, of which a fifth has labels."""
    x, y = table(200)
    near = ((y[:, None] == y) & (torch.rand(200, 200) < 0.06)).float() + torch.eye(200) + (torch.rand(200, 200) < 0.004).float()
    model, known = OfNeighbours(near / near.sum(1, keepdim=True), end or nn.Identity()), torch.arange(0, 200, 5) + torch.arange(40) % 5
    optimizer = torch.optim.Adam(model.parameters(), 0.01, weight_decay=5e-4)
    with cr.torch.monitor(model, optimizer) as m:
        for _ in range(200):
            optimizer.zero_grad()
            F.cross_entropy(model(x)[known], y[known]).backward()
            optimizer.step()
    return m.findings()


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.one, self.two = nn.BatchNorm1d(32), nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.two(F.relu(self.one(self.norm(x))))


def is_deep(evaluates: bool = True, decay: float = 5e-4) -> Any:
    """Ten blocks with ways around, measured after each pass over the data."""
    model = nn.Sequential(nn.Linear(8, 32), *[Around() for _ in range(10)], nn.BatchNorm1d(32), nn.Linear(32, 4))
    x, y = table(480)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 8, 0.3)
    with cr.torch.monitor(model, optimizer) as m:
        for _ in range(20):
            for a, b in batches((x[:400], y[:400]), 32, 1):
                optimizer.zero_grad()
                F.cross_entropy(model(a), b).backward()
                optimizer.step()
            schedule.step()
            if evaluates:
                model.eval()
            with torch.no_grad():
                m.validated(F.cross_entropy(model(x[400:]), y[400:]))
            model.train()
    return m.findings()


RIGHT = {f.__name__: f for f in (denoises, listens, trains_a_head, judges, accumulates, encodes, compares, attends, weighs, plays, of_a_graph, is_deep)}


# Mistakes


def takes_places_for_examples() -> Any:
    return listens(batch_first=False)


def never_warms_up() -> Any:
    model, data = Recurrent(), waves(240)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, epoch / 10))
    assert schedule.last_epoch == 0
    # The schedule is meant to be stepped, and is not.
    return run(model, optimizer, batches(data, 24, 20), F.cross_entropy)


def calls_all_real() -> Any:
    return judges(1.0)


def leaves_the_head_out() -> Any:
    (x, y), backbone = table(320), nn.Sequential(nn.Linear(8, 32), nn.ReLU())
    model = nn.Sequential(backbone, nn.Linear(32, 4))
    return run(model, torch.optim.Adam(backbone.parameters(), 3e-4), batches((x, y), 16, 20), F.cross_entropy)


def never_zeroes() -> Any:
    return accumulates(zeroes=False)


def bounds_what_is_centred() -> Any:
    """A sigmoid before targets that lie on both sides of zero."""
    model, clean = Unet(nn.Sigmoid()), 4.0 * pictures(256) - 1.0
    return run(model, torch.optim.AdamW(model.parameters(), 3e-3), batches((clean + 0.3 * torch.randn_like(clean), clean), 32, 20), F.mse_loss)


def leaps() -> Any:
    return attends(3.0)


def cuts_a_head_off() -> Any:
    return weighs(cut=True)


def is_paid_too_well() -> Any:
    return plays(1000.0)


def takes_shares_for_logits() -> Any:
    return of_a_graph(nn.Softmax(1))


def measures_in_training() -> Any:
    return is_deep(evaluates=False)


def begins_the_loader_anew() -> Any:
    """The first batch of a loader that is not shuffled, in each step."""
    model, data = nn.Sequential(nn.Linear(8, 48), nn.GELU(), nn.Linear(48, 4)), table(512)
    loader = DataLoader(TensorDataset(*data), batch_size=32)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    with cr.torch.monitor(model, optimizer) as m:
        for _ in range(120):
            x, y = next(iter(loader))
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return m.findings()


def ends_in_a_dead_relu() -> Any:
    """A last ReLU whose inputs are below zero for all examples."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1), nn.ReLU())
    nn.init.constant_(model[2].bias, -20.0)
    x = torch.randn(256, 8)
    return run(model, torch.optim.Adam(model.parameters(), 1e-3), batches((x, x.square().sum(1, keepdim=True)), 32, 10), F.mse_loss)


def takes_logarithms_of_numbers() -> Any:
    """The shares of a ReLU's outputs, which may all be zero."""
    model, (x, y) = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.ReLU()), table(256)

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.nll_loss((out / out.sum(1, keepdim=True)).clamp(1e-7, 1.0).log(), y)

    return run(model, torch.optim.Adam(model.parameters(), 1e-3), batches((x, y), 64, 5), loss)


def splits_in_order() -> Any:
    """The last classes are measured alone."""
    model, (x, y) = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), table(400)
    order = y.argsort()
    x, y, optimizer = x[order], y[order], torch.optim.Adam(model.parameters(), 5e-3)
    with cr.torch.monitor(model, optimizer) as m:
        for _ in range(10):
            for a, b in batches((x[:300], y[:300]), 25, 1):
                optimizer.zero_grad()
                F.cross_entropy(model(a), b).backward()
                optimizer.step()
            with torch.no_grad():
                m.validated(F.cross_entropy(model(x[300:]), y[300:]))
    return m.findings()


def is_sure_and_clipped() -> Any:
    """Right: probabilities at the bound of the logarithm, where a few that are wrong cost much."""
    model, (x, y) = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2), nn.Softmax(1)), table(480, classes=2)
    y = torch.where(torch.rand(480) < 0.06, 1 - y, y)

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.nll_loss((out / out.sum(1, keepdim=True)).clamp(1e-7, 1 - 1e-7).log(), y)

    return run(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), batches((4.0 * x, y), 16, 20), loss)


MISTAKES: dict[str, tuple[Any, set[str]]] = {
    "takes_places_for_examples": (takes_places_for_examples, {"dependence"}),
    "never_warms_up": (never_warms_up, {"not_updated", "rate_too_low"}),
    "calls_all_real": (calls_all_real, {"labels"}),
    "leaves_the_head_out": (leaves_the_head_out, {"not_updated"}),
    "never_zeroes": (never_zeroes, {"not_zeroed"}),
    "bounds_what_is_centred": (bounds_what_is_centred, {"output_activation"}),
    "leaps": (leaps, {"rate_too_high", "not_finite"}),
    "cuts_a_head_off": (cuts_a_head_off, {"no_gradient"}),
    "is_paid_too_well": (is_paid_too_well, {"target_scale"}),
    "takes_shares_for_logits": (takes_shares_for_logits, {"output_activation"}),
    "measures_in_training": (measures_in_training, {"training_mode"}),
    "begins_the_loader_anew": (begins_the_loader_anew, {"same_batch"}),
    "ends_in_a_dead_relu": (ends_in_a_dead_relu, {"output_activation"}),
    "takes_logarithms_of_numbers": (takes_logarithms_of_numbers, {"output_activation"}),
    "splits_in_order": (splits_in_order, {"data_order"}),
}
