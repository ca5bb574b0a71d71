"""Loops of training with one planted mistake each, and right ones, for both libraries.

A loop is a function of the library's names (`lib`) that gives the monitor's findings. `lib` hides
the few differences: where the monitor is, and how a number is drawn.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def library(name: str) -> Any:
    """The names of `chainrule` or `torch` that the loops use."""
    if name == "torch":
        import torch

        import chainrule.torch as monitored

        # The tensors are tiny: threads would wait for each other.
        torch.set_num_threads(1)
        return SimpleNamespace(t=torch, nn=torch.nn, F=torch.nn.functional, optim=torch.optim, monitor=monitored.monitor)
    import chainrule as cr

    return SimpleNamespace(t=cr, nn=cr.nn, F=cr.nn.functional, optim=cr.optim, monitor=cr.monitor)


def seed(lib: Any, n: int = 0) -> None:
    (lib.t.manual_seed if hasattr(lib.t, "manual_seed") else lib.t.random.manual_seed)(n)


def blobs(lib: Any, n: int = 96, classes: int = 3) -> tuple[Any, Any]:
    """Points of three clouds with their classes."""
    y = lib.t.arange(n) % classes
    centres = 2.0 * lib.t.randn(classes, 6)
    return centres[y] + lib.t.randn(n, 6), y


def curve(lib: Any, n: int = 96) -> tuple[Any, Any]:
    """A smooth function with little noise."""
    x = lib.t.randn(n, 4)
    w = lib.t.randn(4, 1)
    return x, lib.t.sin(x @ w) + 0.5 * (x @ w) + 0.05 * lib.t.randn(n, 1)


def net(lib: Any, out: int = 3, width: int = 16, act: str = "ReLU", into: int = 6, depth: int = 1) -> Any:
    parts: list[Any] = []
    for i in range(depth):
        parts += [lib.nn.Linear(into if i == 0 else width, width), getattr(lib.nn, act)()]
    return lib.nn.Sequential(*parts, lib.nn.Linear(width, out))


def loop(
    lib: Any,
    model: Any,
    optimizer: Any,
    data: Any,
    loss: Any = None,
    steps: int = 120,
    batch: int = 32,
    zero: bool = True,
    step: bool = True,
    before: Any = None,
    given: Any = None,
) -> Any:
    """The usual loop, with its pieces left out where a mistake wants it; the findings."""
    x, y = data
    criterion = loss or lib.F.cross_entropy
    with lib.monitor(model if given is None else given, optimizer) as m:
        for i in range(steps):
            at = (i * batch) % len(x)
            if zero:
                optimizer.zero_grad()
            criterion(model(x[at : at + batch]), y[at : at + batch]).backward()
            if before is not None:
                before()
            if step:
                optimizer.step()
    return m.findings()


# Planted mistakes: each gives findings, and the kinds that name it.


def adam(lib: Any, model: Any, lr: float = 0.01, **options: Any) -> Any:
    return lib.optim.Adam(model.parameters(), lr=lr, **options)


def sgd(lib: Any, model: Any, lr: float = 0.1, **options: Any) -> Any:
    return lib.optim.SGD(model.parameters(), lr=lr, **options)


def fill(lib: Any, model: Any, value: float | None = None, factor: float | None = None) -> Any:
    """All weights at one value, or scaled."""
    with lib.t.no_grad():
        for p in model.parameters():
            p.copy_(lib.t.full(tuple(p.shape), value) if value is not None else p * factor)
    return model


def optimizer_bug(kind: str, lr: float, **options: Any) -> Any:
    def case(lib: Any) -> Any:
        model = net(lib)
        return loop(lib, model, getattr(lib.optim, kind)(model.parameters(), lr=lr, **options), blobs(lib))

    return case


def regression(lr: float, kind: str = "SGD", scale: float = 1.0, **options: Any) -> Any:
    def case(lib: Any) -> Any:
        model, (x, y) = net(lib, out=1, into=4, act="Tanh"), curve(lib)
        return loop(lib, model, getattr(lib.optim, kind)(model.parameters(), lr=lr, **options), (x * scale, y), lib.F.mse_loss)

    return case


def initialised(value: float | None = None, factor: float | None = None, act: str = "ReLU", depth: int = 2, kind: Any = adam) -> Any:
    def case(lib: Any) -> Any:
        model = fill(lib, net(lib, act=act, depth=depth), value, factor)
        return loop(lib, model, kind(lib, model), blobs(lib))

    return case


def deep(act: str, depth: int, lr: float = 0.01) -> Any:
    def case(lib: Any) -> Any:
        model = net(lib, act=act, depth=depth)
        return loop(lib, model, sgd(lib, model, lr), blobs(lib))

    return case


def sign(kind: Any) -> Any:
    def case(lib: Any) -> Any:
        model, data = net(lib), blobs(lib)
        return loop(lib, model, kind(lib, model), data, lambda p, y: -lib.F.cross_entropy(p, y))

    return case


def maximised(lib: Any) -> Any:
    model = net(lib)
    return loop(lib, model, sgd(lib, model, 0.05, maximize=True), blobs(lib))


def by_hand_up(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    with lib.monitor(model) as m:
        for _ in range(60):
            for p in model.parameters():
                p.grad = None
            lib.F.cross_entropy(model(x), y).backward()
            with lib.t.no_grad():
                for p in model.parameters():
                    p.add_(0.1 * p.grad)
    return m.findings()


def by_hand_nothing(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    with lib.monitor(model) as m:
        for _ in range(60):
            for p in model.parameters():
                p.grad = None
            lib.F.cross_entropy(model(x), y).backward()
            with lib.t.no_grad():
                for p in model.parameters():
                    p = p - 0.1 * p.grad  # noqa: PLW2901
    return m.findings()


def not_zeroed(kind: Any) -> Any:
    def case(lib: Any) -> Any:
        model = net(lib)
        return loop(lib, model, kind(lib, model), blobs(lib), zero=False)

    return case


def never_stepped(lib: Any) -> Any:
    model = net(lib)
    return loop(lib, model, sgd(lib, model), blobs(lib), step=False)


def other_model(lib: Any) -> Any:
    model, other = net(lib), net(lib)
    return loop(lib, model, adam(lib, other), blobs(lib), given=model)


def forgotten_layer(lib: Any) -> Any:
    model, data = net(lib, depth=3), blobs(lib)
    fill(lib, model, factor=0.01)
    return loop(lib, model, lib.optim.SGD(model[-1].parameters(), lr=0.1), data)


def clipped(most: float, kind: Any = sgd) -> Any:
    def case(lib: Any) -> Any:
        model = net(lib)
        clip = lib.nn.utils.clip_grad_norm_
        return loop(lib, model, kind(lib, model), blobs(lib), before=lambda: clip(model.parameters(), most))

    return case


def detached(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    optimizer = sgd(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(60):
            optimizer.zero_grad()
            hidden = lib.F.relu(model[0](x)).detach()
            lib.F.cross_entropy(0.001 * model[2](hidden), y).backward()
            optimizer.step()
    return m.findings()


def dead_relus(lib: Any) -> Any:
    model = net(lib, depth=2)
    with lib.t.no_grad():
        model[0].bias.copy_(model[0].bias - 100.0)
    return loop(lib, model, sgd(lib, model), blobs(lib))


def huge_inputs(act: str) -> Any:
    def case(lib: Any) -> Any:
        model, (x, y) = net(lib, act=act), blobs(lib)
        return loop(lib, model, sgd(lib, model, 1e-3), (1e4 * x, y[lib.t.randperm(len(y))]))

    return case


def logarithm(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1), blobs(lib)
    return loop(lib, model, sgd(lib, model, 0.1), (x, (y > 0).float()), lambda p, y: -lib.t.log(p[:, 0] - 1e9).mean())


def nan_in_data(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    x = lib.t.where(x > 2.5, float("nan") * x, x)
    return loop(lib, model, adam(lib, model), (x, y))


def constant_input(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    return loop(lib, model, sgd(lib, model), (lib.t.ones(96, 6), y))


def decayed(lib: Any) -> Any:
    model = net(lib, depth=2)
    return loop(lib, model, sgd(lib, model, 0.1, weight_decay=5.0), blobs(lib))


def turned_round(lib: Any) -> Any:
    model = net(lib)

    def turn() -> None:
        for p in model.parameters():
            p.grad = -p.grad

    return loop(lib, model, sgd(lib, model), blobs(lib), before=turn)


def weighed_with_zero(lib: Any) -> Any:
    model = net(lib)
    return loop(lib, model, adam(lib, model), blobs(lib), lambda out, y: 0.0 * lib.F.cross_entropy(out, y))


def forgetting(lib: Any) -> Any:
    model = net(lib, act="Tanh")
    return loop(lib, model, lib.optim.AdamW(model.parameters(), lr=0.02, weight_decay=20.0), blobs(lib))


def overfitted(lib: Any) -> Any:
    model, (x, y) = net(lib, width=64), blobs(lib, 48)
    y = y[lib.t.randperm(len(y))]
    optimizer = adam(lib, model, 0.02)
    with lib.monitor(model, optimizer) as m:
        for i in range(300):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x[:24]), y[:24]).backward()
            optimizer.step()
            if i % 30 == 29:
                with lib.t.no_grad():
                    m.validated(lib.F.cross_entropy(model(x[24:]), y[24:]).item())
    return m.findings()


HIGH = ("rate_too_high", "not_finite", "loss_rises")
LOW = ("rate_too_low", "not_updated")
SYMMETRIC = ("symmetric_init",)
PLANTED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "sgd at 100": (optimizer_bug("SGD", 100.0), HIGH),
    "sgd at 1000": (optimizer_bug("SGD", 1000.0), HIGH),
    "sgd with momentum at 30": (optimizer_bug("SGD", 30.0, momentum=0.9), HIGH),
    "regression at 10": (regression(10.0), HIGH),
    "regression of large inputs": (regression(3.0, scale=100.0), (*HIGH, "saturated_units")),
    "sgd at 1e-9": (optimizer_bug("SGD", 1e-9), LOW),
    "sgd at 1e-6": (optimizer_bug("SGD", 1e-6), LOW),
    "adam at 1e-9": (optimizer_bug("Adam", 1e-9), LOW),
    "adamw at 1e-8": (optimizer_bug("AdamW", 1e-8), LOW),
    "adam at 0": (optimizer_bug("Adam", 0.0), LOW),
    "negative loss": (sign(sgd), ("wrong_sign",)),
    "negative loss with adam": (sign(adam), ("wrong_sign",)),
    "maximize": (maximised, ("wrong_sign",)),
    "up the gradient by hand": (by_hand_up, ("wrong_sign",)),
    "the update is bound to a name": (by_hand_nothing, ("not_updated",)),
    "not zeroed": (not_zeroed(sgd), ("not_zeroed",)),
    "not zeroed with adam": (not_zeroed(adam), ("not_zeroed",)),
    "never stepped": (never_stepped, ("not_updated",)),
    "the optimizer of another model": (other_model, ("not_updated",)),
    "layers forgotten in the optimizer": (forgotten_layer, ("not_updated",)),
    "clip at 1e-6": (clipped(1e-6), ("clipping",)),
    "clip at 1e-5": (clipped(1e-5, adam), ("clipping",)),
    "all weights zero": (initialised(0.0), SYMMETRIC),
    "all weights one": (initialised(1.0, act="Tanh"), (*SYMMETRIC, "saturated_units")),
    "all weights a tenth": (initialised(0.1), SYMMETRIC),
    "weights zero with sgd": (initialised(0.0, kind=sgd), SYMMETRIC),
    "twenty sigmoids": (deep("Sigmoid", 20), ("vanishing_gradient",)),
    "twelve sigmoids": (deep("Sigmoid", 12), ("vanishing_gradient",)),
    "dead relus": (dead_relus, ("dead_units",)),
    "tanh of huge inputs": (huge_inputs("Tanh"), ("saturated_units",)),
    "sigmoid of huge inputs": (huge_inputs("Sigmoid"), ("saturated_units",)),
    "detached": (detached, ("no_gradient",)),
    "logarithm of a negative number": (logarithm, ("not_finite",)),
    "NaN in the data": (nan_in_data, ("not_finite",)),
    "constant inputs": (constant_input, ("constant_output",)),
    "weight decay of 5": (decayed, ("weights_vanish", "constant_output", "vanishing_gradient")),
    "gradients turned round": (turned_round, ("wrong_sign",)),
    "a loss times zero": (weighed_with_zero, ("no_gradient",)),
    "a decay of two fifths in a step": (forgetting, ("optimizer_setting",)),
    "learned by heart": (overfitted, ("overfitting",)),
}


# Right loops.


def healthy(kind: str = "Adam", lr: float = 0.01, steps: int = 150, **shape: Any) -> Any:
    options = shape.pop("options", {})

    def case(lib: Any) -> Any:
        model = net(lib, **shape)
        return loop(lib, model, getattr(lib.optim, kind)(model.parameters(), lr=lr, **options), blobs(lib), steps=steps)

    return case


def healthy_regression(kind: str = "Adam", lr: float = 0.01, act: str = "Tanh", **options: Any) -> Any:
    def case(lib: Any) -> Any:
        model = net(lib, out=1, into=4, act=act)
        return loop(lib, model, getattr(lib.optim, kind)(model.parameters(), lr=lr, **options), curve(lib), lib.F.mse_loss, 200)

    return case


def healthy_binary(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1), blobs(lib, classes=2)
    return loop(lib, model, adam(lib, model), (x, y.float().reshape(-1, 1)), lib.F.binary_cross_entropy_with_logits)


def healthy_zero_last(lib: Any) -> Any:
    model = net(lib, depth=2)
    fill(lib, model[-1], 0.0)
    return loop(lib, model, adam(lib, model), blobs(lib))


def healthy_frozen(lib: Any) -> Any:
    model = net(lib, depth=2)
    for p in model[0].parameters():
        p.requires_grad_(False)
    optimizer = lib.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
    return loop(lib, model, optimizer, blobs(lib))


def healthy_head(lib: Any) -> Any:
    model = net(lib)
    return loop(lib, model, lib.optim.Adam(model[-1].parameters(), lr=0.03), blobs(lib), steps=200)


def healthy_clipped(lib: Any) -> Any:
    return clipped(1.0)(lib)


def healthy_accumulated(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(80):
            optimizer.zero_grad()
            for part in range(3):
                at = slice(32 * part, 32 * part + 32)
                (lib.F.cross_entropy(model(x[at]), y[at]) / 3).backward()
            optimizer.step()
    return m.findings()


def healthy_zeroed_to_zeros(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    optimizer = sgd(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(80):
            optimizer.zero_grad(set_to_none=False)
            lib.F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return m.findings()


def healthy_zeroed_after(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    optimizer = sgd(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(80):
            lib.F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    return m.findings()


def healthy_by_hand(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    with lib.monitor(model) as m:
        for _ in range(100):
            for p in model.parameters():
                p.grad = None
            lib.F.cross_entropy(model(x), y).backward()
            with lib.t.no_grad():
                for p in model.parameters():
                    p.sub_(0.1 * p.grad)
    return m.findings()


def healthy_schedule(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    optimizer = sgd(lib, model, 0.2, momentum=0.9)
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, 120)
    with lib.monitor(model, optimizer) as m:
        for _ in range(120):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
    return m.findings()


def healthy_warm_up(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib)
    optimizer = adam(lib, model, 0.02)
    schedule = lib.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, i / 30))
    with lib.monitor(model, optimizer) as m:
        for _ in range(120):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
    return m.findings()


def healthy_layers(make: Any) -> Any:
    def case(lib: Any) -> Any:
        model = make(lib)
        return loop(lib, model, adam(lib, model), blobs(lib))

    return case


def healthy_validated(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 192)
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for i in range(150):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x[:96]), y[:96]).backward()
            optimizer.step()
            if i % 15 == 14:
                with lib.t.no_grad():
                    m.validated(lib.F.cross_entropy(model(x[96:]), y[96:]).item())
    return m.findings()


def healthy_embedding(lib: Any) -> Any:
    table, head = lib.nn.Embedding(50, 8), lib.nn.Linear(8, 3)
    model = lib.nn.Sequential(table, head)
    x = lib.t.arange(96) % 24
    return loop(lib, model, adam(lib, model, 0.03), (x, x % 3))


def with_norm(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.BatchNorm1d(16), lib.nn.ReLU(), lib.nn.Linear(16, 3))


def with_layer_norm(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.LayerNorm(16), lib.nn.GELU(), lib.nn.Linear(16, 3))


def with_dropout(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(6, 32), lib.nn.ReLU(), lib.nn.Dropout(0.3), lib.nn.Linear(32, 3))


def learned_to_the_end(lib: Any) -> Any:
    model, (x, y) = net(lib, width=64), blobs(lib)
    return loop(lib, model, adam(lib, model, 0.03), (x, y), steps=400)


HEALTHY: dict[str, Any] = {
    "adam": healthy(),
    "adam at 0.001": healthy(lr=0.001, steps=250),
    "adam at 0.1": healthy(lr=0.1),
    "adamw": healthy("AdamW"),
    "sgd": healthy("SGD", 0.1),
    "sgd at 0.5": healthy("SGD", 0.5),
    "sgd at 0.01": healthy("SGD", 0.01, 300),
    "sgd with momentum": healthy("SGD", 0.05, options={"momentum": 0.9}),
    "rmsprop": healthy("RMSprop", 0.005),
    "adagrad": healthy("Adagrad", 0.05),
    "tanh": healthy(act="Tanh"),
    "sigmoid": healthy(act="Sigmoid", lr=0.03),
    "wide": healthy(width=128),
    "narrow": healthy(width=4, lr=0.03, steps=250),
    "three layers": healthy(depth=3),
    "five layers": healthy(depth=5),
    "weight decay": healthy("SGD", 0.1, options={"weight_decay": 1e-3}),
    "regression": healthy_regression(),
    "regression with sgd": healthy_regression("SGD", 0.05),
    "regression with relu": healthy_regression(act="ReLU"),
    "regression with momentum": healthy_regression("SGD", 0.02, momentum=0.9),
    "binary": healthy_binary,
    "last layer zero at first": healthy_zero_last,
    "a frozen layer": healthy_frozen,
    "the head alone": healthy_head,
    "clipped at 1": healthy_clipped,
    "accumulated": healthy_accumulated,
    "zeroed to zeros": healthy_zeroed_to_zeros,
    "zeroed after the step": healthy_zeroed_after,
    "by hand": healthy_by_hand,
    "cosine schedule": healthy_schedule,
    "warm-up from 0": healthy_warm_up,
    "batch norm": healthy_layers(with_norm),
    "layer norm": healthy_layers(with_layer_norm),
    "dropout": healthy_layers(with_dropout),
    "validated": healthy_validated,
    "embedding": healthy_embedding,
    "learned to the end": learned_to_the_end,
}
