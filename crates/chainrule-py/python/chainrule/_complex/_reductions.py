"""Sums, products and means of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from .. import _chainrule as _c
from .._chainrule import Tensor
from ._base import axes_of
from ._dtype import wanted
from ._shapes import Shapes

C = TypeVar("C", bound="Reductions")
Axes = int | Sequence[int] | None


class Reductions(Shapes):
    """Reductions and running ones; `axis` and `keepdims` are other names of `dim` and `keepdim`."""

    def sum(self: C, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, axis: Axes = None, keepdims: bool = False) -> C:
        """The sum."""
        x = self._to_dtype(wanted("sum", dtype, self.dtype))
        axes = axes_of("sum", self.ndim, axis if dim is None else dim)
        return x._like(x._data.sum(axes, keepdim or keepdims)) if axes else x

    def mean(self: C, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, axis: Axes = None, keepdims: bool = False) -> C:
        """The mean."""
        x = self._to_dtype(wanted("mean", dtype, self.dtype))
        axes = axes_of("mean", self.ndim, axis if dim is None else dim)
        return x._like(x._data.mean(axes, keepdim or keepdims)) if axes else x

    def var(self, dim: Axes = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None) -> Tensor:
        """The mean of the squared distances from the mean: a real number."""
        if isinstance(dim, bool):  # z.var(False): PyTorch's older form
            dim, unbiased = None, dim
        axes = axes_of("var", self.ndim, axis if dim is None else dim)
        d = (self - self.mean(axes, True))._data
        squares = d.square().sum(-1)
        out = squares.sum(axes, keepdim) if axes else squares
        n = 1
        for a in axes:
            n *= self._dims[a]
        return out / max(0.0, n - (correction if correction is not None else float(unbiased is not False)))

    def std(self, dim: Axes = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None) -> Tensor:
        """The root of the variance."""
        return self.var(dim, unbiased, keepdim, correction=correction, axis=axis).sqrt()

    def prod(self: C, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, axis: Axes = None, keepdims: bool = False) -> C:
        """The product, by halves, so that zeros have the right gradient."""
        x = self._to_dtype(wanted("prod", dtype, self.dtype))
        axes = axes_of("prod", self.ndim, axis if dim is None else dim)
        kept = [i for i in range(x.ndim) if i not in axes]
        n = 1
        for a in axes:
            n *= x._dims[a]
        row = x.permute(*axes, *kept) if x.ndim else x
        row = row.reshape((n, *(x._dims[i] for i in kept)))
        out: C = _product(row)
        return out.reshape(tuple(1 if i in axes else size for i, size in enumerate(x._dims))) if keepdim or keepdims else out

    def cumsum(self: C, dim: int = 0, *, dtype: Any = None) -> C:
        """Sums of what came so far along an axis."""
        x = self._to_dtype(wanted("cumsum", dtype, self.dtype))
        return x._like(x._data.cumsum(self._axis("cumsum", dim))) if x.ndim else x

    def cumprod(self: C, dim: int = 0, *, dtype: Any = None) -> C:
        """Products of what came so far along an axis."""
        x = self._to_dtype(wanted("cumprod", dtype, self.dtype))
        if not x.ndim:
            return x
        d, step = self._axis("cumprod", dim), 1
        n = x._dims[d]
        while step < n:
            later = x.narrow(d, step, n - step) * x.narrow(d, 0, n - step)
            x = x._like(_c._cat([x.narrow(d, 0, step)._data, later._data], d))
            step *= 2
        return x

    def all(self, dim: Any = None, keepdim: bool = False, **names: Any) -> Tensor:
        """Whether no element is 0."""
        return self.ne(0.0).all(dim, keepdim, **names)

    def any(self, dim: Any = None, keepdim: bool = False, **names: Any) -> Tensor:
        """Whether an element is not 0."""
        return self.ne(0.0).any(dim, keepdim, **names)

    def count_nonzero(self, dim: Any = None) -> Tensor:
        """The number of elements that are not 0."""
        return self.ne(0.0).count_nonzero(dim)

    def _norm(self, p: float, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self.abs()._norm(p, dim, keepdim)

    def norm(self, p: Any = 2.0, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The p-norm of the distances from 0."""
        if p == "nuc":
            from ..linalg import matrix_norm

            axes = axes_of("norm", self.ndim, dim)
            return matrix_norm(self, p, axes, keepdim)  # type: ignore[arg-type]
        return self.abs().norm(p, dim, keepdim)


def _product(x: Any) -> Any:
    n = x._dims[0]
    while n > 1:
        half = n // 2
        new = x.narrow(0, 0, half) * x.narrow(0, half, half)
        x = new if n == 2 * half else new._like(_c._cat([new._data, x.narrow(0, n - 1, 1)._data], 0))
        n = x._dims[0]
    return x[0] if n else x._lifted(1.0).expand(x._dims[1:])
