"""The elements of a complex tensor: a real tensor with a last axis of real and imaginary parts."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from . import _dtype
from ._dtype import AnyDtype, ComplexDtype

Array = np.ndarray[Any, Any]
C = TypeVar("C", bound="Base")


class Base:
    """The elements, and what all parts of the class need of them."""

    _data: Tensor

    @classmethod
    def _of(cls: type[C], data: Tensor) -> C:
        new = object.__new__(cls)
        new._data = data
        return new

    def _like(self: C, data: Tensor) -> C:
        return type(self)._of(data)

    @property
    def dtype(self) -> ComplexDtype:
        """complex64 or complex128."""
        return _dtype.of_part(self._data.dtype)

    @property
    def _dims(self) -> tuple[int, ...]:
        return self._data._dims[:-1]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim - 1

    @property
    def real(self) -> Tensor:
        """The real parts, as a view: a write to it is a write to the tensor."""
        return self._data[..., 0]

    @real.setter
    def real(self, value: Any) -> None:
        self._data[..., 0] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, as a view: a write to it is a write to the tensor."""
        return self._data[..., 1]

    @imag.setter
    def imag(self, value: Any) -> None:
        self._data[..., 1] = value

    def _to_dtype(self: C, dtype: Any) -> C:
        d = _dtype.wanted("to", dtype, self.dtype)
        return self if d == self.dtype else self._like(self._data._to_dtype(d.part))

    def _lifted(self: C, x: Any) -> C:
        """The other operand of an op as a complex tensor; a number takes this dtype."""
        if isinstance(x, Base):
            return self._like(x._data)
        if isinstance(x, Tensor):
            part = _dtype.of_part(x.dtype if x.is_floating_point() else self.dtype.part).part
            return self._like(from_parts(x._to_dtype(part)))
        if is_number(x):
            return self._like(of_number(x, self.dtype))
        return self._like(of_array(np.asarray(x)))

    def _both(self: C, other: Any) -> tuple[C, C]:
        """Both operands in their common dtype, which of a tensor with axes and one without them is
        that of the first.
        """
        x = self._lifted(other)
        d: AnyDtype = self.dtype
        if d != x.dtype:
            axes, others = self.ndim > 0, x.ndim > 0 and not _is_integer(other)
            d = x.dtype if others > axes else d if axes > others else _dtype.promoted(d, x.dtype)
        return self._to_dtype(d), x._to_dtype(d)


def _is_integer(x: Any) -> bool:
    return isinstance(x, Tensor) and not x.is_floating_point()


def is_number(x: Any) -> bool:
    """Whether this is a number of Python or of NumPy."""
    return isinstance(x, (numbers.Number, np.bool_))


def is_operand(x: Any) -> bool:
    """Whether operators take it beside a complex tensor."""
    return isinstance(x, (Base, Tensor, np.ndarray)) or is_number(x)


def refused(function: str, dtype: Any) -> TypeError:
    """The error of a function that has no rule for complex numbers."""
    return TypeError(f"{function}: {getattr(dtype, 'name', dtype)} is not supported; take real and imaginary parts apart (z.real, z.imag, view_as_real)")


def from_parts(real: Tensor, imag: Tensor | None = None) -> Tensor:
    """The elements from their parts; without imaginary ones these are 0."""
    return _c._stack([real, _c._full(real._dims, 0.0, real.dtype) if imag is None else imag], -1)


def of_number(x: Any, dtype: ComplexDtype) -> Tensor:
    """The elements of a tensor without axes."""
    z = complex(x)
    return _c.tensor([z.real, z.imag], dtype.part)


def of_array(a: Array, dtype: ComplexDtype | None = None) -> Tensor:
    """The elements of an array, real or complex. The memory of the array may be shared."""
    if a.dtype.kind != "c":
        part = dtype.part if dtype is not None else None
        real = _c.tensor(np.asarray(a), part)
        return from_parts(real if real.is_floating_point() else real._to_dtype(_dtype.of_part(real.dtype).part))
    d = dtype or _dtype.of_array(a)
    a = np.ascontiguousarray(a, d.name).reshape(*a.shape, 1)
    return _c.from_numpy(a.view(d.part.name))


def as_array(data: Tensor) -> Array:
    """The elements as an array of NumPy's complex numbers, over the same memory where it can."""
    a = np.ascontiguousarray(data.detach().numpy())
    return a.view("complex64" if a.dtype == np.float32 else "complex128")[..., 0]


def axes_of(function: str, ndim: int, dim: int | Sequence[int] | None) -> list[int]:
    """The axes counted from the first; None means all."""
    if dim is None:
        return list(range(ndim))
    given = [dim] if isinstance(dim, int) else list(dim)
    for d in given:
        if not -max(ndim, 1) <= d < max(ndim, 1):
            raise IndexError(f"{function}: axis {d} is out of range for {ndim} axes")
    return [d % ndim for d in given] if ndim else []
