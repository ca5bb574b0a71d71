"""Exchange of memory by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any array that speaks DLPack; without a copy unless `copy=True`."""
    if device not in (None, "cpu"):
        raise ValueError(f"from_dlpack: there is one device, the processor ('cpu'), not {device}")
    if isinstance(x, Tensor):
        return x.detach().clone() if copy else x.detach()
    array = np.from_dlpack(x)
    if copy is False and array.dtype.name not in ("float32", "float64", "int64", "bool"):
        raise ValueError(f"from_dlpack: {array.dtype} has no counterpart here, and copy=False forbids another dtype")
    t = _c.from_numpy(array)
    return t.clone() if copy else t


def export(
    self: Tensor, /, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A capsule over the memory of the tensor, marked read-only; the older protocol, which has no such mark, gets a copy."""
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError(f"__dlpack__: there is one device, the processor {CPU}, not {tuple(dl_device)}")
    if stream is not None:
        raise BufferError("__dlpack__: the processor has no streams")
    array = self.numpy()
    old = max_version is None or max_version[0] < 1
    if old and copy is False:
        raise BufferError("__dlpack__: the consumer speaks a version without read-only memory, which needs a copy; copy=False forbids it")
    if copy or old:
        array = array.copy()
    return array.__dlpack__() if old else array.__dlpack__(max_version=max_version)


def device(self: Tensor) -> tuple[int, int]:
    """The processor, in DLPack's numbers."""
    return CPU


CPU = (1, 0)
