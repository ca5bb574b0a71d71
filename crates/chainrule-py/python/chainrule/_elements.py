"""Functions of elements and statistics that are composed of ops, under PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _chainrule as _c
from . import special as _special
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor
from ._errors import ArgumentError
from ._methods import ValuesIndices
from ._results import Frexp, MinMax
from ._types import TensorLike, as_tensor as _t
from ._out import with_out

Axes = int | Sequence[int] | None


def _axes(x: Tensor, dim: Axes) -> Any:
    """The axes of a reduction, where an empty list means all."""
    return None if dim is None or (not isinstance(dim, int) and not len(dim)) else dim


# Functions of one number


def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians: `x pi / 180`."""
    return input * (math.pi / 180.0)


def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees: `180 x / pi`."""
    return input * (180.0 / math.pi)


@with_out
def signbit(input: Tensor, *, out: Any = None) -> Tensor:
    """Whether the sign is negative, that of -0 as well."""
    if input.dtype.name == "bool":
        return input.logical_and(False)
    return (_c.tensor(1.0, input.dtype).copysign(input) if input.is_floating_point() else input) < 0


def isposinf(input: Tensor) -> Tensor:
    """Whether the elements are plus infinity."""
    return input.isinf().logical_and(input > 0)


def isneginf(input: Tensor) -> Tensor:
    """Whether the elements are minus infinity."""
    return input.isinf().logical_and(input < 0)


def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0; true of real numbers."""
    if type(input) is not Tensor:
        return input.isreal()
    return _c._full(input._dims, True, "bool")


def real(input: Tensor) -> Tensor:
    """The real parts; real numbers stay."""
    return input if type(input) is Tensor else input.real


def conj(input: Tensor) -> Tensor:
    """The conjugates; real numbers stay."""
    return input if type(input) is Tensor else input.conj()


conj_physical = conj


def resolve_conj(input: Tensor) -> Tensor:
    """The same: conjugates are computed at once."""
    return input


resolve_neg = resolve_conj


def positive(input: Tensor) -> Tensor:
    """The same: `+x`."""
    if input.dtype.name == "bool":
        raise TypeError("positive: dtype bool: numbers are needed")
    return input


def angle(input: Tensor) -> Tensor:
    """The angle to the positive real axis: of real numbers pi for negative ones, 0 else, without a
    gradient, which is 0.
    """
    if type(input) is not Tensor:
        return input.angle()
    x = input.detach()
    out = (x < 0)._to_dtype(x.dtype if x.is_floating_point() else _c.get_default_dtype()) * math.pi
    return out.masked_fill(x.isnan(), math.nan) if x.is_floating_point() else out


@with_out
def frexp(input: Tensor, *, out: Any = None) -> Frexp:
    """`x = mantissa * 2^exponent` with the size of the mantissa from 1/2 to 1. Gradient of the
    mantissa: `g / 2^exponent`.
    """
    _, powers = np.frexp(input.detach().numpy())
    exponent = _c.tensor(powers.astype(np.int64))
    # In two steps, as 2^1024 is none of the numbers.
    half = exponent.bitwise_right_shift(1)
    two = _c.tensor(2.0, input.dtype)
    return Frexp(input * two.pow(-half) * two.pow(half - exponent), exponent)


# Functions of two numbers


def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two numbers, and the other one where one is NaN. At ties the first gets the
    gradient.
    """
    return input.where((input >= other).logical_or(other.isnan()), other)


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two numbers, and the other one where one is NaN. At ties the first gets the
    gradient.
    """
    return input.where((input <= other).logical_or(other.isnan()), other)


@with_out
def heaviside(input: Tensor, values: Tensor, *, out: Any = None) -> Tensor:
    """0 for negative numbers, 1 for positive ones, and `values` at 0. Without a gradient."""
    if input.dtype != values.dtype:
        raise TypeError(f"heaviside: dtypes {input.dtype.name} and {values.dtype.name} differ")
    return values.detach().where(input == 0, (input > 0)._to_dtype(input.dtype))


