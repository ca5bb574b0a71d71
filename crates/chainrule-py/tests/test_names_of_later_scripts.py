"""Names of later public scripts, beside PyTorch's: attention of any score, gradients of
convolutions as functions, hooks of all modules.
"""

import warnings

import chainrule as cr
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def both(make, *arrays, graded=True):
    """The results of `make` in each library, with leaves of these arrays, and their gradients."""
    out = []
    for lib in (torch, cr):
        leaves = [lib.tensor(a, requires_grad=graded) for a in arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = make(lib, *leaves)
        if y.requires_grad:
            (y * lib.arange(y.numel()).reshape(y.shape)).sum().backward()
        out.append([y.detach().numpy(), *(x.grad.numpy() for x in leaves if x.grad is not None)])
    for theirs, ours in zip(*out, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def array(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


SCORES = {
    "plain": None, "relative": lambda s, b, h, q, k: s + (q - k), "alibi": lambda s, b, h, q, k: s + (h + 1) * 0.5 * (q - k), "cap": lambda s, b, h, q, k: 2 * (s / 2).tanh(),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention(name, masked):
    def make(lib, q, k, v):
        flex = lib.nn.attention.flex_attention
        mask = flex.create_block_mask(flex.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 3), 2, None, 5, 5, device="cpu") if masked else None
        return flex.flex_attention(q, k, v, SCORES[name], mask, scale=0.3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch.nn.attention.flex_attention  # noqa: F401
    def by_formula(lib, q, k, v):
        """PyTorch has no gradient of it on the processor."""
        if lib is cr:
            return make(lib, q, k, v)
        scores = (q @ k.transpose(-2, -1)) * 0.3
        b, h, i, j = (torch.arange(n).reshape([n if a == at else 1 for a in range(4)]) for at, n in enumerate(scores.shape))
        scores = scores if SCORES[name] is None else SCORES[name](scores, b, h, i, j)
        return (scores.masked_fill(~((i >= j) & (i - j < 3)), float("-inf")) if masked else scores).softmax(-1) @ v

    given = array(2, 3, 5, 4), array(2, 3, 5, 4) + 1, array(2, 3, 5, 4) * 2
    both(make, *given, graded=False)
    both(by_formula, *given)


def test_flex_attention_of_groups_and_of_no_key():
    def make(lib, q, k, v):
        flex = lib.nn.attention.flex_attention
        mask = flex.create_block_mask(flex.or_masks(lambda b, h, q, k: q > k, lambda b, h, q, k: q > k + 1), None, None, 5, 5, device="cpu")
        return flex.flex_attention(q, k, v, block_mask=mask, enable_gqa=True)

    import torch.nn.attention.flex_attention  # noqa: F401

    both(make, array(2, 4, 5, 4), array(2, 2, 5, 4), array(2, 2, 5, 4), graded=False)
    mask = cr.nn.attention.flex_attention.create_mask(lambda b, h, q, k: (q + b) % 2 == k % (h + 1), 2, 3, 4, 5)
    theirs = torch.nn.attention.flex_attention.create_mask(lambda b, h, q, k: (q + b) % 2 == k % (h + 1), 2, 3, 4, 5, device="cpu")
    assert mask.tolist() == theirs.tolist()


def test_causal_masks_of_other_lengths():
    import torch.nn.attention.bias as bias

    x, y = array(1, 2, 3, 4), array(1, 2, 5, 4)
    for name in ("causal_upper_left", "causal_lower_right"):
        ours = cr.nn.functional.scaled_dot_product_attention(cr.tensor(x), cr.tensor(y), cr.tensor(y), attn_mask=getattr(cr.nn.attention.bias, name)(3, 5))
        theirs = torch.nn.functional.scaled_dot_product_attention(*(torch.tensor(t) for t in (x, y, y)), attn_mask=getattr(bias, name)(3, 5))
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}])
def test_gradients_of_convolutions(axes, settings):
    x, w = array(2, 4, *[7] * axes), array(6, 4 // settings.get("groups", 1), *[3] * axes)
    y = getattr(torch.nn.functional, f"conv{axes}d")(torch.tensor(x), torch.tensor(w), **settings)
    up = array(*y.shape)
    both(lambda lib, w, up: getattr(lib.nn.grad, f"conv{axes}d_input")(x.shape, w.detach(), up.detach(), **settings), w, up)
    both(lambda lib, x, up: getattr(lib.nn.grad, f"conv{axes}d_weight")(x.detach(), w.shape, up.detach(), **settings), x, up)


def test_hooks_of_all_modules():
    told = []
    for lib in (torch, cr):
        seen = []
        of_all = lib.nn.modules.module
        net = lib.nn.Sequential(lib.nn.Identity(), lib.nn.ReLU())
        net.register_forward_hook(lambda m, x, y: seen.append(("own", type(m).__name__)))
        first = of_all.register_module_forward_pre_hook(lambda m, x: x[0] + 1 if type(m).__name__ == "ReLU" else None)
        then = of_all.register_module_forward_hook(lambda m, x, y: seen.append((type(m).__name__, x[0].tolist(), y.tolist())))
        seen.append(net(lib.tensor([-1.5, 1.0])).tolist())
        first.remove()
        seen.append(net(lib.tensor([-1.5, 1.0])).tolist())
        then.remove()
        seen.append(net(lib.tensor([-1.5, 1.0])).tolist())
        told.append(seen)
    assert told[0] == told[1]


def test_hooks_of_all_modules_reach_compiled_functions():
    net, seen = cr.nn.Linear(2, 1), []
    f = cr.compile(lambda x: net(x))
    f(cr.ones(1, 2))
    handle = cr.nn.modules.module.register_module_forward_hook(lambda m, x, y: y * 0)
    assert f(cr.ones(1, 2)).item() == 0
    handle.remove()
    assert f(cr.ones(1, 2)).item() == net(cr.ones(1, 2)).item() != 0


def test_small_names_of_derivatives():
    def make(lib, x):
        y, along = lib.func.linearize(lambda t: t.sin() * t, x.detach())
        return lib.stack([y, along(lib.ones_like(y)), along(2 * y)])

    both(make, array(3))
    m = cr.func.replace_all_batch_norm_modules_(cr.nn.Sequential(cr.nn.Linear(2, 2), cr.nn.BatchNorm1d(2)))
    x = cr.randn(4, 2)
    assert m.eval()(x).mean(0).abs().max() < 1e-5 and m[1].running_mean is None
    with cr.autograd.graph.allow_mutation_on_saved_tensors():
        w = cr.ones(2, requires_grad=True)
        y = (w * 2).exp()
        loss = (y * y).sum()
        y.zero_()
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), np.full(2, 4 * np.exp(4.0)), rtol=1e-6)
