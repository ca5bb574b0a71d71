"""Part 3: initial values that keep signals in range, and normalisation over the batch.

    python examples/names_batch_norm.py --steps 1000
"""

from __future__ import annotations

import argparse

import chainrule as cr
import chainrule.nn.functional as F
from names_data import examples, names, split


def main(steps: int) -> None:
    """Trains with running statistics, and tests with them."""
    train, tune, _ = split(names())
    x, y = (cr.tensor(part) for part in examples(train, 3))
    x_tune, y_tune = (cr.tensor(part) for part in examples(tune, 3))

    g = cr.Generator().manual_seed(2147483647)
    table = cr.randn((27, 10), generator=g)
    w1 = cr.randn((30, 200), generator=g) * (5 / 3) / (30**0.5)
    w2 = cr.randn((200, 27), generator=g) * 0.01
    b2 = cr.randn(27, generator=g) * 0
    gain, shift = cr.ones((1, 200)), cr.zeros((1, 200))
    mean_running, std_running = cr.zeros((1, 200)), cr.ones((1, 200))
    parameters = [table, w1, w2, b2, gain, shift]
    for p in parameters:
        p.requires_grad = True

    for step in range(steps):
        at = cr.randint(0, x.shape[0], (32,), generator=g)
        before = table[x[at]].view(32, -1) @ w1
        mean, std = before.mean(0, keepdim=True), before.std(0, keepdim=True)
        hidden = cr.tanh(gain * (before - mean) / std + shift)
        with cr.no_grad():
            mean_running = 0.999 * mean_running + 0.001 * mean
            std_running = 0.999 * std_running + 0.001 * std
        loss = F.cross_entropy(hidden @ w2 + b2, y[at])
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        if step % max(1, steps // 10) == 0:
            print(f"{step:6d} {loss.item():.4f}")

    print(f"saturated: {(hidden.abs() > 0.97).float().mean().item():.4f}")
    with cr.no_grad():
        before = table[x_tune].view(x_tune.shape[0], -1) @ w1
        hidden = cr.tanh(gain * (before - mean_running) / std_running + shift)
        print(f"tuning loss {F.cross_entropy(hidden @ w2 + b2, y_tune).item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    main(parser.parse_args().steps)
