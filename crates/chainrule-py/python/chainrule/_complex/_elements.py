"""Functions of complex tensors, element by element."""

from __future__ import annotations

from typing import Any, TypeVar

from .. import _chainrule as _c
from .._chainrule import Tensor
from . import _rules
from ._base import Base
from ._operators import Operators

C = TypeVar("C", bound="Elements")


def _one(name: str) -> Any:
    def method(self: Any) -> Any:
        return _rules.of_one(name, self)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name}` of complex numbers. Gradient `conj(f'(z)) * g`."
    return method


class Elements(Operators):
    """Functions of one number, and of its parts."""

    exp, exp2, expm1, log, log2, log10, log1p = map(_one, "exp exp2 expm1 log log2 log10 log1p".split())
    sqrt, rsqrt, reciprocal, sigmoid = map(_one, "sqrt rsqrt reciprocal sigmoid".split())
    sin, cos, tan, asin, acos, atan = map(_one, "sin cos tan asin acos atan".split())
    sinh, cosh, tanh, asinh, acosh, atanh = map(_one, "sinh cosh tanh asinh acosh atanh".split())
    arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh

    def square(self: C) -> C:
        """`z * z`."""
        return self * self

    def _is_zero(self) -> Tensor:
        return self._data.detach().eq(0.0).all(-1)

    def abs(self) -> Tensor:
        """The distance from 0. Gradient `g * z / |z|`, and 0 at 0."""
        zero = self._is_zero()
        return self.real.masked_fill(zero, 1.0).hypot(self.imag).masked_fill(zero, 0.0)

    absolute = abs

    def __abs__(self) -> Tensor:
        return self.abs()

    def angle(self) -> Tensor:
        """The angle to the positive real axis, from -pi to pi. Gradient 0 at 0."""
        zero = self._is_zero()
        x, y = self.real, self.imag
        at_zero = y.detach().atan2(x.detach())
        out: Tensor = _c._where(zero, at_zero, y.atan2(x.masked_fill(zero, 1.0)))
        return out

    def sgn(self: C) -> C:
        """`z / |z|`, and 0 at 0."""
        size, zero = self.abs(), self._is_zero()
        out = (self / size.masked_fill(zero, 1.0)).masked_fill(zero, 0.0)
        return out.masked_fill(size.isnan(), complex("nan+nanj"))

    sign = sgn

    def isfinite(self) -> Tensor:
        """Whether both parts are finite."""
        return self._data.isfinite().all(-1)

    def isinf(self) -> Tensor:
        """Whether a part is infinite."""
        return self._data.isinf().any(-1)

    def isnan(self) -> Tensor:
        """Whether a part is NaN."""
        return self._data.isnan().any(-1)

    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0."""
        return self.imag.eq(0.0)

    def round(self: C, *, decimals: int = 0) -> C:
        """Both parts rounded."""
        return self._like(self._data.round(decimals=decimals))

    def logical_not(self) -> Tensor:
        """Whether it is 0."""
        return self.eq(0.0)

    def isclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
        """Whether `|a - b| <= atol + rtol * |b|`."""
        a, b = self._both(other)
        a, b = a._like(a._data.detach()), b._like(b._data.detach())
        near = ((a - b).abs() <= b.abs() * rtol + atol).logical_and(a.isfinite()).logical_and(b.isfinite())
        out = near.logical_or(a.eq(b))
        return out.logical_or(a.isnan().logical_and(b.isnan())) if equal_nan else out

    def allclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
        """Whether all elements are near."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def equal(self, other: Any) -> bool:
        """Whether shapes and all elements are the same."""
        return isinstance(other, Base) and self._dims == other._dims and bool(self.eq(other).all())

    def masked_fill(self: C, mask: Tensor, value: Any) -> C:
        """Another number where the mask holds."""
        return self._lifted(value)._to_dtype(self.dtype).where(mask, self)

    def where(self: C, condition: Tensor, other: Any) -> C:
        """This where the condition holds, else the other."""
        a, b = self._both(other)
        return a._like(_c._where(condition.unsqueeze(-1), a._data, b._data))
