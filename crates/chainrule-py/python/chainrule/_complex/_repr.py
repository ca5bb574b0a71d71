"""Printing of complex tensors: the layout of PyTorch."""

from __future__ import annotations

from typing import Any

from .. import _chainrule as _c
from .. import _repr
from ._base import as_array
from ._dtype import of_part


class _Pair:
    """One format for the real parts that are shown, and one for the imaginary ones."""

    def __init__(self, a: Any, short: bool) -> None:
        self._real, self._imag = (_repr._Format(_repr._shown(part, short), True) for part in (a.real, a.imag))
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, v: complex) -> str:
        imag = self._imag(v.imag).lstrip() + "j"
        return self._real(v.real) + (imag if imag[0] == "-" else "+" + imag)


def text(z: Any) -> str:
    """The tensor as `repr` shows it."""
    a = as_array(z._data)
    short = a.size > _repr.LOOK.threshold
    notes: list[str] = []
    if a.size == 0:
        body = "[]"
        if a.ndim != 1:
            notes.append(f"size={tuple(a.shape)}")
    else:
        body = _repr._body(a, _Pair(a, short), len("tensor("), short)  # type: ignore[arg-type]
    if z.dtype != of_part(_c.get_default_dtype()) or a.size == 0:
        notes.append(f"dtype={z.dtype!r}")
    if z.grad_fn is not None:
        notes.append(f"grad_fn=<{z.grad_fn}>")
    elif z.requires_grad:
        notes.append("requires_grad=True")
    return _repr.with_notes(f"tensor({body}", notes)
