"""Times of common ops beside PyTorch's, on one thread each and in turns: their ratio is above 1
where ours is faster.

    python benches/beside_torch.py                # all
    python benches/beside_torch.py topk cdist     # those whose names have one of these words

Each op is measured in rounds, ours and PyTorch's one right after the other, so that a busy machine
slows both.
It prints the medians of the processor's time in microseconds and the median of the rounds' ratios;
PyTorch must be installed.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

ROUNDS = 25
SAMPLE_SECONDS = 0.004

Calls = dict[str, Callable[[], Any]]


def elementwise(t: Any) -> Calls:
    """Ops that go over the elements of 100 000 numbers."""
    x, y = t.rand(100_000) + 0.5, t.rand(100_000) + 0.5
    return {
        "add": lambda: x + y,
        "add a number": lambda: x + 1.5,
        "sub": lambda: x - y,
        "mul": lambda: x * y,
        "div": lambda: x / y,
        "neg": lambda: -x,
        "abs": lambda: x.abs(),
        "exp": lambda: x.exp(),
        "log": lambda: x.log(),
        "sqrt": lambda: x.sqrt(),
        "rsqrt": lambda: x.rsqrt(),
        "sin": lambda: x.sin(),
        "tanh": lambda: x.tanh(),
        "sigmoid": lambda: x.sigmoid(),
        "erf": lambda: x.erf(),
        "pow, a tensor": lambda: x**y,
        "pow, 2": lambda: x**2,
        "pow, 1.7": lambda: x**1.7,
        "clamp": lambda: x.clamp(0.6, 1.2),
        "maximum": lambda: t.maximum(x, y),
        "compare": lambda: x > y,
        "where": lambda: t.where(x > y, x, y),
        "round": lambda: x.round(),
        "cast": lambda: x.double(),
        "relu": lambda: x.relu(),
        "gelu": lambda: t.nn.functional.gelu(x),
        "silu": lambda: t.nn.functional.silu(x),
        "softplus": lambda: t.nn.functional.softplus(x),
        "lerp": lambda: t.lerp(x, y, 0.3),
    }


def reductions(t: Any) -> Calls:
    """Sums, orders and scans of a matrix."""
    m = t.randn(256, 512)
    return {
        "sum": lambda: m.sum(),
        "sum, rows": lambda: m.sum(1),
        "sum, columns": lambda: m.sum(0),
        "mean": lambda: m.mean(1),
        "var": lambda: m.var(1),
        "std": lambda: m.std(0),
        "prod": lambda: m.prod(1),
        "max": lambda: m.max(),
        "max, rows": lambda: m.max(1),
        "argmax": lambda: m.argmax(1),
        "norm": lambda: m.norm(dim=1),
        "logsumexp": lambda: m.logsumexp(1),
        "softmax": lambda: m.softmax(1),
        "log_softmax": lambda: m.log_softmax(1),
        "cumsum": lambda: m.cumsum(1),
        "sort": lambda: m.sort(1),
        "argsort": lambda: m.argsort(1),
        "topk": lambda: m.topk(5, 1),
        "median": lambda: m.median(1),
        "any": lambda: (m > 9).any(),
        "unique": lambda: (m * 4).round().unique(),
    }


def products(t: Any) -> Calls:
    """Products and linear algebra."""
    a, b = t.randn(128, 128), t.randn(128, 128)
    u, w, v = t.randn(16, 64, 64), t.randn(16, 64, 64), t.randn(128)
    p, q = t.randn(200, 32), t.randn(300, 32)
    spd = a @ a.t() + 128 * t.eye(128)
    s = t.randn(40, 40)
    sym = s + s.t()
    return {
        "matmul": lambda: a @ b,
        "matmul, transposed": lambda: a @ b.t(),
        "matvec": lambda: a @ v,
        "bmm": lambda: u @ w,
        "einsum": lambda: t.einsum("bij,bjk->bik", u, w),
        "outer": lambda: t.outer(v, v),
        "cdist": lambda: t.cdist(p, q),
        "cdist, 1-norm": lambda: t.cdist(p, q, p=1.0),
        "inverse": lambda: t.linalg.inv(spd),
        "solve": lambda: t.linalg.solve(spd, b),
        "cholesky": lambda: t.linalg.cholesky(spd),
        "qr": lambda: t.linalg.qr(a),
        "svd": lambda: t.linalg.svd(s),
        "eigh": lambda: t.linalg.eigh(sym),
        "det": lambda: t.linalg.det(spd),
    }


def shapes(t: Any) -> Calls:
    """Views, copies and indices."""
    import numpy as np

    m, rows = t.randn(512, 256), t.randint(0, 512, (300,))
    parts, values = [t.randn(64, 256) for _ in range(8)], t.randn(300, 256)
    array, index, target = np.ones((64, 64), dtype=np.float32), t.randint(0, 256, (512, 64)), t.randn(512, 256)
    mask = m > 0

    def write() -> None:
        target[rows] = values

    return {
        "from_numpy": lambda: t.from_numpy(array),
        "transpose, copied": lambda: m.t().contiguous(),
        "cat": lambda: t.cat(parts),
        "stack": lambda: t.stack(parts),
        "split": lambda: m.split(64),
        "slice": lambda: m[10:200, 3:],
        "x[rows]": lambda: m[rows],
        "x[rows] = v": write,
        "x[mask]": lambda: m[mask],
        "gather": lambda: m.gather(1, index),
        "index_select": lambda: m.index_select(0, rows),
        "scatter_add": lambda: m.scatter_add(1, index, target[:, :64]),
        "masked_fill": lambda: m.masked_fill(mask, 0.0),
        "nonzero": lambda: mask.nonzero(),
        "repeat": lambda: m.repeat(2, 2),
        "flip": lambda: m.flip(1),
        "roll": lambda: m.roll(3, 1),
        "tril": lambda: m.tril(),
        "pad": lambda: t.nn.functional.pad(m, (1, 1)),
    }


def networks(t: Any) -> Calls:
    """Layers and losses."""
    f = t.nn.functional
    x, w, bias = t.randn(64, 256), t.randn(256, 256), t.randn(256)
    image, kernel = t.randn(8, 16, 28, 28), t.randn(32, 16, 3, 3)
    q = t.randn(4, 4, 64, 32)
    target, table, ids = t.randint(0, 256, (64,)), t.randn(1000, 64), t.randint(0, 1000, (32, 16))
    scale, lstm, steps = t.randn(16), t.nn.LSTM(32, 64), t.randn(20, 8, 32)
    return {
        "linear": lambda: f.linear(x, w, bias),
        "conv2d": lambda: f.conv2d(image, kernel, padding=1),
        "conv_transpose2d": lambda: f.conv_transpose2d(image, kernel.transpose(0, 1), stride=2),
        "max_pool2d": lambda: f.max_pool2d(image, 2),
        "avg_pool2d": lambda: f.avg_pool2d(image, 2),
        "adaptive_avg_pool2d": lambda: f.adaptive_avg_pool2d(image, 5),
        "adaptive_max_pool2d": lambda: f.adaptive_max_pool2d(image, 5),
        "interpolate, nearest": lambda: f.interpolate(image, scale_factor=2),
        "interpolate, bilinear": lambda: f.interpolate(image, scale_factor=2, mode="bilinear"),
        "batch_norm": lambda: f.batch_norm(image, None, None, scale, scale, True),
        "layer_norm": lambda: f.layer_norm(x, (256,), bias, bias),
        "attention": lambda: f.scaled_dot_product_attention(q, q, q),
        "embedding": lambda: f.embedding(ids, table),
        "one_hot": lambda: f.one_hot(target, 256),
        "cross_entropy": lambda: f.cross_entropy(x, target),
        "mse_loss": lambda: f.mse_loss(x, w[:64]),
        "dropout": lambda: f.dropout(x, 0.1),
        "LSTM": lambda: lstm(steps),
    }


def steps(t: Any) -> Calls:
    """Forward and backward."""
    f = t.nn.functional
    x, y, target = t.randn(64, 128), t.randn(64, 128), t.randint(0, 10, (64,))
    model = t.nn.Sequential(t.nn.Linear(128, 128), t.nn.ReLU(), t.nn.Linear(128, 10))
    optimizer, lstm, sequence = t.optim.Adam(model.parameters()), t.nn.LSTM(32, 64), t.randn(20, 8, 32)
    leaf, rows = t.randn(512, 64, requires_grad=True), t.randint(0, 512, (300,))

    def step() -> None:
        optimizer.zero_grad()
        f.cross_entropy(model(x), target).backward()
        optimizer.step()

    def picked() -> None:
        leaf.grad = None
        leaf[rows].square().sum().backward()

    w = t.randn(128, 128, requires_grad=True)

    def product() -> None:
        w.grad = None
        (x @ w - y).square().mean().backward()

    return {
        "step of an MLP": step,
        "backward of x[rows]": picked,
        "backward of matmul": product,
        "LSTM, both passes": lambda: lstm(sequence)[0].sum().backward(),
    }


TABLES = (elementwise, reductions, products, shapes, networks, steps)


def sample(f: Callable[[], Any], count: int) -> float:
    """The processor's time of one of so many calls in microseconds."""
    start = time.thread_time()
    for _ in range(count):
        f()
    return (time.thread_time() - start) * 1e6 / count


def beside(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float, float]:
    """The median times of both, and the median of theirs by ours."""
    counts = []
    for f in (ours, theirs):
        f()
        counts.append(max(1, min(1000, int(SAMPLE_SECONDS * 1e6 / max(sample(f, 3), 0.1)))))
    times = [(sample(ours, counts[0]), sample(theirs, counts[1])) for _ in range(ROUNDS)]
    medians = [statistics.median(side) for side in zip(*times)]
    return medians[0], medians[1], statistics.median(b / a for a, b in times)


def main(words: list[str]) -> None:
    import torch

    import chainrule

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chainrule.set_num_threads(1)
    ratios = []
    for table in TABLES:
        ours, theirs = table(chainrule), table(torch)
        for name in ours:
            if not words or any(word in name for word in words):
                a, b, ratio = beside(ours[name], theirs[name])
                ratios.append(ratio)
                print(f"{name:24} {a:10.1f} {b:10.1f} {ratio:6.2f}{'  behind' if ratio < 0.9 else ''}", flush=True)
    print(f"{len(ratios)} ops, {sum(r < 0.9 for r in ratios)} below 0.9, median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
