"""Results of several tensors by name."""

from __future__ import annotations

from typing import NamedTuple

from ._chainrule import Tensor


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


class Frexp(NamedTuple):
    """Numbers from 1/2 to 1, and the powers of 2 that they are multiplied by."""

    mantissa: Tensor
    exponent: Tensor


class Solution(NamedTuple):
    """The solution of a triangular system, and its matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


class SVD(NamedTuple):
    """`U`, the singular values, and `V`, of which the transpose stands in the product."""

    U: Tensor
    S: Tensor
    V: Tensor
