"""Distributions of counts. Draws for a seed are PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _chainrule as _c
from .. import special
from .._chainrule import Tensor
from ..autograd import no_grad
from ..nn import functional as F
from .categorical import Categorical
from .distribution import Distribution, clamped, together
from .gamma import drawn, lgamma, tiny


class Poisson(Distribution):
    """Counts of events at a rate: `rate^k exp(-rate) / k!`.

    ```
    assert cr.distributions.Poisson(cr.tensor([1.0, 3.0])).sample((2,)).shape == (2, 2)
    ```
    """

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)
        self._require(self.rate >= 0, "rate must be 0 or more")

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        """The most probable count."""
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return drawn("poisson", self.rate.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value == value.floor()), "a value is a whole number from 0 up")
        return special.xlogy(value, self.rate) - self.rate - lgamma(value + 1)

    def _text(self) -> dict[str, Any]:
        return {"rate": self.rate}


class _OfCoins(Distribution):
    """A distribution over throws of a coin, given by `probs` or `logits`."""

    probs: Tensor
    logits: Tensor

    def _is_given(self, probs: Any, logits: Any) -> Tensor:
        if (probs is None) == (logits is None):
            raise ValueError(f"{type(self).__name__}: give either probs or logits")
        (given,) = together(probs if probs is not None else logits)
        self._by_probs = probs is not None
        near = clamped(given) if self._by_probs else given
        self.probs = given if self._by_probs else given.sigmoid()
        self.logits = near.log() - (-near).log1p() if self._by_probs else given
        return given

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs} if self._by_probs else {"logits": self.logits}


class Geometric(_OfCoins):
    """The number of failures before the first success of probability p: `(1 - p)^k p`."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = self._is_given(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)
        self._require((self.probs > 0).logical_and(self.probs <= 1), "probs must be above 0 and at most 1")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            probs = self.probs.detach().expand(self._shape(sample_shape))
            u = _c._rand(probs._dims, probs.dtype, None).clamp(min=tiny(probs.dtype))
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).logical_and(value == value.floor()), "a value is a whole number from 0 up")
        p = self.probs
        shape = (value + p).shape
        value, p = value.expand(shape), p.expand(shape)
        sure = (p == 1).logical_and(value == 0)
        return value * (-p.masked_fill(sure, 0.0)).log1p() + p.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(_OfCoins):
    """The number of successes among `total_count` throws: `n! / (k! (n - k)!) p^k (1 - p)^(n - k)`.
    """

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = self._is_given(probs, logits)
        self.total_count, _ = together(total_count, given)
        self.probs, self.logits = (t.expand(self.total_count.shape) for t in (self.probs, self.logits))
        super().__init__(self.total_count.shape, validate_args=validate_args)
        self._require((self.probs >= 0).logical_and(self.probs <= 1), "probs must be between 0 and 1")
        self._require((self.total_count >= 0).logical_and(self.total_count == self.total_count.floor()), "total_count is a whole number from 0 up")

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        return drawn("binomial", self.total_count.detach().expand(shape), self.probs.expand(shape))._to_dtype(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        self._require((value >= 0).logical_and(value <= n), "a value is from 0 to total_count")
        ways = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        # `-n softplus(x)` for logits x: the logarithm of `(1 - p)^n`.
        return ways + value * self.logits - n * self.logits.softplus()

    def entropy(self) -> Tensor:
        n = int(self.total_count.max())
        if bool((self.total_count != n).any()):
            raise NotImplementedError("Binomial: the entropy is there for one total_count")
        values = _c._arange(0, n + 1, 1, "int64")._to_dtype(self.probs.dtype).reshape((-1,) + (1,) * len(self._batch_shape))
        logs = self.log_prob(values.expand((n + 1, *self._batch_shape)))
        return -(logs.exp() * logs).sum(0)


class Multinomial(Distribution):
    """Counts of the classes among `total_count` draws of a `Categorical`.

    ```
    d = cr.distributions.Multinomial(10, cr.tensor([0.2, 0.8]))
    assert d.sample().sum().item() == 10
    ```
    """

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if isinstance(total_count, Tensor):
            raise NotImplementedError("Multinomial: total_count is one number for all")
        self.total_count, self._categorical = total_count, Categorical(probs, logits, validate_args)
        self.probs, self.logits = self._categorical.probs, self._categorical.logits
        super().__init__(self.probs.shape[:-1], self.probs.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            classes = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            zeros = _c._full(self._shape(sample_shape), 0.0, self.probs.dtype)
            return zeros.scatter_add(-1, classes, _c._full(classes._dims, 1.0, self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require((value >= 0).all(-1).logical_and(value.sum(-1) == self.total_count), "a value is counts that add up to total_count")
        # A class that cannot be drawn, and was not, adds nothing.
        never = (value == 0).logical_and(self.probs == 0)
        parts = self.logits.masked_fill(self.probs == 0, float("-inf")).where(never.logical_not(), 0.0) * value
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + parts.sum(-1)

    def _text(self) -> dict[str, Any]:
        return {"probs": self.probs}
