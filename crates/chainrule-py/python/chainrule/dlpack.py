"""Exchange of memory by DLPack."""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._complex._making import tensor as as_complex
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any array that speaks DLPack; without a copy unless `copy=True`.
    Nobody should write to it meanwhile. A view of PyTorch's that negates its memory is copied:
    the protocol does not tell the sign.
    """
    if device not in (None, "cpu"):
        raise ArgumentError(f"from_dlpack: there is one device, the processor ('cpu'), not {device}")
    if isinstance(x, (Tensor, ComplexTensor)):
        return x.detach().clone() if copy else x.detach()  # type: ignore[return-value]
    if is_negated(x):
        if copy is False:
            raise BufferError("from_dlpack: the tensor negates its memory, which DLPack does not tell: give x.resolve_neg()")
        x = x.resolve_neg()
    try:
        t = _c._from_dlpack(x, False if copy is False else None)
    except TypeError:
        # Elements that have no counterpart here: narrower ones become wider, by way of NumPy.
        if copy is False or not hasattr(x, "__dlpack_device__"):
            raise
        import numpy as np

        array = np.from_dlpack(x)
        return as_complex(array) if array.dtype.kind == "c" else _c.tensor(array)  # type: ignore[return-value]
    return t.clone() if copy else t


def is_negated(x: Any) -> bool:
    """Whether an array is a view of PyTorch's whose elements have the other sign in memory."""
    asked = getattr(x, "is_neg", None)
    return callable(asked) and bool(asked())
