"""Exchange of memory by DLPack."""

from __future__ import annotations

import sys
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._complex._making import tensor as as_complex
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError


# Capsules that `to_dlpack` gave, and nobody has read yet, with the tensors that they show.
_given: list[tuple[Any, Tensor]] = []


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of the tensor, to be read once: by `from_dlpack` here as the memory of the tensor,
    and by another library as a copy, for the tape may hold these elements.
    """
    capsule = tensor.__dlpack__()
    _given[:] = [entry for entry in _given if _references(entry) > _ALONE]
    _given.append((capsule, tensor.detach()))
    return capsule


def _references(entry: tuple[Any, Any]) -> int:
    return sys.getrefcount(entry[0])


_ALONE = max(_references(entry) for entry in [(object(), None)])


def _taken_back(capsule: Any) -> Tensor | None:
    """The tensor of a capsule that was given here, and not read yet."""
    for i, (given, tensor) in enumerate(_given):
        if given is capsule:
            del _given[i]
            return tensor
    return None


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any array that speaks DLPack; without a copy unless `copy=True`.
    Nobody should write to it meanwhile. A view of PyTorch's that negates its memory is copied:
    the protocol does not tell the sign.
    """
    if device not in (None, "cpu"):
        raise ArgumentError(f"from_dlpack: there is one device, the processor ('cpu'), not {device}")
    if isinstance(x, (Tensor, ComplexTensor)):
        return x.detach().clone() if copy else x.detach()  # type: ignore[return-value]
    own = _taken_back(x)
    if own is not None:
        # Read by nobody else now.
        _c._from_dlpack(x, None)
        return own.clone() if copy else own
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
