"""PyTorch's profiler, which is not there: blocks run as they are, and its tables are errors that
say what measures here.
"""

from __future__ import annotations

import enum
from types import TracebackType
from typing import Any

INSTEAD = "there is no profiler; chainrule.bench measures functions, and Python's cProfile shows where time goes"


class ProfilerActivity(enum.Enum):
    """Devices that PyTorch's profiler looks at."""

    CPU = 0
    CUDA = 1
    XPU = 2


class profile:
    """A block that runs as it is. `key_averages` is an error."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> profile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def start(self) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def step(self) -> None:
        """Nothing."""

    def key_averages(self, *_: Any, **__: Any) -> Any:
        """An error: nothing was measured."""
        raise NotImplementedError(INSTEAD)

    export_chrome_trace = export_stacks = table = key_averages


class record_function:
    """A block, or a function, with a name that nothing shows."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Any:
    """A plan of steps, which nothing follows."""
    return lambda step: None


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Any:
    """A function that writes nothing."""
    return lambda prof: None


__all__ = ["ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]
