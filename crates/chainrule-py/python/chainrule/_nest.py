"""Arguments and results of compiled functions: tensors in any nest of tuples, lists and
dictionaries, taken out and put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor

SIMPLE = (int, float, str, bool, bytes, type(None), complex, _c.dtype, slice, range)


class Place:
    """The place of a tensor in a nest."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class ComplexPlace(Place):
    """The place of a complex tensor, whose pairs are among the tensors."""

    __slots__ = ()


def taken(x: Any, tensors: list[Any], keep: Callable[[Any], Any] | None = None) -> Any:
    """The nest with places for its tensors and arrays, which are appended to `tensors`. `keep` sees
    all else.
    """
    if isinstance(x, Tensor) or (type(x).__module__ == "numpy" and hasattr(x, "__array_interface__") and bool(getattr(x, "ndim", False))):
        tensors.append(x if isinstance(x, Tensor) else _c.tensor(x))
        return Place(len(tensors) - 1)
    if isinstance(x, ComplexTensor):
        tensors.append(x._data)
        return ComplexPlace(len(tensors) - 1)
    if type(x) is dict:
        return {k: taken(v, tensors, keep) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)(taken(y, tensors, keep) for y in x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(taken(y, tensors, keep) for y in x))
    return x if keep is None else keep(x)


def put_back(x: Any, tensors: list[Any]) -> Any:
    """The nest with tensors in their places."""
    if isinstance(x, Place):
        return tensors[x.number] if type(x) is Place else _as_complex(tensors[x.number])
    if type(x) is dict:
        return {k: put_back(v, tensors) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)([tensors[y.number] if type(y) is Place else put_back(y, tensors) for y in x])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(put_back(y, tensors) for y in x))
    return x


def _as_complex(x: Any) -> Any:
    """The complex tensor of these pairs, or the place of one where tensors only change places."""
    return ComplexPlace(x.number) if isinstance(x, Place) else ComplexTensor._of(x)


def key_of(x: Any) -> Any:
    """The nest as a key: all that is no tensor counts by its value, or by who it is."""
    if isinstance(x, Place):
        return (type(x), x.number)
    if type(x) is dict:
        return ("dict", tuple((k, key_of(v)) for k, v in x.items()))
    if isinstance(x, (list, tuple)):
        return (type(x), tuple(key_of(y) for y in x))
    if isinstance(x, SIMPLE):
        return (type(x), repr(x) if isinstance(x, (float, slice)) else x)
    return ("object", id(x))
