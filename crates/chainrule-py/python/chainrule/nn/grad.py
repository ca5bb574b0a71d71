"""Gradients of convolutions by their input and their weight, as functions."""

from __future__ import annotations

from typing import Any

from .. import _making as _m
from .._chainrule import Tensor
from ..autograd import enable_grad
from ..autograd import grad as _gradient
from . import functional as F


def _of(conv: Any, input: Any, weight: Any, by: int, grad_output: Tensor, settings: tuple[Any, ...]) -> Any:
    """The gradient of `conv(input, weight)` by one of them, of which only the shape is asked."""
    with enable_grad():
        args = [x.detach() if isinstance(x, Tensor) else _m.zeros(tuple(x), dtype=grad_output.dtype) for x in (input, weight)]
        args[by].requires_grad_()
        stride, padding, dilation, groups = settings
        out = conv(args[0], args[1], None, stride, padding, dilation, groups)
        return _gradient(out, args[by], grad_output)[0]


def conv1d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """The gradient of `conv1d` by its input, which has this size.

    ```
    w = cr.ones(1, 1, 2)
    assert cr.nn.grad.conv1d_input((1, 1, 3), w, cr.ones(1, 1, 2)).tolist() == [[[1, 2, 1]]]
    ```
    """
    return _of(F.conv1d, input_size, weight, 0, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """The gradient of `conv1d` by its weight, which has this size."""
    return _of(F.conv1d, input, weight_size, 1, grad_output, (stride, padding, dilation, groups))


def conv2d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """The gradient of `conv2d` by its input, which has this size."""
    return _of(F.conv2d, input_size, weight, 0, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """The gradient of `conv2d` by its weight, which has this size."""
    return _of(F.conv2d, input, weight_size, 1, grad_output, (stride, padding, dilation, groups))


def conv3d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """The gradient of `conv3d` by its input, which has this size."""
    return _of(F.conv3d, input_size, weight, 0, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """The gradient of `conv3d` by its weight, which has this size."""
    return _of(F.conv3d, input, weight_size, 1, grad_output, (stride, padding, dilation, groups))


__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
