"""Functions whose first argument is a tensor: reductions. Written by `tools/functions.py`: change that."""

from __future__ import annotations

from typing import Any

from .._chainrule import Tensor, dtype
from .._methods import ValuesIndices
from .._types import Axes, TensorLike, as_tensor as _t


def sum(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor:
    """sum of x over the axes.

    Gradient: dx = g, expanded over the axes
    """
    return _t(input).sum(dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype)


def mean(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor:
    """sum of x over the axes / n.

    Gradient: dx = g / n, expanded over the axes

    At kinks: the mean of nothing is NaN
    """
    return _t(input).mean(dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype)


def prod(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor:
    """product of x over the axes.

    Gradient: dx = g * the product of the other elements

    At kinks: right with zeros; beside infinities and NaN what the product of the others gives
    """
    return _t(input).prod(dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype)


def amax(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """the largest element over the axes.

    Gradient: dx = g where x is the largest, shared equally by ties

    At kinks: ties share the gradient equally; where the largest is NaN the gradient is NaN
    """
    return _t(input).amax(dim, keepdim, axis=axis, keepdims=keepdims)


def amin(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """the smallest element over the axes.

    Gradient: dx = g where x is the smallest, shared equally by ties

    At kinks: ties share the gradient equally; where the smallest is NaN the gradient is NaN
    """
    return _t(input).amin(dim, keepdim, axis=axis, keepdims=keepdims)


def any(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`input.any`, as in PyTorch."""
    return _t(input).any(dim, keepdim, axis=axis, keepdims=keepdims)


def all(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`input.all`, as in PyTorch."""
    return _t(input).all(dim, keepdim, axis=axis, keepdims=keepdims)


def logsumexp(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """log(sum of e^x over the axes).

    Gradient: dx = g * e^(x - y)

    At kinks: where the result is minus infinity, or the element plus infinity, the gradient is NaN
    """
    return _t(input).logsumexp(dim, keepdim, axis=axis, keepdims=keepdims)


def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """the first position of the largest element.

    At kinks: of ties the first is meant; NaN is the largest
    """
    return _t(input).argmax(dim, keepdim, axis=axis, keepdims=keepdims)


def argmin(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """the first position of the smallest element.

    At kinks: of ties the first is meant; NaN is the smallest
    """
    return _t(input).argmin(dim, keepdim, axis=axis, keepdims=keepdims)


def max(input: TensorLike, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """the largest element over the axes.

    Gradient: dx = g where x is the largest, shared equally by ties

    At kinks: ties share the gradient equally; where the largest is NaN, the NaNs do if all axes go, else the gradient is NaN
    """
    return _t(input).max(dim, keepdim, axis=axis, keepdims=keepdims)


def min(input: TensorLike, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """the smallest element over the axes.

    Gradient: dx = g where x is the smallest, shared equally by ties

    At kinks: ties share the gradient equally; where the smallest is NaN, the NaNs do if all axes go, else the gradient is NaN
    """
    return _t(input).min(dim, keepdim, axis=axis, keepdims=keepdims)


def var(input: TensorLike, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """sum((x - mean)^2) / (n - correction).

    Gradient: dx = g * 2 * (x - mean) / (n - correction)

    At kinks: with correction >= n the result is an infinity or NaN
    """
    return _t(input).var(dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)


def std(input: TensorLike, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """sqrt(sum((x - mean)^2) / (n - correction)).

    Gradient: dx = g * (x - mean) / ((n - correction) * std)

    At kinks: where all elements are equal the gradient is 0; with correction >= n the result is an infinity or NaN
    """
    return _t(input).std(dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)


def median(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Any:
    """the lower of the middle elements of the sorted order, and its position.

    Gradient: dx = g at that position

    At kinks: ties: along an axis one gets the gradient, of all elements the equal ones share it; NaN is the median if there is one
    """
    return _t(input).median(dim, keepdim, axis=axis)


def norm(input: TensorLike, p: float | str = 2.0, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None) -> Tensor:
    """sum(|x|^p)^(1/p) over the axes.

    Gradient: dx = g * sign(x) * (|x| / y)^(p - 1)

    At kinks: 0 where the norm or the element is 0; of p = infinity ties share the gradient equally
    """
    return _t(input).norm(p, dim, keepdim, axis=axis)


def count_nonzero(input: TensorLike, dim: Axes = None, *, axis: Axes = None) -> Tensor:
    """the number of elements over the axes that are not 0.

    At kinks: NaN is not 0
    """
    return _t(input).count_nonzero(dim, axis=axis)


def cumsum(input: TensorLike, dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None) -> Tensor:
    """y[i] = x[0] + ... + x[i].

    Gradient: dx[i] = g[i] + ... + g[n - 1]
    """
    return _t(input).cumsum(dim, dtype=dtype, axis=axis)


def cumprod(input: TensorLike, dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None) -> Tensor:
    """y[i] = x[0] * ... * x[i].

    Gradient: dx[i] = sum over k >= i of g[k] * the product of x[0] to x[k] without x[i]

    At kinks: right with zeros; beside infinities and NaN what the products of the others give
    """
    return _t(input).cumprod(dim, dtype=dtype, axis=axis)


def logcumsumexp(input: TensorLike, dim: int) -> Tensor:
    """y[i] = log(e^x[0] + ... + e^x[i]).

    Gradient: dx[i] = sum over k >= i of g[k] * e^(x[i] - y[k])

    At kinks: where the own result is minus infinity, or the element plus infinity, the gradient is NaN
    """
    return _t(input).logcumsumexp(dim)


def cummax(input: TensorLike, dim: int) -> ValuesIndices:
    """y[i] = the largest of x[0] to x[i], and its last position.

    Gradient: dx[p[i]] += g[i], where p[i] is that position

    At kinks: of ties the last gets the gradient; NaN is the largest
    """
    return _t(input).cummax(dim)


def cummin(input: TensorLike, dim: int) -> ValuesIndices:
    """y[i] = the smallest of x[0] to x[i], and its last position.

    Gradient: dx[p[i]] += g[i], where p[i] is that position

    At kinks: of ties the last gets the gradient; NaN is the smallest
    """
    return _t(input).cummin(dim)


def sort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices:
    """y[i] = x[p[i]], rising or falling, and the positions p.

    Gradient: dx[p[i]] = g[i]

    At kinks: equal elements keep their order; NaN is the largest
    """
    return _t(input).sort(dim, descending, stable)


def argsort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """the positions of the elements in rising or falling order.

    At kinks: equal elements keep their order; NaN is the largest
    """
    return _t(input).argsort(dim, descending, stable)


def topk(input: TensorLike, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
    """y[i] = x[p[i]], the k largest or smallest, and their positions p.

    Gradient: dx[p[i]] = g[i], 0 elsewhere

    At kinks: of equal elements the first are taken; NaN is the largest
    """
    return _t(input).topk(k, dim, largest, sorted)


def unique(input: TensorLike, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """the different elements in rising order, where each element is among them, and how often each occurs.

    At kinks: each NaN is a value of its own, at the end
    """
    return _t(input).unique(sorted, return_inverse, return_counts, dim)


def bincount(input: TensorLike, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """y[k] = the number of elements that are k, or the sum of their weights."""
    return _t(input).bincount(weights, minlength)


def nonzero(input: TensorLike, *, as_tuple: bool = False) -> Any:
    """the indices of the elements that are not 0, in row-major order.

    At kinks: NaN is not 0; no gradient flows from an index
    """
    return _t(input).nonzero(as_tuple=as_tuple)


def softmax(input: TensorLike, dim: int, dtype: dtype | None = None) -> Tensor:
    """exp(x) / sum(exp(x)).

    Gradient: dx = y * (g - sum(y * g))

    At kinks: a row of minus infinities, or with plus infinity or NaN, gives NaN
    """
    return _t(input).softmax(dim, dtype)


def log_softmax(input: TensorLike, dim: int, dtype: dtype | None = None) -> Tensor:
    """x - log(sum(exp(x))).

    Gradient: dx = g - softmax(x) * sum(g)

    At kinks: a row of minus infinities, or with plus infinity or NaN, gives NaN
    """
    return _t(input).log_softmax(dim, dtype)
