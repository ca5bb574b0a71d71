"""Further loops for the monitor: mistakes between the last layer and the loss, and right loops
whose loss has a known form in some passes alone."""

from __future__ import annotations

from typing import Any

from monitored import adam, blobs, net
from planted_mistakes import epochs, loader


def relu_before_sigmoid(lib: Any) -> Any:
    nn = lib.nn
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU(), nn.Sigmoid())
    x, y = blobs(lib, 128, classes=2)
    return epochs(lib, model, adam(lib, model), loader(lib, x, y.float().reshape(-1, 1)), loss=lib.F.binary_cross_entropy)


def divergence_of_probabilities(lib: Any) -> Any:
    model, (x, y) = net(lib), blobs(lib, 128)
    shares = 0.9 * lib.F.one_hot(y, 3).float() + 0.1 / 3

    def loss(out: Any, t: Any) -> Any:
        return lib.F.kl_div(lib.F.softmax(out, -1), t, reduction="batchmean")

    return epochs(lib, model, adam(lib, model), loader(lib, x, shares), loss=loss)


def weighted_rare_class(lib: Any) -> Any:
    """Batches without the rare class alone look like a plain mean."""
    x, y = lib.t.randn(320, 6), (lib.t.arange(320) % 16 == 0).long()
    x = x + 1.5 * y.float().reshape(-1, 1)
    model, weights = net(lib, out=2), lib.t.tensor([1.0, 10.0])
    return epochs(lib, model, adam(lib, model), loader(lib, x, y), loss=lambda out, t: lib.F.cross_entropy(out, t, weight=weights), count=20)


def two_players(lib: Any) -> Any:
    """A critic, through which the other's step goes with targets of one alone."""
    nn, bce = lib.nn, lib.F.binary_cross_entropy_with_logits
    maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    makes, judges = adam(lib, maker, 0.002), adam(lib, critic, 0.002)
    with lib.monitor(critic, judges) as m, lib.monitor(maker, makes) as other:
        for _ in range(120):
            real, z = 0.5 * lib.t.randn(32, 2) + 2.0, lib.t.randn(32, 4)
            judges.zero_grad()
            (bce(critic(real), lib.t.ones(32, 1)) + bce(critic(maker(z).detach()), lib.t.zeros(32, 1))).backward()
            judges.step()
            makes.zero_grad()
            bce(critic(maker(z)), lib.t.ones(32, 1)).backward()
            makes.step()
    return [*m.findings(), *other.findings()]


def used_gradients_accumulated(lib: Any) -> Any:
    """Four batches make a step, and no step zeroes what it has used."""
    model, (x, y) = net(lib), blobs(lib, 192)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.05)
    with lib.monitor(model, optimizer) as m:
        for _ in range(12):
            for i, (a, b) in enumerate(loader(lib, x, y)):
                (lib.F.cross_entropy(model(a), b) / 4).backward()
                if i % 4 == 3:
                    optimizer.step()
    return m.findings()


def against_an_attack(lib: Any) -> Any:
    """A pass for the gradient of inputs, on gradients not yet zeroed, before each that trains."""
    model, (x, y) = net(lib), blobs(lib, 128)
    optimizer = adam(lib, model)
    with lib.monitor(model, optimizer) as m:
        for _ in range(10):
            for a, b in loader(lib, x, y):
                a = a.clone().requires_grad_(True)
                lib.F.cross_entropy(model(a), b).backward()
                moved = (a + 0.1 * a.grad.sign()).detach()
                optimizer.zero_grad()
                lib.F.cross_entropy(model(moved), b).backward()
                optimizer.step()
    return m.findings()


def penalised(lib: Any, model: Any) -> Any:
    """A regression with a penalty of the weights in the loss."""
    x = lib.t.rand(320, 4)
    y = lib.t.sin(3.0 * x[:, :1]) + x[:, 1:2] - 1.0

    def loss(out: Any, t: Any) -> Any:
        return lib.F.mse_loss(out, t) + 1e-4 * sum((p**2).sum() for p in model.parameters() if p.dim() == 2)

    return epochs(lib, model, adam(lib, model, 0.003), loader(lib, x, y, 32), loss=loss, count=30)


def sigmoid_of_a_penalised_regression(lib: Any) -> Any:
    nn = lib.nn
    return penalised(lib, nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()))


def penalised_regression(lib: Any) -> Any:
    return penalised(lib, net(lib, out=1, into=4, width=32))


