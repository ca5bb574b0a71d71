"""Batches of a data set, in order or shuffled, fetched here or by worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from ..._chainrule import Generator
from ..._random import random63
from ._collate import default_collate, default_convert
from ._workers import Crew, Ended, Failure, WorkerInfo, get_worker_info
from .dataset import IterableDataset, Samples
from .sampler import BatchSampler, RandomSampler, SequentialSampler

T = TypeVar("T", covariant=True)


class _Fetcher:
    """Samples of a list of indices (or of one index) as a batch."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> None:
        self._dataset, self._batched, self._collate, self._drop_last = dataset, batched, collate, drop_last
        self._stream = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def __call__(self, indices: Any) -> Any:
        if self._stream is not None:
            if not self._batched:
                return self._collate(next(self._stream))
            samples = list(itertools.islice(self._stream, len(indices)))
            if not samples or (self._drop_last and len(samples) < len(indices)):
                raise StopIteration
            return self._collate(samples)
        if not self._batched:
            return self._collate(self._dataset[indices])
        if callable(getattr(self._dataset, "__getitems__", None)):
            return self._collate(self._dataset.__getitems__(indices))
        return self._collate([self._dataset[i] for i in indices])


class _MakeFetcher:
    """A fetcher's settings; a class, so that it can be pickled for workers."""

    def __init__(self, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> None:
        self._settings = batched, collate, drop_last

    def __call__(self, dataset: Any) -> _Fetcher:
        return _Fetcher(dataset, *self._settings)


class _Forever:
    """An endless stream of None: streams of samples have no index."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T]):
    """Batches of the samples of a data set.

    - `shuffle=True` draws the order anew for each pass, number by number as PyTorch does: from
      `generator` if there is one, else by way of a seed from the generator of all.
    - `sampler` gives indices, `batch_sampler` lists of them; `batch_size=None` gives single
      samples.
    - `collate_fn` makes a batch of a list of samples; by default `default_collate`.
    - `num_workers` processes fetch ahead, `prefetch_factor` batches each (2), with batches in the
      order of one process. `worker_init_fn(i)` runs in each first; `persistent_workers` keeps
      them for the next pass. A worker's generators are seeded with PyTorch's numbers.
    - `drop_last` leaves out a last batch that is short. `pin_memory` has no effect here.

    ```
    data = cr.utils.data.TensorDataset(cr.arange(5.0), cr.arange(5))
    sizes = [len(x) for x, y in cr.utils.data.DataLoader(data, batch_size=2, shuffle=True)]
    assert sizes == [2, 2, 1]
    ```
    """

    def __init__(
        self,
        dataset: Samples[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._check(num_workers, timeout, prefetch_factor, persistent_workers)
        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: an IterableDataset has its own order: shuffle, sampler and batch_sampler do not go with it")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler and shuffle exclude each other")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler goes without batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last needs a batch_size")
        self.dataset = cast(Any, dataset)
        self.num_workers, self.pin_memory, self.drop_last = num_workers, pin_memory, drop_last
        self.timeout, self.worker_init_fn, self.multiprocessing_context = timeout, worker_init_fn, multiprocessing_context
        self.generator, self.persistent_workers, self.in_order = generator, persistent_workers, in_order
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        order: Any = sampler
        if sampler is None:
            order = _Forever() if self._is_stream else RandomSampler(self.dataset, generator=generator) if shuffle else SequentialSampler(self.dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(order, batch_size, drop_last)
        self.batch_size, self.sampler, self.batch_sampler = batch_size, order, batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._crew: Crew | None = None

    @staticmethod
    def _check(num_workers: int, timeout: float, prefetch: int | None, persistent: bool) -> None:
        if num_workers < 0 or timeout < 0:
            raise ValueError(f"DataLoader: num_workers and timeout are not negative, got {num_workers} and {timeout}")
        if not num_workers and (prefetch is not None or persistent):
            raise ValueError("DataLoader: prefetch_factor and persistent_workers need num_workers > 0")
        if prefetch is not None and prefetch < 1:
            raise ValueError(f"DataLoader: prefetch_factor is a positive number, got {prefetch}")

    def fetcher(self) -> _MakeFetcher:
        """The settings by which samples become batches."""
        return _MakeFetcher(self.batch_sampler is not None, self.collate_fn, self.drop_last)

    def indices(self) -> Iterator[Any]:
        """The indices of each batch, or of each sample."""
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        # Drawn also where nobody uses it, and before the order: PyTorch's stream.
        base_seed = random63(self.generator) if self._crew is None else 0
        if not self.num_workers:
            return self._alone()
        if not self.persistent_workers:
            crew = Crew(self, base_seed)
        else:
            if self._crew is None:
                self._crew = Crew(self, base_seed)
            else:
                for i in range(self.num_workers):
                    self._crew.give(i, "again")
            crew = self._crew
        return _Ahead(self, crew, not self.persistent_workers)

    def _alone(self) -> Iterator[Any]:
        fetch = self.fetcher()(self.dataset)
        for indices in self.indices():
            try:
                batch = fetch(indices)
            except StopIteration:
                return
            yield batch

    def __len__(self) -> int:
        if self._is_stream:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


class _Ahead:
    """Batches of worker processes in the order of their indices."""

    def __init__(self, loader: DataLoader[Any], crew: Crew, closes: bool) -> None:
        self._crew, self._closes, self._indices = crew, closes, loader.indices()
        self._sent = self._given = 0
        self._ready: dict[int, Any] = {}
        self._workers = list(range(loader.num_workers))
        self._turn = 0
        self._done = False
        self._in_flight: dict[int, int] = {}
        for _ in range((loader.prefetch_factor or 2) * loader.num_workers):
            self._send()

    def __iter__(self) -> Iterator[Any]:
        return self

    def _send(self) -> None:
        if not self._workers:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        worker = self._workers[self._turn % len(self._workers)]
        self._turn += 1
        self._crew.give(worker, (self._sent, indices))
        self._in_flight[self._sent] = worker
        self._sent += 1

    def __next__(self) -> Any:
        while self._given < self._sent and not self._done:
            if self._given not in self._ready:
                number, found = self._crew.take()
                if number in self._in_flight:
                    self._ready[number] = found
                continue
            found = self._ready.pop(self._given)
            self._in_flight.pop(self._given)
            self._given += 1
            if isinstance(found, Ended):
                if found.worker in self._workers:
                    self._workers.remove(found.worker)
                self._send()
                continue
            self._send()
            if isinstance(found, Failure):
                self._end()
                found.throw()
            return found
        self._end()
        raise StopIteration

    def _end(self) -> None:
        """Ends the pass; what persistent workers still have under way is taken away."""
        if self._done:
            return
        self._done = True
        if self._closes:
            self._crew.close()
            return
        while any(number not in self._ready for number in self._in_flight):
            self._ready[self._crew.take()[0]] = None

    def __len__(self) -> int:
        return self._sent - self._given

    def __del__(self) -> None:
        try:
            self._end()
        except Exception:
            # The interpreter is ending, and the workers with it.
            pass


__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]
