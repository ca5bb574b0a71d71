"""States of the generators of random numbers, and whole 64-bit draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _chainrule as _c
from ._chainrule import Generator, Tensor
from ._errors import ArgumentError


def random63(generator: Generator | None = None) -> int:
    """An integer of 63 random bits: the draw of PyTorch's `torch.empty((), dtype=int64).random_()`.
    """
    return int(_c._randint(-(2**63), 2**63 - 1, (), generator)) & (2**63 - 1)


def _as_state(state: bytes | list[int]) -> Tensor:
    return _c.tensor(list(state), "int64")


def _as_bytes(op: str, state: Any) -> bytes:
    values = state.tolist() if hasattr(state, "tolist") else list(state)
    if any(not isinstance(x, int) or not 0 <= x < 256 for x in values):
        raise TypeError(f"{op}: a state is a vector of bytes, as get_rng_state() gives it")
    return bytes(values)


def get_rng_state() -> Tensor:
    """The state of the generator of all: a vector of bytes in PyTorch's layout, held as int64.

    `set_rng_state` puts the generator back there, so that a run resumed from a file draws on
    as the run that wrote it would have.

    ```
    state = cr.get_rng_state()
    a = cr.rand(2)
    cr.set_rng_state(state)
    assert cr.equal(a, cr.rand(2))
    ```
    """
    return _as_state(_c._rng_state())


def set_rng_state(new_state: Tensor) -> None:
    """Puts the generator of all into a state that `get_rng_state` gave, here or in PyTorch."""
    if _c._session_on():
        raise ArgumentError("compile: the function sets the state of the generator, which a program would not do again")
    _c._set_rng_state(_as_bytes("set_rng_state", new_state))


def seed() -> int:
    """Seeds the generator of all with a number of the operating system, and gives that number."""
    import secrets

    from ._functions import manual_seed

    chosen = secrets.randbits(63)
    manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """The number by which the generator of all was seeded: the first word of its state's beginning.
    """
    return int.from_bytes(bytes(_c._rng_state())[:8], "little")


@contextmanager
def fork_rng(devices: Sequence[Any] = (), enabled: bool = True) -> Iterator[None]:
    """A block whose draws leave the generator of all as it was before."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            set_rng_state(before)


def _get_state(self: Generator) -> Tensor:
    """The state of the generator, as `get_rng_state` gives that of all."""
    return _as_state(self._state())


def _set_state(self: Generator, new_state: Tensor) -> Generator:
    """Puts the generator into a state that `get_state` gave."""
    self._set_state(_as_bytes("set_state", new_state))
    return self


def _clone_state(self: Generator) -> Generator:
    """Another generator, in the state of this one."""
    return Generator().set_state(self.get_state())


def _seed(self: Generator) -> int:
    """Seeds the generator with a number of the operating system, and gives that number."""
    import secrets

    chosen = secrets.randbits(63)
    self.manual_seed(chosen)
    return chosen


def attach() -> None:
    """Gives the native generator its methods of this module."""
    methods: dict[str, Any] = {"get_state": _get_state, "set_state": _set_state, "clone_state": _clone_state, "seed": _seed}
    for name, value in methods.items():
        setattr(Generator, name, value)


default_generator: Generator = _c._default_generator()
"""The generator of all, from which draws come that are given none."""

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "seed", "set_rng_state"]
