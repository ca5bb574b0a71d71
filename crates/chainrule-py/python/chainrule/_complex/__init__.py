"""Complex numbers: a class over real tensors of pairs, with gradients by the parts."""

from __future__ import annotations

from ._dtype import ComplexDtype, complex64, complex128
from ._making import complex, imag, is_complex, polar, view_as_complex, view_as_real
from ._tensor import ComplexTensor

cfloat, cdouble = complex64, complex128

__all__ = [
    "ComplexDtype", "ComplexTensor", "cdouble", "cfloat", "complex", "complex128", "complex64", "imag", "is_complex", "polar", "view_as_complex",
    "view_as_real",
]
