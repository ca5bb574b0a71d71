"""Images read between their pixels: other sizes by weights of each axis, and grids of positions."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from .._errors import ArgumentError

Array = np.ndarray[Any, Any]


def _cubic(x: Array, a: float) -> Array:
    """The weight of a pixel at this distance."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _smoothed(n: int, m: int, scale: float, mode: str) -> Array:
    """The weights with a filter as wide as the pixels of the result."""
    half = 1.0 if mode == "linear" else 2.0
    stretch = max(scale, 1.0)
    weights = np.zeros((m, n))
    for i in range(m):
        center = scale * (i + 0.5)
        low = max(int(center - half * stretch + 0.5), 0)
        high = min(int(center + half * stretch + 0.5), n)
        x = (np.arange(low, high) - center + 0.5) / stretch
        w = np.maximum(1 - np.abs(x), 0) if mode == "linear" else _cubic(x, -0.5)
        weights[i, low:high] = w / w.sum()
    return weights


def axis_weights(n: int, m: int, scale: float | None, mode: str, corners: bool, antialias: bool) -> Array:
    """The share that each of `m` new elements of an axis has of the `n` old ones."""
    step = (n - 1) / (m - 1) if corners and m > 1 else 0.0 if corners else n / m if scale is None else 1.0 / scale
    if antialias:
        return _smoothed(n, m, step, mode)
    at, out = np.arange(m), np.zeros((m, n))
    if mode in ("nearest", "nearest-exact"):
        # In float32, as PyTorch has it.
        moved = at.astype(np.float32) + np.float32(0.5 if mode == "nearest-exact" else 0.0)
        out[at, np.minimum(np.floor(moved * np.float32(step)).astype(np.int64), n - 1)] = 1.0
        return out
    if mode == "area":
        for i in range(m):
            low, high = i * n // m, -(-(i + 1) * n // m)
            out[i, low:high] = 1.0 / (high - low)
        return out
    x = at * step if corners else (at + 0.5) * step - 0.5
    x = np.maximum(x, 0.0) if mode == "linear" else x
    first = np.floor(x).astype(np.int64)
    for k in (0, 1) if mode == "linear" else (-1, 0, 1, 2):
        away = first + k - x
        w = np.maximum(1 - np.abs(away), 0) if mode == "linear" else _cubic(away, -0.75)
        np.add.at(out, (at, np.clip(first + k, 0, n - 1)), w)
    return out


def resized(input: Tensor, sizes: Sequence[int], scales: Sequence[float | None], mode: str, corners: bool, antialias: bool) -> Tensor:
    """The last axes in other sizes: a product with the weights of each axis."""
    x = input
    for i, (m, scale) in enumerate(zip(sizes, scales)):
        axis = 2 + i
        weights = axis_weights(x.shape[axis], m, scale, mode, corners, antialias)
        x = (x.movedim(axis, -1) @ _c.tensor(weights.T.copy(), x.dtype)).movedim(-1, axis)
    return x


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions that maps `[batch, 2, 3]` (or `[batch, 3, 4]` of volumes) take the pixels of an
    output of this size to.
    """
    axes = len(size) - 2
    if axes not in (2, 3) or tuple(theta.shape) != (size[0], axes, axes + 1):
        raise ArgumentError(f"affine_grid: theta of shape {tuple(theta.shape)} and size {tuple(size)} do not go together")
    sides = []
    for n in size[2:]:
        # Rounded as in PyTorch: where a map is the identity the positions are pixels, up to the
        # last bit, and that bit says on which side of a kink the gradient is taken.
        at = _c._linspace(-1.0, 1.0, n, True, theta.dtype) if n > 1 else _c._full((1,), 0.0, theta.dtype)
        sides.append(at if align_corners else at * ((n - 1) / n))
    grids = _f.meshgrid(*sides, indexing="ij")
    points = _f.stack([*reversed(grids), _c._full(grids[0].shape, 1.0, theta.dtype)], -1).reshape(1, -1, axes + 1)
    out = points @ theta.mT
    return out.reshape(size[0], *size[2:], axes)


def _unscaled(x: Tensor, n: int, corners: bool) -> Tensor:
    """Positions from -1 to 1 as those of pixels."""
    return (x + 1) * ((n - 1) / 2) if corners else ((x + 1) * n - 1) / 2


def _within(x: Tensor, n: int, padding: str, corners: bool) -> Tensor:
    """Positions outside moved to the border, or reflected there."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
        if span == 0:
            x = x * 0.0
        else:
            away = (x - low).abs()
            turns = (away.detach() / span).floor()
            rest = away - turns * span
            x = rest.where(turns.remainder(2.0) == 0, span - rest) + low
    # At the border itself there is no slope.
    return x.masked_fill(x <= 0, 0.0).masked_fill(x >= n - 1, float(n - 1))


