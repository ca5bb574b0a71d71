"""Comparisons for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor

# Bounds by dtype: relative to the expected value, and absolute.
BOUNDS = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False, check_dtype: bool = True,
    msg: str | Callable[[str], str] | None = None, allow_subclasses: bool = True, check_device: bool = True, check_layout: bool = True, check_stride: bool = False,
) -> None:
    """An error unless the values are close: `|actual - expected| <= atol + rtol |expected|`, by
    bounds for the dtype if none are given. Lists and dictionaries are compared part by part.

    ```
    cr.testing.assert_close(cr.ones(2) + 1e-7, cr.ones(2))
    ```
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: give both rtol and atol, or none of them")
    try:
        _compared(actual, expected, rtol, atol, equal_nan, check_dtype, "")
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _compared(a: Any, b: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool, at: str) -> None:
    if isinstance(b, Mapping) and isinstance(a, Mapping):
        if set(a) != set(b):
            raise AssertionError(f"the keys differ{at}: {sorted(map(str, a))} and {sorted(map(str, b))}")
        for key in b:
            _compared(a[key], b[key], rtol, atol, equal_nan, check_dtype, f"{at} at {key!r}")
        return
    if isinstance(b, Sequence) and isinstance(a, Sequence) and not isinstance(b, str):
        if len(a) != len(b):
            raise AssertionError(f"the lengths differ{at}: {len(a)} and {len(b)}")
        for i, (x, y) in enumerate(zip(a, b)):
            _compared(x, y, rtol, atol, equal_nan, check_dtype, f"{at} at {i}")
        return
    x, y = (t.detach() if isinstance(t, Tensor) else _c.tensor(t) for t in (a, b))
    if x.shape != y.shape:
        raise AssertionError(f"the shapes differ{at}: {tuple(x.shape)} and {tuple(y.shape)}")
    if check_dtype and x.dtype != y.dtype and isinstance(a, Tensor):
        raise AssertionError(f"the dtypes differ{at}: {x.dtype.name} and {y.dtype.name}")
    known = [BOUNDS.get(t.dtype.name, (0.0, 0.0)) for t in (x, y)]
    r = max(k[0] for k in known) if rtol is None else rtol
    bound = max(k[1] for k in known) if atol is None else atol
    p, q = (np.asarray(t.tolist(), dtype=np.float64) for t in (x, y))
    close = np.isclose(p, q, rtol=r, atol=bound, equal_nan=equal_nan)
    if not close.all():
        with np.errstate(all="ignore"):
            apart = np.abs(p - q)
        worst = np.unravel_index(np.argmax(np.where(close, -1.0, np.nan_to_num(apart, nan=np.inf))), apart.shape)
        place = f" at {tuple(int(i) for i in worst)}" if worst else ""
        raise AssertionError(f"{int((~close).sum())} of {close.size} elements differ{at}: most{place}, {p[worst]} and {q[worst]} (rtol {r}, atol {bound})")


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """As `assert_close`, of older versions: NaN are equal, and dtypes may differ."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: float | None = None, high: float | None = None, requires_grad: bool = False, noncontiguous: bool = False,
    exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:
    """A tensor of uniform numbers: from -9 to 9, of unsigned integers from 0, of bools all."""
    from ._making import rand, randint

    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    kind = _c._dtype(dtype)
    if kind.name == "bool":
        return randint(0, 2, sizes).bool()
    if kind.is_floating_point:
        low, high = (-9.0 if low is None else low), (9.0 if high is None else high)
        out = (rand(sizes, dtype="float64") * (high - low) + low)._to_dtype(kind)
    else:
        least = 0 if kind.name.startswith("u") else -9
        out = randint(int(least if low is None else low), int(10 if high is None else high), sizes)._to_dtype(kind)
    if exclude_zero:
        out = out.masked_fill(out == 0, 1)
    return out.requires_grad_() if requires_grad else out


__all__ = ["assert_allclose", "assert_close", "make_tensor"]
