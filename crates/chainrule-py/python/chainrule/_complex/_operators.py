"""Operators of complex tensors, and comparison."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from .. import _chainrule as _c
from .._chainrule import Tensor
from . import _rules
from ._base import Base, is_number, is_operand, refused

C = TypeVar("C", bound="Operators")


def _is_real_number(x: Any) -> bool:
    return is_number(x) and not isinstance(x, complex) and getattr(getattr(x, "dtype", None), "kind", "f") != "c"


class Operators(Base):
    """Arithmetic: products and sums are ops on the parts, quotients and powers have rules."""

    def add(self: C, other: Any, *, alpha: Any = 1) -> C:
        """`z + alpha * other`."""
        a, b = self._both(other)
        return a._like(a._data + (b._data if alpha == 1 else (b * alpha)._data))

    def sub(self: C, other: Any, *, alpha: Any = 1) -> C:
        """`z - alpha * other`."""
        a, b = self._both(other)
        return a._like(a._data - (b._data if alpha == 1 else (b * alpha)._data))

    subtract = sub

    def mul(self: C, other: Any) -> C:
        """The product. Gradients `g * conj(other)` and `g * conj(z)`."""
        if _is_real_number(other):
            return self._like(self._data * float(other))
        if isinstance(other, Tensor) and other.dtype == self._data.dtype:
            return self._like(self._data * other.unsqueeze(-1))
        a, b = self._both(other)
        x, y, u, v = a.real, a.imag, b.real, b.imag
        return a._like(_c._stack([x * u - y * v, x * v + y * u], -1))

    multiply = mul

    def div(self: C, other: Any) -> C:
        """The quotient. Gradients `g / conj(b)` and `-g * conj(a / b^2)`."""
        if _is_real_number(other):
            return self._like(self._data / float(other))
        if isinstance(other, Tensor) and other.dtype == self._data.dtype:
            return self._like(self._data / other.unsqueeze(-1))
        return _rules.divided(*self._both(other))  # type: ignore[no-any-return]

    divide = true_divide = div

    def pow(self: C, exponent: Any) -> C:
        """The power, of the principal branch."""
        if _is_real_number(exponent) and exponent in (1, 2):
            return self * self if exponent == 2 else self.clone()
        return _rules.raised(*self._both(exponent))  # type: ignore[no-any-return]

    def lerp(self: C, end: Any, weight: Any) -> C:
        """`z + weight (end - z)`."""
        return self.add((self._lifted(end) - self) * weight)

    def clone(self: C) -> C:
        """A copy, recorded on the tape."""
        return self._like(self._data.clone())

    def neg(self: C) -> C:
        """`-z`."""
        return self._like(-self._data)

    negative = neg

    def positive(self: C) -> C:
        """The same."""
        return self

    def conj(self: C) -> C:
        """The conjugate: the imaginary part with the other sign."""
        return self._like(_c._stack([self.real, -self.imag], -1))

    conj_physical = conj

    def resolve_conj(self: C) -> C:
        """The same: conjugates are computed at once."""
        return self

    resolve_neg = resolve_conj

    def eq(self, other: Any) -> Tensor:
        """Whether both parts are equal."""
        a, b = self._both(other)
        same: Tensor = a._data == b._data
        return same.all(-1)

    def ne(self, other: Any) -> Tensor:
        """Whether a part differs."""
        a, b = self._both(other)
        differs: Tensor = a._data != b._data
        return differs.any(-1)

    not_equal = ne

    def __add__(self: C, other: Any) -> C:
        return self.add(other) if is_operand(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self: C, other: Any) -> C:
        return self.sub(other) if is_operand(other) else NotImplemented

    def __rsub__(self: C, other: Any) -> C:
        return (-self).add(other) if is_operand(other) else NotImplemented

    def __mul__(self: C, other: Any) -> C:
        return self.mul(other) if is_operand(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self: C, other: Any) -> C:
        return self.div(other) if is_operand(other) else NotImplemented

    def __rtruediv__(self: C, other: Any) -> C:
        return self._lifted(other).div(self) if is_operand(other) else NotImplemented

    def __pow__(self: C, other: Any) -> C:
        return self.pow(other) if is_operand(other) else NotImplemented

    def __rpow__(self: C, other: Any) -> C:
        return self._lifted(other).pow(self) if is_operand(other) else NotImplemented

    def __neg__(self: C) -> C:
        return self.neg()

    def __pos__(self: C) -> C:
        return self

    def __eq__(self, other: object) -> Any:
        return self.eq(other) if is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self.ne(other) if is_operand(other) else NotImplemented

    def __hash__(self) -> int:
        return id(self)

    def _unordered(self, name: str) -> NoReturn:
        raise refused(name, self.dtype)

    def __lt__(self, other: Any) -> Tensor:
        self._unordered("lt")

    def __le__(self, other: Any) -> Tensor:
        self._unordered("le")

    def __gt__(self, other: Any) -> Tensor:
        self._unordered("gt")

    def __ge__(self, other: Any) -> Tensor:
        self._unordered("ge")

    def __floordiv__(self, other: Any) -> Any:
        self._unordered("floor_divide")

    def __mod__(self, other: Any) -> Any:
        self._unordered("remainder")

    __rfloordiv__, __rmod__ = __floordiv__, __mod__

    def _written(self: C, value: C) -> C:
        self._data._assign(value._to_dtype(self.dtype)._data)
        return self

    def __iadd__(self: C, other: Any) -> C:
        return self._written(self.add(other))

    def __isub__(self: C, other: Any) -> C:
        return self._written(self.sub(other))

    def __imul__(self: C, other: Any) -> C:
        return self._written(self.mul(other))

    def __itruediv__(self: C, other: Any) -> C:
        return self._written(self.div(other))

    def __ipow__(self: C, other: Any) -> C:
        return self._written(self.pow(other))

    def matmul(self: C, other: Any) -> C:
        """The product of matrices, of four real products."""
        a, b = self._both(other)
        x, y, u, v = a.real, a.imag, b.real, b.imag
        return a._like(_c._stack([x @ u - y @ v, x @ v + y @ u], -1))

    mm = bmm = mv = dot = matmul

    def __matmul__(self: C, other: Any) -> C:
        return self.matmul(other) if is_operand(other) and not is_number(other) else NotImplemented

    def __rmatmul__(self: C, other: Any) -> C:
        return self._lifted(other).matmul(self) if is_operand(other) and not is_number(other) else NotImplemented
