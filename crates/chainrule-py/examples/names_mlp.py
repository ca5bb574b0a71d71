"""Part 2: letters as vectors, one hidden layer, trained by gradient descent.

    python examples/names_mlp.py --steps 1000
"""

from __future__ import annotations

import argparse

import chainrule as cr
import chainrule.nn.functional as F
from names_data import LETTERS, examples, names, split


def main(steps: int) -> None:
    """Trains, tests and samples."""
    train, tune, _ = split(names())
    x, y = (cr.tensor(part) for part in examples(train, 3))
    x_tune, y_tune = (cr.tensor(part) for part in examples(tune, 3))

    g = cr.Generator().manual_seed(2147483647)
    table = cr.randn((27, 10), generator=g)
    w1 = cr.randn((30, 200), generator=g)
    b1 = cr.randn(200, generator=g)
    w2 = cr.randn((200, 27), generator=g)
    b2 = cr.randn(27, generator=g)
    parameters = [table, w1, b1, w2, b2]
    print("parameters:", sum(p.nelement() for p in parameters))
    for p in parameters:
        p.requires_grad = True

    for step in range(steps):
        at = cr.randint(0, x.shape[0], (32,), generator=g)
        hidden = cr.tanh(table[x[at]].view(-1, 30) @ w1 + b1)
        logits = hidden @ w2 + b2
        loss = F.cross_entropy(logits, y[at])
        for p in parameters:
            p.grad = None
        loss.backward()
        rate = 0.1 if step < steps // 2 else 0.01
        for p in parameters:
            p.data += -rate * p.grad
        if step % max(1, steps // 10) == 0:
            print(f"{step:6d} {loss.item():.4f}")

    with cr.no_grad():
        hidden = cr.tanh(table[x_tune].view(-1, 30) @ w1 + b1)
        print(f"tuning loss {F.cross_entropy(hidden @ w2 + b2, y_tune).item():.4f}")

    g = cr.Generator().manual_seed(2147483647 + 10)
    for _ in range(5):
        word, context = "", [0] * 3
        while True:
            hidden = cr.tanh(table[cr.tensor([context])].view(1, -1) @ w1 + b1)
            chances = F.softmax(hidden @ w2 + b2, dim=1)
            letter = int(cr.multinomial(chances, num_samples=1, generator=g).item())
            context = context[1:] + [letter]
            if letter == 0:
                break
            word += LETTERS[letter]
        print(word)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    main(parser.parse_args().steps)
