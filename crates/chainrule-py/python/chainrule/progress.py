"""A line of progress for training loops."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

T = TypeVar("T")


class track(Iterable[T]):
    """Iterates and shows how far it is, how fast, and the last values given to `show`:
    `for i in (bar := track(range(1000))): bar.show(loss=x)`.

    With `tqdm` installed that draws the bar; else one line is written, at most five times a second,
    and only to a terminal.
    """

    def __init__(self, iterable: Iterable[T], total: int | None = None, file: Any = None) -> None:
        self._iterable = iterable
        self.total = total if total is not None else len(iterable) if isinstance(iterable, Sized) else None
        self._file = sys.stderr if file is None else file
        self._values: dict[str, Any] = {}

    def show(self, **values: Any) -> None:
        """Values to stand at the end of the line."""
        self._values = values

    def _text(self, done: int, start: float) -> str:
        rate = done / max(time.perf_counter() - start, 1e-9)
        of = f"/{self.total}" if self.total else ""
        tail = "".join(f"  {k} {v:.4g}" if isinstance(v, float) else f"  {k} {v}" for k, v in self._values.items())
        return f"\r{done}{of}  {rate:.0f}/s{tail}\x1b[K"

    def __iter__(self) -> Iterator[T]:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield from self._plain()
            return
        with tqdm(self._iterable, total=self.total, file=self._file) as bar:
            for item in bar:
                yield item
                if self._values:
                    bar.set_postfix(self._values)

    def _plain(self) -> Iterator[T]:
        start = last = time.perf_counter()
        terminal = self._file.isatty()
        done = 0
        for item in self._iterable:
            yield item
            done += 1
            now = time.perf_counter()
            if terminal and now - last > 0.2:
                last = now
                self._file.write(self._text(done, start))
        if terminal:
            self._file.write(self._text(done, start) + "\n")
