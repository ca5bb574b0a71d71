"""Rearrangements: a reshape beside the other reshapes and orders of axes that either pass makes.

The forward pass cuts a picture into patches by `reshape`, `permute`, `reshape`; the backward pass
puts them together by the inverse of that. One that only reshapes has the right shape, and its
elements in another order.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .texts import name_of, number_of
from .units import Unit

_RESHAPES = {"reshape", "view"}
_ORDERS = {"permute", "transpose", "swapaxes"}

Shape = tuple[int, ...]


@dataclass
class Link:
    """One reshape, or one order of axes, in a row of them."""

    before: Shape
    after: Shape
    order: tuple[int, ...] | None
    """The order of the axes; None for a reshape."""
    sizes: list[str]
    """The texts of the sizes afterwards, as far as they are written."""
    sizes_before: list[str]


def _order(node: ast.Call, rank: int) -> tuple[int, ...] | None:
    """The order of axes that a call makes of so many."""
    given = [a for arg in node.args for a in (arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg])]
    axes = [number_of(a) for a in given]
    if node.keywords or not all(isinstance(a, int) and -rank <= a < rank for a in axes):
        return None
    order = [int(a or 0) % rank for a in axes]
    if sorted(order) == list(range(rank)) and name_of(node) != "swapaxes" and (name_of(node) == "permute" or rank != 2):
        return tuple(order)
    if len(order) != 2 or name_of(node) == "permute":
        return None
    swapped = list(range(rank))
    swapped[order[0]], swapped[order[1]] = order[1], order[0]
    return tuple(swapped)


def chains(unit: Unit, values: dict[int, list[Any]], is_tensor: Callable[[Any], bool]) -> Iterator[list[Link]]:
    """The rows of reshapes and orders of axes in a function, longest ones only."""

    def shape(node: Any) -> Shape | None:
        seen = values.get(getattr(node, "number", -1)) or [None]
        return tuple(int(d) for d in seen[0].shape) if is_tensor(seen[0]) else None

    inner: set[int] = set()
    for node in ast.walk(unit.node):
        if id(node) in inner:
            continue
        links: list[Link] = []
        at: Any = node
        while isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and name_of(at) in _RESHAPES | _ORDERS:
            inner.add(id(at))
            before, after = shape(at.func.value), shape(at)
            order = _order(at, len(before)) if before is not None and name_of(at) in _ORDERS else None
            if before is None or after is None or order is None and name_of(at) in _ORDERS:
                break
            sizes = [str(d) for d in after]
            if order is None:
                given = [a for arg in at.args for a in (arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg])]
                sizes = [unit.text(a) if number_of(a) != -1 else s for a, s in zip(given, sizes)] if len(given) == len(sizes) else sizes
            links.insert(0, Link(before, after, order, sizes, []))
            at = at.func.value
        known: list[str] | None = None
        for link in links:
            link.sizes_before = known or [str(d) for d in link.before]
            if link.order is not None:
                link.sizes = [link.sizes_before[i] for i in link.order]
            known = link.sizes
        if any(link.order is not None for link in links):
            yield links


def rearranged(receiver: str, have: Shape, due: Shape, last: str, rows: list[list[Link]], arrays: bool, size: Callable[[str, int], str]) -> Iterator[str]:
    """The texts by which a value gets a shape as a part of a row does, or as its inverse does.
    `last` is the user's own last call, and `size` gives the text of a size at hand.
    """
    turn = "transpose" if arrays else "permute"

    def text(start: Shape, sizes: list[str], steps: list[tuple[tuple[int, ...] | None, Shape, list[str]]]) -> str | None:
        out = receiver
        if math.prod(start) != math.prod(have) or not steps or steps[-1][1] != due:
            return None
        if start != have:
            out += f".reshape({', '.join(size(t, d) for t, d in zip(sizes, start))})"
        for i, (order, shape, texts) in enumerate(steps):
            if order is not None:
                out += f".{turn}({', '.join(map(str, order))})"
            elif i == len(steps) - 1:
                out += last
            else:
                out += f".reshape({', '.join(size(t, d) for t, d in zip(texts, shape))})"
        return out

    seen: set[str] = set()
    for links in rows:
        for i in range(len(links)):
            for j in range(i, len(links)):
                part = links[i : j + 1]
                if all(link.order is None for link in part):
                    continue
                there = text(part[0].before, part[0].sizes_before, [(k.order, k.after, k.sizes) for k in part])
                back = [(None if k.order is None else tuple(sorted(range(len(k.order)), key=k.order.__getitem__)), k.before, k.sizes_before) for k in reversed(part)]
                for found in (text(part[-1].after, part[-1].sizes, back), there):
                    if found is not None and found not in seen:
                        seen.add(found)
                        yield found
