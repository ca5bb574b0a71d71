"""The share of a data set that belongs to a rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

from ... import distributed as _ranks
from ..._chainrule import Generator
from ..._making import randperm
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, of an order that all ranks draw alike; call
    `set_epoch` before each epoch for another order. The last share is filled up from the
    beginning, or left out with `drop_last`.

    ```
    Sampler = cr.utils.data.DistributedSampler
    samplers = [Sampler(range(5), 2, rank, shuffle=False) for rank in (0, 1)]
    assert [list(s) for s in samplers] == [[0, 2, 4], [1, 3, 0]]
    ```
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:
        self.num_replicas = _ranks.get_world_size() if num_replicas is None else num_replicas
        self.rank = _ranks.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"DistributedSampler: rank {self.rank} is not among {self.num_replicas}")
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        n = len(dataset)
        shares = (n - self.num_replicas) / self.num_replicas if drop_last and n % self.num_replicas else n / self.num_replicas
        self.num_samples = math.ceil(shares)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order: list[Any] = list(range(n))
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        if not self.drop_last and order:
            order = (order * math.ceil(self.total_size / len(order)))[: self.total_size]
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for this epoch."""
        self.epoch = epoch


__all__ = ["DistributedSampler"]
