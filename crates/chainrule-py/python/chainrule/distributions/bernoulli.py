"""Coins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _making as _m
from .._chainrule import Tensor
from ..autograd import no_grad
from ..nn import functional as F
from .distribution import Distribution, clamped, together


class Bernoulli(Distribution):
    """1 with probability `probs`, or `sigmoid(logits)`, else 0.

    ```
    d = cr.distributions.Bernoulli(cr.tensor([0.1, 0.9]))
    assert d.sample((5,)).shape == (5, 2)
    ```
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Bernoulli: give either probs or logits")
        (given,) = together(probs if probs is not None else logits)
        super().__init__(given.shape, validate_args=validate_args)
        self._by_probs = probs is not None
        if probs is not None:
            self._require((given >= 0).logical_and(given <= 1), "probs must be between 0 and 1")
            near = clamped(given)
            self.probs, self.logits = given, near.log() - (-near).log1p()
        else:
            self.probs, self.logits = given.sigmoid(), given

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The more probable value; NaN where both are as probable."""
        return (self.probs >= 0.5)._to_dtype(self.probs.dtype).masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return _m.bernoulli(self.probs.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value == 0).logical_or(value == 1), "a value is 0 or 1")
        shape = (self.logits + value).shape
        return -F.binary_cross_entropy_with_logits(self.logits.expand(shape), value.expand(shape), reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1, along the first axis."""
        values = _m.arange(2, dtype=self.probs.dtype).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((2, *self._batch_shape)) if expand else values

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs} if self._by_probs else {"logits": self.logits}
