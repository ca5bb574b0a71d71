"""Python's `multiprocessing`. Processes send tensors by their values: memory is not shared, and a
write in one process is not seen in another.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from collections.abc import Callable
from multiprocessing import (
    Array, Barrier, BoundedSemaphore, Condition, Event, JoinableQueue, Lock, Manager, Pipe, Pool, Process, Queue, RLock, Semaphore, SimpleQueue, Value,
    active_children, cpu_count, current_process, freeze_support, get_all_start_methods, get_context, get_logger, get_start_method, parent_process, set_start_method,
)
from typing import Any


def get_sharing_strategy() -> str:
    """`'values'`: tensors are sent by their values."""
    return "values"


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing: tensors are sent by their values."""


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn") -> Any:
    """Runs `fn(i, *args)` in `nprocs` processes; an error if one of them fails."""
    context: Any = _multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for p in processes:
        p.start()
    if not join:
        return processes
    for i, p in enumerate(processes):
        p.join()
        if p.exitcode:
            raise RuntimeError(f"spawn: process {i} ended with exit code {p.exitcode}")
    return None


__all__ = [
    "Array", "Barrier", "BoundedSemaphore", "Condition", "Event", "JoinableQueue", "Lock", "Manager", "Pipe", "Pool", "Process", "Queue", "RLock", "Semaphore",
    "SimpleQueue", "Value", "active_children", "cpu_count", "current_process", "freeze_support", "get_all_start_methods", "get_context", "get_logger",
    "get_sharing_strategy", "get_start_method", "parent_process", "set_sharing_strategy", "set_start_method", "spawn",
]
