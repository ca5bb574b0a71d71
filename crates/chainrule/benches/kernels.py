#!/usr/bin/env python3
"""Runs the kernels bench in turns with NumPy and PyTorch, all on one thread, and prints the table
of the book.

    cargo bench -p chainrule --bench kernels --no-run
    python crates/chainrule/benches/kernels.py target/release/deps/kernels-HASH \\
        > docs/src/kernel-speed.md

Needs numpy and torch. Every time is the best of all rounds.
"""
import json
import os
import platform
import subprocess
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
import numpy as np
import torch

torch.set_num_threads(1)
ROUNDS = 3
WIDTH, TABLE = 250, (8192, 64)


def best(f):
    """The best time of one call in nanoseconds."""
    def sample(count):
        start = time.perf_counter()
        for _ in range(count):
            f()
        return (time.perf_counter() - start) * 1e9 / count

    count = 1
    while sample(count) * count < 5e4:
        count *= 2
    start, found, samples = time.perf_counter(), [], 0
    while samples < 7 or time.perf_counter() - start < 0.06:
        found.append(sample(count))
        samples += 1
    return min(found)


def cases(elements):
    """For each kernel: how many elements, and the call in NumPy and in PyTorch."""
    rows, side, count = elements // WIDTH, int(elements**0.5), elements // TABLE[1]
    f = lambda *shape: np.random.randn(*shape).astype(np.float32)
    x, y, r, c = f(rows, WIDTH), f(rows, WIDTH), f(WIDTH), f(rows, 1)
    s, z, table, index = f(side, side), f(side, side), f(*TABLE), np.random.randint(0, TABLE[0], count)
    X, Y, R, C, S, Z, T, I = map(torch.from_numpy, (x, y, r, c, s, z, table, index))

    def softmax():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def layer_norm():
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * r + r

    return {
        "copy": (elements, lambda: x.copy(), lambda: X.clone()),
        "add": (elements, lambda: x + y, lambda: X + Y),
        "relu": (elements, lambda: np.maximum(x, 0), lambda: X.relu()),
        "exp": (elements, lambda: np.exp(x), lambda: X.exp()),
        "sum": (elements, lambda: x.sum(), lambda: X.sum()),
        "sum of rows": (elements, lambda: x.sum(1), lambda: X.sum(1)),
        "sum of columns": (elements, lambda: x.sum(0), lambda: X.sum(0)),
        "softmax": (elements, softmax, lambda: X.softmax(1)),
        "layer_norm": (elements, layer_norm, lambda: torch.nn.functional.layer_norm(X, (WIDTH,), R, R)),
        "add a row": (elements, lambda: x + r, lambda: X + R),
        "add a column": (elements, lambda: x + c, lambda: X + C),
        "gather rows": (count * TABLE[1], lambda: table[index], lambda: T.index_select(0, I)),
        "copy a transposed view": (side * side, lambda: s.T.copy(), lambda: S.T.contiguous()),
        "add a transposed view": (side * side, lambda: z + s.T, lambda: Z + S.T),
    }


def shown(ns):
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{max(ns, 0):.0f} ns"


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
        fields = {k.strip(): v.strip() for k, v in fields.items()}
        best = "AVX-512" if "avx512f" in fields["flags"] else "AVX2" if "avx2" in fields["flags"] else "neither AVX2 nor AVX-512"
        return f"{fields['model name']}, {best}"
    except (OSError, KeyError):
        return platform.processor()


def main():
    program = sys.argv[1]
    times = {}
    keep = lambda key, what, ns: times.setdefault(key, {}).update({what: min(ns, times.get(key, {}).get(what, ns))})
    for _ in range(ROUNDS):
        out = subprocess.run([program, "--bench"], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            row = json.loads(line)
            for what in ("op", "call", "hand"):
                keep((row["kernel"], row["elements"]), what, row[what + "_ns"])
        for elements in (1_000, 100_000, 10_000_000):
            for kernel, (size, numpy, pytorch) in cases(elements).items():
                keep((kernel, size), "numpy", best(numpy))
                keep((kernel, size), "torch", best(pytorch))
    print(HEAD.format(machine=processor(), numpy=np.__version__, torch=torch.__version__.split("+")[0], rounds=ROUNDS))
    for (kernel, size), t in sorted(times.items(), key=lambda item: list(times).index(item[0])):
        inner = t["op"] - t["call"]
        ratio = f"{100 * t['hand'] / inner:.0f} %" if inner > 0 else "-"
        cells = [kernel, f"{size:,}", shown(t["hand"]), shown(inner), ratio, shown(t["op"]), shown(t["numpy"]), shown(t["torch"])]
        print("| " + " | ".join(cells) + " |")


HEAD = """# The speed of kernels

Every kernel beside a plain loop written by hand for it, compiled for the same vectors, and beside NumPy and PyTorch. One thread, `float32`, all
from one run on {machine}; NumPy {numpy}, PyTorch {torch}. The best of {rounds} rounds in turns.

- *Loop*: the loop by hand writes into memory that is there already. For transposed views it is the loop over contiguous memory.
- *Kernel*: the op less what the same op costs on one element: the arithmetic and its memory, without the call.
- *Share*: loop divided by kernel. 100 % is the speed of the loop; more is faster.
- *Op*: the whole op, with the call and the result's memory, as for NumPy and PyTorch.

Rows are 250 wide. Sums of `float32` are kept in `float64` here, four or eight elements at a time, which the loops by hand and the others do not do.

Make the table again with `python crates/chainrule/benches/kernels.py` (the file says how).

| kernel | elements | loop | kernel | share | op | NumPy | PyTorch |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""

if __name__ == "__main__":
    main()
