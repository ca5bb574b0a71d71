"""Images in other sizes, and as columns of their windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
MODES = ("nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic", "trilinear")


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The axes after batch and channels in another size, or by a factor.

    Modes are 'nearest', 'nearest-exact', 'area', and by the number of axes 'linear', 'bilinear',
    'bicubic' and
    'trilinear'; `antialias` is for 'bilinear' and 'bicubic'.

    ```
    x = cr.arange(4.0).reshape(1, 1, 2, 2)
    assert cr.nn.functional.interpolate(x, scale_factor=2, mode="bicubic").shape == (1, 1, 4, 4)
    ```
    """
    axes = input.ndim - 2
    wanted = LINEAR.get(mode, 2 if mode == "bicubic" else axes)
    if mode not in MODES or wanted != axes or axes not in (1, 2, 3):
        raise ArgumentError(
            f"interpolate: shape {tuple(input.shape)}, mode {mode!r}: modes are 'nearest', 'nearest-exact', 'area', 'linear' for one axis, "
            "'bilinear' and 'bicubic' for two, and 'trilinear' for three, after batch and channels"
        )
    smooth = mode not in ("nearest", "nearest-exact", "area")
    if (antialias and mode not in ("bilinear", "bicubic")) or (align_corners is not None and not smooth):
        raise ArgumentError("interpolate: antialias is for 'bilinear' and 'bicubic', and align_corners for these and the other linear modes")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: give size or scale_factor, one of them")
    corners = bool(align_corners) if smooth else None
    factors: list[float] | None = None
    if scale_factor is not None:
        factors = [float(scale_factor)] * axes if isinstance(scale_factor, (int, float)) else [float(s) for s in scale_factor]
        if len(factors) != axes:
            raise ArgumentError(f"interpolate: {len(factors)} factors for {axes} axes")
        size = [math.floor(n * s) for n, s in zip(input.shape[2:], factors)]
        factors = None if recompute_scale_factor or mode == "area" else factors
    sizes = [size] * axes if isinstance(size, int) else [int(n) for n in size or ()]
    if len(sizes) != axes:
        raise ArgumentError(f"interpolate: {len(sizes)} sizes for {axes} axes")
    if axes < 3 and (mode == "nearest" or mode in LINEAR) and not antialias:
        return _c._interpolate(input, None if factors else sizes, factors, corners)
    if min((*sizes, *input.shape[2:])) < 1:
        raise ArgumentError(f"interpolate: shape {tuple(input.shape)} and size {tuple(sizes)}: no axis may be empty")
    from ._sampling import resized

    kind = "linear" if mode in LINEAR else "cubic" if mode == "bicubic" else mode
    return resized(input, sizes, factors or [None] * axes, kind, bool(corners), antialias)


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """As `interpolate`, whose older name it is."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` to the nearest elements."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` in the mode 'bilinear' with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def _pair(x: Any) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else tuple(x) if len(x) == 2 else (x[0], x[0])


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns: `[batch, channels * window, windows]`."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(_pair, (kernel_size, dilation, padding, stride))
    if input.ndim not in (3, 4):
        raise ArgumentError(f"unfold: shape {tuple(input.shape)}: an image or a batch of them is needed")
    x = input if input.ndim == 4 else input.unsqueeze(0)
    x = _c._pad(x, [(-1, [pw, pw]), (-2, [ph, ph])], "constant", 0.0)
    windows = x.unfold(2, dh * (kh - 1) + 1, sh).unfold(3, dw * (kw - 1) + 1, sw)[..., ::dh, ::dw]
    n, channels, rows, columns = windows.shape[:4]
    out = windows.permute(0, 1, 4, 5, 2, 3).reshape(n, channels * kh * kw, rows * columns)
    return out if input.ndim == 4 else out.squeeze(0)


__all__ = ["interpolate", "unfold", "upsample", "upsample_bilinear", "upsample_nearest"]
