"""Probability distributions as such."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from .._size import Size
from .._types import as_tensor
from ..autograd import no_grad


class Distribution:
    """A distribution: `sample`, `rsample`, `log_prob`, `entropy`, `mean`, `variance`.

    `batch_shape` is the shape of the parameters, `event_shape` that of one draw. Draws of shape
    `sample_shape` have the shape `sample_shape + batch_shape + event_shape`. Random numbers are
    PyTorch's for the same seed.
    """

    has_rsample = False
    has_enumerate_support = False
    _default_checks = True

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their parameters and values, unless they are told."""
        Distribution._default_checks = bool(value)

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._checks = self._default_checks if validate_args is None else bool(validate_args)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean of the distribution."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, `sqrt(variance)`."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws as functions of the parameters, through which gradients flow."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: its draws have no gradient; use sample and log_prob")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def entropy(self) -> Tensor:
        """The mean of `-log_prob`."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value at which `cdf` is `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along the first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no enumerate_support")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same for a larger batch."""
        new, old, shape = copy.copy(self), tuple(self._batch_shape), tuple(batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, Distribution):
                new.__dict__[name] = value.expand((*shape, *tuple(value.batch_shape)[len(old) :]))
            elif isinstance(value, Tensor) and tuple(value.shape[: len(old)]) == old:
                new.__dict__[name] = value.expand((*shape, *value.shape[len(old) :]))
        new._batch_shape = Size(shape)
        return new

    def perplexity(self) -> Tensor:
        """`exp(entropy)`."""
        return self.entropy().exp()

    def _shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _require(self, holds: Any, what: str) -> None:
        """An error unless all elements are true. A program cannot look at values, and its trace is
        not asked.
        """
        if self._checks and not _c._session_on() and not bool(holds.all()):
            raise ValueError(f"{type(self).__name__}: {what}")

    def _text(self) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        parts = [f"{k}: {v.item() if v.ndim == 0 else f'chainrule.Size({list(v.shape)})'}" for k, v in self._text().items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def together(*values: Any) -> tuple[Tensor, ...]:
    """Parameters, tensors or numbers, in one shape and dtype."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    beside = tensors[0] if tensors else None
    made = [v if isinstance(v, Tensor) else as_tensor(float(v), beside) if beside is not None else _c.tensor(float(v)) for v in values]
    return _f.broadcast_tensors(*made)


def shape_of(*values: Any) -> tuple[int, ...]:
    """The shape of the parameters; of numbers none."""
    for v in values:
        if isinstance(v, Tensor):
            return tuple(v.shape)
    return ()


def eps_of(dtype: Any) -> float:
    """The distance from 1 to the next number."""
    return 2.0**-52 if dtype.name == "float64" else 2.0**-23


def clamped(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by `eps`."""
    eps = eps_of(probs.dtype)
    return probs.clamp(eps, 1 - eps)


HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
