"""Functions that take several tensors, or have no method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _chainrule as _c
from ._chainrule import Generator, Tensor, dtype
from ._complex import _making as _z
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError
from ._methods import ValuesIndices
from ._types import Shape, TensorLike, as_tensor as _t
from ._out import put, with_out


def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Any = None) -> Tensor:
    """The tensors one after the other along an axis. As in PyTorch, empty vectors count for
    nothing.
    """
    if out is not None:
        return put("cat", cat(tensors, dim), out)  # type: ignore[no-any-return]
    parts = list(tensors)
    some = [t for t in parts if t.ndim != 1 or t.numel()]
    parts = some if some and any(t.ndim > 1 for t in some) else parts
    try:
        return _c._cat(parts, dim)
    except TypeError:
        return _z.cat(parts, dim)  # type: ignore[return-value]


def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Any = None) -> Tensor:
    """The tensors along a new axis."""
    if out is not None:
        return put("stack", stack(tensors, dim), out)  # type: ignore[no-any-return]
    try:
        return _c._stack(list(tensors), dim)
    except TypeError:
        return _z.stack(list(tensors), dim)  # type: ignore[return-value]


concat = concatenate = cat


@with_out
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """Side by side: along axis 1, or axis 0 of vectors."""
    tensors = [t.reshape(1) if t.ndim == 0 else t for t in tensors]
    return cat(tensors, 0 if tensors and tensors[0].ndim == 1 else 1)


@with_out
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One above the other; a vector is a row."""
    return cat([t.reshape(1, -1) if t.ndim < 2 else t for t in tensors], 0)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Grids of coordinates, as views of them."""
    if len(tensors) == 1 and not isinstance(tensors[0], (Tensor, ComplexTensor)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing is 'ij' or 'xy', not '{indexing}'")
    if any(t.ndim > 1 for t in tensors):
        shapes = ", ".join(str(list(t.shape)) for t in tensors)
        raise ArgumentError(f"meshgrid: shapes {shapes}: each tensor must have one axis; flatten it first")
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    size = [tensors[i].numel() for i in order]
    return tuple(t.reshape([-1 if i == own else 1 for own in order]).expand(size) for i, t in enumerate(tensors))


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape."""
    try:
        return tuple(_c._broadcast_tensors(list(tensors)))
    except TypeError:
        if not any(isinstance(t, ComplexTensor) for t in tensors):
            raise
        shape = broadcast_shapes(*(tuple(t.shape) for t in tensors))
        return tuple(t.expand(shape) for t in tensors)


def broadcast_to(input: Tensor, size: Shape) -> Tensor:
    """A view of the tensor in a larger shape."""
    return input.expand(size)


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape to which these are broadcast."""
    from ._size import Size

    shapes = tuple((s,) if isinstance(s, int) else s for s in shapes)
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, n in enumerate(s, rank - len(s)):
            if n != 1 and out[i] not in (1, n):
                raise ArgumentError(f"broadcast_shapes: {', '.join(str(tuple(s)) for s in shapes)} do not go together")
            out[i] = n if n != 1 else out[i]
    return Size(out)


def _as_equation(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The equation of operands with the numbers of their axes, and the operands alone."""

    def letters(axes: Sequence[Any]) -> str:
        wrong = [i for i in axes if i is not Ellipsis and not 0 <= i < 52]
        if wrong:
            raise ArgumentError(f"einsum: axes have numbers from 0 to 51, not {wrong[0]}")
        return "".join("..." if i is Ellipsis else chr(ord("A") + i if i < 26 else ord("a") + i - 26) for i in axes)

    parts = ",".join(letters(axes) for axes in operands[1::2])
    has_result = len(operands) % 2 == 1
    return (f"{parts}->{letters(operands[-1])}" if has_result else parts), list(operands[: len(operands) - has_result : 2])


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products, as the equation says: `einsum('ij,jk->ik', a, b)`, or with the numbers of
    axes behind each operand: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if not isinstance(equation, str):
        equation, operands = _as_equation((equation, *operands))  # type: ignore[assignment]
    elif len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    try:
        return _c._einsum(equation, list(operands))
    except TypeError:
        return _z.einsum(equation, list(operands))  # type: ignore[return-value]


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where the condition holds, else `other`; without them the positions where it holds.
    """
    if out is not None:
        return put("where", where(condition, input, other), out)
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    try:
        return _c._where(condition, input, other)
    except TypeError:
        return _z.where(condition, input, other)


def _without_ones(a: Tensor, b: Tensor, left: Sequence[int], right: Sequence[int]) -> tuple[Tensor, Tensor]:
    """An axis of size 1 on one side stands for as many equal elements as the other side has: the
    sum over them can be taken first.
    """
    for i, j in zip(left, right):
        if a.shape[i] == 1 != b.shape[j]:
            b = b.sum(j, keepdim=True)
        elif b.shape[j] == 1 != a.shape[i]:
            a = a.sum(i, keepdim=True)
    return a, b


@with_out
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, out: Any = None) -> Tensor:
    """Sums of products over pairs of axes."""
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise ArgumentError(f"tensordot: shapes {a.shape} and {b.shape} have no {dims} axes in common")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left = [d % a.ndim for d in dims[0]]
        right = [d % b.ndim for d in dims[1]]
    a, b = _without_ones(a, b, left, right)
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ArgumentError(f"tensordot: shapes {tuple(a.shape)} and {tuple(b.shape)} differ along the axes {left} and {right}")
    keep_a = [i for i in range(a.ndim) if i not in left]
    keep_b = [i for i in range(b.ndim) if i not in right]
    n = math.prod(a.shape[i] for i in left)
    rows, columns = [a.shape[i] for i in keep_a], [b.shape[i] for i in keep_b]
    x = a.permute(*keep_a, *left).reshape(math.prod(rows), n)
    y = b.permute(*right, *keep_b).reshape(n, math.prod(columns))
    return (x @ y).reshape((*rows, *columns))


# Functions without a method


class Histogram(NamedTuple):
    """The numbers in the bins, and the edges of the bins, one more."""

    hist: Tensor
    bin_edges: Tensor


@with_out
def searchsorted(
    sorted_sequence: Tensor, input: TensorLike, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None, out: Any = None
) -> Tensor:
    """Positions of the values in a sorted sequence, or in one that `sorter` sorts."""
    if side not in (None, "left", "right") or (right and side == "left"):
        raise ArgumentError(f"searchsorted: side is 'left' or 'right', and right=True says 'right'; got side={side!r}, right={right}")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    values = _t(input, sorted_sequence)
    found = sorted_sequence._searchsorted(values, right or side == "right")
    return found._to_dtype("int32") if out_int32 else found


@with_out
def bucketize(input: TensorLike, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None) -> Tensor:
    """The number of the bucket that each value falls into."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@with_out
