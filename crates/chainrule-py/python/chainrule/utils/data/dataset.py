"""Data sets: samples by index, or as a stream."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ..._chainrule import Generator, Tensor
from ..._making import randperm

T = TypeVar("T", covariant=True)


class Samples(Protocol[T]):
    """Samples by index: a data set, a list, an array."""

    def __getitem__(self, index: Any, /) -> T: ...


class Dataset(Generic[T]):
    """Samples by index. Subclasses define `__getitem__`, and `__len__` where the size is known.

    `a + b` is a `ConcatDataset`.

    ```
    class Squares(cr.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return cr.tensor(float(i * i))

    assert len(Squares() + Squares()) == 8
    ```
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__}: a Dataset defines __getitem__")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples as a stream. Subclasses define `__iter__`.

    With workers each worker iterates over the whole stream; `get_worker_info()` says which part
    of it a worker is to give. `a + b` is a `ChainDataset`.
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__}: an IterableDataset defines __iter__")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors that have equally many: sample `i` is `(a[i], b[i], ...)`.

    ```
    data = cr.utils.data.TensorDataset(cr.arange(6).reshape(3, 2), cr.tensor([0, 1, 2]))
    assert data[1][0].tolist() == [2, 3] and int(data[1][1]) == 1
    ```
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: at least one tensor is needed")
        sizes = [tuple(t.shape) for t in tensors]
        if any(not s for s in sizes) or len({s[0] for s in sizes}) > 1:
            raise ValueError(f"TensorDataset: the first sizes of the tensors differ: shapes {', '.join(map(str, sizes))}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Samples of several data sets side by side: a tuple for each index, or a dictionary."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: give data sets either by position or by name")
        self.datasets: Any = kwargs or args
        sizes = [len(d) for d in (kwargs.values() if kwargs else args)]
        if len(set(sizes)) > 1:
            raise ValueError(f"StackDataset: the data sets have different sizes: {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """Data sets one after the other."""

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Samples[T]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: at least one data set is needed")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ValueError("ConcatDataset: an IterableDataset has no index; use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        if not -len(self) <= index < len(self):
            raise ValueError(f"ConcatDataset: index {index} is outside of {len(self)} samples")
        index %= len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]  # type: ignore[no-any-return]


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise TypeError(f"ChainDataset: only IterableDatasets are chained, not {type(d).__name__}")
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[T]):
    """The samples of a data set at the given indices."""

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Samples[T], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]  # type: ignore[no-any-return]
        return self.dataset[self.indices[index]]  # type: ignore[no-any-return]

    def __getitems__(self, indices: list[int]) -> list[T]:
        """The samples at several indices, by one call where the data set has one."""
        at = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(at)  # type: ignore[no-any-return]
        return [self.dataset[i] for i in at]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Samples[T], lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[T]]:
    """Parts of a data set, without overlap, in random order; those of PyTorch for the same seed.

    `lengths` are sizes that add up to that of the data set, or fractions that add up to 1: each
    part then has `floor(n * fraction)` samples, and what is left goes round the first parts.

    ```
    g = cr.Generator().manual_seed(0)
    a, b = cr.utils.data.random_split(range(10), [0.7, 0.3], generator=g)
    assert (len(a), len(b)) == (7, 3)
    ```
    """
    n = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= f <= 1 for f in lengths):
            raise ValueError(f"random_split: fractions are between 0 and 1, got {list(lengths)}")
        sizes = [math.floor(n * f) for f in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"random_split: part {i} is empty", stacklevel=2)
    else:
        sizes = [int(x) for x in lengths]
        if sum(lengths) != n:
            raise ValueError(f"random_split: the lengths {list(lengths)} add up to {sum(lengths)}, and the data set has {n} samples")
    order = randperm(n, generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]


__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split",
]
