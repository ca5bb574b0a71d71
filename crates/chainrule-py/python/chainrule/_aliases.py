"""Functions that PyTorch has in its main module besides: methods that write their tensor, and
layers as functions.
"""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c
from . import linalg
from ._chainrule import Tensor
from .nn import functional as _F

# Methods of `Tensor` that write their result, which are functions, too.
_WRITING = (
    "abs_ acos_ asin_ atan_ ceil_ clamp_ clamp_max_ clamp_min_ cos_ cosh_ erf_ erfc_ exp_ exp2_ expm1_ fill_ floor_ frac_ log_ log10_ log1p_ log2_ "
    "nan_to_num_ neg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ zero_"
).split()
# Functions of `nn.functional`, with the same arguments.
_LAYERS = (
    "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d cosine_embedding_loss cosine_similarity dropout feature_alpha_dropout group_norm hinge_embedding_loss layer_norm "
    "margin_ranking_loss max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu rms_norm rrelu selu threshold "
    "triplet_margin_loss"
).split()


def _writing(name: str) -> Any:
    method = getattr(Tensor, name)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return method(input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`input.{name}(...)`: writes the result to `input`."
    return function


_names = {name: _writing(name) for name in _WRITING if hasattr(Tensor, name)} | {name: getattr(_F, name) for name in _LAYERS if hasattr(_F, name)}
globals().update(_names)


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: shape {tuple(input.shape)}: a single element is needed")
    return bool(input != 0)


def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype of a sum of tensors of these dtypes.

    ```
    assert cr.promote_types(cr.int64, cr.float32) == cr.float32
    ```
    """
    return _c._promoted(type1, type2)


def logdet(input: Tensor) -> Any:
    """The logarithm of the determinant; NaN where that is negative."""
    return linalg.det(input).log()


def slogdet(input: Tensor) -> Any:
    """The sign of the determinant, and the logarithm of its size."""
    return linalg.slogdet(input)


__all__ = sorted([*_names, "is_nonzero", "logdet", "promote_types", "slogdet"])
