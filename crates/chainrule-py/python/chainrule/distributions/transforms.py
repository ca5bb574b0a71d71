"""Maps with an inverse and the logarithm of how much they stretch, for distributions of mapped
values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _functions as _f
from .._chainrule import Tensor
from ..nn.functional import softplus
from . import constraints
from .distribution import eps_of


def sum_rightmost(x: Any, n: int) -> Any:
    """The sum over the last `n` axes."""
    return x.sum(tuple(range(-n, 0))) if n and isinstance(x, Tensor) else x


class Transform:
    """A map of values. A subclass defines `_call`, `_inverse`, `log_abs_det_jacobian(x, y)`, and if
    an event has axes, `domain` and `codomain`. With `cache_size=1` the inverse of the last result
    is the value that it came from.

    ```
    t = cr.distributions.ExpTransform()
    x = cr.tensor([0.0, 1.0])
    assert t.inv(t(x)).allclose(x) and cr.equal(t.log_abs_det_jacobian(x, t(x)), x)
    ```
    """

    bijective = True
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: cache_size is 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)

    @property
    def sign(self) -> Any:
        """The sign of the slope, of a map of single numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    @property
    def inv(self) -> Transform:
        """The inverse map."""
        return _Inverse(self)

    def __call__(self, x: Any) -> Any:
        """The image of `x`."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._last[0]:
            self._last = (x, self._call(x))
        return self._last[1]

    def _back(self, y: Any) -> Any:
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        return self._inverse(y)

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines _call")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """`log |dy/dx|`, of an event."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the image of values of this shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of values whose image has this shape."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, of: Transform) -> None:
        super().__init__()
        self._of = of
        self.domain, self.codomain = of.codomain, of.domain

    @property
    def sign(self) -> Any:
        return self._of.sign

    @property
    def inv(self) -> Transform:
        return self._of

    def __call__(self, x: Any) -> Any:
        return self._of._back(x)

    def _back(self, y: Any) -> Any:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._of.forward_shape(shape)


class AffineTransform(Transform):
    """`y = loc + scale x`."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self.domain = self.codomain = constraints.independent(constraints.real, event_dim) if event_dim else constraints.real
        self._event_dim = event_dim

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1.0, self.scale) if self.scale else 0.0

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale = self.scale
        each = scale.abs().log() if isinstance(scale, Tensor) else x.detach() * 0 + math.log(abs(scale))
        n = self._event_dim
        return sum_rightmost(each.expand(x.shape) if n else each, n).expand(x.shape[: x.ndim - n])

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        shapes = [tuple(t.shape) for t in (self.loc, self.scale) if isinstance(t, Tensor)]
        return tuple(_f.broadcast_shapes(tuple(shape), *shapes))

    inverse_shape = forward_shape


class ExpTransform(Transform):
    """`y = exp(x)`."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """`y = x^exponent` of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else math.copysign(1.0, self.exponent)

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """`y = 1 / (1 + exp(-x))`."""

    codomain = constraints.unit_interval
    sign = 1

    def _call(self, x: Any) -> Any:
        tiny = 2.0**-1022 if x.dtype.name == "float64" else 2.0**-126
        return x.sigmoid().clamp(min=tiny, max=1.0 - eps_of(x.dtype))

    def _inverse(self, y: Any) -> Any:
        tiny = 2.0**-1022 if y.dtype.name == "float64" else 2.0**-126
        y = y.clamp(min=tiny, max=1.0 - eps_of(y.dtype))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """`y = log(1 + exp(x))`."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(Transform):
    """`y = tanh(x)`. The inverse of values beside 1 is inexact: take `cache_size=1`."""

    codomain = constraints.interval(-1.0, 1.0)
    sign = 1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)^2), without the difference of numbers that are nearly equal.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class IndependentTransform(Transform):
    """The map with as many more axes as one event: the logarithms are summed over them."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)


class ComposeTransform(Transform):
    """Maps one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.domain = constraints.independent(constraints.real, self._events(reversed(self.parts), "domain", "codomain"))
        self.codomain = constraints.independent(constraints.real, self._events(self.parts, "codomain", "domain"))

    def _events(self, parts: Any, to: str, source: str) -> int:
        n: int | None = None
        for part in parts:
            a, b = getattr(part, to).event_dim, getattr(part, source).event_dim
            n = a if n is None else max(n + a - b, a)
        return n or 0

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return x * 0
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = None
        events = self.domain.event_dim
        for part, a, b in zip(self.parts, values[:-1], values[1:]):
            term = sum_rightmost(part.log_abs_det_jacobian(a, b), events - part.domain.event_dim)
            total = term if total is None else total + term
            events += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)


identity_transform = ComposeTransform([])



def __getattr__(name: str) -> Any:
    # Maps of several numbers stand in a module of their own, which imports this one.
    from . import more_transforms

    if name in more_transforms.__all__:
        return getattr(more_transforms, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform", "PowerTransform", "SigmoidTransform", "SoftplusTransform",
    "TanhTransform", "Transform", "identity_transform",
]
