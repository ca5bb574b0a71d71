"""Right loops of kinds whose losses do not simply fall, and mistakes that show beside the loss."""

from __future__ import annotations

from typing import Any

from monitored import adam, blobs, loop, net, sgd


def two_nets(lib: Any) -> Any:
    """A generator and a discriminator, each with its own optimizer and monitor."""
    makes, judges = net(lib, out=2, into=4, width=32), net(lib, out=1, into=2, width=32)
    by_maker, by_judge = adam(lib, makes, 1e-3), adam(lib, judges, 1e-3)
    ones, zeros = lib.t.ones(64, 1), lib.t.zeros(64, 1)
    loss = lib.F.binary_cross_entropy_with_logits
    with lib.monitor(makes, by_maker) as a, lib.monitor(judges, by_judge) as b:
        for _ in range(300):
            real, made = 0.3 * lib.t.randn(64, 2) + 1.0, makes(lib.t.randn(64, 4))
            by_judge.zero_grad()
            (loss(judges(real), ones) + loss(judges(made.detach()), zeros)).backward()
            by_judge.step()
            by_maker.zero_grad()
            loss(judges(made), ones).backward()
            by_maker.step()
    return a.findings() + b.findings()


def goes_on(lib: Any) -> Any:
    """A model that was trained before."""
    model, (x, y) = net(lib, width=32), blobs(lib, 192)
    # Some labels are wrong, so that there is something left of the loss.
    y = lib.t.where(lib.t.rand(192) < 0.1, (y + 1) % 3, y)
    before = adam(lib, model)
    for _ in range(60):
        before.zero_grad()
        lib.F.cross_entropy(model(x), y).backward()
        before.step()
    return loop(lib, model, adam(lib, model, 1e-4), (x, y), steps=200)


def noisy_targets(lib: Any) -> Any:
    """Most of the targets is noise, and the loss stays where that is."""
    x = lib.t.randn(800, 5)
    y = 2.0 * (x @ lib.t.randn(5, 1)) + 3.0 * lib.t.randn(800, 1)
    model = net(lib, out=1, into=5)
    return loop(lib, model, adam(lib, model, 2e-3), (x, y), lib.F.mse_loss, 500)


def smoothed(lib: Any) -> Any:
    model = net(lib, width=32)
    loss = lambda out, y: lib.F.cross_entropy(out, y, label_smoothing=0.3)  # noqa: E731
    return loop(lib, model, adam(lib, model), blobs(lib), loss, 400)


def other_task(lib: Any) -> Any:
    """Halfway the classes change places."""
    model, (x, y) = net(lib, width=32), blobs(lib)
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for i in range(400):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x), y if i < 200 else (y + 1) % 3).backward()
            optimizer.step()
    return m.findings()


def moving_target(lib: Any) -> Any:
    """Values of states, compared with those of a copy that follows slowly."""
    values, slow = net(lib, out=1, into=4, width=32), net(lib, out=1, into=4, width=32)
    slow.load_state_dict(values.state_dict())
    optimizer, shift = adam(lib, values, 2e-3), 0.4 * lib.t.randn(4, 4)
    with lib.monitor(values, optimizer) as m:
        for _ in range(400):
            state = lib.t.randn(32, 4)
            reward = lib.t.sin(state[:, :1]) + 0.2 * lib.t.randn(32, 1)
            with lib.t.no_grad():
                target = reward + 0.9 * slow(state @ shift)
            optimizer.zero_grad()
            lib.F.smooth_l1_loss(values(state), target).backward()
            optimizer.step()
            with lib.t.no_grad():
                for a, b in zip(slow.parameters(), values.parameters(), strict=True):
                    a.mul_(0.98).add_(0.02 * b)
    return m.findings()


def too_large_steps(lib: Any) -> Any:
    """Steps of one size jump about the bottom of the valley."""
    x = lib.t.randn(400, 8)
    y = x[:, :1] - 2.0 * x[:, 1:2] + 0.3 * lib.t.randn(400, 1)
    model = net(lib, out=1, into=8, act="Tanh")
    return loop(lib, model, adam(lib, model, 0.1), (x, y), lib.F.mse_loss, 900, batch=4)


def shuffled_apart(lib: Any) -> Any:
    """Labels of other rows: the model learns them by heart, and the held-out loss never falls."""
    model, (x, y) = net(lib, width=128), blobs(lib, 240)
    y, optimizer = y[lib.t.randperm(240)], adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for i in range(400):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x[:120]), y[:120]).backward()
            optimizer.step()
            if i % 25 == 24:
                with lib.t.no_grad():
                    m.validated(lib.F.cross_entropy(model(x[120:]), y[120:]).item())
    return m.findings()


def first_of_a_list(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 192)
    batches = [(x[i : i + 32], y[i : i + 32]) for i in range(0, 192, 32)]
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(60):
            a, b = next(iter(batches))
            optimizer.zero_grad()
            lib.F.cross_entropy(model(a), b).backward()
            optimizer.step()
    return m.findings()


def summed(lib: Any) -> Any:
    x = lib.t.randn(256, 5)
    y = x @ lib.t.randn(5, 1)
    model = net(lib, out=1, into=5, width=32)
    return loop(lib, model, sgd(lib, model, 0.02), (x, y), lambda out, t: ((out - t) ** 2).sum(), 200, batch=64)


def reshaped(lib: Any) -> Any:
    """A reshape in the place of a transpose before a layer that takes places first."""

    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.into, self.over, self.out = lib.nn.Linear(3, 16), lib.nn.GRU(16, 16), lib.nn.Linear(16, 2)

        def forward(self, x: Any) -> Any:
            rows, places, _ = x.shape
            return self.out(self.over(self.into(x).reshape(places, rows, 16))[0][-1])

    model, x = Net(), lib.t.randn(320, 10, 3)
    return loop(lib, model, adam(lib, model, 3e-3), (x, lib.t.where(x[:, :, 0].sum(1) > 0, 1, 0)))


UNUSUAL: dict[str, tuple[Any, tuple[str, ...]]] = {
    "steps that jump about the bottom": (too_large_steps, ("plateau",)),
    "labels shuffled apart": (shuffled_apart, ("overfitting",)),
    "the first of a list of batches": (first_of_a_list, ("same_batch",)),
    "squares summed": (summed, ("loss_reduction",)),
    "reshaped before a recurrent layer": (reshaped, ("dependence",)),
}
# Nothing at all is said of these.
UNUSUAL_HEALTHY: dict[str, Any] = {
    "two nets in a game": two_nets,
    "goes on from a trained state": goes_on,
    "targets that are mostly noise": noisy_targets,
    "smoothed labels": smoothed,
    "another task halfway": other_task,
    "a target that moves": moving_target,
}
