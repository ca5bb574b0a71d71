"""Several processes that train together: their number changes no bit of the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor

__all__ = ["Ranks", "current", "init"]

_current: Ranks | None = None


class Ranks:
    """The ranks of a training, and this one among them; made by `init`.

    A step has a fixed number of micro-batches. Each rank computes the gradients of its share of
    them; `average` gives all ranks the mean over all, added up in an order that does not depend on
    the ranks.

    ```
    ranks = cr.distributed.init()
    model = cr.nn.Linear(3, 1)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    x = cr.randn(12, 5, 3)
    for i in ranks.share(12):  # the micro-batches of this rank
        model(x[i]).square().mean().backward()
        ranks.add(model.parameters())
    ranks.average()
    optimizer.step()
    ```
    """

    def __init__(self, exchange: _c.Exchange) -> None:
        self._exchange = exchange
        self._parts = 0
        self._own: list[list[Tensor]] = []
        self._parameters: list[Tensor] = []

    @property
    def rank(self) -> int:
        """The number of this rank, from 0."""
        return self._exchange.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._exchange.size

    def share(self, micro_batches: int) -> range:
        """Begins a step: the numbers of this rank's micro-batches, of so many. The gradients of the
        step before are `None` then.

        An error for fewer micro-batches than ranks.
        """
        first, end = self._exchange.share(micro_batches)
        # A mean that stayed would be added to the first micro-batch of each rank.
        for p in self._parameters:
            p.grad = None
        self._parts = micro_batches
        self._own, self._parameters = [], []
        return range(first, end)

    def add(self, parameters: Iterable[Tensor]) -> None:
        """Takes the gradients of the micro-batch that was computed last from `.grad`, which is
        `None` then. A parameter without a gradient counts as one with zeros."""
        parameters = list(parameters)
        if self._own and [id(p) for p in parameters] != [id(p) for p in self._parameters]:
            raise ValueError("add: other parameters than before in this step")
        if not parameters:
            raise ValueError("add: no parameters")
        self._parameters = parameters
        part = []
        for p in parameters:
            part.append(_c._full(p.shape, 0.0, p.dtype) if p.grad is None else p.grad)
            p.grad = None
        self._own.append(part)

    def average(self) -> None:
        """Sets `.grad` of all parameters to the mean over the micro-batches of all ranks."""
        first, end = self._exchange.share(self._parts) if self._parts else (0, 0)
        if len(self._own) != end - first or not self._own:
            raise ValueError(
                f"average: {len(self._own)} of the {end - first} micro-batches of this rank were added; "
                "call share(n) first, and add(parameters) after each backward"
            )
        totals = self._exchange.sum(self._parts, self._own)
        for p, total in zip(self._parameters, totals):
            p.grad = total / self._parts
        self._own = []

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks of a tensor that each of them has, added up in a fixed order.

        ```
        assert cr.distributed.init().sum(cr.ones(2)).tolist() == [1.0, 1.0]
        ```
        """
        return self._exchange.sum(self.size, [[tensor.detach()]])[0]

    def agree(self, facts: Mapping[str, Any]) -> None:
        """An error on all ranks unless all have these values alike: settings, sums of data."""
        self._exchange.agree([(str(name), str(value)) for name, value in facts.items()])

    def all_gather(self, data: bytes) -> list[bytes]:
        """The bytes of all ranks, in their order."""
        return self._exchange.all_gather(data)

    def barrier(self) -> None:
        """Returns when all ranks are here."""
        self._exchange.barrier()

    def abort(self, why: str) -> None:
        """Tells the other ranks why this one ends."""
        self._exchange.abort(why)

    def __repr__(self) -> str:
        return f"Ranks(rank={self.rank}, size={self.size})"


def init(communicator: Any = None, timeout: float = 30.0) -> Ranks:
    """Joins the ranks that `torchrun`, `mpirun`, `srun` or the variables `WORLD_SIZE`, `RANK`,
    `MASTER_ADDR` and `MASTER_PORT` have started; this process is alone without them.

    `communicator` is one of `mpi4py`, whose MPI then carries the data. `timeout` is the time in
    seconds without a sign of life after which a rank counts as gone.

    ```
    assert cr.distributed.init().size == 1
    ```
    """
    global _current
    _current = Ranks(_c._exchange_join(timeout) if communicator is None else _c._exchange_over(communicator))
    return _current


def current() -> Ranks | None:
    """The ranks of the last `init`; None before it.

    ```
    ranks = cr.distributed.init()
    assert cr.distributed.current() is ranks
    ```
    """
    return _current
