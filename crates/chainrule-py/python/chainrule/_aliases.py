"""Functions that PyTorch has in its main module besides: methods that write their tensor, and
layers as functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _chainrule as _c
from . import linalg
from ._chainrule import Tensor
from ._errors import ArgumentError
from .autograd import INFERENCE
from .nn import functional as _F

# Methods of `Tensor` that write their result, which are functions, too.
_WRITING = (
    "abs_ acos_ asin_ atan_ ceil_ clamp_ clamp_max_ clamp_min_ cos_ cosh_ erf_ erfc_ exp_ exp2_ expm1_ fill_ floor_ frac_ log_ log10_ log1p_ log2_ "
    "nan_to_num_ neg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ zero_ acosh_ arccos_ arccosh_ arcsin_ "
    "arcsinh_ arctan_ arctanh_ asinh_ atanh_ deg2rad_ rad2deg_ negative_ fix_ sinc_ i0_ logit_ gcd_ lcm_ ldexp_ xlogy_ clip_ detach_ "
    "index_put_ addmv_ resize_as_"
).split()
# Functions of `nn.functional`, with the same arguments.
_LAYERS = (
    "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d cosine_embedding_loss cosine_similarity dropout feature_alpha_dropout group_norm hinge_embedding_loss layer_norm "
    "margin_ranking_loss max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu rms_norm rrelu selu threshold "
    "triplet_margin_loss embedding embedding_bag ctc_loss batch_norm instance_norm binary_cross_entropy_with_logits hardshrink adaptive_max_pool1d "
    "poisson_nll_loss kl_div affine_grid grid_sample"
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


def index_put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """The tensor with other values at indices; with `accumulate` they are added."""
    return input.index_put(indices, values, accumulate)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with elements of `source`, in their order, where the mask is true; both are
    broadcast.

    ```
    x = cr.masked_scatter(cr.zeros(3), cr.tensor([True, False, True]), cr.tensor([1.0, 2.0]))
    assert x.tolist() == [1, 0, 2]
    ```
    """
    shape = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    input, at = input.expand(shape), mask.expand(shape)
    count = int(at.sum())
    if source.numel() < count:
        raise ArgumentError(f"masked_scatter: {count} places in the mask, and {source.numel()} elements of source")
    return input.index_put((at,), source.reshape(-1)[:count])


def adjoint(input: Any) -> Any:
    """The last two axes exchanged, and conjugated."""
    return input.mH


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are the same."""
    return bool(input.shape == other.shape)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return not input.dtype.name.startswith("u") and input.dtype.name != "bool"


def range(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:  # noqa: A001
    """From `start` to `end`, which is there too if a step meets it: `arange` leaves it out."""
    from ._making import arange

    start, end = (0, start) if end is None else (start, end)
    options.setdefault("dtype", _c.get_default_dtype())
    return arange(start, end + step * 0.5, step, **options)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """Powers of numbers in a row each, the highest first."""
    found = linalg.vander(x, N=N)
    return found if increasing else found.flip(-1)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Draws of counts at these rates; those of PyTorch for the same seed."""
    from .distributions.gamma import drawn

    if not bool((input >= 0).all()):
        raise ArgumentError("poisson: rates must be 0 or more")
    return drawn("poisson", input, generator=generator)


def typename(obj: Any) -> str:
    """The name of the type of an object; of a tensor that of its typed constructor."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def get_default_device() -> Any:
    """The processor."""
    from ._devices import CPU

    return CPU


def set_flush_denormal(mode: bool) -> bool:
    """False: small numbers stay what they are."""
    return False


def set_warn_always(b: bool) -> None:
    """Nothing: warnings are Python's."""


def is_inference(input: Tensor) -> bool:
    """No; an error once there was a block of `inference_mode`, whose tensors are like all others
    here.
    """
    if INFERENCE.was_on:
        raise NotImplementedError("is_inference: tensors made in inference_mode are like all others here; requires_grad tells whether one is recorded")
    return False


def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices, in the order of least work."""
    return linalg.multi_dot(matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices)


def can_cast(from_: Any, to: Any) -> bool:
    """Whether PyTorch lets a result of one dtype be written to a tensor of another: not from floats
    to integers, and not to bool.

    ```
    assert cr.can_cast(cr.int64, cr.float32) and not cr.can_cast(cr.float32, cr.int64)
    ```
    """

    def rank(dtype: Any) -> int:
        name = dtype.name
        return 0 if name == "bool" else 1 if "int" in name else 3 if "complex" in name else 2

    return rank(from_) <= rank(to)


def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The root of the sum of the squares."""
    return linalg.norm(input, dim=dim, keepdim=keepdim)


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """The sum of the singular values."""
    return linalg.matrix_norm(input, "nuc", dim, keepdim)


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """`grid_sample` with its modes as numbers."""
    modes = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return _F.grid_sample(input, grid, modes[0][interpolation_mode], modes[1][padding_mode], align_corners)


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`affine_grid` with all arguments."""
    return _F.affine_grid(theta, size, align_corners)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels, the second axis."""
    axes = input.ndim - 2
    if axes < 0:
        raise ArgumentError(f"feature_dropout: shape {tuple(input.shape)}: the second axis is that of the channels")
    flat = input.reshape(*input.shape[:2], -1, 1) if axes != 2 else input
    return _F.dropout2d(flat, p, train).reshape(input.shape)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Draws of how many of `count` trials succeed; those of PyTorch for the same seed."""
    from .distributions.gamma import drawn

    count, prob = (x.contiguous() for x in _c._broadcast_tensors([count, prob]))
    return drawn("binomial", count, prob, generator)


_METHODS = {"adjoint": adjoint, "slogdet": slogdet, "masked_scatter": masked_scatter, "is_same_size": is_same_size, "is_signed": is_signed, "is_nonzero": is_nonzero, "is_inference": is_inference}


def attach() -> None:
    """Gives the native class the methods of this module."""
    for name, function in _METHODS.items():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, function)
    for name in ("hardshrink", "prelu"):
        setattr(Tensor, name, getattr(_F, name))
    setattr(Tensor, "broadcast_to", Tensor.expand)
    setattr(Tensor, "ndimension", Tensor.dim)
    setattr(Tensor, "is_cpu", property(lambda self: True, doc="Yes: there is one device."))
    for name in ("is_mps", "is_meta", "is_quantized", "is_xpu", "is_xla", "is_nested", "is_mkldnn"):
        if not hasattr(Tensor, name):
            setattr(Tensor, name, property(lambda self: False, doc="No: there is one device, the processor, and tensors are dense."))


__all__ = sorted([*_names, "adjoint", "affine_grid_generator", "binomial", "can_cast", "chain_matmul", "feature_dropout", "frobenius_norm", "grid_sampler", "nuclear_norm", "get_default_device", "index_put", "is_inference", "is_same_size", "is_signed", "masked_scatter", "poisson", "range", "set_flush_denormal", "set_warn_always", "typename", "vander", "is_nonzero", "logdet", "promote_types", "slogdet"])
