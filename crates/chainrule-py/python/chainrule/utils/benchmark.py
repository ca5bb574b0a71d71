"""Times of statements, measured as PyTorch's `Timer` does it."""

from __future__ import annotations

import statistics
import timeit as _timeit
from typing import Any


class Measurement:
    """Times of one statement, each of `number_per_run` runs."""

    def __init__(self, number_per_run: int, raw_times: list[float], label: str | None = None) -> None:
        self.number_per_run, self.raw_times, self.label = number_per_run, raw_times, label

    @property
    def times(self) -> list[float]:
        """Seconds of one run, for each measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of the seconds of one run."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of the seconds of one run."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The distance of the quartiles, in seconds."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    def __repr__(self) -> str:
        return f"{self.label or 'Measurement'}: median {self.median * 1e6:.2f} us of {len(self.times)} x {self.number_per_run} runs"


class Timer:
    """Measures a statement of Python.

    ```
    x = cr.ones(8)
    timer = cr.utils.benchmark.Timer("x + x", globals={"x": x})
    assert timer.timeit(10).mean > 0
    ```
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Any = None, globals: dict[str, Any] | None = None, label: str | None = None, **_: Any) -> None:
        self._label = label
        self._inner = _timeit.Timer(stmt, setup, **({} if timer is None else {"timer": timer}), globals={} if globals is None else dict(globals))

    def timeit(self, number: int = 1000000) -> Measurement:
        """The time of `number` runs, after some to warm up."""
        self._inner.timeit(max(number // 100, 2))
        return Measurement(number, [self._inner.timeit(number)], self._label)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Times of blocks of runs until `min_run_time` seconds are over."""
        number = 1
        while (spent := self._inner.timeit(number)) < min(min_run_time / 1000, 0.01) and number < 10**9:
            number *= 10
        times = [spent]
        while sum(times) < min_run_time:
            times.append(self._inner.timeit(number))
        return Measurement(number, times, self._label)

    adaptive_autorange = blocked_autorange


__all__ = ["Measurement", "Timer"]
