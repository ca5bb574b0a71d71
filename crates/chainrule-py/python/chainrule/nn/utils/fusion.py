"""Batch norm in evaluation as a part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from ..._errors import ArgumentError
from ...autograd import no_grad
from ..module import Parameter


def _fused(layer: Any, norm: Any, axis: int) -> Any:
    if layer.training or norm.training:
        raise ArgumentError("fuse: both modules are in evaluation mode: call eval() first")
    new = copy.deepcopy(layer)
    with no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        scale = scale if norm.weight is None else scale * norm.weight
        shape = [-1 if i == axis else 1 for i in range(new.weight.ndim)]
        bias = -norm.running_mean if new.bias is None else new.bias - norm.running_mean
        shift = bias * scale if norm.bias is None else bias * scale + norm.bias
        new.weight = Parameter(new.weight * scale.reshape(shape), layer.weight.requires_grad)
        new.bias = Parameter(shift, layer.weight.requires_grad)
    return new


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what `bn(conv(x))` does in evaluation."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what `bn(linear(x))` does in evaluation."""
    return _fused(linear, bn, 0)


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that does what the norm after it did in evaluation."""
    with no_grad():
        scale = (bn_rv + bn_eps).rsqrt()
        scale = scale if bn_w is None else scale * bn_w
        shape = [-1 if i == (1 if transpose else 0) else 1 for i in range(conv_w.ndim)]
        shift = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale
        shift = shift if bn_b is None else shift + bn_b
        return Parameter(conv_w * scale.reshape(shape), conv_w.requires_grad), Parameter(shift, conv_w.requires_grad)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """The module; its parameters are drawn all the same."""
    return module_cls(*args, **kwargs)


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "skip_init"]
