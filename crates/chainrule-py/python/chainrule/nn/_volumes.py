"""Convolution and pooling over volumes, and pooling by windows of any kind: composed of ops over
images and of indices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .. import _making as _m
from .._chainrule import Tensor
from .._errors import ArgumentError
from ._pooling import Windows, _each, _where

Sizes = int | Sequence[int]


def _threes(x: Sizes) -> list[int]:
    return _each(x, 3)


def _batched(op: str, input: Tensor, axes: int) -> tuple[Tensor, bool]:
    if input.ndim not in (axes + 1, axes + 2):
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: {axes + 2} axes are needed, or {axes + 1} without a batch")
    if not input.is_floating_point() and not op.endswith("max_pool3d"):
        raise TypeError(f"{op}: dtype {input.dtype}: defined for floats; convert with .float() first")
    return (input, True) if input.ndim == axes + 2 else (input.unsqueeze(0), False)


def _as_images(x: Tensor) -> Tensor:
    """`[batch, channels, depth, ...]` as images, one for each depth."""
    n, channels, depth, height, width = x.shape
    return x.transpose(1, 2).reshape(n * depth, channels, height, width)


def _as_volumes(x: Tensor, n: int, depth: int) -> Tensor:
    return x.reshape(n, depth, *x.shape[1:]).transpose(1, 2)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1
) -> Tensor:
    """Convolution along three axes: the sum of convolutions of images, one for each depth of the
    weights.
    """
    x, is_batched = _batched("conv3d", input, 3)
    if weight.ndim != 5:
        raise ArgumentError(f"conv3d: weight of shape {tuple(weight.shape)}: 5 axes are needed, [out, in, depth, height, width]")
    s, d, kernel = _threes(stride), _threes(dilation), weight.shape[2:]
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentError(f"conv3d: padding is 'same', 'valid' or numbers, not {padding!r}")
        total = [n * (k - 1) if padding == "same" else 0 for n, k in zip(d, kernel)]
        pairs = [(t // 2, t - t // 2) for t in total]
    else:
        pairs = [(p, p) for p in _threes(padding)]
    x = _c._pad(x, [(i - 3, list(p)) for i, p in enumerate(pairs) if any(p)], "constant", 0.0) if any(map(any, pairs)) else x
    n, depth = x.shape[0], (x.shape[2] - d[0] * (kernel[0] - 1) - 1) // s[0] + 1
    if depth < 1 or not kernel[0]:
        raise ArgumentError(f"conv3d: shapes {tuple(input.shape)} and {tuple(weight.shape)}: the weights are deeper than the padded input")
    out: Any = None
    for k in range(kernel[0]):
        at = k * d[0]
        images = _as_images(x[:, :, at : at + (depth - 1) * s[0] + 1 : s[0]])
        part = _c._conv(2, images, weight[:, :, k], bias if k == 0 else None, s[1:], [0, 0], d[1:], groups)
        out = part if out is None else out + part
    out = _as_volumes(out, n, depth)
    return out if is_batched else out.squeeze(0)  # type: ignore[no-any-return]


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv3d`: images for each depth of the weights, added at their depths."""
    x, is_batched = _batched("conv_transpose3d", input, 3)
    s, p, more, d = map(_threes, (stride, padding, output_padding, dilation))
    n, depth, kernel = x.shape[0], x.shape[2], weight.shape[2]
    images = _as_images(x)
    length = (depth - 1) * s[0] + d[0] * (kernel - 1) + 1 + more[0]
    out: Any = None
    for k in range(kernel):
        part = _c._conv_transpose(2, images, weight[:, :, k], None, s[1:], p[1:], more[1:], groups, d[1:])
        part = _as_volumes(part, n, depth)
        if out is None:
            out = _c._full((*part.shape[:2], length, *part.shape[3:]), 0.0, x.dtype)
        out = out.index_add(2, _c._arange(0, depth, 1, "int64") * s[0] + k * d[0], part)
    out = out.narrow(2, p[0], length - 2 * p[0])
    out = out if bias is None else out + bias.reshape(-1, 1, 1, 1)
    return out if is_batched else out.squeeze(0)  # type: ignore[no-any-return]


