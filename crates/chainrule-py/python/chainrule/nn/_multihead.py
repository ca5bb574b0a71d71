"""Attention of several heads, with PyTorch's weights, masks and random stream."""

from __future__ import annotations

import math
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from . import functional as F
from . import init
from .layers import Linear
from .module import Module, Parameter

BOOL = _c._dtype("bool")


def additive(op: str, name: str, mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask as numbers to be added: True becomes minus infinity."""
    if mask is None:
        return None
    if mask.dtype == BOOL:
        return _c._full(mask._dims, 0.0, dtype).masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise TypeError(f"{op}: {name} is of bool (True where nobody looks) or of floats to be added, not of {mask.dtype.name}")
    return mask._to_dtype(dtype)


class MultiheadAttention(Module):
    """`softmax(Q K^T / sqrt(d) + mask) V` in `num_heads` heads of size `d = embed_dim / num_heads`,
    and a linear map of all of them.

    `Q`, `K`, `V` are linear maps of query, key and value, which are `[length, batch, embed_dim]`,
    `[batch, length, embed_dim]` with `batch_first`, or `[length, embed_dim]`. `add_bias_kv` adds a
    learned key and value, `add_zero_attn` ones of zeros. Keys and values may have other sizes,
    `kdim` and `vdim`.

    ```
    attention = cr.nn.MultiheadAttention(8, 2, batch_first=True)
    x = cr.randn(3, 5, 8)
    out, weights = attention(x, x, x)
    assert out.shape == (3, 5, 8) and weights.shape == (3, 5, 5)
    ```
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError(f"MultiheadAttention: embed_dim {embed_dim} is not cut into {num_heads} heads")
        _m._on(device)
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        same = self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        sizes = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        for name, size in sizes.items():
            self.register_parameter(name, None if same else Parameter(_m.empty(embed_dim, size, dtype=dtype)))
        self.register_parameter("in_proj_weight", Parameter(_m.empty(3 * embed_dim, embed_dim, dtype=dtype)) if same else None)
        self.register_parameter("in_proj_bias", Parameter(_m.zeros(3 * embed_dim, dtype=dtype)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(_m.empty(1, 1, embed_dim, dtype=dtype)) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draws the weights anew: those of the inputs by Xavier's rule, and biases are 0."""
        names = ["in_proj_weight"] if self._qkv_same_embed_dim else ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        for name in names:
            init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None and self.bias_v is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size = self.embed_dim
        if self.in_proj_weight is not None and query is key is value:
            return tuple(F.linear(query, self.in_proj_weight, self.in_proj_bias)._chunk(3, -1))  # type: ignore[return-value]
        weights = [getattr(self, n + "_proj_weight") for n in "qkv"] if self.in_proj_weight is None else self.in_proj_weight._split_size(size, 0)
        biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias._split_size(size, 0)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
        return q, k, v

    def _heads(self, x: Tensor) -> Tensor:
        """`[length, batch, embed]` as `[batch, heads, length, head]`."""
        length, batch, _ = x.shape
        return x.reshape(length, batch, self.num_heads, self.head_dim).permute(1, 2, 0, 3)

    def _more(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values with those that are learned, and those of zeros, which the mask lets
        through.
        """
        batch = k.shape[1]
        if self.bias_k is not None and self.bias_v is not None:
            k, v = _f.cat([k, self.bias_k.expand(1, batch, -1)]), _f.cat([v, self.bias_v.expand(1, batch, -1)])
            mask = None if mask is None else F.pad(mask, (0, 1))
        if self.add_zero_attn:
            zeros = _c._full((1, batch, self.embed_dim), 0.0, k.dtype)
            k, v = _f.cat([k, zeros]), _f.cat([v, zeros])
            mask = None if mask is None else F.pad(mask, (0, 1))
        return k, v, mask

    def _mask(self, dtype: Any, batch: int, lengths: tuple[int, int], attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Both masks as one that is added: `[batch or 1, heads or 1, length, keys]`."""
        name = "MultiheadAttention"
        mask = additive(name, "attn_mask", attn_mask, dtype)
        if mask is not None:
            wanted = [lengths, (batch * self.num_heads, *lengths)]
            if tuple(mask.shape) not in wanted:
                raise RuntimeError(f"{name}: attn_mask has shape {tuple(mask.shape)}, and for this input it has {wanted[0]} or {wanted[1]}")
            mask = mask.reshape(1, 1, *lengths) if mask.ndim == 2 else mask.reshape(batch, self.num_heads, *lengths)
        pad = additive(name, "key_padding_mask", padding, dtype)
        if pad is not None:
            if tuple(pad.shape) != (batch, lengths[1]):
                raise RuntimeError(f"{name}: key_padding_mask has shape {tuple(pad.shape)}, and for this input it has {(batch, lengths[1])}")
            pad = pad.reshape(batch, 1, 1, lengths[1])
            mask = pad.expand(batch, 1, *lengths) if mask is None else mask + pad
        return mask

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attention's result, and its weights (their mean over the heads; None without
        `need_weights`).

        `key_padding_mask [batch, keys]` is True for keys that nobody looks at, `attn_mask [length,
        keys]` or `[batch * heads, length, keys]` for pairs; masks of floats are added.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError("MultiheadAttention: is_causal is a hint of what attn_mask holds, and needs one")
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise RuntimeError(f"MultiheadAttention: shapes {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}: all have 3 axes, or 2 without a batch")
        is_batched, same = query.ndim == 3, (query is key, key is value)

        def turn(x: Tensor) -> Tensor:
            return x.unsqueeze(1) if not is_batched else x.transpose(0, 1) if self.batch_first else x

        q = turn(query)
        k = q if same[0] else turn(key)
        v = k if same[1] else turn(value)
        for what, x, size in (("query", q, self.embed_dim), ("key", k, self.kdim), ("value", v, self.vdim)):
            if x.shape[2] != size:
                raise RuntimeError(f"MultiheadAttention: {what} has size {x.shape[2]} along its last axis, and {size} is expected")
        if not is_batched and key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        length, batch = q.shape[0], q.shape[1]
        mask = self._mask(q.dtype, batch, (length, k.shape[0]), attn_mask, key_padding_mask)
        q, k, v = self._projected(q, k, v)
        k, v, mask = self._more(k, v, mask)
        q, k, v = map(self._heads, (q, k, v))
        p = self.dropout if self.training else 0.0
        weights: Tensor | None = None
        if need_weights:
            scores = (q * (1.0 / math.sqrt(self.head_dim))) @ k.transpose(-2, -1)
            weights = (scores if mask is None else scores + mask).softmax(-1)
            weights = F.dropout(weights, p) if p else weights
            out = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, p)
        out = self.out_proj(out.permute(2, 0, 1, 3).reshape(length, batch, self.embed_dim))
        if not is_batched:
            return out.squeeze(1), None if weights is None else weights.squeeze(0)
        return (out.transpose(0, 1) if self.batch_first else out), weights


__all__ = ["MultiheadAttention"]
