"""A U-Net and a ResNet, trained for some steps: eager, compiled, and beside PyTorch in float64.

In float32 two libraries that sum in different orders drift apart within a few steps; in float64
they
agree to 12 digits, and what is left of a difference would be a mistake.
"""

import chainrule as cr
import numpy as np
import pytest

STEPS = 4


def block(t, channels, out, stride=1):
    """A residual block as a class of either library."""
    nn = t.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.down = None
            if stride != 1 or channels != out:
                self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            y = self.bn2(self.conv2(t.relu(self.bn1(self.conv1(x)))))
            return t.relu(y + (x if self.down is None else self.down(x)))

    return Block()


def resnet(t):
    nn = t.nn

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
            self.blocks = nn.Sequential(block(t, 8, 8), block(t, 8, 16, 2))
            self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5)

        def forward(self, x):
            return self.fc(t.flatten(self.pool(self.blocks(self.stem(x))), 1))

    return ResNet()


def unet(t):
    nn = t.nn

    def twice(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.SiLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.middle = twice(3, 6), twice(6, 8), twice(8, 8)
            self.up2, self.up1 = nn.ConvTranspose2d(8, 8, 2, stride=2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.join2, self.join1, self.out = twice(16, 8), twice(14, 6), nn.Conv2d(6, 5, 1)
            self.pool = nn.MaxPool2d(2)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(self.pool(a))
            y = self.middle(self.pool(b))
            y = self.join2(t.cat([self.up2(y), b], 1))
            return self.out(self.join1(t.cat([self.up1(y), a], 1)))

    return UNet()


MODELS = {"resnet": (resnet, ()), "unet": (unet, (12, 12))}


def data(name, size=12):
    rng = np.random.default_rng(5)
    _, places = MODELS[name]
    return rng.normal(size=(STEPS, 2, 3, size, size)), rng.integers(0, 5, size=(STEPS, 2, *places))


def trained(t, name, compiled=False, weights=None):
    """The losses and the state after some steps, and the state before."""
    t.manual_seed(7)
    model = MODELS[name][0](t).double()
    if weights is not None:
        model.load_state_dict({k: t.tensor(v) for k, v in weights.items()})
    before = {k: v.detach().numpy().copy() for k, v in model.state_dict().items()}
    optimizer = t.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = t.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = t.compile(step) if compiled else step
    xs, ys = data(name)
    losses = [run(t.tensor(x), t.tensor(y)).item() for x, y in zip(xs, ys)]
    return losses, {k: v.detach().numpy() for k, v in model.state_dict().items()}, before


@pytest.mark.parametrize("name", MODELS)
def test_compiled_is_eager(name):
    losses, state, before = trained(cr, name)
    again, compiled, _ = trained(cr, name, compiled=True)
    assert len(set(losses)) == STEPS
    assert any(np.abs(state[k] - before[k]).max() > 1e-3 for k in state)
    np.testing.assert_allclose(again, losses, rtol=1e-12)
    for k in state:
        np.testing.assert_allclose(compiled[k], state[k], rtol=1e-11, atol=1e-13, err_msg=k)


@pytest.mark.parametrize("name", MODELS)
def test_beside_torch(name):
    torch = pytest.importorskip("torch")
    wanted, states, before = trained(torch, name)
    losses, state, ours = trained(cr, name, weights=before)
    assert list(state) == list(states) and all(np.array_equal(ours[k], before[k]) for k in before)
    np.testing.assert_allclose(losses, wanted, rtol=1e-12)
    for k in states:
        np.testing.assert_allclose(state[k], states[k], rtol=1e-10, atol=1e-12, err_msg=k)


# PyTorch 2.15 with its own weights of this seed, which are ours too.
LOSSES = {
    "resnet": [1.5843929565959916, 2.049450213388328, 2.0260140393309944, 1.770539760036135],
    "unet": [1.6501001199106968, 1.6321347630285785, 1.6064256734517663, 1.6438388141296902],
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_that_torch_gave(name):
    np.testing.assert_allclose(trained(cr, name)[0], LOSSES[name], rtol=1e-12)
