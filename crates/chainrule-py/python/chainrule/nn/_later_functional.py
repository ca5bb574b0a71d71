"""Functions that few scripts call by themselves: pools with their places, attention with its
weights given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._chainrule import Tensor
from .._errors import ArgumentError
from . import _pooling as P
from . import _volumes as V


def _with_indices(pool: Callable[..., Any], name: str) -> Any:
    def function(*args: Any, return_indices: bool = True, **options: Any) -> tuple[Tensor, Tensor]:
        return pool(*args, return_indices=True, **options)  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name + "_with_indices"
    function.__doc__ = f"`{name}` with the place of each element, as by `return_indices`."
    return function


max_pool1d_with_indices = _with_indices(P.max_pool1d, "max_pool1d")
max_pool2d_with_indices = _with_indices(P.max_pool2d, "max_pool2d")
max_pool3d_with_indices = _with_indices(V.max_pool3d, "max_pool3d")
adaptive_max_pool1d_with_indices = _with_indices(P.adaptive_max_pool1d, "adaptive_max_pool1d")
adaptive_max_pool2d_with_indices = _with_indices(P.adaptive_max_pool2d, "adaptive_max_pool2d")


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """`nn.MultiheadAttention` with these weights, for inputs `[length, batch, embed]`."""
    from ._multihead import MultiheadAttention
    from .module import Module

    name = "multi_head_attention_forward"
    if static_k is not None or static_v is not None:
        raise ArgumentError(f"{name}: static_k and static_v are not there: give key and value")
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ArgumentError(f"{name}: query has size {query.shape[-1]} along its last axis, and {embed_dim_to_check} in {num_heads} heads is expected")
    layer = MultiheadAttention.__new__(MultiheadAttention)
    Module.__init__(layer)
    size = embed_dim_to_check
    separate = {"q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight}
    settings: dict[str, Any] = {
        "embed_dim": size, "num_heads": num_heads, "head_dim": size // num_heads, "kdim": key.shape[-1], "vdim": value.shape[-1], "dropout": dropout_p, "batch_first": False,
        "add_zero_attn": add_zero_attn, "bias_k": bias_k, "bias_v": bias_v, "in_proj_bias": in_proj_bias, "in_proj_weight": None if use_separate_proj_weight else in_proj_weight,
        "out_proj": lambda x: linear(x, out_proj_weight, out_proj_bias), "training": training, **(separate if use_separate_proj_weight else {}),
    }
    layer.__dict__.update(settings)
    return layer.forward(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)


from .functional import linear  # noqa: E402

__all__ = [
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "multi_head_attention_forward",
]
