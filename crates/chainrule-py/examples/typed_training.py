"""A small classifier with all that a training has, and with types that mypy checks strictly: data,
layers, a loss, an optimizer, schedules, a checkpoint.
"""

from __future__ import annotations

import io
import math

import chainrule as cr
import chainrule.nn as nn
import chainrule.nn.functional as F
from chainrule.optim import Adam, Optimizer
from chainrule.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, ReduceLROnPlateau
from chainrule.utils.data import DataLoader, Dataset, Subset, TensorDataset

Sample = tuple[cr.Tensor, int]


class Rings(Dataset[Sample]):
    """Points on circles; the class is the circle."""

    def __init__(self, n: int, classes: int) -> None:
        turns = cr.arange(n, dtype=cr.get_default_dtype()) * 2.4
        self.labels = [i % classes for i in range(n)]
        radii = cr.tensor([1.0 + label for label in self.labels])
        self.points = cr.stack((radii * cr.cos(turns), radii * cr.sin(turns)), dim=1)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return self.points[index], self.labels[index]


class Block(nn.Module):
    """A linear map with a norm, an activation, and the input added."""

    def __init__(self, width: int, activation: nn.Module | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.activation = activation if activation is not None else nn.LeakyReLU(0.1)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        out: cr.Tensor = self.activation(self.norm(self.linear(x)))
        return x + out


def begin(module: nn.Module) -> None:
    """Biases of 0, and norms that change nothing."""
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LayerNorm):
        module.weight.data.fill_(1.0)
        module.bias.data.zero_()


class Net(nn.Module):
    steps: cr.Tensor

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(2, width), nn.Tanh())
        self.blocks = nn.ModuleList([Block(width), Block(width, nn.GELU())])
        self.last = nn.Linear(width, classes)
        self.register_buffer("steps", cr.zeros(1))
        self.apply(begin)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        self.steps += 1
        return F.log_softmax(self.last(x), dim=1)


def train(model: Net, loader: DataLoader[Sample], loss_of: nn.NLLLoss, optimizer: Optimizer) -> float:
    """The mean loss of one pass."""
    model.train()
    total = 0.0
    for points, labels in loader:
        optimizer.zero_grad()
        loss: cr.Tensor = loss_of(model(points), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@cr.no_grad()
def accuracy(model: Net, data: Dataset[Sample]) -> float:
    """The part of the samples whose class the model finds."""
    model.eval()
    right = 0
    for points, labels in DataLoader(data, batch_size=10):
        right += int((model(points).argmax(dim=1) == labels).sum().item())
    return right / 40


def main(epochs: int = 6) -> None:
    cr.manual_seed(3)
    data = Rings(40, 3)
    model = Net(8, 3)
    optimizer = Adam(model.parameters(), lr=0.05, betas=(0.9, 0.99))
    schedule: LRScheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    plateau = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    loss_of = nn.NLLLoss(reduction="mean")
    best, file = math.inf, io.BytesIO()
    for epoch in range(epochs):
        loss = train(model, DataLoader(data, batch_size=10), loss_of, optimizer)
        schedule.step()
        plateau.step(loss)
        print("epoch", epoch, f"{loss:.6f}", f"{optimizer.param_groups[0]['lr']:.6f}", accuracy(model, data))
        if loss < best:
            best, file = loss, io.BytesIO()
            cr.save({"model": model.state_dict(), "epoch": epoch}, file)
    file.seek(0)
    state = cr.load(file)
    model.load_state_dict(state["model"])
    few = Subset(TensorDataset(data.points), [0, 1])
    (points,) = next(iter(DataLoader(few, batch_size=2)))
    gradients = cr.autograd.grad(model(points.requires_grad_()).exp().max(), points)
    print(f"{gradients[0].norm().item():.6f}", int(model.steps.item()), sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
