"""Samples as batches."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ... import _chainrule as _c
from ..._chainrule import Tensor
from ..._functions import stack
from ..._making import as_tensor


def _numbers(array: Any) -> bool:
    return np.asarray(array).dtype.kind in "biuf"


def default_convert(data: Any) -> Any:
    """Arrays of numbers in any nest as tensors; all else as it is."""
    if isinstance(data, Tensor) or isinstance(data, (str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return as_tensor(data) if _numbers(data) else data
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(x) for x in data]
    if isinstance(data, Sequence):
        return _sequence(data, [default_convert(x) for x in data])
    return data


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch.

    Tensors and arrays are stacked along a new first axis, numbers become a tensor (int64, or
    float64 for floats), strings stay a list; tuples, lists and dictionaries are collated part by
    part.

    ```
    a, b = cr.utils.data.default_collate([(cr.ones(2), 0), (cr.zeros(2), 1)])
    assert a.shape == (2, 2) and b.tolist() == [0, 1]
    ```
    """
    batch = list(batch)
    if not batch:
        raise IndexError("default_collate: there are no samples")
    first = batch[0]
    if isinstance(first, Tensor):
        _same_shapes([tuple(x.shape) for x in batch])
        return stack(batch, 0)
    if isinstance(first, (np.ndarray, np.generic)):
        if not _numbers(first):
            raise TypeError(f"default_collate: arrays of {first.dtype} do not become tensors; give a collate_fn")
        _same_shapes([np.shape(x) for x in batch])
        return _c.tensor(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, float):
        return _c.tensor(batch, "float64")
    if isinstance(first, int):
        return _c.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _mapping(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError(f"default_collate: samples have different lengths: {sorted({len(x) for x in batch})}")
        parts = [default_collate(part) for part in zip(*batch)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else parts
        return _sequence(first, parts)
    raise TypeError(f"default_collate: samples are tensors, arrays, numbers, strings, or nests of them, not {type(first).__name__}; give a collate_fn")


def _same_shapes(shapes: list[tuple[int, ...]]) -> None:
    if len(set(shapes)) > 1:
        other = next(s for s in shapes if s != shapes[0])
        raise RuntimeError(f"default_collate: samples have shapes {shapes[0]} and {other}, and one batch needs equal ones; give a collate_fn that pads")


def _mapping(like: Any, parts: dict[Any, Any]) -> Any:
    """The parts in a mapping of the same type, where that can be made."""
    try:
        if isinstance(like, MutableMapping):
            new = copy.copy(like)
            new.update(parts)
            return new
        return type(like)(parts)
    except TypeError:
        return parts


def _sequence(like: Any, parts: list[Any]) -> Any:
    try:
        if isinstance(like, MutableSequence):
            new = copy.copy(like)
            for i, x in enumerate(parts):
                new[i] = x
            # Fewer parts than elements never occur: both come from the same sample.
            return new
        return type(like)(parts)
    except TypeError:
        return parts
