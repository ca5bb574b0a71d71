"""Functions that make tensors, take several of them, or have no method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _chainrule as _c
from ._chainrule import Generator, Tensor, dtype, from_numpy, tensor
from ._methods import ValuesIndices
from ._types import Axes, Number, Shape, TensorLike, as_tensor as _t


def _sizes(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        return tuple(int(n) for n in sizes[0])
    return tuple(int(n) for n in sizes)


def _leaf(t: Tensor, requires_grad: bool) -> Tensor:
    return t.requires_grad_() if requires_grad else t


def zeros(*size: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    return _leaf(_c._full(_sizes(size), 0.0, dtype), requires_grad)


def ones(*size: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor of ones."""
    return _leaf(_c._full(_sizes(size), 1.0, dtype), requires_grad)


def empty(*size: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor whose elements do not matter; here they are 0."""
    return zeros(*size, dtype=dtype, requires_grad=requires_grad)


def full(size: Shape, fill_value: Number | Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor with the same number everywhere."""
    return _leaf(_c._full(size, fill_value, dtype), requires_grad)


def zeros_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the same shape and dtype."""
    return _leaf(_c._full(input._dims, 0.0, dtype or input.dtype), requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the same shape and dtype."""
    return _leaf(_c._full(input._dims, 1.0, dtype or input.dtype), requires_grad)


def full_like(input: Tensor, fill_value: Number, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """The same number everywhere, in the same shape and dtype."""
    return _leaf(_c._full(input._dims, fill_value, dtype or input.dtype), requires_grad)


empty_like = zeros_like


def arange(start: Number, end: Number | None = None, step: Number = 1, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """From `start` up to, without, `end` by `step`."""
    if end is None:
        start, end = 0, start
    return _leaf(_c._arange(start, end, step, dtype), requires_grad)


def linspace(start: float, end: float, steps: int, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`steps` numbers at equal distances, both ends included."""
    return _leaf(_c._linspace(start, end, steps, True, dtype), requires_grad)


def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None) -> Tensor:
    """Powers of `base` at equal distances of the exponent."""
    exponent: Tensor = _c._linspace(start, end, steps, True, "float64")
    power: Tensor = base**exponent
    return power._to_dtype(dtype or _c.get_default_dtype())


def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    rows = _c._arange(0, n, 1, None).unsqueeze(1)
    out = rows == _c._arange(0, n if m is None else m, 1, None)
    return _leaf(out._to_dtype(dtype or _c.get_default_dtype()), requires_grad)


def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform numbers from 0 up to 1, those of PyTorch for the same seed."""
    return _leaf(_c._rand(_sizes(size), dtype, generator), requires_grad)


def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Normal numbers, those of PyTorch for the same seed."""
    return _leaf(_c._randn(_sizes(size), dtype, generator), requires_grad)


def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None) -> Tensor:
    """Uniform numbers in the same shape and dtype."""
    return _c._rand(input._dims, dtype or input.dtype, generator)


def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None) -> Tensor:
    """Normal numbers in the same shape and dtype."""
    return _c._randn(input._dims, dtype or input.dtype, generator)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None) -> Tensor:
    """Integers from `low` up to, without, `high`: `randint(10, (3,))` or `randint(0, 10, (3,))`."""
    if size is None:
        low, high, size = 0, low, high
    out = _c._randint(low, high, size, generator)
    return out if dtype is None else out._to_dtype(dtype)


def randperm(n: int, *, generator: Generator | None = None) -> Tensor:
    """The integers from 0 up to, without, `n` in random order."""
    return _c._randperm(n, generator)


def normal(mean: Any, std: Any, size: Shape | None = None, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers of this mean and standard deviation."""
    if size is None:
        m, s = _t(mean), _t(std)
        return randn(*(m + s).shape, generator=generator) * s + m
    out: Tensor = _c._randn(size, None, generator) * std + mean
    return out


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that the element says, else 0."""
    return (_c._rand(input._dims, "float64", generator) < input)._to_dtype(input.dtype)


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """A tensor as it is, an array without a copy, anything else as a new tensor."""
    if isinstance(data, Tensor):
        return data if dtype is None else data._to_dtype(dtype)
    if type(data).__module__ == "numpy" and hasattr(data, "strides") and data.ndim:
        t = from_numpy(data)
        return t if dtype is None else t._to_dtype(dtype)
    return tensor(data, dtype)


def asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """As `as_tensor`; `copy=True` always copies, `copy=False` never."""
    if copy:
        return _leaf(tensor(obj, dtype), requires_grad)
    out = as_tensor(obj, dtype)
    if copy is False and out is not obj and not (type(obj).__module__ == "numpy" and str(obj.dtype) == out.dtype.name):
        raise ValueError("asarray: this needs a copy, which copy=False forbids")
    return _leaf(out, requires_grad) if requires_grad else out


# Several tensors


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along an axis."""
    return _c._cat(list(tensors), dim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors along a new axis."""
    return _c._stack(list(tensors), dim)


concat = concatenate = cat


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side: along axis 1, or axis 0 of vectors."""
    tensors = [t.reshape(1) if t.ndim == 0 else t for t in tensors]
    return cat(tensors, 0 if tensors and tensors[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One above the other; a vector is a row."""
    return cat([t.reshape(1, -1) if t.ndim < 2 else t for t in tensors], 0)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Grids of coordinates."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing is 'ij' or 'xy', not '{indexing}'")
    return tuple(_c._meshgrid(list(tensors), indexing == "xy"))


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape."""
    return tuple(_c._broadcast_tensors(list(tensors)))


def broadcast_to(input: Tensor, size: Shape) -> Tensor:
    """A view of the tensor in a larger shape."""
    return input.expand(size)


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape to which these are broadcast."""
    from ._size import Size

    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, n in enumerate(s, rank - len(s)):
            if n != 1 and out[i] not in (1, n):
                raise ValueError(f"broadcast_shapes: {', '.join(str(tuple(s)) for s in shapes)} do not go together")
            out[i] = n if n != 1 else out[i]
    return Size(out)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products, as the equation says: `einsum('ij,jk->ik', a, b)`."""
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    return _c._einsum(equation, list(operands))


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`; without them the positions where it holds."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return _c._where(condition, input, other)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sums of products over pairs of axes."""
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: shapes {a.shape} and {b.shape} have no {dims} axes in common")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left = [d % a.ndim for d in dims[0]]
        right = [d % b.ndim for d in dims[1]]
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ValueError(f"tensordot: shapes {tuple(a.shape)} and {tuple(b.shape)} differ along the axes {left} and {right}")
    keep_a = [i for i in range(a.ndim) if i not in left]
    keep_b = [i for i in range(b.ndim) if i not in right]
    n = math.prod(a.shape[i] for i in left)
    rows, columns = [a.shape[i] for i in keep_a], [b.shape[i] for i in keep_b]
    x = a.permute(*keep_a, *left).reshape(math.prod(rows), n)
    y = b.permute(*right, *keep_b).reshape(n, math.prod(columns))
    return (x @ y).reshape((*rows, *columns))


# Functions without a method


def searchsorted(sorted_sequence: Tensor, input: TensorLike, *, right: bool = False, side: str | None = None) -> Tensor:
    """Where the values belong in a sorted sequence."""
    values = _t(input, sorted_sequence)
    return sorted_sequence._searchsorted(values, right or side == "right")


def bucketize(input: TensorLike, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """The number of the bucket that each value falls into."""
    return searchsorted(boundaries, input, right=right)


def histc(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """How many elements fall into each of `bins` equal parts."""
    counts, _ = input._histogram(bins, None if min == max == 0.0 else (min, max))
    return counts._to_dtype(input.dtype)


def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The cross product along an axis of size 3."""
    a, b = broadcast_tensors(input, other)
    return a._cross(b, dim)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """`log(x / (1 - x))`, the inverse of the sigmoid."""
    x = input if eps is None else input.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


def dist(input: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference."""
    return (input - other).norm(p)


def std_mean(input: Tensor, dim: Axes = None, *, correction: float = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    return input.std(dim, correction=correction, keepdim=keepdim), input.mean(dim, keepdim=keepdim)


def var_mean(input: Tensor, dim: Axes = None, *, correction: float = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    return input.var(dim, correction=correction, keepdim=keepdim), input.mean(dim, keepdim=keepdim)


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
    """Whether this is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floats."""
    return input.is_floating_point()


def result_type(a: Any, b: Any) -> dtype:
    """The dtype of `a + b`."""
    return (_t(a, b).flatten()[:0] + _t(b, a).flatten()[:0]).dtype


def manual_seed(seed: int) -> None:
    """Puts the generator of all at the beginning of PyTorch's stream of this seed."""
    _c._manual_seed(int(seed))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows."""
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)


__all__ = [
    "ValuesIndices", "arange", "as_tensor", "asarray", "bernoulli", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize",
    "cat", "cdist", "clone", "concat", "concatenate", "cross", "dist", "einsum", "empty", "empty_like", "equal", "eye", "from_numpy", "full",
    "full_like", "histc", "hstack", "is_floating_point", "is_tensor", "linspace", "logit", "logspace", "manual_seed", "meshgrid", "normal",
    "numel", "ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "result_type", "searchsorted", "stack",
    "std_mean", "tensor", "tensordot", "var_mean", "vstack", "where", "zeros", "zeros_like",
]
