"""Discrete Fourier transforms of the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import fft as _fft
from .._chainrule import Tensor
from ._dtypes import check_device


def _one(name: str) -> Callable[..., Any]:
    transform = getattr(_fft, name)

    def function(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return transform(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `chainrule.fft.{name}`."
    return function


def _many(name: str) -> Callable[..., Any]:
    transform = getattr(_fft, name)

    def function(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        return transform(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `chainrule.fft.{name}`."
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, "fft ifft rfft irfft hfft ihfft".split())
fftn, ifftn, rfftn, irfftn = map(_many, "fftn ifftn rfftn irfftn".split())


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of `fft`."""
    check_device(device)
    return _fft.fftfreq(n, d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of `rfft`."""
    check_device(device)
    return _fft.rfftfreq(n, d, dtype=dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The spectrum with frequency 0 in the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)
