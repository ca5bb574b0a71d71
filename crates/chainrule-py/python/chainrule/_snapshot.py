"""Values of a nest of tensors that are to come back after a trial, in the same objects: somebody
may hold them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import MutableMapping
from typing import Any, NamedTuple

from ._chainrule import Tensor
from .autograd import no_grad


class Snapshot(NamedTuple):
    """An object, and what it holds: a copy of a tensor, snapshots of the parts of a nest."""

    held: Any
    value: Any


def snapshot(x: Any) -> Snapshot:
    """The values in a nest of dictionaries, lists and tensors."""
    if isinstance(x, Tensor):
        return Snapshot(x, x.detach().clone())
    if isinstance(x, MutableMapping):
        return Snapshot(x, {k: snapshot(v) for k, v in x.items()})
    if isinstance(x, (list, tuple, deque)):
        return Snapshot(x, [snapshot(v) for v in x])
    return Snapshot(x, None)


def restore(kept: Snapshot) -> Any:
    """Writes the values back, as often as wanted; gives the object."""
    x, value = kept
    if isinstance(x, Tensor):
        with no_grad():
            x.copy_(value)
    elif isinstance(x, MutableMapping):
        parts = {k: restore(v) for k, v in value.items()}
        x.clear()
        x.update(parts)
    elif isinstance(x, tuple):
        for part in value:
            restore(part)
    elif isinstance(x, (list, deque)):
        parts_of_list = [restore(part) for part in value]
        x.clear()
        x.extend(parts_of_list)
    return x
