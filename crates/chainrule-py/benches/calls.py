"""Times of single ops on small tensors and of a compiled step, as Python calls them: what the
package costs beside the library.

    python benches/calls.py             # the installed package
    python benches/calls.py OLD NEW     # packages in these folders in turns, with their ratio

A folder is one that `import chainrule` finds a built package in. Every time is the best of all
rounds, in microseconds, on one thread.
"""

import subprocess
import sys
import time

ROUNDS = 8


def best(f, seconds=0.02):
    """The best time of one call in microseconds."""

    def sample(count):
        start = time.perf_counter()
        for _ in range(count):
            f()
        return (time.perf_counter() - start) * 1e6 / count

    count = 1
    while sample(count) * count < 500:
        count *= 2
    end, found = time.perf_counter() + seconds, []
    while time.perf_counter() < end or len(found) < 5:
        found.append(sample(count))
    return min(found)


def small_ops(cr):
    """Ops on tensors that nobody writes to; views among them."""
    x, y, m, big = cr.randn(8), cr.randn(8), cr.randn(4, 4), cr.randn(64, 64)
    w, index, mask = cr.randn(4, 4, requires_grad=True), cr.tensor([0, 2]), cr.randn(4, 4) > 0
    row, column, flat, detached, result = m[1], m.t(), m.view(16), w.detach(), w * 1.0
    f = cr.nn.functional
    return {
        "x + y": lambda: x + y,
        "x + 1": lambda: x + 1.0,
        "x * y": lambda: x * y,
        "x - y": lambda: x - y,
        "x / y": lambda: x / y,
        "-x": lambda: -x,
        "x ** 2": lambda: x**2,
        "x > 0": lambda: x > 0,
        "exp": lambda: x.exp(),
        "tanh": lambda: x.tanh(),
        "relu": lambda: x.relu(),
        "m @ m": lambda: m @ m,
        "sum": lambda: m.sum(),
        "mean, axis": lambda: m.mean(0),
        "max": lambda: m.max(),
        "argmax, axis": lambda: m.argmax(1),
        "softmax": lambda: m.softmax(1),
        "where": lambda: cr.where(mask, m, m),
        "cat": lambda: cr.cat([x, y]),
        "stack": lambda: cr.stack([x, y]),
        "m[index]": lambda: m[index],
        "layer norm": lambda: f.layer_norm(m, (4,)),
        "w * 2": lambda: w * 2.0,
        "w @ m": lambda: w @ m,
        "64 x 64": lambda: big * big,
        "backward": lambda: (m @ w).sum().backward(),
        "row + row": lambda: row + row,
        "column + column": lambda: column + column,
        "flat + flat": lambda: flat + flat,
        "detached + 1": lambda: detached + 1.0,
        "m[1]": lambda: m[1],
        "m[:, 1:3]": lambda: m[:, 1:3],
        "view": lambda: m.view(16),
        "t": lambda: m.t(),
        "transpose": lambda: m.transpose(0, 1),
        "unsqueeze": lambda: x.unsqueeze(0),
        "expand": lambda: x.expand(2, 8),
        "chunk": lambda: m.chunk(2),
        "view of a view": lambda: m.view(2, 8).t()[1],
        "view of a result": lambda: (x + y).view(2, 4),
        "w.view": lambda: w.view(16),
        "w.detach": lambda: w.detach(),
        "result.detach": lambda: result.detach(),
    }


def compiled_step(cr):
    """A step of a small model, written as people write it."""
    model = cr.nn.Sequential(cr.nn.Linear(4, 8), cr.nn.Tanh(), cr.nn.Linear(8, 3))
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)

    @cr.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = cr.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = cr.randn(8, 4), cr.randint(0, 3, (8,))
    rows = cr.randn(100, 8, 4), cr.randint(0, 3, (100, 8))
    return {"compiled step": lambda: step(x, y), "100 compiled steps": lambda: step.run_many(*rows)}


def measured():
    """The measured calls, by name."""
    import chainrule as cr

    cr.set_num_threads(1)
    return {**small_ops(cr), **compiled_step(cr)}


def work():
    """Measures what it is told, line by line."""
    calls = measured()
    print("\t".join(calls), flush=True)
    for line in sys.stdin:
        print(best(calls[line.rstrip("\n")]), flush=True)


class Worker:
    """A process of one package."""

    def __init__(self, folder):
        code = f"import sys; sys.path[:0] = [{folder!r}, {sys.path[0]!r}]; import calls; calls.work()"
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names = self.process.stdout.readline().rstrip("\n").split("\t")

    def ask(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def in_turns(folders):
    """The best times of each package: one measures while the others wait, for each call in turn."""
    workers = [Worker(folder) for folder in folders]
    found = [{} for _ in folders]
    for _ in range(ROUNDS):
        for name in workers[0].names:
            for worker, times in zip(workers, found):
                took = worker.ask(name)
                times[name] = min(times.get(name, took), took)
    for worker in workers:
        worker.process.stdin.close()
    return found


if __name__ == "__main__":
    if len(sys.argv) < 3:
        for name, call in measured().items():
            print(f"{name:24} {best(call):8.2f}")
    else:
        old, new = in_turns(sys.argv[1:3])
        for name, took in new.items():
            print(f"{name:24} {old[name]:8.2f} {took:8.2f} {took / old[name]:6.2f}")
