"""The curvature of losses of PyTorch, which the monitor asks for without being heard."""

import pytest

torch = pytest.importorskip("torch")

import torch.utils.checkpoint  # noqa: E402

import chainrule as cr  # noqa: E402


def looked(steps, loss_of, parameters, every=1, lr=0.01, model=None):
    optimizer = torch.optim.SGD(parameters, lr=lr)
    with cr.torch.monitor(parameters if model is None else model, optimizer, every=every) as m:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
    return m


def test_it_is_the_largest_eigenvalue_of_the_hessian():
    w = torch.ones(2, requires_grad=True)
    m = looked(40, lambda: (torch.tensor([1.5, 0.25]) * w * w).sum(), [w])
    # The Hessian has 3 and 0.5 on its diagonal.
    assert m.measures["curvature"] == pytest.approx(3.0, rel=1e-3)
    assert m.measures["stable_curvature"] == pytest.approx(200.0)


def test_it_is_what_four_products_with_the_hessian_of_torch_func_find():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
    x, y = torch.randn(20, 4).double(), torch.randn(20, 1).double()
    parameters, seen = dict(model.named_parameters()), []
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    with cr.torch.monitor(model, optimizer, every=1) as m:
        for _ in range(20):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            seen.append(m.measures.get("curvature"))
    flat = torch.cat([p.detach().flatten() for p in parameters.values()])

    def loss(flat):
        at, named = 0, {}
        for name, p in parameters.items():
            named[name] = flat[at : at + p.numel()].reshape(p.shape)
            at += p.numel()
        return torch.nn.functional.mse_loss(torch.func.functional_call(model, named, (x,)), y)

    hessian, along, found = torch.func.hessian(loss)(flat), torch.func.grad(loss)(flat), []
    for _ in range(4):
        along = along / along.norm()
        found.append(float(along @ hessian @ along))
        along = hessian @ along
    assert seen[14] is None and seen[15] == pytest.approx(max(found), rel=1e-6)
    largest = float(torch.linalg.eigvalsh(hessian)[-1])
    assert 0.6 * largest < seen[15] <= largest


class Once(torch.autograd.Function):
    """Counts its backward passes."""

    passes = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Once.passes += 1
        return g * 2


def net():
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))


def heard(kind, is_watched):
    """Times that something of the user is called, and all that a loop leaves behind."""
    model, calls, kept = net(), [], []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 6), torch.arange(32) % 3
    Once.passes = 0
    if kind == "leaf":
        model[0].weight.register_hook(lambda g: calls.append(1))
    if kind == "module":
        model[2].register_full_backward_hook(lambda *_: calls.append(1))

    def forward():
        if kind == "checkpoint":
            first = torch.utils.checkpoint.checkpoint(model[:3], x, use_reentrant=False)
        else:
            first = model[:3](x)
        if kind == "tensor":
            first.register_hook(lambda g: calls.append(1))
        if kind == "retained":
            first.retain_grad()
            kept.append(first)
        if kind == "function":
            first = Once.apply(first)
        return model[3:](first)

    def loop():
        for _ in range(40):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(forward(), y).backward()
            optimizer.step()

    measures = {}
    if is_watched:
        with cr.torch.monitor(model, optimizer, every=1) as m:
            loop()
        measures = m.measures
    else:
        loop()
    state = [t.tolist() for t in model.state_dict().values()] + [p.grad.tolist() for p in model.parameters()]
    return (len(calls), Once.passes, [t.grad.tolist() for t in kept], state, torch.rand(3).tolist()), measures


@pytest.mark.parametrize("kind", ["plain", "leaf", "module", "checkpoint", "tensor", "retained", "function"])
def test_nobody_hears_of_it(kind):
    alone, (watched, measures) = heard(kind, False)[0], heard(kind, True)
    assert watched == alone
    assert ("curvature" in measures) == (kind == "plain")
    # All that listened is out again.
    assert torch.Tensor.register_hook.__module__ == "torch._tensor" and "retain_grad" not in vars(torch.Tensor)


def test_a_function_without_a_second_derivative_is_asked_once():
    w = torch.ones(3, requires_grad=True)
    x = torch.randn(1, 2, 8, 4)

    def loss():
        # Its fused kernel has none.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(x * w[0], x * w[1], x * w[2]).square().sum()

    m = looked(40, loss, [w])
    assert "curvature" not in m.measures and m.steps == 40
