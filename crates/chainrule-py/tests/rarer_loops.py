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


RARER: dict[str, tuple[Any, tuple[str, ...]]] = {
    "relu before sigmoid": (relu_before_sigmoid, ("output_activation",)),
    "a divergence of probabilities": (divergence_of_probabilities, ("log_forgotten",)),
}
RARER_HEALTHY: dict[str, Any] = {"a rare class with a weight": weighted_rare_class, "two players": two_players}
