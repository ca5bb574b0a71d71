"""Further loops with planted mistakes, and right ones, as people write them: with a data loader, a
schedule, epochs, evaluation, layers of their own.
"""

from __future__ import annotations

from typing import Any

from monitored import adam, blobs, curve, net, sgd


def loader(lib: Any, x: Any, y: Any, size: int = 16, shuffle: bool = True) -> Any:
    if lib.t.__name__ == "torch":
        from torch.utils.data import DataLoader, TensorDataset
    else:
        from chainrule.utils.data import DataLoader, TensorDataset
    return DataLoader(TensorDataset(x, y), batch_size=size, shuffle=shuffle)


def epochs(lib: Any, model: Any, optimizer: Any, batches: Any, count: int = 25, loss: Any = None, schedule: Any = None, each: Any = None) -> Any:
    criterion = loss or lib.F.cross_entropy
    with lib.monitor(model, optimizer) as m:
        for _ in range(count):
            model.train()
            for x, y in batches:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
                if schedule is not None:
                    schedule.step()
            if each is not None:
                each(m)
    return m.findings()


# The five that earlier rules missed.


def first_batch_only(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = sgd(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(60):
            xb, yb = x[:16], y[:16]
            optimizer.zero_grad()
            lib.F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    return m.findings()


def same_loader_batch(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer, batches = adam(lib, model), loader(lib, x, y, shuffle=False)
    with lib.monitor(model, optimizer) as m:
        for _ in range(60):
            xb, yb = next(iter(batches))
            optimizer.zero_grad()
            lib.F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    return m.findings()


def drawn_before_the_loop(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer, batches = adam(lib, model), loader(lib, x, y)
    xb, yb = next(iter(batches))
    with lib.monitor(model, optimizer) as m:
        for _ in range(60):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    return m.findings()


def decays_to_nothing(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = sgd(lib, model, 0.02)
    schedule = lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    return epochs(lib, model, optimizer, loader(lib, x, y), schedule=schedule)


def step_schedule_each_batch(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4, act="Tanh"), curve(lib, 128)
    optimizer = sgd(lib, model, 0.01)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 10, 0.1)
    return epochs(lib, model, optimizer, loader(lib, x, y), loss=lib.F.mse_loss, schedule=schedule)


def momentum_of_one(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, sgd(lib, model, 0.01, momentum=1.0), loader(lib, x, y))


def betas_swapped(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model, 0.05, betas=(0.999, 0.9)), loader(lib, x, y))


def eps_of_a_hundred(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model, 0.001, eps=100.0), loader(lib, x, y))


def damped_momentum(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, sgd(lib, model, 0.05, momentum=0.9, dampening=1.0), loader(lib, x, y))


def spiked(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4, act="Tanh"), curve(lib, 1600)
    optimizer = sgd(lib, model, 0.05)
    with lib.monitor(model, optimizer) as m:
        for i in range(100):
            xb, yb = x[16 * i : 16 * i + 16], y[16 * i : 16 * i + 16]
            if i == 80:
                xb, yb = xb * 50.0, yb * 10.0
            optimizer.zero_grad()
            lib.F.mse_loss(model(xb), yb).backward()
            lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return m.findings()


def bounces(lib: Any) -> Any:
    # One unit can only learn so much.
    model, (x, y) = net(lib, out=1, into=4, act="Tanh", width=1), curve(lib, 128)
    y = y + x[:, :1] * x[:, 1:2] * 1.5
    return epochs(lib, model, adam(lib, model, 0.05), loader(lib, x, y), loss=lib.F.mse_loss, count=60)


# The last layer and the loss.


def softmax_module(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3), lib.nn.Softmax(-1))
    x, y = blobs(lib, 128)
    return epochs(lib, model, sgd(lib, model, 0.1), loader(lib, x, y))


def softmax_by_hand(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Linear(6, 16), lib.nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            return lib.F.softmax(self.b(lib.F.relu(self.a(x))), -1)

    model, (x, y) = Net(), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y))


def softmax_before_the_loss(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lambda p, y: lib.F.cross_entropy(lib.F.softmax(p, -1), y))


def relu_at_the_end(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3), lib.nn.ReLU())
    x, y = blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y))


def nll_of_logits(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lib.F.nll_loss)


def nll_of_softmax(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3), lib.nn.Softmax(-1))
    x, y = blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lib.F.nll_loss)


def sigmoid_twice(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 1), lib.nn.Sigmoid())
    x, y = blobs(lib, 128, classes=2)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y.float().reshape(-1, 1)), loss=lib.F.binary_cross_entropy_with_logits)


def tanh_for_large_targets(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(4, 16), lib.nn.ReLU(), lib.nn.Linear(16, 1), lib.nn.Tanh())
    x, y = curve(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, 3.0 * y), loss=lib.F.mse_loss)


