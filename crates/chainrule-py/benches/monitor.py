"""The cost of a monitor: the processor's time of a training with one over that without.

    python benches/monitor.py                       # all
    python benches/monitor.py names compiled        # those whose names have each of these words
    python benches/monitor.py --command chainrule   # of `chainrule train names`, by that command

Both trainings are processes of their own, on one thread each, that take turns, so that a busy
machine slows both alike. Each does steps before its time counts, since a monitor keeps each of its
first looks. It prints the least time of a step in microseconds and the median of the rounds'
ratios. Loops of PyTorch are measured where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """Steps before the time counts, steps of a round, and rounds."""

    first: int
    steps: int
    rounds: int


PLANS = {"names": Plan(4000, 2000, 15), "mnist": Plan(100, 20, 9), "gpt": Plan(300, 20, 9)}
# Steps of a training by the command, and how often both are run.
COMMAND_STEPS, COMMAND_ROUNDS = 20_000, 5


def names(t: Any) -> tuple[Any, Any, Callable[[], Any]]:
    """Letters of names: three of them, 200 hidden units, batches of 32."""
    x, y = t.randint(0, 27, (20_000, 3)), t.randint(0, 27, (20_000,))
    nn = t.nn
    model = nn.Sequential(nn.Embedding(27, 10), nn.Flatten(), nn.Linear(30, 200), nn.Tanh(), nn.Linear(200, 27))
    return model, t.optim.SGD(model.parameters(), lr=0.1), batches(x, y, 32)


def mnist(t: Any) -> tuple[Any, Any, Callable[[], Any]]:
    """A perceptron on pictures of 784 numbers, batches of 128."""
    x, y = t.rand(2048, 784), t.randint(0, 10, (2048,))
    nn = t.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, t.optim.SGD(model.parameters(), lr=0.01), batches(x, y, 128)


def gpt(t: Any) -> tuple[Any, Any, Callable[[], Any]]:
    """A GPT of four layers, 128 wide, on 12 texts of 64 letters."""
    nn, functional = t.nn, t.nn.functional
    layers, heads, width, length, rows, letters = 4, 4, 128, 64, 12, 65

    class Block(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.asks, self.gives = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widens, self.narrows = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, n, _ = x.shape
            parts = self.asks(self.before(x)).split(width, 2)
            q, k, v = (part.view(b, n, heads, width // heads).transpose(1, 2) for part in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.gives(y.transpose(1, 2).reshape(b, n, width))
            return x + self.narrows(functional.gelu(self.widens(self.between(x)), approximate="tanh"))

    class Model(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.tokens(x) + self.places(t.arange(length))
            for block in self.blocks:
                h = block(h)
            return self.head(self.last(h)).view(-1, letters)

    model = Model()
    x, y = t.randint(0, letters, (rows * 32, length)), t.randint(0, letters, (rows * 32, length))
    draw = batches(x, y, rows)

    def flat() -> Any:
        x, y = draw()
        return x, y.reshape(-1)

    return model, t.optim.AdamW(model.parameters(), lr=5e-4), flat


def batches(x: Any, y: Any, rows: int) -> Callable[[], Any]:
    """Batches of so many rows, one after the other and all over again."""
    all_of_them = [(x[at : at + rows].clone(), y[at : at + rows].clone()) for at in range(0, len(x) - rows + 1, rows)]
    at = 0

    def draw() -> Any:
        nonlocal at
        at += 1
        return all_of_them[at % len(all_of_them)]

    return draw


MODELS = {"names": names, "mnist": mnist, "gpt": gpt}


def steps_of(library: str, model: str, mode: str) -> tuple[Any, Any, Callable[[], Any]]:
    """A model with its optimizer, and what does a step."""
    t = importlib.import_module(library)
    t.manual_seed(0)
    t.set_num_threads(1)
    net, optimizer, draw = MODELS[model](t)
    loss_of = t.nn.functional.cross_entropy

    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    made = t.compile(train) if mode == "compiled" else train
    return net, optimizer, lambda: made(*draw())


def child(library: str, model: str, mode: str, watched: str) -> None:
    """Does as many steps as each line that comes says, and answers with the time of one."""
    net, optimizer, step = steps_of(library, model, mode)
    if watched != "plain":
        ours = importlib.import_module("chainrule.torch" if library == "torch" else "chainrule")
        ours.monitor(net, optimizer, every=1 if watched == "every" else None).__enter__()
    for line in sys.stdin:
        count = int(line)
        began = time.process_time()
        for _ in range(count):
            step()
        print((time.process_time() - began) / count * 1e6, flush=True)


def measured(library: str, model: str, mode: str, watched: str) -> tuple[float, float, float]:
    """The least times of a step, plain and watched, and the median of the rounds' ratios."""
    plan, both = PLANS[model], []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CHAINRULE_NUM_THREADS": "1"}
    for which in ("plain", watched):
        command = [sys.executable, __file__, "--child", library, model, mode, which]
        both.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment))

    def turn(process: Any, count: int) -> float:
        process.stdin.write(f"{count}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    for process in both:
        turn(process, plan.first)
    times = [[turn(process, plan.steps) for process in both] for _ in range(plan.rounds)]
    for process in both:
        process.stdin.close()
        process.wait()
    plain, other = (min(each) for each in zip(*times))
    return plain, other, statistics.median(b / a for a, b in times)


def by_command(command: str) -> None:
    """The processor's time of whole trainings by the command."""
    kinds = {"plain": ["--no-monitor"], "default": [], "every": ["--monitor-every", "1"]}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(COMMAND_ROUNDS):
        for kind, more in kinds.items():
            with tempfile.TemporaryDirectory() as folder:
                line = [command, "train", "names", "--steps", str(COMMAND_STEPS), "--out", str(Path(folder, "run")), *more]
                before = os.times()
                subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                after = os.times()
                times[kind].append(after.children_user + after.children_system - before.children_user - before.children_system)
    plain = min(times["plain"])
    for kind, all_of_them in times.items():
        ratio = statistics.median(b / a for a, b in zip(times["plain"], all_of_them))
        print(f"train names {kind:8} {min(all_of_them):7.2f} s {min(all_of_them) / plain:6.3f} {ratio:6.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--child", nargs=4, metavar="PART")
    parser.add_argument("--command")
    args = parser.parse_args()
    if args.child:
        return child(*args.child)
    if args.command:
        return by_command(args.command)
    has_torch = importlib.util.find_spec("torch") is not None
    print(f"{'':34} {'plain':>9} {'watched':>9} {'ratio':>6} {'median':>6}")
    for library, model, mode in [
        *(("chainrule", model, mode) for model in MODELS for mode in ("eager", "compiled")),
        *(("torch", model, "eager") for model in MODELS if has_torch),
    ]:
        for watched in ("default", "every"):
            name = f"{library} {model} {mode} {watched}"
            if all(word in name.split() for word in args.words):
                plain, other, ratio = measured(library, model, mode, watched)
                print(f"{name:34} {plain:9.1f} {other:9.1f} {other / plain:6.3f} {ratio:6.3f}", flush=True)


if __name__ == "__main__":
    main()
