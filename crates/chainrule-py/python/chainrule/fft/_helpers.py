"""Frequencies, and the order of spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._complex._base import axes_of
from .._errors import ArgumentError


def _frequencies(name: str, n: int, d: float, dtype: Any, requires_grad: bool, every: Any) -> Tensor:
    if not isinstance(n, int) or n < 1:
        raise ArgumentError(f"{name}: n is a whole number from 1, not {n}")
    return _c.tensor(every(n, d), _c._dtype(_c.get_default_dtype() if dtype is None else dtype), requires_grad)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """The frequencies of the elements of `fft`, in cycles per unit of the sample spacing `d`: 0 and
    the positive ones, then the negative ones.
    """
    return _frequencies("fftfreq", n, d, dtype, requires_grad, np.fft.fftfreq)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """The frequencies of the elements of `rfft`."""
    return _frequencies("rfftfreq", n, d, dtype, requires_grad, np.fft.rfftfreq)


def fftshift(input: Any, dim: Any = None) -> Any:
    """The spectrum with frequency 0 in the middle of the axes, all unless some are named."""
    axes = axes_of("fftshift", input.ndim, dim)
    return input.roll([input.shape[a] // 2 for a in axes], axes) if axes else input.clone()


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    axes = axes_of("ifftshift", input.ndim, dim)
    return input.roll([-(input.shape[a] // 2) for a in axes], axes) if axes else input.clone()
