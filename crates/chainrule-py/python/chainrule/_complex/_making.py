"""Functions that make complex tensors, or take them apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from . import _dtype
from ._base import Base, from_parts, of_array, of_number, refused
from ._dtype import ComplexDtype
from ._tensor import ComplexTensor


def complex(real: Tensor, imag: Tensor) -> ComplexTensor:
    """The complex numbers of these real and imaginary parts, which have one dtype.

    ```
    assert cr.complex(cr.tensor(1.0), cr.tensor(2.0)).item() == 1 + 2j
    ```
    """
    for x in (real, imag):
        if not isinstance(x, Tensor) or x.dtype.name not in ("float32", "float64"):
            raise TypeError(f"complex: tensors of float32 or float64 are needed, not {getattr(x, 'dtype', type(x).__name__)}")
    if real.dtype != imag.dtype:
        raise TypeError(f"complex: dtypes {real.dtype.name} and {imag.dtype.name} differ")
    x, y = _c._broadcast_tensors([real, imag])
    return ComplexTensor._of(from_parts(x, y))


def polar(abs: Tensor, angle: Tensor) -> ComplexTensor:
    """The complex numbers at these distances from 0 and angles: `r (cos(a) + i sin(a))`."""
    return complex(abs * angle.cos(), abs * angle.sin())


def view_as_real(input: ComplexTensor) -> Tensor:
    """The elements as a real tensor with a last axis of real and imaginary parts, a view."""
    if not isinstance(input, Base):
        raise TypeError(f"view_as_real: a complex tensor is needed, not {getattr(input, 'dtype', type(input).__name__)}")
    return input._data[...]


def view_as_complex(input: Tensor) -> ComplexTensor:
    """A real tensor with a last axis of real and imaginary parts as complex numbers, a view."""
    return ComplexTensor(input)


def is_complex(input: Any) -> bool:
    """Whether the elements are complex numbers."""
    return isinstance(input, Base)


def imag(input: ComplexTensor) -> Tensor:
    """The imaginary parts; an error for real tensors, as in PyTorch."""
    if not isinstance(input, Base):
        raise refused("imag", getattr(input, "dtype", type(input).__name__))
    return input.imag


def is_of_complex(x: Any) -> bool:
    """Whether a number, an array or a nest of lists holds complex numbers."""
    if isinstance(x, (list, tuple)):
        return any(map(is_of_complex, x))
    return isinstance(x, (Base, np.complexfloating)) or type(x).__name__ == "complex" or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> ComplexTensor:
    """A complex tensor of numbers, nested lists, an array or a tensor, whose elements are copied.
    """
    d = _dtype.named(dtype) if dtype is not None else None
    if dtype is not None and d is None:
        raise refused("tensor", dtype)
    if isinstance(data, Base):
        out = ComplexTensor._of(data._data.detach().clone())._to_dtype(d or data.dtype)
    elif isinstance(data, Tensor):
        out = of_real(data.detach(), d)
    else:
        out = ComplexTensor._of(of_array(*_array_of(data, d)).clone())
    return out.requires_grad_() if requires_grad else out


def has_complex(data: Any, dtype: Any) -> bool:
    """Whether a tensor of these data, or of this dtype, is complex."""
    return _dtype.named(dtype) is not None or (dtype is None and is_of_complex(data))


def of_operator(name: str, x: Tensor, other: Any) -> Any:
    """`x.name(other)` of a real tensor and a complex number or array."""
    method = getattr(_of_any(x), name, None)
    if method is None:
        raise refused(name.strip("_"), "a complex number")
    return method(other)


def of_function(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A function with complex arguments, as the method of the first one."""
    if not args:
        args = (named.pop("input"),) if "input" in named else args
    method = getattr(_of_any(args[0]), name, None) if args else None
    if method is None:
        raise refused(name, "complex tensors")
    return method(*args[1:], **named)


def _of_any(x: Any) -> ComplexTensor:
    """A complex tensor, a real one, an array or a number as a complex tensor, on the tape."""
    if isinstance(x, ComplexTensor):
        return x
    if isinstance(x, Tensor):
        return of_real(x, None if x.is_floating_point() else _dtype.of_part(_c.get_default_dtype()))
    return tensor(x)


def instead(data: Any, dtype: Any) -> ComplexTensor:
    """`tensor`, where the data or the dtype are complex; else the error that is being handled."""
    if _dtype.named(dtype) is None and not is_of_complex(data):
        raise
    return tensor(data, dtype)


def _array_of(data: Any, d: ComplexDtype | None) -> tuple[Any, ComplexDtype]:
    """NumPy's array of these data, and the dtype: numbers of Python take the default one."""
    given = data if isinstance(data, (np.ndarray, np.generic)) else None
    a = np.asarray(_plain(data)) if given is None else np.asarray(given)
    if a.dtype.kind not in "biufc":
        raise TypeError(f"tensor: cannot make a tensor of {type(data).__name__}; give numbers, nested lists or an array")
    if d is None:
        d = _dtype.of_array(a) if given is not None and a.dtype.kind == "c" else _dtype.of_part(_c.get_default_dtype())
    return a.astype(d.name), d


