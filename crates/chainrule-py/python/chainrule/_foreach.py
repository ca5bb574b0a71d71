"""The same op on each tensor of a list, under the names of PyTorch's own optimizers:
`_foreach_add`, `_foreach_mul_` and their kin.

A function with `_` at its end writes to the tensors. Further arguments are one for all, or a list
with one for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._chainrule import Tensor
from ._errors import ArgumentError

_WITH_OTHERS = "add sub mul div maximum minimum clamp_min clamp_max pow lerp addcmul addcdiv".split()
_ALONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan "
    "tanh trunc"
).split()


def _each(x: Any, n: int, name: str) -> list[Any]:
    """An argument for each of n tensors."""
    if not isinstance(x, (list, tuple)):
        return [x] * n
    if len(x) != n:
        raise ArgumentError(f"{name}: {n} tensors and {len(x)} of another argument")
    return list(x)


def _listed(self: Any, name: str) -> list[Tensor]:
    if isinstance(self, Tensor) or not isinstance(self, Sequence):
        raise TypeError(f"{name}: a list of tensors is needed, not {type(self).__name__}")
    return list(self)


def _made(op: str, writes: bool) -> Any:
    name = f"_foreach_{op}" + "_" * writes
    method = getattr(Tensor, op)

    def function(self: Sequence[Tensor], *args: Any, **options: Any) -> Any:
        tensors = _listed(self, name)
        rows = [_each(a, len(tensors), name) for a in args]
        options = {key: _each(a, len(tensors), name) for key, a in options.items()}
        # `scalars=` is the factor of each addcmul and addcdiv, as `value=` is that of all.
        if op in ("addcmul", "addcdiv") and len(rows) > 2:
            options["value"] = rows.pop()
        if "scalars" in options:
            options["value"] = options.pop("scalars")
        out = [method(t, *(row[i] for row in rows), **{key: row[i] for key, row in options.items()}) for i, t in enumerate(tensors)]
        if not writes:
            return tuple(out)
        for t, new in zip(tensors, out):
            t._assign(new)
        return None

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{op}` of each tensor of a list" + (", which is written to it." if writes else ", as a tuple.")
    return function


_names = {f"_foreach_{op}" + "_" * writes: _made(op, writes) for op in (*_WITH_OTHERS, *_ALONE) if hasattr(Tensor, op) for writes in (False, True)}
globals().update(_names)


def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Zeros in each tensor of a list."""
    for t in _listed(self, "_foreach_zero_"):
        t.zero_()


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> None:
    """The values of each tensor of a list from those of another list."""
    tensors = _listed(self, "_foreach_copy_")
    for t, new in zip(tensors, _each(list(src), len(tensors), "_foreach_copy_")):
        t.copy_(new)


def _foreach_norm(self: Sequence[Tensor], ord: float = 2.0, dtype: Any = None) -> Any:
    """The norm of each tensor of a list, of all its elements."""
    return tuple((t if dtype is None else t.to(dtype)).norm(ord) for t in _listed(self, "_foreach_norm"))


__all__ = sorted([*_names, "_foreach_copy_", "_foreach_norm", "_foreach_zero_"])
