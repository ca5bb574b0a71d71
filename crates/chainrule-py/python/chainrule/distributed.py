"""Several processes that train together: their number changes no bit of the result."""

from __future__ import annotations

import enum
import os
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor

__all__ = [
    "Ranks", "ReduceOp", "all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast", "broadcast_object_list", "current",
    "destroy_process_group", "get_backend", "get_rank", "get_world_size", "init", "init_process_group", "is_available", "is_initialized",
    "is_torchelastic_launched", "reduce",
]

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

    In `with cr.distributed.init() as ranks` an error of one rank ends the others with its text.
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

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.abort(f"{type(error).__name__}: {error}")

    def __repr__(self) -> str:
        return f"Ranks(rank={self.rank}, size={self.size})"


def init(communicator: Any = None, timeout: float = 30.0, start: float = 300.0) -> Ranks:
    """Joins the ranks that `torchrun`, `mpirun`, `srun` or the variables `WORLD_SIZE`, `RANK`,
    `MASTER_ADDR` and `MASTER_PORT` have started; this process is alone without them.

    `communicator` is one of `mpi4py`, whose MPI then carries the data. `timeout` is the time in
    seconds without a sign of life after which a rank counts as gone, `start` the time for all ranks
    to come.

    ```
    assert cr.distributed.init().size == 1
    ```
    """
    global _current
    _current = Ranks(_c._exchange_join(timeout, start) if communicator is None else _c._exchange_over(communicator))
    return _current


def current() -> Ranks | None:
    """The ranks of the last `init`; None before it.

    ```
    ranks = cr.distributed.init()
    assert cr.distributed.current() is ranks
    ```
    """
    return _current


class ReduceOp(enum.Enum):
    """The ways to bring tensors of all ranks together."""

    SUM = "sum"
    AVG = "mean"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"


def is_available() -> bool:
    """Yes."""
    return True


def is_initialized() -> bool:
    """Whether `init` was called."""
    return _current is not None


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1, rank: int = -1, **more: Any) -> None:
    """`init` with the variables of the environment, or this rank and number of ranks."""
    if world_size > 0 and rank >= 0:
        os.environ.update(WORLD_SIZE=str(world_size), RANK=str(rank))
        if init_method is not None and init_method.startswith("tcp://"):
            host, port = init_method[6:].split(":", 1)
            os.environ.update(MASTER_ADDR=host, MASTER_PORT=port)
    if backend == "nccl":
        raise ValueError("init_process_group: there are no graphics processors for 'nccl'; take 'gloo'")
    init(timeout=30.0 if timeout is None else getattr(timeout, "total_seconds", lambda: float(timeout))())


def destroy_process_group(group: Any = None) -> None:
    """Forgets the ranks."""
    global _current
    _current = None


def _ranks() -> Ranks:
    if _current is None:
        raise ValueError("distributed: call init_process_group(), or init(), first")
    return _current


def get_rank(group: Any = None) -> int:
    """The number of this rank."""
    return _ranks().rank


def get_world_size(group: Any = None) -> int:
    """The number of ranks."""
    return _ranks().size


def get_backend(group: Any = None) -> str:
    """`'gloo'`: data goes between processors."""
    _ranks()
    return "gloo"


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def barrier(group: Any = None, **_: Any) -> None:
    """Returns when all ranks are here."""
    _ranks().barrier()


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fills a list with the objects of all ranks, which are pickled."""
    object_list[:] = [pickle.loads(data) for data in _ranks().all_gather(pickle.dumps(obj))]


def _of_all(tensor: Tensor) -> list[Tensor]:
    found: list[Any] = []
    all_gather_object(found, tensor.detach())
    return found


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> None:
    """Writes the tensors of all ranks to those of a list."""
    found = _of_all(tensor)
    if len(tensor_list) != len(found):
        raise ValueError(f"all_gather: a list of {len(tensor_list)} tensors for {len(found)} ranks")
    for to, t in zip(tensor_list, found):
        to.copy_(t)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> None:
    """Writes the sum over all ranks, or another reduction, to the tensor of each of them.

    ```
    cr.distributed.init_process_group("gloo")
    t = cr.ones(2)
    cr.distributed.all_reduce(t)
    assert t.tolist() == [1, 1]
    ```
    """
    ranks = _ranks()
    if op in (ReduceOp.SUM, ReduceOp.AVG) and tensor.is_floating_point():
        found = ranks.sum(tensor)
        tensor.detach().copy_(found / ranks.size if op is ReduceOp.AVG else found)
        return
    all_of = _of_all(tensor)
    found = all_of[0]
    ways = {ReduceOp.SUM: "add", ReduceOp.MAX: "maximum", ReduceOp.MIN: "minimum", ReduceOp.PRODUCT: "mul"}
    if op not in ways:
        raise ValueError(f"all_reduce: {op} of {tensor.dtype.name} is not there")
    for t in all_of[1:]:
        found = getattr(found, ways[op])(t)
    tensor.detach().copy_(found)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> None:
    """As `all_reduce`, for the tensor of one rank."""
    mine = tensor.detach().clone()
    all_reduce(mine, op)
    if get_rank() == dst:
        tensor.detach().copy_(mine)


def broadcast(tensor: Tensor, src: int, group: Any = None, async_op: bool = False) -> None:
    """Writes the tensor of one rank to those of the others."""
    tensor.detach().copy_(_of_all(tensor)[src])


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Fills the lists of all ranks with the objects of one."""
    found: list[Any] = []
    all_gather_object(found, list(object_list))
    object_list[:] = found[src]
