"""Distributions over classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import _functions as _f
from .._chainrule import Tensor
from ..autograd import no_grad
from .distribution import Distribution, clamped


class Categorical(Distribution):
    """The distribution over 0, ..., K - 1 with probabilities in proportion to `probs`, or to
    `exp(logits)`, along the last axis.

    ```
    d = cr.distributions.Categorical(logits=cr.zeros(4, 3))
    a = d.sample()
    assert a.shape == (4,) and d.log_prob(a).shape == (4,)
    ```
    """

    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        given = probs if probs is not None else logits
        if given is None or (probs is not None and logits is not None):
            raise ValueError("Categorical: give either probs or logits")
        if given.ndim < 1:
            raise ValueError("Categorical: shape (): the last axis is that of the classes")
        super().__init__(given.shape[:-1], validate_args=validate_args)
        if probs is not None:
            self._require((probs >= 0).all(-1).logical_and(probs.sum(-1) > 0), "probs must be 0 or more, and not all of them 0")
            self.probs = probs / probs.sum(-1, keepdim=True)
            self.logits = clamped(self.probs).log()
        else:
            self._require(given == given, "logits must not be NaN")
            self.logits = given - given.logsumexp(-1, keepdim=True)
            self.probs = self.logits.softmax(-1)
        self._by_probs, self._num_events = probs is not None, given.shape[-1]

    @property
    def param_shape(self) -> Any:
        """The shape of `probs` and `logits`."""
        return self.logits.shape

    @property
    def mean(self) -> Tensor:
        return _c._full(self._batch_shape, math.nan, self.probs.dtype)

    variance = mean

    @property
    def mode(self) -> Tensor:
        """The most probable class."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape, count = self._shape(sample_shape), math.prod(sample_shape)
            if not math.prod(shape):
                return _c._full(shape, 0, "int64")
            rows = self.probs.detach().reshape(-1, self._num_events)
            return _c._multinomial(rows, count, True, None).t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value < self._num_events), f"a class is from 0 to {self._num_events - 1}")
        at, rows = _f.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return rows.gather(-1, at[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        least = -3.4028234663852886e38 if self.logits.dtype.name == "float32" else -1.7976931348623157e308
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All classes, along the first axis."""
        values = _c._arange(0, self._num_events, 1, "int64").reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((self._num_events, *self._batch_shape)) if expand else values

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs} if self._by_probs else {"logits": self.logits}


class OneHotCategorical(Distribution):
    """`Categorical` whose draws are vectors with a 1 at the class and zeros elsewhere."""

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._classes = Categorical(probs, logits, validate_args)
        self.probs, self.logits = self._classes.probs, self._classes.logits
        super().__init__(self._classes.batch_shape, (self.probs.shape[-1],), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._classes.sample(sample_shape)._one_hot(self.probs.shape[-1])._to_dtype(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._classes.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._classes.entropy()
