"""Activations computed again in the backward pass instead of kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd import checkpoint


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool = False, preserve_rng_state: bool = True) -> Any:
    """The functions one after the other, in `segments` parts whose activations are computed again.

    The last part keeps its activations, since its backward pass comes first.

    ```
    from chainrule.utils.checkpoint import checkpoint_sequential
    net = cr.nn.Sequential(*(cr.nn.Linear(4, 4) for _ in range(6)))
    x = cr.ones(2, 4, requires_grad=True)
    assert cr.equal(checkpoint_sequential(net, 3, x), net(x))
    ```
    """
    all_of: Sequence[Callable[..., Any]] = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if segments < 1 or segments > len(all_of):
        raise ValueError(f"checkpoint_sequential: {len(all_of)} functions cannot be cut into {segments} parts")

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in all_of[start:end]:
                x = function(x)
            return x

        return run

    size = len(all_of) // segments
    at = 0
    for _ in range(segments - 1):
        input = checkpoint(part(at, at + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
        at += size
    return part(at, len(all_of))(input)


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A block without effect: errors of what is computed again tell the same in each."""
    yield


__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_debug_enabled"]
