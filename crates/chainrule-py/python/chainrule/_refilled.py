"""Lists and dictionaries among the arguments of a compiled function that the function changes: a
program gives their contents as results, and they are put back after each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import _chainrule as _c
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor
from ._nest import SIMPLE

Path = tuple[Any, ...]


class At(NamedTuple):
    """A list or dictionary that was there before, in what another one holds."""

    path: Path


class Containers:
    """The lists and dictionaries in a nest, with what they held."""

    def __init__(self, nest: Any) -> None:
        self._held: list[tuple[Path, Any, Any]] = []
        self._add(nest, ())

    def _add(self, x: Any, path: Path) -> None:
        if type(x) in (list, dict):
            self._held.append((path, x, x.copy()))
        if isinstance(x, (list, tuple, dict)):
            for key, part in x.items() if isinstance(x, dict) else enumerate(x):
                self._add(part, (*path, key))

    def changed(self) -> list[tuple[Path, Any]]:
        """The paths of those that hold something else by now, with their contents."""
        known = {id(x): At(path) for path, x, _ in self._held}
        out = []
        for path, x, before in self._held:
            if len(x) != len(before) or not all(map(_is_same, _entries(x), _entries(before))):
                _check(x, _entries(before))
                out.append((path, _mapped(x, lambda y: known.get(id(y)), inside=True)))
        return out

    def put_back(self) -> None:
        """Gives them what they held."""
        for _, x, before in self._held:
            _fill(x, before)


def refill(nest: Any, paths: list[Path], contents: list[Any]) -> None:
    """Gives the lists and dictionaries at these paths their new contents."""

    def at(path: Path) -> Any:
        x = nest
        for key in path:
            x = x[key]
        return x

    news = [_mapped(new, lambda y: at(y.path) if isinstance(y, At) else None) for new in contents]
    for x, new in [(at(path), new) for path, new in zip(paths, news)]:
        _fill(x, new)


def _mapped(x: Any, f: Callable[[Any], Any], inside: bool = False) -> Any:
    """The nest with `f(y)` in the place of each part `y` where that is something."""
    y = None if inside else f(x)
    if y is not None:
        return y
    if type(x) is dict:
        return {k: _mapped(v, f) for k, v in x.items()}
    return type(x)(_mapped(v, f) for v in x) if type(x) in (list, tuple) else x


def _fill(x: Any, new: Any) -> None:
    x.clear()
    x.update(new) if isinstance(x, dict) else x.extend(new)


def _entries(x: Any) -> list[Any]:
    return [y for pair in x.items() for y in pair] if isinstance(x, dict) else x


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, SIMPLE) and a == b)


def _check(x: Any, before: list[Any]) -> None:
    """Refuses what a program could not make anew."""
    for y in x.values() if isinstance(x, dict) else x:
        if isinstance(y, (list, tuple, dict)):
            _check(y, before)
        elif not isinstance(y, (Tensor, ComplexTensor, *SIMPLE)) and not any(y is known for known in before):
            raise _c.GradientError(
                f"compile: the function puts a {type(y).__name__} into one of its arguments, which a program would not make again: keep it in a tensor, or change it outside"
            )
