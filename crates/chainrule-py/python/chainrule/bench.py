"""Time of a training step from Python: `python -m chainrule.bench names --mode eager --threads 1`.

The last line is the JSON that `chainrule bench` prints. The workload `op` is the time of one small
op, `x + y` of one element.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import chainrule as cr
import chainrule.nn.functional as F

EXAMPLES, BATCH = 182_625, 32


def names() -> tuple[Callable[[], Any], Callable[[int], Any]]:
    """A step of the names model on random examples, eager; and many compiled ones in one call."""
    g = cr.Generator().manual_seed(0)
    contexts = cr.randint(0, 27, (EXAMPLES, 3), generator=g)
    targets = cr.randint(0, 27, (EXAMPLES,), generator=g)

    def weight(*shape: int, factor: float = 0.1, shift: float = 0.0) -> cr.Tensor:
        return (cr.randn(*shape, generator=g) * factor + shift).requires_grad_()

    table, w1, b1 = weight(27, 10, factor=1.0), weight(30, 200, factor=5 / 3 / 30**0.5), weight(200)
    w2, b2, gain, bias = weight(200, 27), weight(27), weight(1, 200, shift=1.0), weight(1, 200)
    sgd = cr.optim.SGD([table, w1, b1, w2, b2, gain, bias], lr=0.1)

    def step(x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
        h = F.embedding(x, table).view(BATCH, 30) @ w1 + b1
        mean, var = h.mean(0, True), h.var(0, keepdim=True)
        normed = gain * (h - mean) * (var + 1e-5) ** -0.5 + bias
        loss = F.cross_entropy(normed.tanh() @ w2 + b2, y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss

    def eager() -> Any:
        at = cr.randint(0, EXAMPLES, (BATCH,), generator=g)
        return step(contexts[at], targets[at])

    compiled = cr.compile(step)

    def many(n: int) -> Any:
        at = cr.randint(0, EXAMPLES, (n, BATCH), generator=g)
        return compiled.run_many(contexts[at], targets[at])

    return eager, many


def op() -> tuple[Callable[[], Any], Callable[[int], Any]]:
    """One small op."""
    x, y = cr.ones(1), cr.ones(1)
    return (lambda: x + y), (lambda n: [x + y for _ in range(n)])


WORKLOADS: dict[str, tuple[Callable[[], Any], int, int]] = {"names": (names, 300, 500), "op": (op, 1000, 20000)}


def measure(workload: str, mode: str, rounds: int) -> list[float]:
    """The time of a step in microseconds, for each round, in rising order."""
    make, warm_up, group = WORKLOADS[workload]
    eager, many = make()
    times = []
    for i in range(rounds + 1):
        n = group if i else warm_up
        began = time.perf_counter()
        if mode == "compiled":
            many(n)
        else:
            for _ in range(n):
                eager()
        if i:
            times.append((time.perf_counter() - began) / n * 1e6)
    return sorted(times)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m chainrule.bench", description=__doc__)
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if args.threads is not None:
        cr.set_num_threads(args.threads)
    times = measure(args.workload, args.mode, args.rounds)
    line = {
        "workload": args.workload, "mode": args.mode, "threads": cr.get_num_threads(),
        "us_min": round(times[0], 2), "us_median": round(times[len(times) // 2], 2),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
