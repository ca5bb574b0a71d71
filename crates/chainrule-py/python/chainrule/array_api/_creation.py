"""New arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from .._complex import _making as _z
from .._complex._tensor import ComplexTensor
from .._complex._dtype import ComplexDtype, named, of_part
from ._dtypes import cast, check_device, float64


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """An array of anything."""
    check_device(device)
    if isinstance(obj, (Tensor, ComplexTensor)):
        if copy is False and dtype not in (None, obj.dtype):
            raise ValueError("asarray: another dtype needs a copy, which copy=False forbids")
        out = obj if dtype is None else cast(obj, named(dtype) or dtype)
        return out.detach().clone() if copy and out is obj else out
    if copy is False and not hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray):
        raise ValueError("asarray: this needs a copy, which copy=False forbids")
    try:
        return _c.tensor(obj, dtype)
    except TypeError:
        return _z.instead(obj, dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """From `start` up to, without, `stop` by `step`."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    return _c._arange(start, stop, step, dtype)


def _full(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    d = dtype if isinstance(dtype, ComplexDtype) else of_part(_c.get_default_dtype()) if dtype is None and isinstance(value, complex) else None
    return _c._full(shape, value, dtype) if d is None else _z.full(shape, value, d)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Elements that do not matter."""
    return zeros(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros."""
    check_device(device)
    return _full(_shape(shape), 0.0, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones."""
    check_device(device)
    return _full(_shape(shape), 1.0, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """The same number everywhere."""
    check_device(device)
    return _full(_shape(shape), fill_value, dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """As `empty`, in the shape and dtype of `x`."""
    return zeros(x._dims, dtype=dtype or x.dtype, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros in the shape and dtype of `x`."""
    return zeros(x._dims, dtype=dtype or x.dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones in the shape and dtype of `x`."""
    return ones(x._dims, dtype=dtype or x.dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """The same number everywhere, in the shape and dtype of `x`."""
    return full(x._dims, fill_value, dtype=dtype or x.dtype, device=device)


def eye(n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Ones on a diagonal."""
    check_device(device)
    rows = _c._arange(0, n_rows, 1, None).unsqueeze(1)
    columns = _c._arange(0, n_rows if n_cols is None else n_cols, 1, None)
    return cast(columns - rows == k, dtype or _c.get_default_dtype())


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> Any:
    """Numbers at equal distances."""
    check_device(device)
    gaps = num - 1 if endpoint else num
    steps: Any = _c._arange(0, num, 1, float64)
    if isinstance(start, complex) or isinstance(stop, complex) or isinstance(dtype, ComplexDtype):
        steps = _z.of_real(steps)
        dtype = of_part(_c.get_default_dtype()) if dtype is None else dtype
    out = steps * ((stop - start) / gaps if gaps else 0.0) + start
    if endpoint and num > 1:
        out[-1] = stop
    return cast(out, dtype or _c.get_default_dtype())


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Grids of coordinates."""
    if len(arrays) < 2:
        return arrays
    if any(isinstance(a, ComplexTensor) for a in arrays):
        at = _f.meshgrid(*(_c._arange(0, a.shape[0], 1, None) for a in arrays), indexing=indexing)
        return tuple(a[i] for a, i in zip(arrays, at))
    return _f.meshgrid(*arrays, indexing=indexing)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """An array over the memory of another."""
    from ..dlpack import from_dlpack as exchange

    return exchange(x, device=device, copy=copy)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The part on and below a diagonal."""
    return x.tril(k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The part on and above a diagonal."""
    return x.triu(k)
