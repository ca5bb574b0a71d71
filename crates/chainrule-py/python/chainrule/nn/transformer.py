"""Transformer blocks, with PyTorch's names, weights and order."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

from .. import _making as _m
from .._chainrule import Tensor
from . import functional as F
from . import init
from ._multihead import MultiheadAttention
from .container_layers import ModuleList
from .layers import Dropout, LayerNorm, Linear
from .module import Module

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation is 'relu', 'gelu' or a function, not {given!r}")
    return F.relu if given == "relu" else F.gelu


class _Block(Module):
    """The common part of blocks: attentions, a perceptron, norms and dropouts."""

    _attentions: ClassVar[tuple[str, ...]]
    self_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, device=device, dtype=dtype))
        self.norm_first = norm_first
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        parts = range(1, len(self._attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _perceptron(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]

    def _through(self, x: Tensor, parts: list[Callable[[Tensor], Tensor]], norm_first: bool) -> Tensor:
        """Each part beside a path around it; the norm before the part, or after the sum."""
        for i, part in enumerate(parts, 1):
            norm = getattr(self, f"norm{i}")
            x = x + self._dropped(i, part, norm(x)) if norm_first else norm(x + self._dropped(i, part, x))
        return x

    def _dropped(self, i: int, part: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """The part's result with holes; where it is attention's, they are drawn in the order in
        which PyTorch has it in memory: steps first.
        """
        out, dropout = part(x), getattr(self, f"dropout{i}")
        if self.self_attn.batch_first and x.ndim == 3 and part != self._perceptron:
            return dropout(out.transpose(0, 1)).transpose(0, 1)  # type: ignore[no-any-return]
        return dropout(out)  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Block):
    """`x = norm1(x + attention(x))`, `x = norm2(x + linear2(activation(linear1(x))))`; with
    `norm_first` `x + attention(norm1(x))`.

    ```
    layer = cr.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    assert layer(cr.randn(3, 5, 8)).shape == (3, 5, 8)
    ```
    """

    _attentions = ("self_attn",)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """The block's result; masks as in `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask)[0]  # type: ignore[no-any-return]

        return self._through(src, [attend, self._perceptron], self.norm_first)


class TransformerDecoderLayer(_Block):
    """A block that attends to itself, then to a memory, then has its perceptron; each beside a path
    around it, with a norm.

    ```
    layer = cr.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    assert layer(cr.randn(4, 3, 8), cr.randn(6, 3, 8)).shape == (4, 3, 8)
    ```
    """

    _attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The block's result; masks as in `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0]  # type: ignore[no-any-return]

        def look(x: Tensor) -> Tensor:
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0]  # type: ignore[no-any-return]

        return self._through(tgt, [attend, look, self._perceptron], self.norm_first)


class _Stack(Module):
    """Copies of a block, one after the other, and a norm at the end if there is one."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x: Tensor, *args: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` copies of an encoder block, one after the other."""

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True, mask_check: bool = True
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        """The result of the last block."""
        return self._run(src, mask, src_key_padding_mask)


class TransformerDecoder(_Stack):
    """`num_layers` copies of a decoder block, one after the other."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The result of the last block."""
        return self._run(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


class Transformer(Module):
    """An encoder of the source and a decoder of the target that looks at it.

    ```
    model = cr.nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    mask = cr.nn.Transformer.generate_square_subsequent_mask(4)
    assert model(cr.randn(5, 3, 8), cr.randn(4, 3, 8), tgt_mask=mask).shape == (4, 3, 8)
    ```
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)

        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*settings)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*settings)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's result; masks as in `MultiheadAttention`."""
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(f"Transformer: shapes {tuple(src.shape)} and {tuple(tgt.shape)}: the last sizes are d_model, {self.d_model}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        masks = {"tgt_mask": tgt_mask, "memory_mask": memory_mask}
        paddings = {"tgt_key_padding_mask": tgt_key_padding_mask, "memory_key_padding_mask": memory_key_padding_mask}
        return self.decoder(tgt, memory, **masks, **paddings)  # type: ignore[no-any-return]

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask `[sz, sz]` that lets each place look at itself and those before it: 0 there, minus
        infinity elsewhere.
        """
        return _m.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)


__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]
