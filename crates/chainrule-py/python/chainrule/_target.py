"""The device that a function is traced for: random numbers of a device are a stream of its own, so
what is drawn need not be as the processor draws it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Target(threading.local):
    """The device of this thread's trace; none of the processor, and outside of traces."""

    device: str | None = None


TARGET = _Target()


@contextmanager
def tracing_for(device: str | None) -> Iterator[None]:
    """Traces for a device until the end."""
    before, TARGET.device = TARGET.device, device
    try:
        yield
    finally:
        TARGET.device = before
