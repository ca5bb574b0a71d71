"""Attention whose scores and mask are functions of batch, head, query and key: all scores are
computed, so that it costs what attention with a mask costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import _chainrule as _c
from ... import _making as _m
from ..._chainrule import Tensor

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Tensor:
    """True: every query sees every key."""
    return _m.ones((), dtype="bool")


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask that is True where all of these are."""

    def both(b: Any, h: Any, q: Any, k: Any) -> Tensor:
        out = noop_mask(b, h, q, k)
        for mask in mask_mods:
            out = out & mask(b, h, q, k)
        return out

    return both


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask that is True where one of these is."""

    def either(b: Any, h: Any, q: Any, k: Any) -> Tensor:
        out = ~noop_mask(b, h, q, k)
        for mask in mask_mods:
            out = out | mask(b, h, q, k)
        return out

    return either


def _places(sizes: tuple[int, ...]) -> list[Tensor]:
    """The numbers along each of four axes, to be broadcast against each other."""
    return [_c._arange(0, n, 1, None).reshape([n if i == j else 1 for j in range(4)]) for i, n in enumerate(sizes)]


def create_mask(mod_fn: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The mask as a tensor of bools of shape `[B, H, Q_LEN, KV_LEN]`; None counts as 1.

    ```
    causal = cr.nn.attention.flex_attention.create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)
    assert causal.tolist() == [[[[True, False], [True, True]]]]
    ```
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    return _m.ones(sizes, dtype="bool") & mod_fn(*_places(sizes))


class BlockMask:
    """A mask that `flex_attention` takes: `create_block_mask` makes it."""

    def __init__(self, mask_mod: MaskMod, mask: Tensor) -> None:
        self.mask_mod, self._mask = mask_mod, mask

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, queries and keys."""
        return tuple(self._mask.shape)

    def to_dense(self) -> Tensor:
        """The mask as a tensor of bools."""
        return self._mask

    def sparsity(self) -> float:
        """The share in percent of what is masked out."""
        return 100.0 * (1.0 - float(self._mask.double().mean()))


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None, BLOCK_SIZE: Any = 128, _compile: bool = False
) -> BlockMask:
    """The mask that `flex_attention` takes, from a function of the numbers of batch, head, query
    and key. It is kept whole, so that `BLOCK_SIZE` has no effect.
    """
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN))


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: ScoreMod | None = None, block_mask: BlockMask | None = None, scale: float | None = None,
    enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, **more: Any,
) -> Any:
    """`softmax(score_mod(Q K^T scale)) V`, where `score_mod(score, batch, head, query, key)` gets
    the numbers of each score, and what `block_mask` leaves out counts minus infinity. A query that
    sees no key gives zeros.

    ```
    flex = cr.nn.attention.flex_attention
    q = cr.randn(1, 2, 3, 4)
    causal = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 3, 3)
    out = flex.flex_attention(q, q, q, block_mask=causal)
    whole = cr.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert cr.allclose(out, whole, atol=1e-6)
    ```
    """
    if any(v is not None for v in more.values()):
        raise NotImplementedError(f"flex_attention: {', '.join(more)} is not there")
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ValueError(f"flex_attention: query, key and value have 4 axes, and these {query.ndim}, {key.ndim} and {value.ndim}")
    heads = query.shape[1]
    if enable_gqa and key.shape[1] != heads:
        key, value = (t.repeat_interleave(heads // int(t.shape[1]), 1) for t in (key, value))
    scores = (query @ key.transpose(-2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_places(tuple(scores.shape)))
    if block_mask is not None:
        mask = block_mask.to_dense()[..., : scores.shape[-2], : scores.shape[-1]]
        scores = scores.masked_fill(~mask, -math.inf)
    whole = scores.logsumexp(-1, keepdim=True)
    empty = whole == -math.inf
    weights = (scores - whole.masked_fill(empty, 0.0)).exp()
    out = weights @ value
    return (out, whole.squeeze(-1)) if return_lse else out


__all__ = ["BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]
