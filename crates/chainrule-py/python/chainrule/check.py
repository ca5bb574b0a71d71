"""Checks of gradients by paths that share no code with the backward pass, and the names of mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._places import without_places


class Report:
    """Whether a check passed, and its text. As a truth value: whether it passed. `outcome` is "right", "wrong" or "uncertain"; the last has not passed."""

    def __init__(self, passed: bool, text: str, outcome: str | None = None) -> None:
        self.passed, self.text = passed, without_places(text)
        self.outcome = outcome or ("right" if passed else "wrong")

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


# Whether lifted functions of PyTorch must be differentiable twice, as a counter.
_twice = [0]


def _list(inputs: Any) -> list[Tensor]:
    return [inputs] if isinstance(inputs, Tensor) else list(inputs)


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Tensor], *, order: int = 1, seeds: int = 3, tolerance: float | None = None
) -> Report:
    """Reverse mode beside forward mode and differences, for every output by every float input.

    The check runs in float64, to which float32 inputs are converted; integers stay as they are. Beside the given point, at which elements may be zero, equal or one, it
    looks at another one. The backward must give the same numbers each time and be linear in the cotangent. `outcome` is "uncertain" where the
    differences drown in rounding, as at scales like 1e150: that does not pass.
    """
    _twice[0] += order == 2
    try:
        return Report(*_c._gradcheck(func, _list(inputs), order, seeds, tolerance))
    finally:
        _twice[0] -= order == 2


def explain(
    func: Callable[..., Tensor], inputs: Tensor | Sequence[Tensor], reference: Callable[..., Tensor] | None = None, *, seeds: int = 3
) -> Report:
    """Which classic mistake makes the gradient of `func` wrong.

    With a `reference` that computes the same by plain ops, a mistake is planted in one op after the other until the wrong gradient comes out. Without
    one the numbers alone are read, beside differences; the inputs are float64 then.
    """
    if reference is not None:
        return Report(*_c._explain(func, reference, _list(inputs)))
    all_of = _c._explain_opaque(func, _list(inputs))
    lines = [f"input {i}: {reading}" for i, readings in enumerate(all_of) for reading in readings]
    if lines:
        return Report(False, "\n".join(lines))
    # Wrong numbers may follow no pattern: that nothing is read in them does not make them right.
    passed, text, outcome = _c._gradcheck(func, _list(inputs), 1, seeds, None)
    if passed:
        return Report(True, "the gradients agree with differences of the function")
    if outcome == "uncertain":
        return Report(False, text, outcome)
    return Report(False, "the gradients are wrong, and their numbers follow no known pattern\n" + text)


def compare(loss: Tensor, by_hand: Mapping[str, Tensor], *, rtol: float = 1e-5, atol: float = 0.0) -> Report:
    """Gradients written by hand, by the names of their tensors (`t.named(...)`), beside those of autograd.

    An element is right if `|by hand - autograd| <= atol + rtol * |autograd|`, or if no more than rounding keeps it from that: the backward pass is run again with its
    numbers changed in their last bits, in the dtype that it runs in, and what that does to an element is its rounding. Without an `atol` each
    gradient is judged by its own size, however small. A gradient that cannot be compared does not pass.
    """
    return Report(*_c._compare(loss, list(by_hand.items()), rtol, atol))


def verdict(loss: Tensor, given: Sequence[tuple[Tensor, Tensor]]) -> Report:
    """What is wrong with the gradients that are given for leaves of `loss`, as pairs of leaf and gradient."""
    return Report(*_c._verdict(loss, list(given)))


__all__ = ["Report", "compare", "explain", "gradcheck", "verdict"]
