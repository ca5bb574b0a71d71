"""Discrete Fourier transforms: values by NumPy's FFT, gradients by the adjoint transform.

`norm` says where the factor 1/n stands: in the inverse ("backward", the default), in the transform
("forward"), or its root in both ("ortho"). Axes that are shorter than the given size are filled
with zeros, longer ones are cut.
"""

from __future__ import annotations

from ._helpers import fftfreq, fftshift, ifftshift, rfftfreq
from ._transforms import (
    fft, fft2, fftn, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ihfft, ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]
