"""Functions that make tensors."""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c
from ._chainrule import Generator, Tensor, from_numpy, tensor
from ._complex import _making as _z
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError
from ._filling import FEW, singly
from ._memory_order import axes_in_memory, drawn_like
from ._types import INT64, Number, Shape, as_tensor as _t
from ._out import put, with_out


def _sizes(sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Sizes that are given one by one, as one, or by name."""
    if size is not None:
        if sizes:
            raise TypeError("the sizes are given twice, by place and as size=")
        sizes = (size,)
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        return tuple(int(n) for n in sizes[0])
    return tuple(int(n) for n in sizes)


def _on(device: Any) -> None:
    if device is not None and str(device) not in ("cpu", "cpu:0"):
        raise ArgumentError(f"there is one device, the processor ('cpu'), not {device}")


def _leaf(t: Tensor, requires_grad: bool) -> Tensor:
    return t.requires_grad_() if requires_grad else t


def zeros(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None, pin_memory: bool = False, out: Any = None) -> Tensor:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    if out is not None:
        return put("zeros", zeros(*sizes, size=size, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    try:
        return _leaf(_c._full(_sizes(sizes, size), 0.0, dtype), requires_grad)
    except TypeError:
        return _z.filled(_sizes(sizes, size), 0.0, dtype, requires_grad)  # type: ignore[no-any-return]


def ones(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None, pin_memory: bool = False, out: Any = None) -> Tensor:
    """A tensor of ones."""
    if out is not None:
        return put("ones", ones(*sizes, size=size, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    try:
        return _leaf(_c._full(_sizes(sizes, size), 1.0, dtype), requires_grad)
    except TypeError:
        return _z.filled(_sizes(sizes, size), 1.0, dtype, requires_grad)  # type: ignore[no-any-return]


def empty(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None, pin_memory: bool = False, out: Any = None) -> Tensor:
    """A tensor whose elements do not matter; here they are 0."""
    if out is not None:
        return put("empty", empty(*sizes, size=size, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    return zeros(*sizes, size=size, dtype=dtype, requires_grad=requires_grad)


def full(size: Shape, fill_value: Number | Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None) -> Tensor:
    """A tensor with the same number everywhere."""
    if out is not None:
        return put("full", full(size, fill_value, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    try:
        return _leaf(_c._full(size, fill_value, dtype), requires_grad)
    except TypeError:
        return _z.filled(_sizes((size,)), fill_value, dtype, requires_grad)  # type: ignore[no-any-return]


def zeros_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Zeros of the same shape and dtype."""
    _on(device)
    try:
        return _leaf(drawn_like(input, lambda dims: _c._full(dims, 0.0, dtype or input.dtype)), requires_grad)
    except TypeError:
        return _z.filled(input._dims, 0.0, dtype or input.dtype, requires_grad)  # type: ignore[no-any-return]


def ones_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Ones of the same shape and dtype."""
    _on(device)
    try:
        return _leaf(drawn_like(input, lambda dims: _c._full(dims, 1.0, dtype or input.dtype)), requires_grad)
    except TypeError:
        return _z.filled(input._dims, 1.0, dtype or input.dtype, requires_grad)  # type: ignore[no-any-return]


def full_like(input: Tensor, fill_value: Number, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """The same number everywhere, in the same shape and dtype."""
    _on(device)
    try:
        return _leaf(drawn_like(input, lambda dims: _c._full(dims, fill_value, dtype or input.dtype)), requires_grad)
    except TypeError:
        return _z.filled(input._dims, fill_value, dtype or input.dtype, requires_grad)  # type: ignore[no-any-return]


empty_like = zeros_like


def arange(start: Number, end: Number | None = None, step: Number = 1, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None) -> Tensor:
    """From `start` up to, without, `end` by `step`."""
    if out is not None:
        return put("arange", arange(start, end, step, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    if end is None:
        start, end = 0, start
    return _leaf(_c._arange(start, end, step, dtype), requires_grad)


def _between(start: Any, end: Any, steps: int) -> Tensor:
    """`linspace` in integers: from both ends towards the middle, cut to whole numbers, as in
    PyTorch.
    """
    start, end = int(start), int(end)
    at = _c._arange(0, steps, 1, "float64")
    step = (end - start) / max(1, steps - 1)
    return _c._where(at < (steps + (steps == 1)) // 2, start + step * at, end - step * (steps - 1 - at)).trunc()


@with_out
def linspace(
    start: float | Tensor, end: float | Tensor, steps: int, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None
) -> Tensor:
    """`steps` numbers at equal distances, both ends included."""
    _on(device)
    whole = dtype is not None and _c._dtype(dtype) == INT64
    drawn = _between(start, end, steps)._to_dtype(dtype) if whole else _c._linspace(float(start), float(end), steps, True, dtype)
    return _leaf(drawn, requires_grad)


@with_out
def logspace(
    start: float | Tensor, end: float | Tensor, steps: int, base: float = 10.0, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None
) -> Tensor:
    """Powers of `base` at equal distances of the exponent."""
    _on(device)
    whole = dtype is not None and _c._dtype(dtype) == INT64
    if whole:
        start, end = int(start), int(end)
    exponent = _c._linspace(float(start), float(end), steps, True, "float64")
    power: Tensor = float(base) ** exponent
    return _leaf((power.trunc() if whole else power)._to_dtype(dtype or _c.get_default_dtype()), requires_grad)


@with_out
def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    _on(device)
    rows = _c._arange(0, n, 1, None).unsqueeze(1)
    out = rows == _c._arange(0, n if m is None else m, 1, None)
    try:
        return _leaf(out._to_dtype(dtype or _c.get_default_dtype()), requires_grad)
    except TypeError:
        return _leaf(out.to(dtype=dtype), requires_grad)


def rand(*sizes: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False, device: Any = None, pin_memory: bool = False, out: Any = None) -> Tensor:
    """Uniform numbers from 0 up to 1, those of PyTorch for the same seed."""
    if out is not None:
        return put("rand", rand(*sizes, size=size, generator=generator, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    try:
        return _leaf(_c._rand(_sizes(sizes, size), dtype, generator), requires_grad)
    except TypeError:
        return _z.drawn(_z.rand, _sizes(sizes, size), dtype, generator, requires_grad)  # type: ignore[no-any-return]


def randn(*sizes: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False, device: Any = None, pin_memory: bool = False, out: Any = None) -> Tensor:
    """Normal numbers, those of PyTorch for the same seed."""
    if out is not None:
        return put("randn", randn(*sizes, size=size, generator=generator, dtype=dtype or out.dtype), out)  # type: ignore[no-any-return]
    _on(device)
    try:
        return _leaf(_c._randn(_sizes(sizes, size), dtype, generator), requires_grad)
    except TypeError:
        return _z.drawn(_z.randn, _sizes(sizes, size), dtype, generator, requires_grad)  # type: ignore[no-any-return]


def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers in the same shape and dtype."""
    _on(device)
    try:
        return drawn_like(input, lambda dims: _c._rand(dims, dtype or input.dtype, generator))
    except TypeError:
        return _z.drawn(_z.rand, input._dims, dtype or input.dtype, generator, False)  # type: ignore[no-any-return]


def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Normal numbers in the same shape and dtype."""
    _on(device)
    if input.numel() >= FEW and axes_in_memory(input) is not None:
        return drawn_like(input, lambda dims: singly(dims, 0.0, 1.0, generator))._to_dtype(dtype or input.dtype)
    try:
        return drawn_like(input, lambda dims: _c._randn(dims, dtype or input.dtype, generator))
    except TypeError:
        return _z.drawn(_z.randn, input._dims, dtype or input.dtype, generator, False)  # type: ignore[no-any-return]


@with_out
def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Tensor:
    """Integers from `low` up to, without, `high`: `randint(10, (3,))` or `randint(0, 10, (3,))`."""
    _on(device)
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    found = _c._randint(low, high, size, generator)
    return found if dtype is None else found._to_dtype(dtype)


def randint_like(input: Tensor, low: int, high: int | None = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Integers from `low` up to, without, `high` in the same shape and dtype; with one bound from 0
    up to it.
    """
    return drawn_like(input, lambda dims: randint(low, high, tuple(dims), generator=generator, dtype=dtype or input.dtype, device=device))


@with_out
def randperm(n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Tensor:
    """The integers from 0 up to, without, `n` in random order."""
    _on(device)
    found = _c._randperm(n, generator)
    return found if dtype is None else found._to_dtype(dtype)


def normal(
    mean: Any, std: Any = 1.0, size: Shape | None = None, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:
    """Normal numbers of this mean and standard deviation. Without a gradient; with `out` they are
    written there.
    """
    _on(device)
    drawn = _drawn_normal(mean, std, size, generator, dtype)
    if out is not None:
        return out.copy_(drawn)
    return drawn.requires_grad_() if requires_grad else drawn


def _drawn_normal(mean: Any, std: Any, size: Shape | None, generator: Generator | None, dtype: Any) -> Tensor:
    if size is None:
        m, s = (x.detach() if isinstance(x, Tensor) else x for x in (mean, std))
        out = _t(m + s)
        found: Tensor = _c._randn(out._dims, out.dtype, generator) * s + m
        return found
    return empty(size, dtype=dtype).normal_(float(mean), float(std), generator=generator)


@with_out
def bernoulli(input: Tensor, *, generator: Generator | None = None, out: Any = None) -> Tensor:
    """1 with the probability that the element says, else 0."""
    if not _c._session_on() and input.numel() and not bool(((input >= 0) & (input <= 1)).all()):
        raise ArgumentError("bernoulli: probabilities are from 0 to 1")
    return (_c._rand(input._dims, input.dtype, generator) < input)._to_dtype(input.dtype)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor as it is, an array without a copy, anything else as a new tensor."""
    _on(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, ComplexTensor):
        return data if dtype is None else data._to_dtype(dtype)  # type: ignore[return-value]
    try:
        if type(data).__module__ == "numpy" and hasattr(data, "strides") and data.ndim:
            t = from_numpy(data)
            return t if dtype is None else t._to_dtype(dtype)
        return tensor(data, dtype)
    except TypeError:
        return _z.instead(data, dtype)  # type: ignore[return-value]


def asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """As `as_tensor`; `copy=True` always copies, `copy=False` never."""
    if copy:
        try:
            return _leaf(tensor(obj, dtype), requires_grad)
        except TypeError:
            return _leaf(_z.instead(obj, dtype), requires_grad)  # type: ignore[arg-type]
    out = as_tensor(obj, dtype)
    if copy is False and out is not obj and not (type(obj).__module__ == "numpy" and str(obj.dtype) == out.dtype.name):
        raise ArgumentError("asarray: this needs a copy, which copy=False forbids")
    return _leaf(out, requires_grad) if requires_grad else out


def tensor_of(x: Any) -> Tensor:
    """A gradient as a tensor: it may be an array of NumPy, or whatever has one."""
    if isinstance(x, Tensor):
        return x
    import numpy as np

    return from_numpy(np.asarray(x, order="C"))


__all__ = [
    "arange", "as_tensor", "asarray", "bernoulli", "empty", "empty_like", "eye", "from_numpy", "full", "full_like", "linspace", "logspace",
    "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "tensor", "zeros", "zeros_like",
]