@with_out
def ldexp(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """`x * 2^y`, exact for whole y."""
    y = _t(other)
    y = y if y.is_floating_point() else y._to_dtype(input.dtype if input.is_floating_point() else _c.get_default_dtype())
    return input * _c.tensor(2.0, y.dtype).pow(y)


@with_out
def logaddexp2(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """`log2(2^x + 2^y)`, without overflow."""
    ln2 = math.log(2.0)
    return (input * ln2).logaddexp(other * ln2) / ln2


@with_out
def float_power(input: TensorLike, exponent: TensorLike, *, out: Any = None) -> Tensor:
    """`x^y` in float64, or complex128."""
    if isinstance(input, ComplexTensor) or isinstance(exponent, ComplexTensor):
        x: Any = input if isinstance(input, ComplexTensor) else _t(input)
        return x.to("complex128").pow(exponent if isinstance(exponent, (ComplexTensor, int, float)) else _t(exponent).to("complex128"))
    return _t(input)._to_dtype("float64").pow(_t(exponent)._to_dtype("float64"))


def _of_integers(name: str, f: Any, a: Tensor, b: TensorLike) -> Tensor:
    b = _t(b, a)
    if a.is_floating_point() or b.is_floating_point():
        raise TypeError(f"{name}: dtypes {a.dtype.name} and {b.dtype.name}: integers are needed")
    return _c.tensor(np.asarray(f(a.numpy(), b.numpy())))


@with_out
def gcd(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The greatest common divisor of integers."""
    return _of_integers("gcd", np.gcd, input, other)


@with_out
def lcm(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The least common multiple of integers."""
    return _of_integers("lcm", np.lcm, input, other)


@with_out
def nextafter(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The next number that the dtype has towards another. Its slope is 1 in the first, and 0 where
    both are equal.
    """
    value = _c.tensor(np.asarray(np.nextafter(input.detach().numpy(), other.detach().numpy())))
    if not (input.requires_grad or other.requires_grad):
        return value

    def reverse(g: Tensor, *_: Tensor) -> list[Any]:
        return [g * (input.detach() != other.detach())._to_dtype(g.dtype), g * 0.0]

    made: Tensor = _c._apply_custom("nextafter", lambda *_: value, reverse, _c._broadcast_tensors([input, other]))
    return made


def rsub(input: Tensor, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """`other - alpha * x`."""
    return _t(other, input) - (input if alpha == 1 else alpha * input)


# Reductions


@with_out
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> MinMax:
    """The smallest and the largest element, of all or along an axis. Ties share the gradient."""
    if dim is None and keepdim:
        dim = None
        shape = (1,) * input.ndim
        return MinMax(input.amin().reshape(shape), input.amax().reshape(shape))
    return MinMax(input.amin(dim, keepdim), input.amax(dim, keepdim))


@with_out
def nansum(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The sum of what is a number."""
    x = input if dtype is None else input._to_dtype(dtype)
    return x.masked_fill(x.isnan(), 0.0).sum(_axes(x, dim), keepdim) if x.is_floating_point() else x.sum(_axes(x, dim), keepdim)


@with_out
def nanmean(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The mean of what is a number, NaN where there is none."""
    x = input if dtype is None else input._to_dtype(dtype)
    count = x.isnan().logical_not().sum(_axes(x, dim), keepdim)
    return nansum(x, dim, keepdim) / count._to_dtype(x.dtype)


@with_out
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> ValuesIndices:
    """The k-th smallest element along an axis, counted from 1, and where it stands."""
    x = input if input.ndim else input.reshape(1)
    n = x.shape[dim]
    if not 1 <= k <= n:
        raise ArgumentError(f"kthvalue: shape {tuple(input.shape)}: k is from 1 to {n}, got {k}")
    values, at = x.sort(dim)
    values, at = values.narrow(dim, k - 1, 1), at.narrow(dim, k - 1, 1)
    if input.ndim == 0:
        return ValuesIndices(values.reshape(()), at.reshape(()))
    return ValuesIndices(values, at) if keepdim else ValuesIndices(values.squeeze(dim), at.squeeze(dim))


@with_out
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of what is a number, of an even count the lower one; along an axis also where it
    stands.
    """
    x = input.flatten() if dim is None or input.ndim == 0 else input
    axis = 0 if dim is None or input.ndim == 0 else dim
    ordered, at = x.sort(axis)  # NaN comes last
    count = x.isnan().logical_not().sum(axis, True) if x.is_floating_point() else _c.tensor(x.shape[axis])
    middle = (count - 1).clamp(min=0).floor_divide(2)
    middle = middle.expand(*(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)))
    values, places = ordered.gather(axis, middle), at.gather(axis, middle)
    if dim is None:
        return values.reshape(())
    if input.ndim == 0:
        return ValuesIndices(values.reshape(()), places.reshape(()))
    return ValuesIndices(values, places) if keepdim else ValuesIndices(values.squeeze(axis), places.squeeze(axis))


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(op: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip: bool) -> Tensor:
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(f"{op}: interpolation is one of {', '.join(_INTERPOLATIONS)}, not {interpolation!r}")
    if not input.is_floating_point():
        raise TypeError(f"{op}: dtype {input.dtype.name}: defined for float32 and float64")
    if not input.numel():
        raise ArgumentError(f"{op}: shape {tuple(input.shape)}: there is no element")
    q = q._to_dtype(input.dtype) if isinstance(q, Tensor) else _c.tensor(q, input.dtype)
    if q.ndim > 1 or not bool(((q >= 0).logical_and(q <= 1)).all()):
        raise ArgumentError(f"{op}: q is a number from 0 to 1, or a vector of them")
    x = input.flatten() if dim is None or input.ndim == 0 else input.movedim(dim, -1)
    ordered = x.sort(-1).values
    nans = x.isnan()
    count = nans.logical_not().sum(-1, True) if skip else _c._full((*x.shape[:-1], 1), x.shape[-1], "int64")
    rank = q.reshape(-1) * (count - 1).clamp(min=0)._to_dtype(x.dtype)
    if not skip:  # NaN is the answer where there is one
        rank = rank.where(nans.any(-1, True).logical_not(), float(x.shape[-1] - 1))
    if interpolation in ("lower", "higher", "nearest"):
        rank = getattr(rank, {"lower": "floor", "higher": "ceil", "nearest": "round"}[interpolation])()
    low = rank.floor()
    below = ordered.gather(-1, low.long())
    out = below
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, rank.ceil().long())
        share = rank - low if interpolation == "linear" else ((rank - low) > 0)._to_dtype(x.dtype) * 0.5
        out = below + share * (above - below).where(share != 0, 0.0) if share.requires_grad else below.lerp(above, share)
    # The axis of q comes first.
    out = out.movedim(-1, 0)
    if keepdim and input.ndim:
        out = out.reshape((out.shape[0], *[1] * input.ndim)) if dim is None else out.unsqueeze(1 + dim % input.ndim)
    return out if q.ndim else out.squeeze(0)


@with_out
def quantile(input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out: Any = None) -> Tensor:
    """The numbers below which the shares `q` of the elements lie, between two elements as
    `interpolation` says; NaN beside NaN.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@with_out
def nanquantile(input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out: Any = None) -> Tensor:
    """As `quantile`, of what is a number."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of variables, a row each, over observations, a column each, with weights of
    whole numbers and of others.
    """
    if input.ndim > 2:
        raise ArgumentError(f"cov: shape {tuple(input.shape)}: at most two axes, a row for each variable")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    x = x if x.is_floating_point() else x._to_dtype(_c.get_default_dtype())
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        mean, total = x.mean(1, True), _c.tensor(float(x.shape[1]), x.dtype)
        norm = total - float(correction)
        around = x - mean
        out = around @ around.t() / norm.clamp(min=0.0)
    else:
        w = weights._to_dtype(x.dtype) if not weights.is_floating_point() else weights
        total = w.sum()
        mean = (x * w).sum(1, True) / total
        if aweights is None or correction == 0:
            norm = total - float(correction)
        else:
            norm = total - float(correction) * (w * aweights).sum() / total
        around = x - mean
        out = around @ (around * w).t() / norm.clamp(min=0.0)
    return out.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, a row each: covariances over the product of the standard
    deviations, from -1 to 1.
    """
    c = cov(input)
    if c.ndim == 0:
        return c / c
    spread = c.diagonal().sqrt()
    return (c / spread.unsqueeze(1) / spread.unsqueeze(0)).clamp(-1.0, 1.0)


@with_out
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """The slices along an axis, those with a p-norm above `maxnorm` scaled down to it."""
    axis = dim % input.ndim
    others = [i for i in range(input.ndim) if i != axis]
    norm = input.norm(p, others, True)
    factor = maxnorm / (norm + 1e-7)
    return input * factor.where(norm > maxnorm, 1.0)


# Differences and integrals


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along an axis."""
    if input.ndim == 0:
        raise ArgumentError("diff: shape (): an axis is needed")
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    around = [p for p in (prepend, input, append) if p is not None]
    x = input
    if len(around) > 1:
        from ._functions import cat

        shape = list(input.shape)
        axis = dim % input.ndim
        parts = [p.expand(*shape[:axis], 1, *shape[axis + 1 :]) if p.ndim == 0 else p for p in around]
        x = cat(parts, dim)
    if n == 0:
        return input
    for _ in range(min(n, x.shape[dim])):
        count = x.shape[dim]
        if not count:
            break
        high, low = x.narrow(dim, 1, count - 1), x.narrow(dim, 0, count - 1)
        x = high.logical_xor(low) if x.dtype.name == "bool" else high - low
    return x


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integrals by trapezoids from the first element up to each later one."""
    n = y.shape[dim]
    sums = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) if n else y
    if x is None:
        return sums.cumsum(dim) * (dx / 2)
    if x.ndim == 1:
        widths = diff(x)
        axis = dim % y.ndim
        widths = widths.reshape(tuple(-1 if i == axis else 1 for i in range(y.ndim)))
    else:
        while x.ndim < y.ndim:
            x = x.unsqueeze(0)
        widths = diff(x, dim=dim)
    return (sums * widths).cumsum(dim) / 2.0


def gradient(input: Tensor, *, spacing: Any = 1.0, dim: Axes = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Derivatives along axes, estimated by central differences; at the edges by one-sided ones of
    order `edge_order`.

    `spacing` is the distance of neighbours, one for all axes or one for each, or the coordinates
    along each axis.
    """
    x = input if input.is_floating_point() else input._to_dtype(_c.get_default_dtype())
    axes = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacing = 1.0 if spacing is None else spacing
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order}")
    spacings = [spacing] * len(axes) if isinstance(spacing, (int, float)) else list(spacing)
    if len(spacings) == 1 != len(axes):
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise ArgumentError(f"gradient: {len(spacings)} spacings for {len(axes)} axes")
    return tuple(_slope(x, axis % x.ndim, at, edge_order) for axis, at in zip(axes, spacings))


def _slope(x: Tensor, axis: int, at: Any, order: int) -> Tensor:
    """Differences along an axis between neighbours on both sides, weighted by the distances to
    them.
    """
    from ._functions import cat

    n = x.shape[axis]
    if n < order + 1:
        raise ArgumentError(f"gradient: shape {tuple(x.shape)}: axis {axis} needs {order + 1} elements, and has {n}")
    if isinstance(at, Tensor) and at.ndim == 1:
        widths = diff(at)._to_dtype(x.dtype)
    else:
        widths = _c._full((n - 1,), float(at), x.dtype)
    slopes = diff(x, dim=axis) / widths.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    first, last = slopes.narrow(axis, 0, 1), slopes.narrow(axis, n - 2, 1)
    if n == 2:
        return cat([first, last], axis)
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    left, right = widths[:-1].reshape(shape), widths[1:].reshape(shape)
    before, after = slopes.narrow(axis, 0, n - 2), slopes.narrow(axis, 1, n - 2)
    inner = (right * before + left * after) / (left + right)
    if order == 2:
        # The parabola through three points, at its end.
        first = 2 * first - inner.narrow(axis, 0, 1) if _even(widths[:2]) else first - (after - before).narrow(axis, 0, 1) * _share(widths, 0)
        last = 2 * last - inner.narrow(axis, n - 3, 1) if _even(widths[-2:]) else last + (after - before).narrow(axis, n - 3, 1) * _share(widths, -1)
    return cat([first, inner, last], axis)


def _even(widths: Tensor) -> bool:
    return bool(widths[0] == widths[1])


def _share(widths: Tensor, end: int) -> Tensor:
    """The part that the width at an end has of the two there."""
    near, far = (widths[0], widths[1]) if end == 0 else (widths[-1], widths[-2])
    return near / (near + far)


lgamma, digamma, polygamma, mvlgamma = _special.gammaln, _special.digamma, _special.polygamma, _special.multigammaln
sinc, xlogy, i0, igamma, igammac = _special.sinc, _special.xlogy, _special.i0, _special.gammainc, _special.gammaincc


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`."""
    return polygamma(n, self)


METHODS: dict[str, Any] = {
    name: globals()[name]
    for name in (
        "deg2rad rad2deg signbit isposinf isneginf isreal conj conj_physical resolve_conj resolve_neg positive angle frexp fmax fmin heaviside "
        "ldexp logaddexp2 float_power gcd lcm nextafter aminmax nansum nanmean kthvalue nanmedian quantile nanquantile cov corrcoef renorm diff "
        "lgamma digamma mvlgamma sinc xlogy i0 igamma igammac"
    ).split()
} | {"polygamma": _polygamma}
"""Functions that are methods, too."""
IN_PLACE = "deg2rad rad2deg conj_physical heaviside ldexp float_power gcd lcm nextafter renorm lgamma digamma mvlgamma sinc xlogy i0".split()
"""Methods that also write their result to the tensor."""

__all__ = [
    "Frexp", "MinMax", "aminmax", "angle", "conj", "conj_physical", "corrcoef", "cov", "cumulative_trapezoid", "deg2rad", "diff", "digamma",
    "float_power", "fmax", "fmin", "frexp", "gcd", "gradient", "heaviside", "i0", "igamma", "igammac", "isneginf", "isposinf", "isreal",
    "kthvalue", "lcm", "ldexp", "lgamma", "logaddexp2", "mvlgamma", "nanmean", "nanmedian", "nanquantile", "nansum", "nextafter", "polygamma",
    "positive", "quantile", "rad2deg", "real", "renorm", "resolve_conj", "resolve_neg", "rsub", "signbit", "sinc", "xlogy",
]
