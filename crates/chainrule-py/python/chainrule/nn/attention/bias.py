"""Causal masks of queries and keys of different numbers."""

from __future__ import annotations

from ... import _making as _m
from ..._chainrule import Tensor


def causal_upper_left(*size: int) -> Tensor:
    """True where a key is not behind its query, both counted from the first.

    ```
    assert cr.nn.attention.bias.causal_upper_left(1, 2).tolist() == [[True, False]]
    ```
    """
    return _m.ones(size, dtype="bool").tril()


def causal_lower_right(*size: int) -> Tensor:
    """True where a key is not behind its query, both counted from the last.

    ```
    assert cr.nn.attention.bias.causal_lower_right(1, 2).tolist() == [[True, True]]
    ```
    """
    return _m.ones(size, dtype="bool").tril(size[1] - size[0])


__all__ = ["causal_lower_right", "causal_upper_left"]
