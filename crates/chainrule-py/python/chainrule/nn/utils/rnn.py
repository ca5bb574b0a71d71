"""Sequences of different lengths: padded to one tensor, or packed without the padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ... import _chainrule as _c
from ... import _functions as _f
from ..._chainrule import Tensor
from ..._errors import ArgumentError


class PackedSequence(NamedTuple):
    """Sequences of different lengths without padding, longest first: all first elements, then all
    second ones, ...

    `data` is `[sum of lengths, ...]`, `batch_sizes` the number of sequences that reach each step,
    `sorted_indices` the order by length and `unsorted_indices` the way back (None if they came so).
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with data of another dtype."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """The same: there is no other device."""
        return self

    def double(self) -> PackedSequence:
        """The same with float64 data."""
        return self._replace(data=self.data.double())

    def float(self) -> PackedSequence:
        """The same with float32 data."""
        return self._replace(data=self.data.float())

    @property
    def is_cuda(self) -> bool:
        """No."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    return None if permutation is None else permutation.argsort()


def _lengths(op: str, lengths: Any, longest: int, count: int) -> list[int]:
    found = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if len(found) != count:
        raise ArgumentError(f"{op}: {len(found)} lengths for {count} sequences")
    if any(not 0 < n <= longest for n in found):
        raise ArgumentError(f"{op}: lengths are from 1 to {longest}, the padded length, got {found}")
    return found


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Padded sequences `[steps, batch, ...]` (`[batch, steps, ...]` with `batch_first`) without
    their padding.

    With `enforce_sorted` the lengths must fall; without it the sequences are sorted here, and
    `pad_packed_sequence` puts them back.

    ```
    from chainrule.nn.utils import rnn
    x = cr.tensor([[1, 2, 3], [4, 5, 0]])
    packed = rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
    assert packed.data.tolist() == [1, 4, 2, 5, 3] and packed.batch_sizes.tolist() == [2, 2, 1]
    assert rnn.pad_packed_sequence(packed, batch_first=True)[0].tolist() == x.tolist()
    ```
    """
    x = input.transpose(0, 1) if batch_first else input
    steps, count = x.shape[0], x.shape[1]
    sizes = _lengths("pack_padded_sequence", lengths, steps, count)
    order: Tensor | None = None
    if not enforce_sorted:
        sizes_t, order = _c.tensor(sizes).sort(descending=True)
        sizes = sizes_t.tolist()
        x = x.index_select(1, order)
    elif sizes != sorted(sizes, reverse=True):
        raise RuntimeError(f"pack_padded_sequence: lengths {sizes} do not fall; sort the sequences, or give enforce_sorted=False")
    at, batch_sizes = _places(sizes, count)
    data = x.reshape(steps * count, *x.shape[2:]).index_select(0, _c.tensor(at, "int64"))
    return PackedSequence(data, _c.tensor(batch_sizes, "int64"), order, invert_permutation(order))


def _places(sizes: Sequence[int], count: int) -> tuple[list[int], list[int]]:
    """The rows of `[steps * batch]` that packed data has, and how many there are at each step."""
    batch_sizes = [sum(n > t for n in sizes) for t in range(max(sizes, default=0))]
    return [t * count + b for t, n in enumerate(batch_sizes) for b in range(n)], batch_sizes


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded sequences `[steps, batch, ...]`, and their lengths; in the order in which they
    were packed.
    """
    batch_sizes = sequence.batch_sizes.tolist()
    steps = len(batch_sizes)
    if total_length is not None and total_length < steps:
        raise ArgumentError(f"pad_packed_sequence: total_length is {total_length}, and the longest sequence has {steps}")
    count, steps = batch_sizes[0], total_length or steps
    data, starts, at = sequence.data, 0, []
    empty = data.shape[0]
    for t in range(steps):
        n = batch_sizes[t] if t < len(batch_sizes) else 0
        at += [*range(starts, starts + n), *[empty] * (count - n)]
        starts += n
    row = _c._full((1, *data.shape[1:]), padding_value, data.dtype)
    out = _f.cat([data, row]).index_select(0, _c.tensor(at, "int64")).reshape(steps, count, *data.shape[1:])
    lengths = _c.tensor([sum(n > b for n in batch_sizes) for b in range(count)], "int64")
    if sequence.unsorted_indices is not None:
        out = out.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    out = out.transpose(0, 1) if batch_first else out
    # Sequences that were sorted are put in order after the axes are, and lie so in memory.
    return (out if sequence.unsorted_indices is None else out.contiguous()), lengths


def pad_sequence(sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Sequences `[length, ...]` of different lengths as one tensor `[steps, batch, ...]`, padded to
    the longest.

    ```
    from chainrule.nn.utils.rnn import pad_sequence
    x = pad_sequence([cr.tensor([1, 2]), cr.tensor([3])], batch_first=True)
    assert x.tolist() == [[1, 2], [3, 0]]
    ```
    """
    all_of = list(sequences)
    if not all_of:
        raise RuntimeError("pad_sequence: there are no sequences")
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: padding_side is 'left' or 'right', not {padding_side!r}")
    rest = tuple(all_of[0].shape[1:])
    if any(tuple(s.shape[1:]) != rest for s in all_of):
        raise RuntimeError(f"pad_sequence: shapes {', '.join(str(tuple(s.shape)) for s in all_of)}: all but the first size must be equal")
    longest = max(s.shape[0] for s in all_of)
    rows = []
    for s in all_of:
        fill = _c._full((longest - s.shape[0], *rest), padding_value, s.dtype)
        rows.append(_f.cat([s, fill] if padding_side == "right" else [fill, s]) if fill.shape[0] else s)
    return _f.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each of its length."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(x, lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences `[length, ...]` packed."""
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
    "unpad_sequence",
]
