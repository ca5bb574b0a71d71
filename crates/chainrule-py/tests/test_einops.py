"""Axes by name, beside what reshape, transpose and sums give."""

import chainrule as cr
import pytest
from chainrule.einops import Rearrange, Reduce, rearrange, reduce, repeat

X = cr.arange(2 * 6 * 4 * 3).reshape(2, 6, 4, 3).double()


@pytest.mark.parametrize("pattern, sizes, want", [
    ("b h w c -> b c h w", {}, X.permute(0, 3, 1, 2)), ("b h w c -> (b h) (w c)", {}, X.reshape(12, 12)),
    ("b (h a) w c -> b h w (a c)", {"a": 2}, X.reshape(2, 3, 2, 4, 3).permute(0, 1, 3, 2, 4).reshape(2, 3, 4, 6)),
    ("b ... c -> c ... b", {}, X.permute(3, 1, 2, 0)), ("... c -> (...) c", {}, X.reshape(48, 3)), ("b h w c -> b 1 h w () c", {}, X.reshape(2, 1, 6, 4, 1, 3)),
    ("b (h1 h2) w c -> h2 b h1 w c", {"h1": 3}, X.reshape(2, 3, 2, 4, 3).permute(2, 0, 1, 3, 4)),
])
def test_rearranged(pattern, sizes, want):
    assert cr.equal(rearrange(X, pattern, **sizes), want) and cr.equal(Rearrange(pattern, **sizes)(X), want)


def test_reduced_and_repeated():
    assert cr.equal(reduce(X, "b h w c -> b c", "sum"), X.sum((1, 2)))
    assert cr.equal(reduce(X, "b (h a) (w e) c -> b h w c", "max", a=2, e=2), X.reshape(2, 3, 2, 2, 2, 3).amax((2, 4)))
    assert cr.equal(Reduce("... c -> c", "mean")(X), X.mean((0, 1, 2))) and reduce(X, "b h w c -> ", "prod").shape == ()
    assert cr.equal(repeat(X, "b h w c -> b (h k) w c", k=2), X.repeat_interleave(2, 1))
    assert cr.equal(repeat(X[0, 0, 0], "c -> n c", n=5), X[0, 0, 0].expand(5, 3))
    assert cr.equal(rearrange([X[0], X[1]], "b h w c -> h b w c"), X.transpose(0, 1))


def test_gradients_flow():
    x = cr.ones(4, 3, requires_grad=True)
    (repeat(rearrange(x, "(a b) c -> b (a c)", a=2), "b n -> b n k", k=3) * 2).sum().backward()
    assert bool((x.grad == 6).all())


@pytest.mark.parametrize("call, words", [
    (lambda: rearrange(X, "b h w -> b h w"), "3 axes on the left, and the tensor has 4"), (lambda: rearrange(X, "b h w c"), "'->'"),
    (lambda: rearrange(X, "b h w c -> b h w"), "one side only"), (lambda: rearrange(X, "b (h a) w c -> b h a w c"), "not known"),
    (lambda: rearrange(X, "b (h a) w c -> b h a w c", a=4), "no multiple of 4"), (lambda: rearrange(X, "b b w c -> b w c"), "twice"),
    (lambda: repeat(X, "b h w c -> b h w c k"), "the size of k is missing"), (lambda: reduce(X, "b h w c -> b", "median"), "one of sum"),
    (lambda: rearrange(X, "b h w c -> b c h w", z=3), "z is given"), (lambda: rearrange(X, "b h-w c d -> b c d h"), "is no axis"),
    (lambda: rearrange(X, "b h 1 c -> b h c"), "size 4"),
])
def test_mistakes_are_told(call, words):
    with pytest.raises(ValueError, match=words):
        call()