def _plain(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_plain(y) for y in x]
    return x.tolist() if isinstance(x, (ComplexTensor, Tensor)) else x


def of_real(x: Tensor, d: ComplexDtype | None = None) -> ComplexTensor:
    """A real tensor as a complex one, recorded on the tape."""
    part = (d or _dtype.of_part(x.dtype)).part
    return ComplexTensor._of(from_parts(x._to_dtype(part)))


def full(size: Sequence[int], value: Any, dtype: ComplexDtype) -> ComplexTensor:
    """The same number everywhere."""
    row = value._to_dtype(dtype)._data.detach() if isinstance(value, Base) else of_number(value.item() if isinstance(value, Tensor) else value, dtype)
    return ComplexTensor._of(row.expand((*size, 2)).clone())


def together(function: str, tensors: Sequence[Any]) -> list[ComplexTensor]:
    """Tensors, of which one is complex, as complex ones of their common dtype."""
    lone = next((t for t in tensors if isinstance(t, ComplexTensor)), None)
    if lone is None:
        raise
    if not all(isinstance(t, (Tensor, Base)) for t in tensors):
        raise TypeError(f"{function}: tensors are needed, not {', '.join(type(t).__name__ for t in tensors)}")
    all_of = [lone._lifted(t) for t in tensors]
    d: Any = lone.dtype
    for t in all_of:
        d = _dtype.promoted(d, t.dtype)
    return [t._to_dtype(d) for t in all_of]


def cat(tensors: Sequence[Any], dim: int = 0) -> ComplexTensor:
    """Tensors, of which one is complex, one after the other."""
    parts = together("cat", tensors)
    return ComplexTensor._of(_c._cat([t._data for t in parts], parts[0]._axis("cat", dim)))


def stack(tensors: Sequence[Any], dim: int = 0) -> ComplexTensor:
    """Tensors, of which one is complex, along a new axis."""
    parts = together("stack", tensors)
    return ComplexTensor._of(_c._stack([t._data for t in parts], parts[0]._axis("stack", dim, 1)))


def where(condition: Tensor, input: Any, other: Any) -> ComplexTensor:
    """One or the other, of which one is complex."""
    if not (is_of_complex(input) or is_of_complex(other)):
        raise
    z = input if isinstance(input, ComplexTensor) else other
    if not isinstance(z, ComplexTensor):
        z = ComplexTensor._of(of_number(input if is_of_complex(input) else other, _dtype.of_part(_c.get_default_dtype())))
    return z._lifted(input).where(condition, other)


def einsum(equation: str, operands: Sequence[Any]) -> ComplexTensor:
    """Sums of products of tensors, of which one is complex: of all choices of their parts."""
    parts = together("einsum", operands)
    sums: list[Any] = [0.0, 0.0]
    for choice in itertools.product((0, 1), repeat=len(parts)):
        turns = sum(choice)
        term = _c._einsum(equation, [p.imag if c else p.real for p, c in zip(parts, choice)])
        sums[turns % 2] = sums[turns % 2] + (term if turns % 4 < 2 else -term)
    return ComplexTensor._of(from_parts(*sums))


def filled(size: Sequence[int], value: Any, dtype: Any, requires_grad: bool) -> Any:
    """The same number everywhere, where the dtype or the number is complex; else the error that is
    being handled.
    """
    d = _dtype.named(dtype)
    if d is None and (dtype is not None or not is_of_complex(value)):
        raise
    out = full(size, value, d or (value.dtype if isinstance(value, Base) else _dtype.of_part(_c.get_default_dtype())))
    return out.requires_grad_() if requires_grad else out


def drawn(draw: Callable[..., ComplexTensor], size: Sequence[int], dtype: Any, generator: Any, requires_grad: bool) -> Any:
    """Random complex numbers; the error that is being handled, if the dtype is another."""
    d = _dtype.named(dtype)
    if d is None:
        raise
    out = draw(size, d, generator)
    return out.requires_grad_() if requires_grad else out


def randn(size: Sequence[int], dtype: ComplexDtype, generator: Any = None) -> ComplexTensor:
    """Normal numbers of variance 1, PyTorch's for the same seed: half of it in each part."""
    return ComplexTensor._of(_c._randn((*size, 2), dtype.part, generator) * 0.5**0.5)


def rand(size: Sequence[int], dtype: ComplexDtype, generator: Any = None) -> ComplexTensor:
    """Numbers with uniform parts from 0 up to 1, PyTorch's for the same seed."""
    return ComplexTensor._of(_c._rand((*size, 2), dtype.part, generator))
