"""Hooks of several gradients, and where values that backward saves are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from .._chainrule import Tensor

INSTEAD = "values that backward saves stay as they are; checkpoint(f, x) computes them anew instead"


@contextlib.contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """A block as it is: all that backward saves is on the processor."""
    yield


def saved_tensors_hooks(pack_hook: Any, unpack_hook: Any) -> Any:
    """An error: values that backward saves stay as they are."""
    raise NotImplementedError(f"saved_tensors_hooks: {INSTEAD}")


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block as it is: there are no such hooks."""
    yield


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """A block as it is: backward has the values that were saved, whatever is written later."""
    yield


class _Several:
    """Removes a hook from all tensors that it was given to."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """The hook is not called any more."""
        for handle in self._handles:
            handle.remove()


class _Gathered:
    """The gradients of one backward pass, until all of them are there."""

    def __init__(self, fn: Callable[[Any], None], many: int) -> None:
        self._fn, self._many = fn, many
        self._found: dict[int, Tensor] = {}

    def hook(self, at: int) -> Callable[[Tensor], None]:
        """The hook of the tensor at this place: it is called with the gradient."""

        def take(g: Tensor) -> None:
            self._found[at] = g
            if len(self._found) == self._many:
                found, self._found = self._found, {}
                self._fn([found[i] for i in range(self._many)])

        return take


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all") -> Any:
    """Calls `fn` with the gradients of all tensors once a backward pass has them, or with the first
    that is known for `mode="any"`.

    ```
    a, b = (cr.ones(2, requires_grad=True) for _ in range(2))
    seen = []
    handle = cr.autograd.graph.register_multi_grad_hook([a, b], seen.append)
    (a * b).sum().backward()
    assert len(seen) == 1 and len(seen[0]) == 2
    ```
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is 'all' or 'any', not {mode!r}")
    if mode == "any":
        return _Several([t.register_hook(fn) for t in tensors[:1]]) if len(tensors) == 1 else _first_of(tensors, fn)
    gathered = _Gathered(fn, len(tensors))
    return _Several([t.register_hook(gathered.hook(i)) for i, t in enumerate(tensors)])


def _first_of(tensors: Sequence[Tensor], fn: Callable[[Any], None]) -> _Several:
    """The hook for the first gradient of each round in which every tensor had one at most."""
    seen: set[int] = set()

    def hook(at: int) -> Callable[[Tensor], None]:
        def take(g: Tensor) -> None:
            # A tensor that was seen before begins another backward pass.
            if at in seen:
                seen.clear()
            if not seen:
                fn(g)
            seen.add(at)

        return take

    return _Several([t.register_hook(hook(i)) for i, t in enumerate(tensors)])


__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
