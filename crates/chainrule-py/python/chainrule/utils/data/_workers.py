"""Processes that fetch batches ahead."""

from __future__ import annotations

import os
import queue
import random
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._chainrule import set_num_threads
from ..._functions import manual_seed

# Seconds between two looks at whether the other side is still alive.
PATIENCE = 5.0


class WorkerInfo(NamedTuple):
    """A worker as it sees itself: its number, their number, its seed, and its copy of the data."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class Failure(NamedTuple):
    """An error of a worker as text, for errors cannot always be pickled."""

    kind: type[BaseException]
    text: str

    def throw(self) -> None:
        """Raises it here, as its own type where that takes a message."""
        if self.kind is KeyError:
            raise KeyError(self.text)
        try:
            error = self.kind(self.text)
        except TypeError:
            error = RuntimeError(self.text)
        raise error


class Ended(NamedTuple):
    """A worker has come to the end of its stream."""

    worker: int


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that runs this, or None in the main process.

    An `IterableDataset` gives each worker its part by it: `id` of `num_workers`.
    """
    return _info


def numpy_seed(base_seed: int, worker: int) -> Any:
    """The state that seeds NumPy's generator in a worker, as in PyTorch."""
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4)


def work(
    worker: int, count: int, base_seed: int, dataset: Any, make: Callable[[Any], Any], init: Callable[[int], Any] | None, tasks: Any, results: Any
) -> None:
    """The loop of a worker: tasks are `(number, indices)`, None ends it, and "again" starts anew.
    """
    global _info
    seed = base_seed + worker
    parent = os.getppid()
    fetch: Any = None
    failed: Failure | None = None
    try:
        set_num_threads(1)
        random.seed(seed)
        manual_seed(seed)
        np.random.seed(numpy_seed(base_seed, worker))
        _info = WorkerInfo(worker, count, seed, dataset)
        if init is not None:
            init(worker)
        fetch = make(dataset)
    except Exception as error:
        failed = _failure(worker, error)
    while True:
        try:
            task = tasks.get(timeout=PATIENCE)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        except KeyboardInterrupt:
            return
        if task is None:
            return
        if task == "again":
            fetch = make(dataset)
            continue
        number, indices = task
        found: Any = failed
        if failed is None:
            try:
                found = fetch(indices)
            except StopIteration:
                found = Ended(worker)
            except KeyboardInterrupt:
                return
            except Exception as error:
                found = _failure(worker, error)
        results.put((number, found))


def _failure(worker: int, error: Exception) -> Failure:
    text = "".join(traceback.format_exception(error))
    return Failure(type(error), f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal {text}")


class Crew:
    """The worker processes of a loader."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        import multiprocessing

        given = loader.multiprocessing_context
        context: Any = multiprocessing.get_context(given) if given is None or isinstance(given, str) else given
        n = loader.num_workers
        self._results = context.Queue()
        self._results.cancel_join_thread()
        self._tasks: list[Any] = []
        self._processes: list[Any] = []
        for i in range(n):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            args = (i, n, base_seed, loader.dataset, loader.fetcher(), loader.worker_init_fn, tasks, self._results)
            process = context.Process(target=work, args=args, daemon=True)
            process.start()
            self._tasks.append(tasks)
            self._processes.append(process)
        self._owner = os.getpid()
        self.timeout = float(loader.timeout)

    def give(self, worker: int, task: Any) -> None:
        """A task for a worker."""
        self._tasks[worker].put(task)

    def take(self) -> tuple[int, Any]:
        """The next result of any worker."""
        waited = 0.0
        while True:
            step = min(PATIENCE, self.timeout - waited) if self.timeout else PATIENCE
            try:
                return self._results.get(timeout=max(step, 0.001))  # type: ignore[no-any-return]
            except queue.Empty:
                waited += step
            for i, process in enumerate(self._processes):
                if not process.is_alive():
                    raise RuntimeError(f"DataLoader: worker {i} (pid {process.pid}) ended unexpectedly with exit code {process.exitcode}")
            if self.timeout and waited >= self.timeout:
                raise RuntimeError(f"DataLoader: no batch came within {self.timeout} seconds")

    def close(self) -> None:
        """Ends the processes."""
        if not self._processes or self._owner != os.getpid():
            return
        processes, self._processes = self._processes, []
        for tasks in self._tasks:
            tasks.put(None)
        for process in processes:
            process.join(timeout=PATIENCE)
            if process.is_alive():
                process.terminate()
                process.join()
        for q in (*self._tasks, self._results):
            q.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            # The interpreter is ending; daemons end with it.
            pass
