"""Transforms of one axis and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._complex._base import Base, axes_of
from .._complex._making import of_real
from .._complex._tensor import ComplexTensor
from .._errors import ArgumentError
from ._linear import DUAL, NORMS, complex_to_complex, complex_to_real, real_to_complex

Input = Tensor | ComplexTensor
Sizes = Sequence[int] | None


def _complex(name: str, x: Input) -> ComplexTensor:
    if isinstance(x, ComplexTensor):
        return x
    return of_real(_real(name, x))


def _real(name: str, x: Any) -> Tensor:
    if isinstance(x, Base) or not isinstance(x, Tensor):
        raise TypeError(f"{name}: a tensor of real numbers is needed, not {getattr(x, 'dtype', type(x).__name__)}")
    if not x.is_floating_point():
        return x._to_dtype(_c.get_default_dtype())
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(f"{name}: {x.dtype.name} is not supported; use x.float()")
    return x


def _norm(name: str, norm: Any) -> str:
    norm = "backward" if norm is None else norm
    if norm not in NORMS:
        raise ArgumentError(f"{name}: norm is one of {', '.join(NORMS)}, not {norm!r}")
    return str(norm)


def _axes(name: str, x: Input, s: Sizes, dim: Any) -> tuple[list[int], list[int]]:
    """The axes and their sizes: all axes, or as many of the last as there are sizes."""
    if dim is None:
        axes = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
        if s is not None and len(s) > x.ndim:
            raise ArgumentError(f"{name}: shape {tuple(x.shape)} has less axes than the {len(s)} sizes")
    else:
        axes = axes_of(name, x.ndim, dim)
    if not x.ndim or not axes:
        raise ArgumentError(f"{name}: shape {tuple(x.shape)}: an axis is needed")
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"{name}: an axis stands twice in {tuple(axes)}")
    if s is not None and len(s) != len(axes):
        raise ArgumentError(f"{name}: {len(s)} sizes for {len(axes)} axes")
    sizes = [x.shape[a] if s is None or n in (None, -1) else int(n) for n, a in zip(axes if s is None else s, axes)]
    for n in sizes:
        if n < 1:
            raise ArgumentError(f"{name}: {n} elements along an axis; at least one is needed")
    return axes, sizes


def _sized(x: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """The tensor with axes of these sizes: cut, or filled with zeros at their ends."""
    for axis, n in zip(axes, sizes):
        have = x.shape[axis]
        if n < have:
            x = x.narrow(axis, 0, n)
        elif n > have:
            data = x._data if isinstance(x, Base) else x
            shape = [n - have if i == axis else size for i, size in enumerate(data._dims)]
            data = _c._cat([data, _c._full(tuple(shape), 0.0, data.dtype)], axis)
            x = x._like(data) if isinstance(x, Base) else data
    return x


def _whole(name: str, input: Input, s: Sizes, dim: Any, norm: Any, inverse: bool) -> ComplexTensor:
    x = _complex(name, input)
    axes, sizes = _axes(name, x, s, dim)
    return complex_to_complex(name, _sized(x, axes, sizes), axes, _norm(name, norm), inverse)


def _to_half(name: str, input: Any, s: Sizes, dim: Any, norm: Any) -> ComplexTensor:
    x, norm = _real(name, input), _norm(name, norm)
    axes, sizes = _axes(name, x, s, dim)
    out = real_to_complex(name, _sized(x, axes, sizes), axes[-1], norm)
    return complex_to_complex(name, out, axes[:-1], norm) if len(axes) > 1 else out


def _from_half(name: str, input: Input, s: Sizes, dim: Any, norm: Any) -> Tensor:
    z, norm = _complex(name, input), _norm(name, norm)
    known = None if s is None else [*s[:-1], 1 if s[-1] == -1 else s[-1]]
    axes, sizes = _axes(name, z, known, dim)
    sizes[-1] = 2 * (z.shape[axes[-1]] - 1) if s is None or s[-1] in (None, -1) else sizes[-1]
    if sizes[-1] < 1:
        raise ArgumentError(f"{name}: {sizes[-1]} elements along the last axis; say how many there are")
    z = _sized(z, axes, [*sizes[:-1], sizes[-1] // 2 + 1])
    if len(axes) > 1:
        z = complex_to_complex(name, z, axes[:-1], norm, True)
    return complex_to_real(name, z, axes[-1], sizes[-1], norm)


def _one(n: int | None) -> Sizes:
    return None if n is None else [n]


def fft(input: Input, n: int | None = None, dim: int = -1, norm: str | None = None) -> ComplexTensor:
    """`X_k = sum_j x_j e^(-2 pi i jk/n)` along an axis. Gradient: the adjoint, `ifft` times n.

    ```
    assert cr.fft.fft(cr.tensor([1.0, 0.0, 0.0])).tolist() == [1, 1, 1]
    ```
    """
    return _whole("fft", input, _one(n), dim, norm, False)


def ifft(input: Input, n: int | None = None, dim: int = -1, norm: str | None = None) -> ComplexTensor:
    """The inverse of `fft`: `x_j = 1/n sum_k X_k e^(2 pi i jk/n)` along an axis."""
    return _whole("ifft", input, _one(n), dim, norm, True)


def fftn(input: Input, s: Sizes = None, dim: Any = None, norm: str | None = None) -> ComplexTensor:
    """`fft` along several axes: all, the last of as many as `s` has sizes, or `dim`."""
    return _whole("fftn", input, s, dim, norm, False)


def ifftn(input: Input, s: Sizes = None, dim: Any = None, norm: str | None = None) -> ComplexTensor:
    """The inverse of `fftn`."""
    return _whole("ifftn", input, s, dim, norm, True)


def fft2(input: Input, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """`fft` along two axes."""
    return _whole("fft2", input, s, dim, norm, False)


def ifft2(input: Input, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """The inverse of `fft2`."""
    return _whole("ifft2", input, s, dim, norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> ComplexTensor:
    """The first `n // 2 + 1` elements of the `fft` of real numbers, of which the others are the
    conjugates.
    """
    return _to_half("rfft", input, _one(n), dim, norm)


def irfft(input: Input, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: n real numbers; without n an even number of them, `2 (m - 1)` of m
    elements.
    """
    return _from_half("irfft", input, _one(n), dim, norm)


