"""The order in which samples are taken. The random ones draw as PyTorch's, number by number."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ... import _chainrule as _c
from ..._chainrule import Generator, Tensor
from ..._making import randint, randperm
from ..._random import random63

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Indices, or lists of them, one after the other. Subclasses define `__iter__`."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__}: a Sampler defines __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order; with `replacement` each is drawn anew.

    Without a generator one is seeded by a draw from the generator of all, as in PyTorch.

    ```
    order = cr.utils.data.RandomSampler(range(5), generator=cr.Generator().manual_seed(1))
    assert sorted(order) == [0, 1, 2, 3, 4]
    ```
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = data_source, replacement, num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement is True or False, got {replacement!r}")
        if not isinstance(self.num_samples, int) or self.num_samples < (num_samples is not None):
            raise ValueError(f"RandomSampler: num_samples is a positive number, got {num_samples!r}")

    @property
    def num_samples(self) -> int:
        """The number of indices of one pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(random63())
        if self.replacement:
            for _ in range(self.num_samples // 32):
                yield from randint(0, n, (32,), generator=generator).tolist()
            yield from randint(0, n, (self.num_samples % 32,), generator=generator).tolist()
            return
        for _ in range(self.num_samples // n if n else 0):
            yield from randperm(n, generator=generator).tolist()
        # A last permutation is drawn also where none of it is wanted, as PyTorch does.
        yield from randperm(n, generator=generator).tolist()[: self.num_samples % n if n else 0]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities in proportion to `weights`."""

    def __init__(self, weights: Sequence[float] | Tensor, num_samples: int, replacement: bool = True, generator: Generator | None = None) -> None:
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1:
            raise ValueError(f"WeightedRandomSampler: num_samples is a positive number, got {num_samples!r}")
        self.weights = _c.tensor(weights.tolist() if hasattr(weights, "tolist") else list(weights), "float64")
        if self.weights.ndim != 1:
            raise ValueError(f"WeightedRandomSampler: weights are a vector, got shape {tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = _c._multinomial(self.weights, self.num_samples, self.replacement, self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; `drop_last` leaves out a short one.

    ```
    assert list(cr.utils.data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    ```
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"BatchSampler: batch_size is a positive number, got {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last is True or False, got {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]