def relu_for_signed_targets(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Linear(4, 16), lib.nn.Linear(16, 1)

        def forward(self, x: Any) -> Any:
            return lib.F.relu(self.b(lib.F.relu(self.a(x))))

    model, (x, y) = Net(), curve(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lib.F.mse_loss)


def softmax_of_one(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 1), lib.nn.Softmax(-1))
    x, y = blobs(lib, 128, classes=2)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y.float().reshape(-1, 1)), loss=lib.F.binary_cross_entropy)


def broadcast(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4, act="Tanh"), curve(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y.reshape(-1)), loss=lambda p, y: ((p - y) ** 2).mean())


def summed(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4, act="Tanh"), curve(lib, 256)
    return epochs(lib, model, sgd(lib, model, 0.1), loader(lib, x, y, 64), loss=lambda p, y: ((p - y) ** 2).sum())


# Data.


def sorted_by_class(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 192)
    order = lib.t.argsort(y)
    return epochs(lib, model, sgd(lib, model, 0.1), loader(lib, x[order], y[order], 32, shuffle=False), count=15)


def one_class(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y * 0))


def raw_targets(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4, act="Tanh"), curve(lib, 128)
    return epochs(lib, model, adam(lib, model, 0.001), loader(lib, x, 200_000.0 + 50_000.0 * y), loss=lib.F.mse_loss)