def rfftn(input: Tensor, s: Sizes = None, dim: Any = None, norm: str | None = None) -> ComplexTensor:
    """`rfft` along the last of several axes, then `fftn` along the others."""
    return _to_half("rfftn", input, s, dim, norm)


def irfftn(input: Input, s: Sizes = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    return _from_half("irfftn", input, s, dim, norm)


def rfft2(input: Tensor, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """`rfftn` along two axes."""
    return _to_half("rfft2", input, s, dim, norm)


def irfft2(input: Input, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`."""
    return _from_half("irfft2", input, s, dim, norm)


def hfft(input: Input, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The `fft`, which is real, of numbers of which the first half is given, and the others are the
    conjugates.
    """
    return _from_half("hfft", _complex("hfft", input).conj(), _one(n), dim, DUAL[_norm("hfft", norm)])


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> ComplexTensor:
    """The inverse of `hfft`: the first half of the `ifft` of real numbers."""
    return _to_half("ihfft", input, _one(n), dim, DUAL[_norm("ihfft", norm)]).conj()


def hfftn(input: Input, s: Sizes = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """`hfft` over several axes: the half that is given is that of the last one."""
    return _from_half("hfftn", _complex("hfftn", input).conj(), s, dim, DUAL[_norm("hfftn", norm)])


def ihfftn(input: Tensor, s: Sizes = None, dim: Any = None, norm: str | None = None) -> ComplexTensor:
    """The inverse of `hfftn`."""
    return _to_half("ihfftn", input, s, dim, DUAL[_norm("ihfftn", norm)]).conj()


def hfft2(input: Input, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """`hfftn` over two axes."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """`ihfftn` over two axes."""
    return ihfftn(input, s, dim, norm)