def absolute_beyond_bounds(lib: Any) -> Any:
    nn, (x, _) = lib.nn, blobs(lib, 192)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
    return epochs(lib, model, adam(lib, model), loader(lib, x, 3.0 * x[:, :1]), loss=lib.F.l1_loss)


def labels_of_signs(lib: Any) -> Any:
    """Targets of -1 and 1 for a loss of zeros and ones."""
    model, (x, y) = net(lib, out=1), blobs(lib, 192, classes=2)
    signs = (2 * y - 1).float().reshape(-1, 1)
    return epochs(lib, model, adam(lib, model), loader(lib, x, signs), loss=lib.F.binary_cross_entropy_with_logits, count=10)


def triplets(lib: Any) -> Any:
    """Differences of outputs: the gradient of the last bias is zero, and its units are alive."""
    model, (x, _) = net(lib, out=8, width=32), blobs(lib, 192)
    optimizer = adam(lib, model, 0.003)
    with lib.monitor(model, optimizer) as m:
        for _ in range(60):
            anchor, same, other = model(x), model(x + 0.1 * lib.t.randn(192, 6)), model(x[lib.t.arange(192) - 1])
            optimizer.zero_grad()
            (((anchor - same) ** 2).sum(1) - ((anchor - other) ** 2).sum(1) + 1.0).clamp(min=0.0).mean().backward()
            optimizer.step()
    return m.findings()


def labels_of_other_examples(lib: Any) -> Any:
    """The model can learn some of them by heart."""
    model, (x, y) = net(lib, width=32), blobs(lib, 640)
    return epochs(lib, model, adam(lib, model, 0.003), loader(lib, x, y[lib.t.randperm(640)], 32), count=12)


def letters(lib: Any) -> Any:
    """Classes as uneven as letters are, most of which cannot be told from what comes before."""
    text = "the quick brown fox jumps over the lazy dog and runs away to the hills where nobody ever was "
    ids = lib.t.tensor([ord(c) % 32 for c in text * 12])
    nn = lib.nn
    model = nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 32))
    return epochs(lib, model, adam(lib, model), loader(lib, ids[:-1], ids[1:], 64), count=6)


def pairs_with_negatives(lib: Any) -> Any:
    """The first of three pairs is right in all examples: an answer by column costs nothing."""
    nn = lib.nn

    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Embedding(20, 8), nn.Embedding(20, 8)

        def forward(self, pair: Any) -> Any:
            return (self.a(pair[:, :1]) * self.b(pair[:, 1:])).sum(-1)

    model, first = Pairs(), lib.t.randint(0, 20, (640, 1))
    pairs = lib.t.cat([first, (first + 1) % 20, lib.t.randint(0, 20, (640, 2))], 1)
    right = lib.t.cat([lib.t.ones(640, 1), lib.t.zeros(640, 2)], 1)
    return epochs(lib, model, adam(lib, model, 0.02), loader(lib, pairs, right, 64), loss=lib.F.binary_cross_entropy_with_logits, count=15)


def noisy_numbers(lib: Any) -> Any:
    """Four fifths of the targets are noise."""
    x = lib.t.randn(800, 4)
    y = 0.5 * x[:, :1] + lib.t.randn(800, 1)
    model = net(lib, out=1, into=4)
    return epochs(lib, model, adam(lib, model, 0.002), loader(lib, x, y, 32), loss=lib.F.mse_loss, count=10)


RARER: dict[str, tuple[Any, tuple[str, ...]]] = {
    "relu before sigmoid": (relu_before_sigmoid, ("output_activation",)),
    "a divergence of probabilities": (divergence_of_probabilities, ("log_forgotten",)),
    "used gradients that are accumulated": (used_gradients_accumulated, ("not_zeroed",)),
    "a sigmoid at the end of a penalised regression": (sigmoid_of_a_penalised_regression, ("output_activation",)),
    "sizes of differences beyond the bounds": (absolute_beyond_bounds, ("output_activation",)),
    "labels of -1 and 1 as zeros and ones": (labels_of_signs, ("loss",)),
    "labels of other examples": (labels_of_other_examples, ("labels",)),
}
RARER_HEALTHY: dict[str, Any] = {
    "a rare class with a weight": weighted_rare_class,
    "two players": two_players,
    "a training against an attack": against_an_attack,
    "a penalised regression": penalised_regression,
    "letters of a text": letters,
    "pairs with negatives": pairs_with_negatives,
    "noisy numbers": noisy_numbers,
    "triplets": triplets,
}
