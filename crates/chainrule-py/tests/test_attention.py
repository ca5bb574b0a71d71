"""Attention of several heads and transformer blocks, beside PyTorch and by numbers that it wrote
down.
"""

import itertools
import math
import warnings

import chainrule as cr
import numpy as np
import pytest
from beside import all_of, numbers, pair, same, torch_or_skip

KINDS = [{}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 5, "vdim": 7}]


def masks(m, how, padded, rows, shape):
    r = np.random.default_rng(0)
    closed = r.random((rows, *shape) if how == "of each head" else shape) > 0.6
    closed[..., 0] = False
    mask = None if how is None else m.tensor(closed) if how == "bool" else m.tensor(np.where(closed, -np.inf, 0.5))
    padding = np.zeros((3, shape[1]), bool)
    padding[1, 2:] = True
    return mask, m.tensor(padding) if padded else None


@pytest.mark.parametrize("settings", KINDS)
@pytest.mark.parametrize("batch_first, dropout, weights", list(itertools.product((False, True), (0.0, 0.3), (False, True))))
def test_beside_torch(settings, batch_first, dropout, weights):
    torch = torch_or_skip()
    ours, theirs = pair(torch, "MultiheadAttention", 8, 2, dropout=dropout, batch_first=batch_first, **settings)
    for how, padded, itself in itertools.product((None, "floats", "of each head", "bool"), (False, True), (False, True)):
        if itself and "kdim" in settings:
            continue
        keys = 4 if itself else 6

        def run(m, module, how=how, padded=padded, itself=itself, keys=keys):
            def shape(length, size):
                return (3, length, size) if batch_first else (length, 3, size)

            mask, padding = masks(m, how, padded, 6, (4, keys))
            q = numbers(m, 1, *shape(4, 8))
            more = [] if itself else [numbers(m, 2, *shape(6, settings.get("kdim", 8))), numbers(m, 3, *shape(6, settings.get("vdim", 8)))]

            def call(q, k=None, v=None):
                k, v = (q, q) if k is None else (k, v)
                return module(q, k, v, key_padding_mask=padding, attn_mask=mask, need_weights=weights)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return all_of(m, module, call, q, *more)

        same(run(cr, ours), run(torch, theirs))


@pytest.mark.parametrize("settings", [{}, {"norm_first": True, "activation": "gelu", "bias": False}, {"batch_first": True, "dropout": 0.4}])
@pytest.mark.parametrize("kind", ["TransformerEncoderLayer", "TransformerDecoderLayer"])
def test_blocks_beside_torch(kind, settings):
    torch = torch_or_skip()
    ours, theirs = pair(torch, kind, 8, 2, 16, **settings)

    def run(m, module):
        mask = m.nn.Transformer.generate_square_subsequent_mask(3 if settings.get("batch_first") else 4, dtype=m.float64)
        inputs = [numbers(m, i, 4, 3, 8) for i in range(1 if "Encoder" in kind else 2)]
        return all_of(m, module, lambda *x: module(*x, mask), *inputs)

    same(run(cr, ours), run(torch, theirs))


@pytest.mark.parametrize("training", [True, False])
def test_transformers_beside_torch(training):
    torch = torch_or_skip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = pair(torch, "Transformer", 8, 2, 2, 2, 16)

    def run(m, module):
        module.train(training)
        mask = m.nn.Transformer.generate_square_subsequent_mask(5, dtype=m.float64)
        return all_of(m, module, lambda x, y: module(x, y, tgt_mask=mask), numbers(m, 1, 4, 3, 8), numbers(m, 2, 5, 3, 8))

    same(run(cr, ours), run(torch, theirs))


def test_one_head_is_attention():
    m = cr.nn.MultiheadAttention(4, 1, bias=False).double()
    x = numbers(cr, 1, 5, 2, 4)
    q, k, v = ((x @ w.T).transpose(0, 1) for w in m.in_proj_weight.chunk(3))
    want = ((q @ k.transpose(1, 2) / math.sqrt(4)).softmax(-1) @ v).transpose(0, 1) @ m.out_proj.weight.T
    assert m(x, x, x, need_weights=False)[0].allclose(want, rtol=1e-12) and m(x, x, x)[0].allclose(want, rtol=1e-12)


def test_heads_that_see_no_other_place_do_not_depend_on_it():
    m = cr.nn.TransformerEncoder(cr.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2).double()
    x = numbers(cr, 1, 5, 2, 8)
    out = m(x, cr.nn.Transformer.generate_square_subsequent_mask(5, dtype=cr.float64))
    (g,) = cr.autograd.grad((out[2] * numbers(cr, 2, 2, 8)).sum(), x)
    assert bool((g[3:] == 0).all()) and bool((g[:3] != 0).any())


def test_mistakes_are_told():
    m = cr.nn.MultiheadAttention(8, 2)
    x = cr.ones(4, 3, 8)
    for call, words in [
        (lambda: cr.nn.MultiheadAttention(8, 3), "3 heads"), (lambda: m(x, x, x, attn_mask=cr.ones(3, 3)), r"\(4, 4\) or \(6, 4, 4\)"),
        (lambda: m(x, x, x, key_padding_mask=cr.ones(4, 4).bool()), r"\(3, 4\)"), (lambda: m(x, x, cr.ones(4, 3, 7)), "value has size 7"),
        (lambda: m(x, x, x, is_causal=True), "attn_mask"), (lambda: cr.nn.TransformerEncoderLayer(8, 2, activation="swish"), "swish"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=words):
            call()


def test_compiled_as_eager():
    def losses(compiled):
        cr.manual_seed(5)
        m = cr.nn.TransformerEncoder(cr.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        o = cr.optim.Adam(m.parameters())
        x = cr.randn(3, 4, 8)

        def step(x):
            o.zero_grad()
            loss = m(x).square().mean(0).sum() + m(x).sin().sum()
            loss.backward()
            o.step()
            return loss

        run = cr.compile(step) if compiled else step
        return [run(x).item() for _ in range(3)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-4)
