"""Images in other sizes, and as columns of their windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor

LINEAR = {"linear": 1, "bilinear": 2}


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The last axes in another size, or by a factor: modes 'nearest', 'linear' for one axis and
    'bilinear' for two.
    """
    axes = input.ndim - 2
    if mode not in ("nearest", *LINEAR) or LINEAR.get(mode, axes) != axes or axes not in (1, 2):
        raise ValueError(f"interpolate: shape {tuple(input.shape)}: 'nearest' takes signals and images, 'linear' signals, 'bilinear' images; not '{mode}'")
    if antialias or (align_corners is not None and mode == "nearest"):
        raise ValueError("interpolate: antialias is not there, and align_corners is for the linear modes")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give size or scale_factor, one of them")
    corners = None if mode == "nearest" else bool(align_corners)
    if scale_factor is not None:
        factors = [float(scale_factor)] * axes if isinstance(scale_factor, (int, float)) else [float(s) for s in scale_factor]
        if not recompute_scale_factor:
            return _c._interpolate(input, None, factors, corners)
        size = [int(n * s) for n, s in zip(input.shape[2:], factors)]
    sizes = [size] * axes if isinstance(size, int) else [int(n) for n in size or ()]
    return _c._interpolate(input, sizes, None, corners)


def _pair(x: Any) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else tuple(x) if len(x) == 2 else (x[0], x[0])


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns: `[batch, channels * window, windows]`."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(_pair, (kernel_size, dilation, padding, stride))
    if input.ndim not in (3, 4):
        raise ValueError(f"unfold: shape {tuple(input.shape)}: an image or a batch of them is needed")
    x = input if input.ndim == 4 else input.unsqueeze(0)
    x = _c._pad(x, [(-1, [pw, pw]), (-2, [ph, ph])], "constant", 0.0)
    windows = x.unfold(2, dh * (kh - 1) + 1, sh).unfold(3, dw * (kw - 1) + 1, sw)[..., ::dh, ::dw]
    n, channels, rows, columns = windows.shape[:4]
    out = windows.permute(0, 1, 4, 5, 2, 3).reshape(n, channels * kh * kw, rows * columns)
    return out if input.ndim == 4 else out.squeeze(0)


__all__ = ["interpolate", "unfold"]
