"""Axes by name: `rearrange`, `reduce`, `repeat` with the patterns of the library einops.

A pattern has the axes of the tensor on the left and those of the result on the right. Brackets join
axes into one, `1` or `()` is an axis of size 1, and `...` stands for all axes that have no name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ._chainrule import Tensor
from ._functions import stack
from .nn.module import Module

Groups = list[list[str]]
REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin", "prod": "prod"}


def _parsed(op: str, pattern: str, text: str, rest: list[str]) -> Groups:
    """The axes of one side: a list of names for each."""
    groups: Groups = []
    for part in re.findall(r"\([^()]*\)|[^\s()]+|[()]", text):
        names = part[1:-1].split() if part[0] == "(" and part[-1] == ")" else [part]
        if part[0] != "(" and part == "...":
            groups += [[name] for name in rest]
            continue
        found = [n for name in names if name != "1" for n in (rest if name == "..." else [name])]
        if any(not re.fullmatch(r"[A-Za-z_]\w*|…\d+", n) for n in found):
            raise ValueError(f"{op}: '{pattern}': '{part}' is no axis")
        groups.append(found)
    flat = [n for g in groups for n in g]
    if len(set(flat)) < len(flat):
        raise ValueError(f"{op}: '{pattern}': an axis stands twice on one side")
    return groups


def _sides(op: str, pattern: str, rank: int) -> tuple[Groups, Groups]:
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise ValueError(f"{op}: '{pattern}': a pattern has '->' between its sides")
    bare = len(_parsed(op, pattern, left.replace("...", " "), []))
    rest = [f"…{i}" for i in range(rank - bare)] if "..." in left else []
    sides = _parsed(op, pattern, left, rest), _parsed(op, pattern, right, rest)
    if len(sides[0]) != rank:
        raise ValueError(f"{op}: '{pattern}': {len(sides[0])} axes on the left, and the tensor has {rank}")
    return sides


def _sizes(op: str, pattern: str, shape: Sequence[int], left: Groups, given: dict[str, int]) -> dict[str, int]:
    """The size of each axis by name; of those in brackets one is found by the others."""
    sizes = dict(given)
    for n, names in zip(shape, left):
        unknown = [name for name in names if name not in sizes]
        known = math.prod(sizes[name] for name in names if name in sizes)
        if len(unknown) > 1:
            raise ValueError(f"{op}: '{pattern}': the sizes of {', '.join(unknown)} are not known; give all but one of them")
        if unknown and (known == 0 or n % known):
            raise ValueError(f"{op}: '{pattern}': size {n} is no multiple of {known}")
        if unknown:
            sizes[unknown[0]] = n // known
        elif n != known:
            raise ValueError(f"{op}: '{pattern}': size {n} of the tensor is {known} in the pattern")
    return sizes


def _apply(op: str, tensor: Tensor | Sequence[Tensor], pattern: str, given: dict[str, int], reduction: str | None) -> Tensor:
    x = tensor if isinstance(tensor, Tensor) else stack(tensor)
    left, right = _sides(op, pattern, x.ndim)
    before, after = ([n for g in side for n in g] for side in (left, right))
    gone, new = [n for n in before if n not in after], [n for n in after if n not in before]
    if (gone and op != "reduce") or (new and op != "repeat"):
        raise ValueError(f"{op}: '{pattern}': {', '.join(gone + new)} stands on one side only")
    unknown = [n for n in (*new, *given) if n not in given or n not in (*before, *after)]
    if unknown:
        raise ValueError(f"{op}: '{pattern}': the size of {unknown[0]} is {'missing' if unknown[0] in after else 'given, and it is no axis'}")
    sizes = _sizes(op, pattern, tuple(x.shape), left, given)
    x = x.reshape(tuple(sizes[n] for n in before))
    if gone:
        x = getattr(x, REDUCTIONS[reduction or "sum"])(tuple(before.index(n) for n in gone))
        before = [n for n in before if n in after]
    order = [before.index(n) for n in after if n in before]
    x = x.permute(*order) if order else x
    if new:
        x = x.reshape(tuple(1 if n in new else sizes[n] for n in after)).expand(tuple(sizes[n] for n in after))
    return x.reshape(tuple(math.prod(sizes[n] for n in g) for g in right))


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """The axes in another order, joined or taken apart; of a list of tensors the first axis is the
    list's.

    ```
    from chainrule.einops import rearrange
    x = cr.arange(24).reshape(2, 3, 4)
    assert rearrange(x, "b c (h w) -> (b h) w c", h=2).shape == (4, 2, 3)
    ```
    """
    return _apply("rearrange", tensor, pattern, axes_lengths, None)


def reduce(tensor: Tensor | Sequence[Tensor], pattern: str, reduction: str, **axes_lengths: int) -> Tensor:
    """The sum, mean, max, min or prod over the axes that the right side leaves out.

    ```
    from chainrule.einops import reduce
    assert reduce(cr.ones(2, 4, 6), "b (h a) w -> b h", "sum", a=2).tolist() == [[12, 12], [12, 12]]
    ```
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduce: reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
    return _apply("reduce", tensor, pattern, axes_lengths, reduction)


def repeat(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """The tensor again along the axes that the left side does not have.

    ```
    from chainrule.einops import repeat
    assert repeat(cr.tensor([1, 2]), "n -> (n k)", k=2).tolist() == [1, 1, 2, 2]
    ```
    """
    return _apply("repeat", tensor, pattern, axes_lengths, None)


class Rearrange(Module):
    """`rearrange` as a layer."""

    def __init__(self, pattern: str, **axes_lengths: int) -> None:
        super().__init__()
        self.pattern, self.axes_lengths = pattern, axes_lengths

    def forward(self, input: Tensor) -> Tensor:
        """The axes in the other order."""
        return rearrange(input, self.pattern, **self.axes_lengths)

    def extra_repr(self) -> str:
        return ", ".join([repr(self.pattern), *(f"{k}={v}" for k, v in self.axes_lengths.items())])


class Reduce(Module):
    """`reduce` as a layer."""

    def __init__(self, pattern: str, reduction: str, **axes_lengths: int) -> None:
        super().__init__()
        self.pattern, self.reduction, self.axes_lengths = pattern, reduction, axes_lengths

    def forward(self, input: Tensor) -> Tensor:
        """The reduced tensor."""
        return reduce(input, self.pattern, self.reduction, **self.axes_lengths)


__all__ = ["Rearrange", "Reduce", "rearrange", "reduce", "repeat"]