def histc(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0, *, out: Any = None) -> Tensor:
    """The number of elements in each of `bins` equal parts."""
    counts, _ = input._histogram(bins, None if min == max == 0.0 else (min, max))
    return counts._to_dtype(input.dtype)


def histogram(
    input: Tensor, bins: int | Tensor = 100, *, range: tuple[float, float] | None = None, weight: Tensor | None = None, density: bool = False
) -> Histogram:
    """The number of elements, or their weight, in each of `bins` equal parts of `range`, and the
    edges; or between the given edges. Without
    a gradient."""
    x = input.detach()
    if isinstance(bins, int) and weight is None:
        counts, edges = x._histogram(bins, None if range is None else tuple(range))
        counts = counts._to_dtype(x.dtype)
    else:
        edges = x._histogram(bins, None if range is None else tuple(range))[1] if isinstance(bins, int) else bins.detach()
        flat, n = x.flatten(), edges.numel() - 1
        inside = (flat >= edges[0]) & (flat <= edges[-1])
        at = edges._searchsorted(flat[inside].contiguous(), True).sub(1).clamp(0, n - 1)
        amounts = _c._full((at.numel(),), 1.0, x.dtype) if weight is None else weight.detach().flatten()[inside]
        counts = _c._full((n,), 0.0, x.dtype).scatter_add(0, at, amounts)
    return Histogram(counts / counts.sum() / (edges[1:] - edges[:-1]) if density else counts, edges)


@with_out
def cross(input: Tensor, other: Tensor, dim: int = -1, *, out: Any = None) -> Tensor:
    """The cross product along an axis of size 3."""
    a, b = broadcast_tensors(input, other)
    return a._cross(b, dim)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """`log(x / (1 - x))`, the inverse of the sigmoid; `eps` keeps `x` away from 0 and 1."""
    if eps is None:
        return (input / (1 - input)).log()
    low, high = _t(eps, input), _t(1 - eps, input)
    x: Tensor = _c._where(input < low, low, _c._where(input > high, high, input))
    return (x / (1 - x)).log()


def dist(input: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference."""
    return (input - other).norm(p)


def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    if isinstance(dim, bool):  # std_mean(x, False): PyTorch's older form
        dim, unbiased = None, dim
    return input.std(dim, unbiased, keepdim, correction=correction), input.mean(dim, keepdim=keepdim)


def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return input.var(dim, unbiased, keepdim, correction=correction), input.mean(dim, keepdim=keepdim)


def detach(input: Tensor) -> Tensor:
    """The same values without the tape: a view of the same memory."""
    return input.detach()


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def clone(input: Tensor) -> Tensor:
    """A copy, recorded on the tape."""
    return input.clone()


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are the same."""
    return input.equal(other)


def is_tensor(obj: Any) -> bool:
    """Whether this is a tensor, real or complex."""
    return isinstance(obj, (Tensor, ComplexTensor))


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floats."""
    return input.is_floating_point()


def result_type(a: Any, b: Any) -> dtype:
    """The dtype of `a + b`."""
    return (_t(a, b).flatten()[:0] + _t(b, a).flatten()[:0]).dtype


def manual_seed(seed: int) -> None:
    """Puts the generator of all at the beginning of PyTorch's stream of this seed."""
    if _c._session_on():
        raise ArgumentError("compile: the function seeds the generator, which a program would not do again: seed it before the call")
    _c._manual_seed(int(seed))


@with_out
def multinomial(input: TensorLike, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Any = None) -> Tensor:
    """Numbers of columns, drawn at random for each row with the elements as weights."""
    return _c._multinomial(_t(input), num_samples, replacement, generator)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The p-norms of the differences of all pairs of rows.

    They come from the differences themselves: `compute_mode` is taken and makes no difference.
    """
    return x1._cdist(x2, p)


__all__ = [
    "ValuesIndices", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize", "cat", "cdist", "clone", "concat", "concatenate",
    "cross", "detach", "dist", "einsum", "equal", "histc", "histogram", "hstack", "is_floating_point", "is_tensor", "logit", "manual_seed", "meshgrid", "multinomial",
    "numel", "result_type", "searchsorted", "stack", "std_mean", "tensordot", "var_mean", "vstack", "where",
]
