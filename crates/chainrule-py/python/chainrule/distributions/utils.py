"""Parts of distributions of one's own: parameters together, probabilities and logits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .._chainrule import Tensor
from .distribution import clamped, together

T = TypeVar("T")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors and numbers in their common shape."""
    return tuple(together(*values))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1, so that their logits are finite."""
    return clamped(probs)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logarithms of probabilities; of a binary one the logarithm of the odds."""
    near = clamped(probs)
    return near.log() - (-near).log1p() if is_binary else near.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of classes along the last axis; of a binary one by the logistic function."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


class lazy_property(functools.cached_property[T]):
    """A property that is computed once, when it is first read."""

    def __init__(self, wrapped: Callable[[Any], T]) -> None:
        super().__init__(wrapped)


__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]