def infinite_input(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    x = x / (x.abs() > 0.02).float()
    return epochs(lib, model, adam(lib, model), loader(lib, x, y))


# Modes, order of calls, dependence.


def always_in_evaluation(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.BatchNorm1d(16), lib.nn.ReLU(), lib.nn.Dropout(0.3), lib.nn.Linear(16, 3))
    x, y = blobs(lib, 128)
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for epoch in range(20):
            for at in range(0, 96, 16):
                optimizer.zero_grad()
                lib.F.cross_entropy(model(x[at : at + 16]), y[at : at + 16]).backward()
                optimizer.step()
            model.eval()
            with lib.t.no_grad():
                m.validated(lib.F.cross_entropy(model(x[96:]), y[96:]).item())
    return m.findings()


def measured_in_training(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Dropout(0.5), lib.nn.Linear(16, 3))
    x, y = blobs(lib, 128)

    def measure(m: Any) -> None:
        with lib.t.no_grad():
            m.validated(lib.F.cross_entropy(model(x[96:]), y[96:]).item())

    return epochs(lib, model, adam(lib, model), loader(lib, x[:96], y[:96]), each=measure)


def zeroed_before_the_step(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = sgd(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(10):
            for xb, yb in loader(lib, x, y):
                loss = lib.F.cross_entropy(model(xb), yb)
                loss.backward()
                optimizer.zero_grad()
                optimizer.step()
    return m.findings()


def stepped_before_backward(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = sgd(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(10):
            for xb, yb in loader(lib, x, y):
                optimizer.zero_grad()
                optimizer.step()
                lib.F.cross_entropy(model(xb), yb).backward()
    return m.findings()


def made_anew(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = adam(lib, model, 0.001)
    with lib.monitor(model, optimizer) as m:
        for _ in range(8):
            for xb, yb in loader(lib, x, y):
                optimizer = adam(lib, model, 0.3)
                optimizer.zero_grad()
                lib.F.cross_entropy(model(xb), yb).backward()
                optimizer.step()
    return m.findings()


def normalised_over_the_batch(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Linear(6, 16), lib.nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            h = lib.F.relu(self.a(x))
            return lib.F.log_softmax(self.b(h), 0)

    model, (x, y) = Net(), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lib.F.nll_loss)


def softmax_of_the_loss_over_the_batch(lib: Any) -> Any:
    def loss(output: Any, y: Any) -> Any:
        return -lib.t.log(lib.F.softmax(output, 0) + 1e-9)[lib.t.arange(len(y)), y].mean()

    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=loss)


def reshaped_for_transposed(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Linear(6, 16), lib.nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            h = self.a(x)
            # Heads of four: (n, 4, 4) to (4, n, 4) and back, of which the way back is a reshape.
            h = h.reshape(len(x), 4, 4).transpose(0, 1).reshape(len(x), 16)
            return self.b(lib.F.relu(h))

    model, (x, y) = Net(), blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y))


def tokens(lib: Any, n: int = 64, t: int = 8) -> Any:
    rows = (lib.t.arange(n).reshape(n, 1) * 3 + lib.t.arange(t + 1).reshape(1, t + 1) * 2) % 11
    return rows[:, :-1], rows[:, 1:]


def language_model(lib: Any, causal: bool) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.q, self.k, self.v, self.out = lib.nn.Embedding(11, 16), *(lib.nn.Linear(16, 16) for _ in range(3)), lib.nn.Linear(16, 11)

        def forward(self, x: Any) -> Any:
            h = self.table(x)
            q, k, v = self.q(h), self.k(h), self.v(h)
            scores = q @ k.transpose(1, 2) / 4.0
            if causal:
                t = x.shape[1]
                scores = scores + lib.t.triu(lib.t.full((t, t), -1e9), diagonal=1)
            return self.out(h + lib.F.softmax(scores, -1) @ v)

    return Net()


def language(lib: Any, causal: bool) -> Any:
    model, (x, y) = language_model(lib, causal), tokens(lib)
    return epochs(lib, model, adam(lib, model, 0.01), loader(lib, x, y), loss=lambda p, y: lib.F.cross_entropy(p.reshape(-1, 11), y.reshape(-1)))


def no_mask(lib: Any) -> Any:
    return language(lib, causal=False)


def most_is_dropped(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Dropout(0.97), lib.nn.Linear(16, 3))
    x, y = blobs(lib, 128)
    return epochs(lib, model, adam(lib, model, 0.003), loader(lib, x, y), count=12)


SAME = ("same_batch",)
DECAYS = ("rate_decays",)
SETTING = ("optimizer_setting",)
ACTIVATION = ("output_activation",)
FURTHER: dict[str, tuple[Any, tuple[str, ...]]] = {
    "the first rows in each step": (first_batch_only, SAME),
    "next(iter(loader)) in each step": (same_loader_batch, SAME),
    "a batch drawn before the loop": (drawn_before_the_loop, SAME),
    "decay to nothing": (decays_to_nothing, DECAYS),
    "a schedule of epochs stepped in batches": (step_schedule_each_batch, DECAYS),
    "momentum of 1": (momentum_of_one, SETTING),
    "betas swapped": (betas_swapped, SETTING),
    "eps of 100": (eps_of_a_hundred, (*SETTING, "rate_too_low")),
    "dampening of 1": (damped_momentum, SETTING),
    "a spoilt batch": (spiked, ("loss_spike",)),
    "one unit": (bounces, ("plateau",)),
    "softmax before cross-entropy": (softmax_module, ACTIVATION),
    "softmax by a function": (softmax_by_hand, ACTIVATION),
    "softmax outside of the model": (softmax_before_the_loss, ACTIVATION),
    "relu before cross-entropy": (relu_at_the_end, ACTIVATION),
    "nll of logits": (nll_of_logits, ("log_forgotten",)),
    "nll of softmax": (nll_of_softmax, ("log_forgotten",)),
    "sigmoid twice": (sigmoid_twice, ACTIVATION),
    "tanh for large targets": (tanh_for_large_targets, ACTIVATION),
    "relu for signed targets": (relu_for_signed_targets, (*ACTIVATION, "dead_units")),
    "softmax over one unit": (softmax_of_one, (*ACTIVATION, "constant_output")),
    "outputs against all targets": (broadcast, ("loss_broadcast",)),
    "a sum over 64 examples": (summed, ("loss_reduction", "rate_too_high")),
    "sorted by class": (sorted_by_class, ("data_order",)),
    "one class": (one_class, ("labels",)),
    "targets of hundred thousands": (raw_targets, ("target_scale",)),
    "infinite inputs": (infinite_input, ("not_finite",)),
    "trained in evaluation mode": (always_in_evaluation, ("evaluation_mode",)),
    "measured in training mode": (measured_in_training, ("training_mode",)),
    "zeroed before the step": (zeroed_before_the_step, ("zeroed_early",)),
    "stepped before backward": (stepped_before_backward, ("zeroed_early",)),
    "an optimizer for each step": (made_anew, SETTING),
    "softmax over the batch": (normalised_over_the_batch, ("dependence",)),
    "softmax of the loss over the batch": (softmax_of_the_loss_over_the_batch, ("dependence",)),
    "reshape for transpose": (reshaped_for_transposed, ("dependence",)),
    "no causal mask": (no_mask, ("dependence",)),
    "dropout of 0.97": (most_is_dropped, ("dropout",)),
}


# Right loops.


def full_batch(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    train_x, train_y, test_x, test_y = x[:96], y[:96], x[96:], y[96:]
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(100):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(train_x), train_y).backward()
            optimizer.step()
    lib.F.cross_entropy(model(test_x), test_y).item()
    return m.findings()


def sliced_split(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(100):
            optimizer.zero_grad()
            lib.F.cross_entropy(model(x[:100]), y[:100]).backward()
            optimizer.step()
    return m.findings()


def with_norm_and_dropout(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.BatchNorm1d(16), lib.nn.ReLU(), lib.nn.Dropout(0.2), lib.nn.Linear(16, 3))


def good_evaluation(lib: Any) -> Any:
    model = with_norm_and_dropout(lib)
    x, y = blobs(lib, 256)

    def measure(m: Any) -> None:
        model.eval()
        with lib.t.no_grad():
            m.validated(lib.F.cross_entropy(model(x[192:]), y[192:]).item())

    return epochs(lib, model, adam(lib, model), loader(lib, x[:192], y[:192]), each=measure, count=20)


def log_softmax_and_nll(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3), lib.nn.LogSoftmax(-1))
    x, y = blobs(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lib.F.nll_loss)


def sigmoid_and_bce(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 1), lib.nn.Sigmoid())
    x, y = blobs(lib, 128, classes=2)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y.float().reshape(-1, 1)), loss=lib.F.binary_cross_entropy)


def step_schedule(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = sgd(lib, model, 0.1, momentum=0.9)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 8, 0.1)
    return epochs(lib, model, optimizer, loader(lib, x, y), count=20, each=lambda m: schedule.step())


def one_cycle(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = sgd(lib, model, 0.01)
    schedule = lib.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, total_steps=8 * 20)
    return epochs(lib, model, optimizer, loader(lib, x, y), count=20, schedule=schedule)


def masked_language(lib: Any) -> Any:
    return language(lib, causal=True)


def autoencoder(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(6, 4), lib.nn.ReLU(), lib.nn.Linear(4, 6))
    x, _ = blobs(lib, 128)
    return epochs(lib, model, adam(lib, model, 0.02), loader(lib, x, x), loss=lib.F.mse_loss, count=30)


def pictures(lib: Any) -> Any:
    model = lib.nn.Sequential(
        lib.nn.Conv2d(1, 4, 3, padding=1), lib.nn.ReLU(), lib.nn.MaxPool2d(2), lib.nn.Flatten(), lib.nn.Linear(4 * 4 * 4, 3),
    )
    y = lib.t.arange(96) % 3
    x = lib.t.randn(96, 1, 8, 8) + 2.0 * lib.t.randn(3, 1, 8, 8)[y]
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), count=12)


