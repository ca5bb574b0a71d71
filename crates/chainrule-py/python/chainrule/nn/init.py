"""Initial values of parameters; with the same seed those of PyTorch."""

from __future__ import annotations

import math
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Generator, Tensor
from .._errors import ArgumentError
from ..autograd import no_grad

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity shrinks what passes through it, inverted."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    if nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity not in GAINS:
        raise ArgumentError(f"calculate_gain: there is no gain for '{nonlinearity}'")
    return GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """The number of inputs and outputs of a weight."""
    if tensor.ndim < 2:
        raise ArgumentError(f"fans: shape {tuple(tensor.shape)}: a weight has two axes or more")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = fans


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers from `a` to `b`."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """The same number everywhere."""
    return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros to all elements, in place."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones to all elements, in place."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers that keep the size of signals both ways."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / sum(fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers that keep the size of signals both ways."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform numbers that keep the size of signals through rectifiers."""
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal numbers that keep the size of signals through rectifiers."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal."""
    from .._making import eye

    return tensor.copy_(eye(*tensor.shape))


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A matrix with orthogonal rows or columns, whichever are fewer, times `gain`; further axes
    count as columns.

    It is Q of the QR decomposition of normal numbers, with the signs of R's diagonal.
    """
    if tensor.ndim < 2:
        raise ArgumentError(f"orthogonal_: shape {tuple(tensor.shape)}: a weight has two axes or more")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    flat = _c._randn((rows, columns), tensor.dtype, generator)
    q, r = (flat.t() if rows < columns else flat)._qr()
    q = q * r.diagonal().sign()
    q = q.t() if rows < columns else q
    return tensor.copy_(q.reshape(tensor.shape) * gain)


@no_grad()
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of this mean and standard deviation, none of them outside of `[a, b]`: what
    falls outside is drawn again.

    If less than 0.3 of them would fall inside, uniform numbers of `[a, b]` are drawn, and kept with
    a probability in proportion to the density.
    """
    if not a < b:
        raise ArgumentError(f"trunc_normal_: a must be below b, got {a} and {b}")
    ends = [math.erf((x - mean) / std / math.sqrt(2.0)) / 2.0 for x in (a, b)]
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def drawn() -> tuple[Tensor, Tensor]:
        """Numbers, and which of them are to be drawn again."""
        if ends[1] - ends[0] > 0.3:
            x = _c._full(tensor._dims, 0.0, tensor.dtype).normal_(mean, std, generator=generator)
            return x, (x < a).logical_or(x > b)
        x = _c._full(tensor._dims, 0.0, tensor.dtype).uniform_(a, b, generator=generator)
        return x, _c._rand(tensor._dims, tensor.dtype, generator).log() > ((x - mean) / std).square() * -0.5 - peak

    found, again = drawn()
    while bool(again.any()):
        other, bad = drawn()
        found, again = _c._where(again, other, found), again.logical_and(bad)
    return tensor.copy_(found)


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that gives its input back: 1 in the middle of channel i for output i of each
    group.
    """
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ArgumentError(f"dirac_: shape {tuple(tensor.shape)}: the weight of a convolution whose outputs are a multiple of {groups}")
    each = tensor.shape[0] // groups
    tensor.fill_(0.0)
    for g in range(groups):
        for i in range(min(each, tensor.shape[1])):
            tensor.data[(g * each + i, i, *(n // 2 for n in tensor.shape[2:]))] = 1.0
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers, of which a share `sparsity` of each column is 0."""
    from .._making import randperm

    if tensor.ndim != 2:
        raise ArgumentError(f"sparse_: shape {tuple(tensor.shape)}: a matrix is needed")
    normal_(tensor, 0.0, std, generator)
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    for j in range(columns):
        tensor.data[randperm(rows)[:zeros], j] = 0.0
    return tensor


# PyTorch's names of before.
uniform, normal, constant, eye, dirac = uniform_, normal_, constant_, eye_, dirac_
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_
orthogonal, sparse = orthogonal_, sparse_
_no_grad_trunc_normal_ = trunc_normal_


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan-in or the fan-out, by its name."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ArgumentError(f"init: mode is 'fan_in' or 'fan_out', not {mode!r}")
    return int(fans(tensor)[mode.lower() == "fan_out"])


__all__: list[Any] = [
    "calculate_gain", "constant_", "dirac_", "eye_", "fans", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_", "sparse_",
    "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]
