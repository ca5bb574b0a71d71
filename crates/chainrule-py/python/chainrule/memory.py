"""The memory of dropped tensors that is kept, and giving it back.

Each thread keeps the memory of tensors that are dropped for the next ones: at most four times what
was in use at one time, 256 MiB in any case, and all threads together a quarter of the memory of the
machine. Sizes that nobody asks for any more go back while memory of new sizes is taken, and all of
it when an allocation fails.
"""

from __future__ import annotations

from . import _chainrule as _c

__all__ = ["statistics", "trim"]


def trim() -> None:
    """Gives the memory of dropped tensors that this thread keeps back to the system at once; that
    of other threads when they next drop a tensor.
    """
    _c._memory_trim()


def statistics() -> dict[str, int]:
    """The bytes that this thread keeps, and how often they were of use.

    `kept`: memory of dropped tensors; `in_use` and `most_in_use`: memory of the tensors of all
    threads, now and at one time; `limit` and `limit_of_all`: the most that this thread and all
    threads keep; `reused` and `fresh`: how many tensors were made in memory that was kept and in
    memory from the system; `given_back`: bytes that went back to the system.
    """
    return dict(_c._memory_statistics())
