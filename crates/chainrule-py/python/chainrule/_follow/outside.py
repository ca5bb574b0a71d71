"""Tensors and arrays that a backward pass reads from outside itself, kept as they were: an edited
line may write where the user's own does not, and the next run, and the user, are to find their data
unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .._chainrule import Tensor
from .units import Unit

DEPTH = 3
"""How deep lists, dictionaries and objects are looked into."""

MOST = 1 << 25
"""The most bytes that are kept."""


def _memory(x: Any) -> Any:
    """An array that shares the memory of an array or a tensor, if that can be written."""
    if not isinstance(x, np.ndarray) and hasattr(x, "detach"):
        try:
            x = x.detach().numpy()
        except (RuntimeError, TypeError, ValueError):
            # It lies on a device, or has a dtype that NumPy has not.
            return None
    return x if isinstance(x, np.ndarray) and x.flags.writeable and x.dtype != object else None


def _inside(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        yield from x
    elif isinstance(x, dict):
        yield from x.values()
    elif hasattr(x, "__dict__") and not isinstance(x, (type, FunctionType, ModuleType)) and not hasattr(x, "dtype"):
        yield from vars(x).values()


def _refill(x: dict[Any, Any], entries: dict[Any, Any]) -> None:
    x.clear()
    x.update(entries)


class Outside:
    """The arrays, lists and dictionaries that functions read from outside themselves."""

    def __init__(self, units: list[Unit]) -> None:
        self._back: list[Callable[[], None]] = []
        self._seen: set[int] = set()
        self._room = MOST
        for function in (f for u in units for f in u.functions):
            try:
                read = inspect.getclosurevars(function)
            except (TypeError, ValueError):
                continue
            for x in [*read.globals.values(), *read.nonlocals.values()]:
                self._keep(x, DEPTH)

    def _keep(self, x: Any, depth: int) -> None:
        if id(x) in self._seen or depth == 0:
            return
        self._seen.add(id(x))
        if isinstance(x, Tensor):
            self._keep_tensor(x)
            return
        memory = _memory(x)
        if memory is not None:
            self._room -= memory.nbytes
            if self._room > 0:
                saved = memory.copy()
                self._back.append(lambda: np.copyto(memory, saved))
            return
        if type(x) is list and len(x) <= 4096:
            items = list(x)
            self._back.append(lambda: x.__setitem__(slice(None), items))
        elif type(x) is dict and len(x) <= 4096:
            self._back.append(partial(_refill, x, dict(x)))
        for part in _inside(x) if not hasattr(x, "__len__") or len(x) <= 4096 else ():
            self._keep(part, depth - 1)

    def _keep_tensor(self, x: Tensor) -> None:
        """A tensor of ours: a write gives its handle another value."""
        elements, writes = x.detach().clone(), [x._writes]

        def back() -> None:
            if x._writes != writes[0]:
                # It keeps its place on the tape.
                x.data = elements.clone()
                writes[0] = x._writes

        self._back.append(back)

    def restore(self) -> None:
        """All of it as it was."""
        for back in self._back:
            back()
