"""Part 4: the whole backward pass written by hand, beside that of autograd.

    python examples/names_by_hand.py
"""

from __future__ import annotations

import chainrule as cr
import chainrule.nn.functional as F
from names_data import examples, names, split

SHOWN: list[str] = []


def same(name: str, by_hand: cr.Tensor, t: cr.Tensor) -> None:
    """Prints how far a gradient by hand is from the one in `t.grad`."""
    assert t.grad is not None
    exact = bool(cr.all(by_hand == t.grad).item())
    close = cr.allclose(by_hand, t.grad, rtol=1e-4, atol=1e-7)
    worst = (by_hand - t.grad).abs().max().item()
    SHOWN.append(name)
    print(f"{name:8s} {'exact' if exact else 'close' if close else 'WRONG':6s} at most {worst:.1e} apart")


def main() -> None:
    """One batch forward and backward."""
    train, _, _ = split(names())
    x_all, y_all = (cr.tensor(part) for part in examples(train, 3))
    g = cr.Generator().manual_seed(2147483647)
    table = cr.randn((27, 10), generator=g)
    w1 = cr.randn((30, 64), generator=g) * (5 / 3) / (30**0.5)
    b1 = cr.randn(64, generator=g) * 0.1
    w2 = cr.randn((64, 27), generator=g) * 0.1
    b2 = cr.randn(27, generator=g) * 0.1
    gain = cr.randn((1, 64), generator=g) * 0.1 + 1.0
    shift = cr.randn((1, 64), generator=g) * 0.1
    for p in (table, w1, b1, w2, b2, gain, shift):
        p.requires_grad = True
    n = 32
    at = cr.randint(0, x_all.shape[0], (n,), generator=g)
    x, y = x_all[at], y_all[at]

    emb = table[x]
    flat = emb.view(n, -1)
    before = flat @ w1 + b1
    centred = before - before.mean(0, keepdim=True)
    var = (centred**2).sum(0, keepdim=True) / (n - 1)
    inv = (var + 1e-5) ** -0.5
    normed = centred * inv
    raised = gain * normed + shift
    hidden = cr.tanh(raised)
    logits = hidden @ w2 + b2
    loss = F.cross_entropy(logits, y)
    for t in (logits, hidden, raised, normed, inv, var, before, emb):
        t.retain_grad()
    loss.backward()
    print(f"loss {loss.item():.4f}")

    with cr.no_grad():
        dlogits = F.softmax(logits, 1)
        dlogits[cr.arange(n), y] -= 1
        dlogits /= n
        same("logits", dlogits, logits)
        dhidden = dlogits @ w2.T
        same("hidden", dhidden, hidden)
        same("w2", hidden.T @ dlogits, w2)
        same("b2", dlogits.sum(0), b2)
        draised = (1 - hidden**2) * dhidden
        same("raised", draised, raised)
        same("gain", (normed * draised).sum(0, keepdim=True), gain)
        same("shift", draised.sum(0, keepdim=True), shift)
        dnormed = gain * draised
        same("normed", dnormed, normed)
        dbefore = inv / n * (n * dnormed - dnormed.sum(0) - n / (n - 1) * normed * (dnormed * normed).sum(0))
        same("before", dbefore, before)
        same("w1", flat.T @ dbefore, w1)
        same("b1", dbefore.sum(0), b1)
        demb = (dbefore @ w1.T).view(emb.shape)
        same("emb", demb, emb)
        dtable = cr.zeros_like(table)
        for k in range(x.shape[0]):
            for j in range(x.shape[1]):
                dtable[x[k, j]] += demb[k, j]
        same("table", dtable, table)


if __name__ == "__main__":
    main()
