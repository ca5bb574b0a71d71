"""Windows of signals, under PyTorch's names: `M` samples of a symmetric window, or with `sym=False`
of a periodic one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError


def _positions(op: str, M: int, sym: bool) -> tuple[Tensor, float]:
    """The numbers of the samples, and that of the last one of the whole window."""
    if M < 0:
        raise ArgumentError(f"{op}: M must not be negative, got {M}")
    return _c._arange(0, M, 1, "float64"), float(M - 1 if sym else M)


def _given(x: Tensor, M: int, dtype: Any, requires_grad: bool) -> Tensor:
    out = (x if M != 1 else _c._full((1,), 1.0, "float64"))._to_dtype(dtype or _c.get_default_dtype())
    return out.requires_grad_() if requires_grad else out


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`sum of (-1)^i a[i] cos(2 pi i n / N)`."""
    n, last = _positions("general_cosine", M, sym)
    out = n * 0.0
    for i, c in enumerate(a):
        out = out + (-1.0) ** i * c * (n * (2 * math.pi * i / (last or 1.0))).cos()
    return _given(out, M, dtype, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`alpha - (1 - alpha) cos(2 pi n / N)`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`0.54 - 0.46 cos(2 pi n / N)`."""
    return general_hamming(M, sym=sym, dtype=dtype, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`(1 - cos(2 pi n / N)) / 2`."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)`."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Nuttall's sum of four cosines."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The triangle `1 - |2 n / N - 1|`."""
    n, last = _positions("bartlett", M, sym)
    return _given(1.0 - (n * (2 / (last or 1.0)) - 1.0).abs(), M, dtype, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`sin(pi (n + 1/2) / (N + 1))`."""
    n, last = _positions("cosine", M, sym)
    return _given(((n + 0.5) * (math.pi / (last + 1))).sin() if M else n, M, dtype, requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`exp(-|n - center| / tau)`."""
    if tau <= 0 or (sym and center is not None):
        raise ArgumentError(f"exponential: tau must be positive, and a symmetric window has no center of its own; got tau={tau}, center={center}")
    n, last = _positions("exponential", M, sym)
    return _given((-(n - (last / 2 if center is None else center)).abs() / tau).exp(), M, dtype, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`exp(-((n - N / 2) / std)^2 / 2)`."""
    if std <= 0:
        raise ArgumentError(f"gaussian: std must be positive, got {std}")
    n, last = _positions("gaussian", M, sym)
    return _given((-0.5 * ((n - last / 2) / std).square()).exp(), M, dtype, requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)`."""
    from ..special import i0

    if beta < 0:
        raise ArgumentError(f"kaiser: beta must not be negative, got {beta}")
    n, last = _positions("kaiser", M, sym)
    inside = (1.0 - (n * (2 / (last or 1.0)) - 1.0).square()).clamp(min=0.0)
    return _given(i0(beta * inside.sqrt()) / i0(_c.tensor(beta, "float64")), M, dtype, requires_grad)


__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]
