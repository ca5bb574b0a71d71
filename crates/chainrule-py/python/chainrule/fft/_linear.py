"""The three linear maps of which all transforms consist, each with its adjoint as its gradient.

The adjoint of a transform is the transform the other way, with the factor in the other place: that
of `sum_j x_j e^(-2 pi i jk/n)` is `sum_k g_k e^(+2 pi i jk/n)`. A real transform gives half of the
spectrum, and its adjoint counts the other half: all but the first element, and of even n the last
one, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._complex._base import as_array, of_array
from .._complex._rules import apply, not_in_programs
from .._complex._dtype import of_part
from .._complex._tensor import ComplexTensor

NORMS = ("backward", "ortho", "forward")
# The place of the factor in the adjoint.
DUAL: dict[str, Any] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def complex_to_complex(name: str, x: ComplexTensor, axes: Sequence[int], norm: Any, inverse: bool = False) -> ComplexTensor:
    """The transform along axes of their own size."""
    transform = np.fft.ifftn if inverse else np.fft.fftn

    def adjoint(g: ComplexTensor, *_: ComplexTensor) -> ComplexTensor:
        return complex_to_complex(name, g, axes, DUAL[norm], not inverse)

    return apply(name, lambda a: transform(a, axes=axes, norm=norm), adjoint, x)  # type: ignore[no-any-return]


def real_to_complex(name: str, x: Tensor, axis: int, norm: Any) -> ComplexTensor:
    """The first half of the spectrum of real numbers: `n // 2 + 1` elements."""
    not_in_programs(name, x.dtype)
    d, n = of_part(x.dtype), x.shape[axis]

    def forward(x: Tensor) -> Tensor:
        return of_array(np.fft.rfft(x.detach().numpy(), axis=axis, norm=norm), d)

    def adjoint(g: Tensor, *_: Tensor) -> Tensor:
        halves = _weights(ComplexTensor._of(g), axis, n, 0.5)
        return complex_to_real(name, halves, axis, n, DUAL[norm])

    return ComplexTensor._of(_c._apply_custom(name, forward, adjoint, [x]))


def complex_to_real(name: str, z: ComplexTensor, axis: int, n: int, norm: Any) -> Tensor:
    """The real numbers of which this is the first half of the spectrum: `n // 2 + 1` elements along
    the axis.
    """
    not_in_programs(name, z.dtype)

    def forward(pairs: Tensor) -> Tensor:
        return _c.from_numpy(np.ascontiguousarray(np.fft.irfft(as_array(pairs), n, axis=axis, norm=norm)))

    def adjoint(g: Tensor, *_: Tensor) -> Tensor:
        return _weights(real_to_complex(name, g, axis, DUAL[norm]), axis, n, 2.0)._data

    return _c._apply_custom(name, forward, adjoint, [z._data])


def _weights(z: ComplexTensor, axis: int, n: int, weight: float) -> ComplexTensor:
    """The half of a spectrum of n elements, with those multiplied that the other half has too."""
    size = n // 2 + 1
    row = np.full(size, weight)
    row[0] = 1.0
    if n % 2 == 0:
        row[-1] = 1.0
    shape = [size if i == axis % z.ndim else 1 for i in range(z.ndim)]
    return z * _c.tensor(row.reshape(shape), z.dtype.part)
