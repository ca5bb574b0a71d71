"""Attention: the choice of its kernel, and that of any score and mask."""

from .._attention_kernels import SDPBackend, sdpa_kernel
from .._multihead import MultiheadAttention
from . import bias, flex_attention

__all__ = ["MultiheadAttention", "SDPBackend", "bias", "flex_attention", "sdpa_kernel"]
