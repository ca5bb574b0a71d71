"""Names of PyTorch's main module that few programs use: what writes in place, reads of raw memory,
decompositions of a few ranks, and cells of recurrent layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _chainrule as _c
from . import _making as _m
from . import linalg
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._results import SVD
from .nn import functional as F


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, written to the tensor."""
    return input._assign(F.celu(input, alpha))


def selu_(input: Tensor) -> Tensor:
    """`selu`, written to the tensor."""
    return input._assign(F.selu(input))


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold`, written to the tensor."""
    return input._assign(F.threshold(input, threshold, value))


def detach_(input: Tensor) -> Tensor:
    """The tensor, off the tape from now on."""
    return input.detach_()


def fill_(input: Tensor, value: Any) -> Tensor:
    """The tensor, all of whose elements are `value` now."""
    return input.fill_(value)


def get_device(input: Tensor) -> int:
    """-1: the tensor is on the processor."""
    return -1


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector over the memory of a buffer, as of `from_numpy`: bytes, an `array`, `bytearray`."""
    name = _c._dtype(dtype).name
    if name == "bfloat16":
        raise TypeError("frombuffer: NumPy has no bfloat16; read int16, and x.view(dtype)")
    out = _m.from_numpy(np.frombuffer(buffer, dtype=name, count=count, offset=offset))
    return out.requires_grad_() if requires_grad else out


def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor whose elements do not matter, with these distances in memory."""
    many = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    out = _m.zeros(many, dtype=dtype, device=device).as_strided(tuple(size), tuple(stride))
    return out.requires_grad_() if requires_grad else out


def get_num_interop_threads() -> int:
    """1: ops run one after the other."""
    return 1


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Nothing: the same seed gives the same bits."""


def is_storage(obj: Any) -> bool:
    """No: there are no storages apart from their tensors."""
    return False


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> SVD:
    """The `q` largest singular values of a matrix and their vectors, nearly: from the products of
    the matrix with `q` random vectors, made orthogonal and multiplied `niter` times more. The
    random numbers are PyTorch's.

    Source: N. Halko and others, "Finding structure with randomness", 2009, algorithms 4.4 and 5.1.
    """
    wide = A.shape[-2] < A.shape[-1]
    a = A if M is None else A - M
    a = a.mT if wide else a
    basis = _orthogonal(a @ _c._randn((a.shape[-1], q), a.dtype, None))
    for _ in range(niter):
        basis = _orthogonal(a @ _orthogonal(a.mT @ basis))
    u, s, vh = linalg.svd(basis.mT @ a, full_matrices=False)
    u, v = basis @ u, vh.mT
    return SVD(v, s, u) if wide else SVD(u, s, v)


def _orthogonal(a: Tensor) -> Tensor:
    return linalg.qr(a).Q


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """`svd_lowrank` of a matrix whose rows are samples, with the mean of each column taken off."""
    q = min(6, *A.shape[-2:]) if q is None else q
    if not 0 <= q <= min(A.shape[-2:]):
        raise ArgumentError(f"pca_lowrank: q is from 0 to {min(A.shape[-2:])}, it is {q}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def _gates(input: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> tuple[Tensor, Tensor]:
    return F.linear(input, w_ih, b_ih), F.linear(hidden, w_hh, b_hh)


def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One step of a long short-term memory: the hidden state and the cell after it."""
    h, c = hx
    a, b = _gates(input, h, w_ih, w_hh, b_ih, b_hh)
    i, f, g, o = (a + b).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of a gated recurrent unit."""
    a, b = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    (ar, az, an), (br, bz, bn) = a.chunk(3, -1), b.chunk(3, -1)
    z = (az + bz).sigmoid()
    n = (an + (ar + br).sigmoid() * bn).tanh()
    return n + z * (hx - n)


def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of a plain recurrent layer with tanh."""
    a, b = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return (a + b).tanh()


def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of a plain recurrent layer with relu."""
    a, b = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return (a + b).relu()


def sym_int(a: Any) -> int:
    """The number without what is behind its point."""
    return int(math.trunc(a))


def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


def is_anomaly_enabled() -> bool:
    """Whether a gradient that is NaN is an error, as `autograd.detect_anomaly` says."""
    before = _c._set_check_nan(True)
    _c._set_check_nan(before)
    return before


__all__ = [
    "celu_", "detach_", "empty_strided", "fill_", "frombuffer", "get_device", "get_num_interop_threads", "gru_cell", "is_anomaly_enabled", "is_storage", "lstm_cell",
    "pca_lowrank", "rnn_relu_cell", "rnn_tanh_cell", "selu_", "set_deterministic_debug_mode", "svd_lowrank", "sym_float", "sym_int", "threshold_",
]