def recurrent_model(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.drop, self.head = lib.nn.GRU(3, 12, batch_first=True), lib.nn.Dropout(0.1), lib.nn.Linear(12, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.drop(self.rnn(x)[0][:, -1]))

    return Net()


def sums(lib: Any) -> tuple[Any, Any]:
    x = lib.t.randn(96, 6, 3)
    return x, x.sum(1).sum(1).reshape(-1, 1) / 4.0


def recurrent(lib: Any) -> Any:
    model, (x, y) = recurrent_model(lib), sums(lib)
    return epochs(lib, model, adam(lib, model, 0.02), loader(lib, x, y), loss=lib.F.mse_loss, count=20)


def residual(lib: Any) -> Any:
    class Block(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.a, self.b = lib.nn.LayerNorm(16), lib.nn.Linear(16, 32), lib.nn.Linear(32, 16)

        def forward(self, x: Any) -> Any:
            return x + self.b(lib.F.gelu(self.a(self.norm(x))))

    model = lib.nn.Sequential(lib.nn.Linear(6, 16), Block(), Block(), Block(), lib.nn.Linear(16, 3))
    x, y = blobs(lib, 128)
    return epochs(lib, model, lib.optim.AdamW(model.parameters(), lr=3e-3), loader(lib, x, y), count=15)


def unbalanced(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1), blobs(lib, 160, classes=8)
    return epochs(lib, model, adam(lib, model, 0.02), loader(lib, x, (y == 0).float().reshape(-1, 1)), loss=lib.F.binary_cross_entropy_with_logits, count=30)


def huber(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4), curve(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lib.F.smooth_l1_loss, count=30)


def squeezed(lib: Any) -> Any:
    model, (x, y) = net(lib, out=1, into=4), curve(lib, 128)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y.reshape(-1)), loss=lambda p, y: ((p.squeeze(-1) - y) ** 2).mean(), count=30)


def small_sum(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    return epochs(lib, model, sgd(lib, model, 0.005), loader(lib, x, y), loss=lambda p, y: lib.F.cross_entropy(p, y, reduction="sum"))


FURTHER_HEALTHY: dict[str, Any] = {
    "the whole data in each step": full_batch,
    "a slice for training": sliced_split,
    "modes as they should be": good_evaluation,
    "log-softmax and nll": log_softmax_and_nll,
    "sigmoid and bce": sigmoid_and_bce,
    "a schedule of epochs": step_schedule,
    "one cycle": one_cycle,
    "a masked language model": masked_language,
    "autoencoder": autoencoder,
    "convolutions": pictures,
    "recurrent": recurrent,
    "residual": residual,
    "unbalanced": unbalanced,
    "huber": huber,
    "squeezed": squeezed,
    "a sum with a small rate": small_sum,
}
