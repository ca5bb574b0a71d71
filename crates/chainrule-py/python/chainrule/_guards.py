"""Guards of a compiled function: its readings of Python besides its arguments, which are flags,
numbers, modes, and the identity of objects.

A program has them as they were in its trace. They are looked at before each run; where one is
another, the function is traced anew. One that the function itself changes is an error, for a
program would not change it.
"""

from __future__ import annotations

import collections
import functools
import operator
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor
from ._nest import SIMPLE
from .nn.module import EVERYWHERE, Module
from .optim import Optimizer
from .optim.lr_scheduler import LRScheduler

MOST = 4096
# Larger arrays are taken for data, and not compared.
LARGEST = 1 << 16
DEEPEST = 8
_GONE = object()
# Kept by Python itself.
_OF_CLASSES = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__abstractmethods__", "_abc_impl", "__parameters__", "__orig_bases__")
_FOREIGN = ("chainrule", "torch", "numpy", "math", "builtins", "typing", "collections", "functools", "itertools", "random", "os", "sys", "time")


def _is_ours(name: str | None) -> bool:
    return (name or "").split(".")[0] in _FOREIGN


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, (*SIMPLE, np.generic)) and bool(a == b or (a != a and b != b)))


class Guards:
    """All that a function may read, as it is now."""

    def __init__(self, function: Callable[..., Any], arguments: Any = ()) -> None:
        # Whole dictionaries: their values, by identity at first, and the names of the keys.
        self._dicts: list[list[Any]] = []
        self._fields: list[tuple[dict[Any, Any], Any, Any, str]] = []
        self._items: list[tuple[Any, int, Any, str]] = []
        self._cells: list[tuple[Any, Any, str]] = []
        self._sizes: list[tuple[Any, int, str]] = [(EVERYWHERE, len(EVERYWHERE), "hooks of all modules")]
        self._trained: list[tuple[Tensor, bool, Any, str]] = []
        self._states: list[tuple[Callable[[Any], Any], Any, Any, str]] = []
        # Generators of random numbers, Python's and NumPy's own first.
        self._streams: list[Callable[[], Any]] = [random.getstate, lambda: np.random.get_state(legacy=False)]
        self._seen: set[int] = set()
        self._alive: list[Any] = []
        # The same as flat lists, as long as it holds.
        self.watched: _c.Watched | None = None
        self._see(function, getattr(function, "__name__", "function"), 0)
        for argument in arguments:
            self._see(argument, "argument", 1)

    def drawn(self) -> list[Any]:
        """The states of the generators of random numbers that a program knows nothing of, to be
        compared.
        """
        return [_plain(stream()) for stream in self._streams]

    def changed(self) -> str | None:
        """The name of something that is another now."""
        if self.watched is not None and self.watched.holds():
            return None
        name = self._look()
        self.watched = self._lay_down() if name is None else None
        return name

    def _lay_down(self) -> _c.Watched:
        """All pointers as they are now: what is equal may be another object."""
        fields = [(d, key, d.get(key, _GONE)) for d, key, _, _ in self._fields]
        items = [(x, i, x[i]) for x, i, _, _ in self._items]
        cells = [(cell, _content(cell)) for cell, _, _ in self._cells]
        sizes = [(x, size) for x, size, _ in self._sizes]
        states = [(state, x, value) for state, x, value, _ in self._states]
        trained = [(x, on, dtype) for x, on, dtype, _ in self._trained]
        return _c.Watched([entry[0] for entry in self._dicts], fields, items, cells, sizes, states, trained)

    def _look(self) -> str | None:
        for entry in self._dicts:
            d, values, names = entry
            if len(d) == len(values) and all(map(operator.is_, d.values(), values)):
                continue
            for (key, name), value in zip(names, values):
                now = d.get(key, _GONE)
                if now is not value and not _same(now, value):
                    return str(name)
            if len(d) != len(values):
                return str(names[0][1]) if names else "a dictionary"
            entry[1] = tuple(d[key] for key, _ in names)
        for d, key, value, name in self._fields:
            now = d.get(key, _GONE)
            if now is not value and not _same(now, value):
                return name
        for cell, value, name in self._cells:
            now = _content(cell)
            if now is not value and not _same(now, value):
                return name
        for container, size, name in self._sizes:
            if len(container) != size:
                return name
        for items, i, value, name in self._items:
            if items[i] is not value and not _same(items[i], value):
                return name
        for state, x, value, name in self._states:
            if not _equal(_state_of(state, x), value):
                return name
        for tensor, trained, dtype, name in self._trained:
            if tensor.requires_grad != trained or tensor.dtype != dtype:
                return name
        return None

    def _full(self) -> bool:
        return sum(len(names) for _, _, names in self._dicts) + len(self._fields) + len(self._items) + len(self._cells) > MOST

    def _see(self, x: Any, name: str, depth: int) -> None:
        if isinstance(x, SIMPLE) or depth > DEEPEST or id(x) in self._seen or self._full():
            return
        self._seen.add(id(x))
        self._alive.append(x)
        if isinstance(x, Tensor):
            if x.is_leaf and x.is_floating_point():
                self._trained.append((x, x.requires_grad, x.dtype, name))
        elif isinstance(x, types.MethodType):
            self._see(x.__func__, name, depth)
            self._see(x.__self__, "self", depth)
        elif isinstance(x, types.FunctionType):
            self._see_function(x, depth)
        elif isinstance(x, types.BuiltinMethodType):
            self._see(x.__self__, name, depth)
        elif isinstance(x, Optimizer):
            self._see_groups(x, name, depth)
        elif isinstance(x, LRScheduler):
            self._see_fields(x.__dict__, name, depth)
        elif isinstance(x, Module):
            self._see_fields(x.__dict__, name, depth)
            if not _is_ours(type(x).__module__):
                self._see_class(type(x), name, depth)
        elif isinstance(x, dict):
            self._see_fields(x, name, depth)
        elif isinstance(x, (list, tuple)):
            self._sizes.append((x, len(x), name))
            for i, item in enumerate(x[:256]):
                if isinstance(x, list):
                    self._items.append((x, i, item, f"{name}[{i}]"))
                self._see(item, f"{name}[{i}]", depth + 1)
        elif isinstance(x, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self._see(part, name, depth + 1)
        elif isinstance(x, (set, frozenset, collections.deque)):
            if x:
                self._watch(tuple, x, name)
            else:
                self._sizes.append((x, 0, name))
            for item in tuple(x)[:256]:
                self._see(item, name, depth + 1)
        elif isinstance(x, random.Random):
            self._streams.append(x.getstate)
        elif isinstance(x, np.random.RandomState):
            self._streams.append(lambda: x.get_state(legacy=False))
        elif isinstance(x, np.random.Generator):
            self._streams.append(lambda: x.bit_generator.state)
        elif isinstance(x, np.ndarray):
            if x.nbytes <= LARGEST:
                self._watch(np.ndarray.tobytes, x, name)
        elif hasattr(x, "__next__"):
            self._watch(_progress, x, name)
        elif isinstance(x, type):
            self._seen.discard(id(x))
            self._see_class(x, name, depth)
        elif not isinstance(x, types.ModuleType) and not _is_ours(type(x).__module__):
            wrapped = getattr(x, "__wrapped__", None)
            if wrapped is not None:
                self._see(wrapped, name, depth + 1)
            # Some objects of native code have one that cannot be written.
            if isinstance(getattr(x, "__dict__", None), dict):
                self._see_fields(x.__dict__, name, depth)
            self._see_class(type(x), name, depth)
            for slot in _slots(type(x)):
                value = getattr(x, slot, _GONE)
                self._watch(functools.partial(_slot, slot), x, f"{name}.{slot}")
                self._see(value, f"{name}.{slot}", depth + 1)
        elif hasattr(x, "_function"):
            self._see(x._function, name, depth)

    def _watch(self, state: Callable[[Any], Any], x: Any, name: str) -> None:
        self._states.append((state, x, state(x), name))

    def _see_groups(self, optimizer: Optimizer, name: str, depth: int) -> None:
        """The groups of parameters, their order and settings; programs read rates themselves."""
        groups, name = optimizer.param_groups, f"{name}.param_groups"
        self._fields.append((optimizer.__dict__, "param_groups", groups, name))
        self._sizes.append((groups, len(groups), name))
        for i, group in enumerate(groups):
            self._items.append((groups, i, group, f"{name}[{i}]"))
            self._see_fields(group, f"{name}[{i}]", depth, skip=("lr", "initial_lr"))

    def _see_class(self, cls: type, name: str, depth: int) -> None:
        for base in cls.__mro__:
            if _is_ours(base.__module__) or id(base) in self._seen:
                continue
            self._seen.add(id(base))
            own = {key: value for key, value in vars(base).items() if key not in _OF_CLASSES}
            if own:
                self._watch(operator.itemgetter(*own), vars(base), name)
            for key, value in own.items():
                value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if isinstance(value, types.FunctionType):
                    self._see_function(value, depth + 1)
                elif isinstance(value, (list, dict, tuple, Tensor)):
                    self._see(value, f"{name}.{key}", depth + 1)

    def _see_fields(self, d: dict[Any, Any], name: str, depth: int, skip: tuple[str, ...] = ()) -> None:
        at = {key: f"{name}.{key}" if isinstance(key, str) else f"{name}[{key!r}]" for key in d if key not in skip}
        at = {key: text.replace("._parameters.", ".").replace("._modules.", ".").replace("._buffers.", ".") for key, text in at.items()}
        if skip or len(d) > MOST:
            self._sizes.append((d, len(d), name))
            self._fields += [(d, key, d[key], text) for key, text in list(at.items())[:MOST]]
        elif d:
            self._dicts.append([d, tuple(d.values()), list(at.items())])
        else:
            self._sizes.append((d, 0, name))
        for key, text in at.items():
            if self._full():
                break
            self._see(d[key], text, depth + 1)

    def _see_function(self, f: types.FunctionType, depth: int) -> None:
        if _is_ours(f.__module__):
            return
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            value = _content(cell)
            self._cells.append((cell, value, name))
            self._see(value, name, depth + 1)
        for name in _names(f.__code__):
            if name in f.__globals__:
                value = f.__globals__[name]
                if isinstance(value, (types.ModuleType, type)) and (isinstance(value, types.ModuleType) or _is_ours(value.__module__)):
                    continue
                self._fields.append((f.__globals__, name, value, name))
                self._see(value, name, depth + 1)
        for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self._see(value, f.__name__, depth + 1)


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _equal(a: Any, b: Any) -> bool:
    """Whether both are the same objects or simple values, in tuples too."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b))
    return _same(a, b)


def _state_of(state: Callable[[Any], Any], x: Any) -> Any:
    try:
        return state(x)
    except (KeyError, ValueError):
        return _GONE


def _slots(cls: type) -> list[str]:
    found = [vars(base).get("__slots__", ()) for base in cls.__mro__]
    return [name for names in found for name in ((names,) if isinstance(names, str) else names) if name not in ("__dict__", "__weakref__")]


def _slot(name: str, x: Any) -> Any:
    return getattr(x, name, _GONE)


def _progress(x: Any) -> Any:
    """The position of an iterator, as far as it tells."""
    frame = getattr(x, "gi_frame", None)
    if frame is not None:
        return frame.f_lasti, operator.length_hint(x, 0)
    try:
        return repr(x.__reduce__()[1:]), operator.length_hint(x, 0)
    except (TypeError, AttributeError):
        return operator.length_hint(x, 0)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _GONE


def _names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names += _names(const)
    return names

