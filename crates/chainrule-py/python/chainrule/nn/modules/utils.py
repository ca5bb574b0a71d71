"""Sizes that are given once for all axes, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    return parse


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))

__all__ = ["_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple"]