def _count(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    """The number of windows along an axis; with `ceil` also one that begins inside and reaches
    beyond.
    """
    room = n + 2 * p - d * (k - 1) - 1
    count = (-(-room // s) if ceil else room // s) + 1
    return count - 1 if ceil and (count - 1) * s >= n + p else count


def _windows(op: str, input: Tensor, k: list[int], s: list[int], p: list[int], d: list[int], ceil: bool) -> Windows:
    axes, out = len(k), []
    for i in range(axes):
        n = input.shape[input.ndim - axes + i]
        if p[i] * 2 > k[i]:
            raise ArgumentError(f"{op}: padding {p[i]} is more than half of the window, {k[i]}")
        count = _count(n, k[i], s[i], p[i], d[i], ceil)
        if count < 1:
            raise ArgumentError(f"{op}: shape {tuple(input.shape)}: no window of {k[i]} fits into axis {input.ndim - axes + i}")
        at = np.arange(count)[:, None] * s[i] - p[i] + np.arange(k[i]) * d[i]
        out.append(np.where((at >= 0) & (at < n), at, -1))
    return out


def _largest(input: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """The largest of each window, and its flat position over the pooled axes. The first of equal
    ones gets the gradient.
    """
    axes = len(windows)
    at, lead = _where(input, windows), tuple(input.shape[: input.ndim - axes])
    sizes = tuple(len(w) for w in windows)
    flat = input.reshape(*lead, math.prod(input.shape[input.ndim - axes :]))
    at = at.reshape(*lead, math.prod(sizes))
    return flat.gather(-1, at).reshape(*lead, *sizes), at.reshape(*lead, *sizes)


def max_pool3d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window over three axes; with `return_indices` also its flat position."""
    _batched("max_pool3d", input, 3)
    k = _threes(kernel_size)
    s = _threes(stride) if stride is not None and stride != [] else k
    values, at = _largest(input, _windows("max_pool3d", input, k, s, _threes(padding), _threes(dilation), ceil_mode))
    return (values, at) if return_indices else values


def _summed(x: Tensor, axis: int, windows: Any) -> Tensor:
    """The sums over the windows along an axis."""
    inside = _c.tensor(windows >= 0).reshape(*windows.shape, *[1] * (-1 - axis))
    picked = x.index_select(axis, _c.tensor(np.maximum(windows, 0).ravel()))
    axis = x.ndim + axis
    shape = tuple(x.shape)
    picked = picked.reshape(*shape[:axis], *windows.shape, *shape[axis + 1 :])
    return picked.masked_fill(inside.logical_not(), 0.0).sum(axis + 1)


def avg_pool3d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over three axes, or its sum over `divisor_override`."""
    _batched("avg_pool3d", input, 3)
    if divisor_override == 0:
        raise ArgumentError("avg_pool3d: divisor_override must not be 0")
    k, p = _threes(kernel_size), _threes(padding)
    s = _threes(stride) if stride is not None and stride != [] else k
    windows = _windows("avg_pool3d", input, k, s, p, [1, 1, 1], ceil_mode)
    out, counts = input, np.ones(())
    for i, w in enumerate(windows):
        n, start = input.shape[i - 3], np.arange(len(w)) * s[i] - p[i]
        border = p[i] if count_include_pad else 0
        covered = np.minimum(start + k[i], n + border) - np.maximum(start, -border)
        counts = counts[..., None] * covered
        out = _summed(out, i - 3, w)
    return out / (_c.tensor(counts, input.dtype) if divisor_override is None else float(divisor_override))


def _adaptive_windows(op: str, input: Tensor, output_size: Any, axes: int) -> Windows:
    have = input.shape[input.ndim - axes :]
    wanted = [output_size] * axes if output_size is None or isinstance(output_size, int) else list(output_size)
    wanted = wanted * axes if len(wanted) == 1 else wanted
    if len(wanted) != axes:
        raise ArgumentError(f"{op}: output_size {tuple(wanted)} has {len(wanted)} sizes where {axes} are wanted")
    windows = []
    for n, m in zip(have, wanted):
        m = n if m is None else m
        start, end = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
        at = start[:, None] + np.arange(int((end - start).max(initial=0)))
        windows.append(np.where(at < end[:, None], at, -1))
    return windows


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of as many windows as wanted; None keeps a size."""
    _batched("adaptive_avg_pool3d", input, 3)
    out = input
    for i, w in enumerate(_adaptive_windows("adaptive_avg_pool3d", input, output_size, 3)):
        counts = _c.tensor((w >= 0).sum(1), input.dtype).reshape(-1, *[1] * (2 - i))
        out = _summed(out, i - 3, w) / counts
    return out


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest of as many windows as wanted; with `return_indices` also its flat position."""
    _batched("adaptive_max_pool3d", input, 3)
    values, at = _largest(input, _adaptive_windows("adaptive_max_pool3d", input, output_size, 3))
    return (values, at) if return_indices else values


def _unpool(axes: int, input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Any, padding: Sizes, output_size: Any) -> Tensor:
    op = f"max_unpool{axes}d"
    _batched(op, input, axes)
    k, p = _each(kernel_size, axes), _each(padding, axes)
    s = _each(stride, axes) if stride is not None and stride != [] else k
    lead, have = tuple(input.shape[: input.ndim - axes]), input.shape[input.ndim - axes :]
    sizes = [(n - 1) * step - 2 * pad + size for n, step, pad, size in zip(have, s, p, k)]
    if output_size is not None:
        given = list(output_size)[-axes:]
        if any(abs(a - b) >= step for a, b, step in zip(given, sizes, s)):
            raise ArgumentError(f"{op}: output_size {tuple(given)} is too far from {tuple(sizes)}")
        sizes = given
    count = math.prod(have)
    flat = _c._full((*lead, math.prod(sizes)), 0.0, input.dtype)
    return flat.scatter(-1, indices.reshape(*lead, count), input.reshape(*lead, count)).reshape(*lead, *sizes)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Tensor:
    """The elements at the positions that `max_pool1d` took them from, zeros elsewhere."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Tensor:
    """The elements at the positions that `max_pool2d` took them from, zeros elsewhere."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Tensor:
    """The elements at the positions that `max_pool3d` took them from, zeros elsewhere."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _lp(mean: Tensor, norm_type: float, elements: int) -> Tensor:
    """The p-norms of windows from the means of their powers."""
    return (mean.sign() * mean.abs().relu() * elements).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window."""
    from ._pooling import avg_pool1d

    return _lp(avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, kernel_size)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of an image."""
    from ._pooling import avg_pool2d

    return _lp(avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, math.prod(_each(kernel_size, 2)))


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of a volume."""
    return _lp(avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, math.prod(_each(kernel_size, 3)))


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Columns of windows, `[batch, channels * window, windows]`, added up at their places in
    images.
    """
    size, k, d, p, s = (_each(v, 2) for v in (output_size, kernel_size, dilation, padding, stride))
    x, is_batched = (input, True) if input.ndim == 3 else (input.unsqueeze(0), False)
    places = [(size[i] + 2 * p[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in (0, 1)]
    count = k[0] * k[1]
    if x.ndim != 3 or x.shape[1] % count or x.shape[2] != places[0] * places[1]:
        raise ArgumentError(f"fold: shape {tuple(input.shape)} is no columns of {places[0]} x {places[1]} windows of {k[0]} x {k[1]}")
    sides = [np.arange(k[i])[:, None] * d[i] + np.arange(places[i]) * s[i] for i in (0, 1)]
    wide = [size[i] + 2 * p[i] for i in (0, 1)]
    at = sides[0][:, None, :, None] * wide[1] + sides[1][None, :, None, :]
    n, channels = x.shape[0], x.shape[1] // count
    flat = x.reshape(n, channels, at.size)
    index = _c.tensor(at.ravel()).expand(n, channels, at.size)
    out = _c._full((n, channels, wide[0] * wide[1]), 0.0, x.dtype).scatter_add(-1, index, flat).reshape(n, channels, *wide)
    out = out[:, :, p[0] : p[0] + size[0], p[1] : p[1] + size[1]]
    return out if is_batched else out.squeeze(0)


def fractional_max_pool2d(
    input: Tensor, kernel_size: Sizes, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest of windows whose distances are drawn at random, as many as wanted or as
    `output_ratio` says.
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Tensor, kernel_size: Sizes, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """As `fractional_max_pool2d` over three axes."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def _fractional(axes: int, input: Tensor, kernel: Sizes, output_size: Any, ratio: Any, indices: bool, samples: Tensor | None) -> Any:
    op = f"fractional_max_pool{axes}d"
    x, is_batched = _batched(op, input, axes)
    have, k = x.shape[2:], _each(kernel, axes)
    if (output_size is None) == (ratio is None):
        raise ArgumentError(f"{op}: give output_size or output_ratio, one of them")
    if output_size is None:
        ratios = [ratio] * axes if isinstance(ratio, float) else list(ratio)
        sizes = [int(n * r) for n, r in zip(have, ratios)]
    else:
        sizes = _each(output_size, axes)
    if any(m + size - 1 > n for n, m, size in zip(have, sizes, k)):
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: {tuple(sizes)} windows of {tuple(k)} do not fit")
    if not x.shape[0] and x.shape[1]:
        # The sum has no elements either, and a gradient that is empty.
        none = x.sum(tuple(range(2, axes + 2)), keepdim=True).expand(0, x.shape[1], *sizes)
        return (none, _c._full((0, x.shape[1], *sizes), 0, "int64")) if indices else none
    if not x.shape[0] * x.shape[1]:
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: no axis may be empty")
    samples = _m.rand(x.shape[0], x.shape[1], axes, dtype=x.dtype) if samples is None else samples
    drawn = samples.detach().numpy()
    values, at = [], []
    for n, c in itertools.product(range(x.shape[0]), range(x.shape[1])):
        windows = []
        for i in range(axes):
            # The samples of two axes name the last one first, those of three do not.
            starts = _starts(float(drawn[n, c, axes - 1 - i if axes == 2 else i]), have[i], sizes[i], k[i], drawn.dtype)
            windows.append(starts[:, None] + np.arange(k[i]))
        one, where = _largest(x[n, c], windows)
        values.append(one)
        at.append(where)
    from .. import _functions as _f

    shape = (*x.shape[:2], *sizes)
    out, place = _f.stack(values).reshape(shape), _f.stack(at).reshape(shape)
    if not is_batched:
        out, place = out.squeeze(0), place.squeeze(0)
    return (out, place) if indices else out


def _starts(sample: float, n: int, m: int, k: int, dtype: Any) -> Any:
    starts = np.full(m, n - k, dtype=np.int64)
    if m > 1:
        alpha = dtype.type(n - k) / dtype.type(m - 1)
        i = np.arange(m - 1).astype(dtype)
        u = dtype.type(sample)
        starts[:-1] = ((i + u) * alpha).astype(np.int64) - int(u * alpha)
    return starts


__all__ = [
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "conv3d", "conv_transpose3d", "fold", "fractional_max_pool2d",
    "fractional_max_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]
