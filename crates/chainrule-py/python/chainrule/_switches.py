"""Settings of PyTorch that scripts make at their beginning, and functions that few of them use."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._devices import device as _device
from ._wide import set_default_dtype
from .autograd import INFERENCE


def use_deterministic_algorithms(mode: bool = True, *, warn_only: bool = False) -> None:
    """Nothing: the same seed gives the same bits already."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: all algorithms here give the same bits each time."""
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing: products of float32 are taken in float32."""
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f"set_float32_matmul_precision: 'highest', 'high' or 'medium', not {precision!r}")


def get_float32_matmul_precision() -> str:
    """`'highest'`: products of float32 are taken in float32."""
    return "highest"


def set_default_device(device: Any) -> None:
    """The processor, the one device; an error for others."""
    if device is not None:
        _device(device)


def set_default_tensor_type(t: Any) -> None:
    """The dtype of floats, by the name or the class of PyTorch's typed constructor."""
    from ._legacy import dtype_of_name

    set_default_dtype(dtype_of_name(t))


def set_num_interop_threads(n: int) -> None:
    """Nothing: ops run one after the other."""


def is_inference_mode_enabled() -> bool:
    """Whether a block of `inference_mode` runs."""
    return INFERENCE.is_on


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral by trapezoids along an axis: of width `dx`, or between the points `x`.

    ```
    assert cr.trapezoid(cr.tensor([1.0, 2.0, 4.0])).item() == 4.5
    ```
    """
    n = y.shape[dim]
    means: Tensor = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) / 2
    if x is None:
        return means.sum(dim) * dx
    widths = x.narrow(-1 if x.ndim == 1 else dim, 1, n - 1) - x.narrow(-1 if x.ndim == 1 else dim, 0, n - 1)
    if x.ndim == 1:
        axis = dim % y.ndim
        widths = widths.reshape(tuple(n - 1 if i == axis else 1 for i in range(y.ndim)))
    return (means * widths).sum(dim)


trapz = trapezoid


class layout(str):
    """The kind of a tensor's memory: there is `strided` only."""


class memory_format(str):
    """An order of elements in memory; it has no effect."""


strided = layout("chainrule.strided")
preserve_format, contiguous_format = memory_format("chainrule.preserve_format"), memory_format("chainrule.contiguous_format")
channels_last, channels_last_3d = memory_format("chainrule.channels_last"), memory_format("chainrule.channels_last_3d")


class Mode(NamedTuple):
    """The values that are there most often, and a place of each."""

    values: Tensor
    indices: Tensor


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Mode:
    """The value that is most often along an axis, the smallest of several, and the last place where
    it stands, which gets the gradient.
    """
    if input.ndim == 0:
        return Mode(input.clone(), _c.tensor(0))
    x = input.detach().movedim(dim, -1)
    ordered = x.sort(-1).values
    times = (ordered.unsqueeze(-1) == ordered.unsqueeze(-2)).sum(-1)
    # The first of equal counts wins, which belongs to the smallest value.
    best = times.argmax(-1, keepdim=True)
    places = _c._arange(0, x.shape[-1], 1, "int64")
    at = _c._where(x == ordered.gather(-1, best), places, -1).amax(-1, keepdim=True).movedim(-1, dim)
    values = input.gather(dim, at)
    return Mode(values, at) if keepdim else Mode(values.squeeze(dim), at.squeeze(dim))


def attach() -> None:
    """Gives the native class the methods of this module."""
    setattr(Tensor, "mode", mode)


__all__ = [
    "are_deterministic_algorithms_enabled", "channels_last", "channels_last_3d", "contiguous_format", "get_float32_matmul_precision", "is_inference_mode_enabled", "layout", "memory_format", "mode", "preserve_format", "set_default_device",
    "set_default_tensor_type", "set_float32_matmul_precision", "set_num_interop_threads", "strided", "trapezoid", "trapz", "use_deterministic_algorithms",
]