def _read(flat: Tensor, sizes: Sequence[int], at: Sequence[Tensor]) -> Tensor:
    """The elements `[batch, channels, points]` at whole positions; 0 outside."""
    index, inside = None, None
    for n, x in zip(sizes, at):
        fits = (x >= 0).logical_and(x <= n - 1)
        inside = fits if inside is None else inside.logical_and(fits)
        whole = x.nan_to_num().clamp(0, n - 1).long()
        index = whole if index is None else index * n + whole
    assert index is not None and inside is not None
    shape = (flat.shape[0], flat.shape[1], index.shape[1])
    return flat.gather(2, index.unsqueeze(1).expand(*shape)).masked_fill(inside.logical_not().unsqueeze(1), 0.0)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Images `[batch, channels, height, width]` read at positions `[batch, h, w, 2]` from -1 to 1,
    the column first; or volumes.

    Modes are 'bilinear', 'nearest' and 'bicubic', of volumes along three axes; positions outside
    are read as 0, at the border or reflected, as `padding_mode` says: 'zeros', 'border' or
    'reflection'.
    """
    axes = input.ndim - 2
    if axes not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != axes or grid.shape[0] != input.shape[0]:
        raise ArgumentError(f"grid_sample: input of shape {tuple(input.shape)} and grid of shape {tuple(grid.shape)} do not go together")
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(f"grid_sample: mode is 'bilinear', 'nearest' or 'bicubic', not {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(f"grid_sample: padding_mode is 'zeros', 'border' or 'reflection', not {padding_mode!r}")
    sizes, corners = [int(n) for n in input.shape[2:]], bool(align_corners)
    batch, channels = input.shape[:2]
    flat = input.reshape(batch, channels, math.prod(sizes))
    points = grid.reshape(batch, math.prod(grid.shape[1:-1]), axes)
    at = [_unscaled(points[:, :, axes - 1 - i], n, corners) for i, n in enumerate(sizes)]
    if mode == "bicubic":
        out = _cubic_read(flat, sizes, at, padding_mode, corners)
    else:
        at = [_within(x, n, padding_mode, corners) for x, n in zip(at, sizes)]
        out = _read(flat, sizes, [x.detach().round() for x in at]) if mode == "nearest" else _linear(flat, sizes, at)
    return out.reshape(batch, channels, *grid.shape[1:-1])


def _linear(flat: Tensor, sizes: Sequence[int], at: Sequence[Tensor]) -> Tensor:
    low = [x.detach().floor() for x in at]
    share = [x - f for x, f in zip(at, low)]
    out: Any = None
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weight: Any = None
        for s, k in zip(share, corner):
            one = s if k else 1 - s
            weight = one if weight is None else weight * one
        part = _read(flat, sizes, [f + k for f, k in zip(low, corner)]) * weight.unsqueeze(1)
        out = part if out is None else out + part
    return out  # type: ignore[no-any-return]


def _cubic_shares(t: Tensor) -> list[Tensor]:
    """The weights of the four pixels around, for the distance from the second one."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic_read(flat: Tensor, sizes: Sequence[int], at: Sequence[Tensor], padding: str, corners: bool) -> Tensor:
    low = [x.detach().floor() for x in at]
    shares = [_cubic_shares(x - f) for x, f in zip(at, low)]
    out: Any = None
    for corner in itertools.product(range(4), repeat=len(sizes)):
        places = [_within(f + (k - 1), n, padding, corners) for f, k, n in zip(low, corner, sizes)]
        weight = functools.reduce(operator.mul, [share[k] for share, k in zip(shares, corner)])
        part = _read(flat, sizes, [p.trunc() for p in places]) * weight.unsqueeze(1)
        out = part if out is None else out + part
    return out  # type: ignore[no-any-return]


__all__ = ["affine_grid", "grid_sample"]
