"""A clock for the time that looks take."""

from __future__ import annotations

import time


class Clock:
    """Counts the time inside of `with` blocks, of those inside of others once; and, while
    `is_counting`, how much of it the processor worked for this thread.
    """

    def __init__(self, is_counting: bool = True) -> None:
        self.spent, self._depth, self._began = 0.0, 0, 0.0
        self.is_counting, self._worked, self._worked_before, self._counted = is_counting, 0.0, 0.0, 0.0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            if self.is_counting:
                self._worked_before = time.thread_time()
            self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            took = time.perf_counter() - self._began
            self.spent += took
            if self.is_counting:
                self._counted += took
                self._worked += time.thread_time() - self._worked_before

    @property
    def share(self) -> float:
        """The part of the counted time in which the processor worked."""
        return min(self._worked / self._counted, 1.0) if self._counted > 0.0 else 1.0
