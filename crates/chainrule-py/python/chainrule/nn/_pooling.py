"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError

Sizes = int | Sequence[int]
# For each axis: the positions that each window looks at, one row for a window; -1 for those
# outside.
Windows = list[np.ndarray[Any, Any]]


def _list(x: Sizes) -> list[int]:
    return [x] if isinstance(x, int) else list(x)


def _each(x: Sizes, axes: int) -> list[int]:
    sizes = _list(x)
    return sizes * axes if len(sizes) == 1 else sizes


def _pool(
    max: bool, axes: int, input: Tensor, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil: bool, include: bool
) -> Tensor:
    batched = input.ndim == axes + 2
    x = input if batched else input.unsqueeze(0)
    out = _c._pool(max, axes, x, _list(kernel), None if stride is None else _list(stride), _list(padding), _list(dilation), ceil, include)
    return out if batched else out.squeeze(0)


def _where(input: Tensor, windows: Windows) -> Tensor:
    """The flat position of the largest element of each window, counted over the pooled axes."""
    axes = len(windows)
    lead, sizes = input.shape[: input.ndim - axes], input.shape[input.ndim - axes :]
    flat: Any = np.zeros((1,), dtype=np.int64)
    outside: Any = np.zeros((1,), dtype=bool)
    for n, w in zip(sizes, windows):
        # [.., windows, places] of the axes so far, each with those of the next one.
        flat = flat[..., None, :, None] * n + w[:, None, :]
        outside = outside[..., None, :, None] | (w < 0)[:, None, :]
        flat, outside = flat.reshape(*flat.shape[:-2], -1), outside.reshape(*outside.shape[:-2], -1)
    counts, places = flat.shape[:-1], flat.shape[-1]
    flat, outside = flat.reshape(-1, places), outside.reshape(-1, places)
    # A place outside stands for the first one inside, which has the same value wherever it is met.
    flat = np.where(outside, np.take_along_axis(flat, outside.argmin(-1)[:, None], -1), flat)
    values = input.detach() if input.is_floating_point() else input.to(dtype="float64")
    values = values.reshape(*lead, math.prod(sizes)).index_select(-1, _c.tensor(flat.ravel())).reshape(*lead, *flat.shape)
    at = values.argmax(-1) + _c.tensor(np.arange(flat.shape[0]) * places)
    return _c.tensor(flat.ravel()).index_select(0, at.reshape(-1)).reshape(*lead, *counts)


def _max_pool(
    axes: int, input: Tensor, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil: bool, return_indices: bool
) -> Any:
    out = _pool(True, axes, input, kernel, stride, padding, dilation, ceil, True)
    if not return_indices:
        return out
    k, p, d = _each(kernel, axes), _each(padding, axes), _each(dilation, axes)
    s = _each(stride or k, axes)
    windows = []
    for i in range(axes):
        n = input.shape[input.ndim - axes + i]
        at = np.arange(out.shape[out.ndim - axes + i])[:, None] * s[i] - p[i] + np.arange(k[i]) * d[i]
        windows.append(np.where((at >= 0) & (at < n), at, -1))
    return out, _where(input, windows)


def max_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window; with `return_indices` also where it stands."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window; with `return_indices` also where it stands, counted row by row.
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Tensor:
    """The mean of each window."""
    return _pool(False, 1, input, kernel_size, stride, padding, 1, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window, or its sum over `divisor_override`."""
    means = _pool(False, 2, input, kernel_size, stride, padding, 1, ceil_mode, count_include_pad)
    if divisor_override is None:
        return means
    if divisor_override == 0:
        raise ArgumentError("avg_pool2d: divisor_override must not be 0")
    # Means times what they were divided by: all of a window, or what of it lies in the input.
    k, p = _each(kernel_size, 2), _each(padding, 2)
    s = _each(stride or k, 2)
    border = p if count_include_pad else [0, 0]
    return means * _counts(input, means, k, s, p, border) / divisor_override


def _counts(x: Tensor, out: Tensor, kernel: list[int], stride: list[int], padding: list[int], border: list[int]) -> Tensor:
    """The number of elements of `x`, with a border around, that each window covers."""
    sides = []
    for i in (0, 1):
        n, start = x.shape[i - 2], np.arange(out.shape[i - 2]) * stride[i] - padding[i]
        sides.append(np.minimum(start + kernel[i], n + border[i]) - np.maximum(start, -border[i]))
    return _c.tensor(sides[0][:, None] * sides[1]).to(dtype=x.dtype)


def _adaptive(max: bool, axes: int, input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    wanted = [output_size] * axes if output_size is None or isinstance(output_size, int) else list(output_size)
    wanted = wanted * axes if len(wanted) == 1 else wanted
    if len(wanted) != axes:
        name = f"adaptive_{'max' if max else 'avg'}_pool{axes}d"
        raise ArgumentError(f"{name}: output_size {tuple(wanted)} has {len(wanted)} sizes where {axes} {'is' if axes == 1 else 'are'} wanted")
    have = input.shape[input.ndim - axes :]
    sizes = [n if m is None else m for n, m in zip(have, wanted)]
    batched = input.ndim == axes + 2
    x = input if batched else input.unsqueeze(0)
    out = _c._adaptive_pool(max, x, sizes)
    out = out if batched else out.squeeze(0)
    if not return_indices:
        return out
    windows = []
    for n, m in zip(have, sizes):
        start, end = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
        at = start[:, None] + np.arange(int((end - start).max(initial=0)))
        windows.append(np.where(at < end[:, None], at, -1))
    return out, _where(input, windows)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of as many windows as wanted."""
    return _adaptive(False, 1, input, output_size)  # type: ignore[no-any-return]


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of as many windows as wanted; None keeps a size."""
    return _adaptive(False, 2, input, output_size)  # type: ignore[no-any-return]


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest of as many windows as wanted; with `return_indices` also where it stands."""
    return _adaptive(True, 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest of as many windows as wanted; None keeps a size."""
    return _adaptive(True, 2, input, output_size, return_indices)
