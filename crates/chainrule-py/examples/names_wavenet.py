"""Part 5: layers of one's own, and pairs of letters joined step by step.

    python examples/names_wavenet.py --steps 500
"""

from __future__ import annotations

import argparse

import chainrule as cr
import chainrule.nn.functional as F
from names_data import examples, names, split


class Linear:
    """`x @ weight + bias`."""

    def __init__(self, fan_in: int, fan_out: int, bias: bool = True) -> None:
        self.weight: cr.Tensor = cr.randn((fan_in, fan_out)) * float(fan_in) ** -0.5
        self.bias = cr.zeros(fan_out) if bias else None

    def __call__(self, x: cr.Tensor) -> cr.Tensor:
        out = x @ self.weight
        return out if self.bias is None else out + self.bias

    def parameters(self) -> list[cr.Tensor]:
        """The parameters."""
        return [self.weight] + ([] if self.bias is None else [self.bias])


class BatchNorm:
    """Mean 0 and variance 1 over all axes but the last."""

    def __init__(self, width: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gain, self.shift = cr.ones(width), cr.zeros(width)
        self.mean, self.var = cr.zeros(width), cr.ones(width)

    def __call__(self, x: cr.Tensor) -> cr.Tensor:
        if self.training:
            axes = tuple(range(x.ndim - 1))
            mean, var = x.mean(axes, keepdim=True), x.var(axes, keepdim=True)
            with cr.no_grad():
                self.mean = (1 - self.momentum) * self.mean + self.momentum * mean
                self.var = (1 - self.momentum) * self.var + self.momentum * var
        else:
            mean, var = self.mean, self.var
        return self.gain * (x - mean) / cr.sqrt(var + self.eps) + self.shift

    def parameters(self) -> list[cr.Tensor]:
        """The parameters."""
        return [self.gain, self.shift]


class Tanh:
    """The hyperbolic tangent."""

    def __call__(self, x: cr.Tensor) -> cr.Tensor:
        return cr.tanh(x)

    def parameters(self) -> list[cr.Tensor]:
        """Nothing is trained."""
        return []


class Embedding:
    """A vector for each letter."""

    def __init__(self, letters: int, width: int) -> None:
        self.weight = cr.randn((letters, width))

    def __call__(self, x: cr.Tensor) -> cr.Tensor:
        return self.weight[x]

    def parameters(self) -> list[cr.Tensor]:
        """The parameters."""
        return [self.weight]


class Join:
    """Joins `n` neighbours into one."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, x: cr.Tensor) -> cr.Tensor:
        batch, length, width = x.shape
        x = x.view(batch, length // self.n, width * self.n)
        return x.squeeze(1) if x.shape[1] == 1 else x

    def parameters(self) -> list[cr.Tensor]:
        """Nothing is trained."""
        return []


Layer = Linear | BatchNorm | Tanh | Embedding | Join


def main(steps: int) -> None:
    """Trains and tests."""
    train, tune, _ = split(names())
    x, y = (cr.tensor(part) for part in examples(train, 8))
    x_tune, y_tune = (cr.tensor(part) for part in examples(tune[:500], 8))

    cr.manual_seed(42)
    width, hidden = 24, 68
    layers: list[Layer] = [Embedding(27, width)]
    for fan_in in (width, hidden, hidden):
        layers += [Join(2), Linear(fan_in * 2, hidden, bias=False), BatchNorm(hidden), Tanh()]
    last = Linear(hidden, 27)
    layers.append(last)
    with cr.no_grad():
        last.weight *= 0.1
    parameters = [p for layer in layers for p in layer.parameters()]
    print("parameters:", sum(p.nelement() for p in parameters))
    for p in parameters:
        p.requires_grad = True

    def model(t: cr.Tensor) -> cr.Tensor:
        for layer in layers:
            t = layer(t)
        return t

    for step in range(steps):
        at = cr.randint(0, x.shape[0], (32,))
        loss = F.cross_entropy(model(x[at]), y[at])
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        if step % max(1, steps // 10) == 0:
            print(f"{step:6d} {loss.item():.4f}")

    for layer in layers:
        if isinstance(layer, BatchNorm):
            layer.training = False
    with cr.no_grad():
        print(f"tuning loss {F.cross_entropy(model(x_tune), y_tune).item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    main(parser.parse_args().steps)
