"""Layers that learn the size of their input from the first one."""

from __future__ import annotations

from typing import Any

from .._chainrule import Tensor
from .._random import fork_rng
from .layers import BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, Linear
from .module import Module, Parameter, UninitializedParameter
from .more_layers import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .volume_layers import BatchNorm3d, Conv3d, ConvTranspose3d

# The argument and attribute that the first input tells, and the axis of it that does.
SIZES = {"in_features": -1, "in_channels": 1, "num_features": 1}


class _Lazy(Module):
    """The common part of layers that become the layer of their kind, `cls_to_become`, with the
    first input. Until then their parameters have no shape, and using one is an error: an optimizer
    is made afterwards.
    """

    cls_to_become: Any = None

    def _begin(self, name: str, *args: Any, **options: Any) -> None:
        """The layer as it will be, but for the size of its input; no random number is drawn."""
        Module.__init__(self)
        size = int(options.get("groups", args[5] if len(args) > 5 and name == "in_channels" else 1))
        with fork_rng():
            like = self.cls_to_become(size, *args, **options)
        kept = {k: v for k, v in like.__dict__.items() if k not in ("_parameters", "_buffers", "_modules")}
        self.__dict__.update(kept, **{name: 0}, _later=(name, args, options))
        for part, p in like._parameters.items():
            self._parameters[part] = None if p is None else UninitializedParameter()
        self._buffers.update(like._buffers)

    def has_uninitialized_params(self) -> bool:
        """Whether no input has come yet."""
        return any(isinstance(p, UninitializedParameter) for p in self._parameters.values())

    def initialize_parameters(self, input: Tensor) -> None:
        """Becomes the layer for inputs like this one. Parameters that were loaded stay."""
        name, args, options = self.__dict__.pop("_later")
        like = self.cls_to_become(input.shape[SIZES[name]], *args, **options)
        loaded = {k: p for k, p in self._parameters.items() if p is not None and not isinstance(p, UninitializedParameter)}
        like.train(self.training)
        self._parameters.update(like._parameters, **loaded)
        self._buffers.update(like._buffers)
        self.__dict__[name] = like.__dict__[name]
        self.__class__ = self.cls_to_become

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
        # The shapes of a state say what an input would.
        for name, p in self._parameters.items():
            if isinstance(p, UninitializedParameter) and prefix + name in state_dict:
                self._parameters[name] = p.materialize(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(args[0])
        return self(*args, **kwargs)


class LazyLinear(_Lazy, Linear):
    """`Linear`, whose `in_features` is the last size of the first input.

    ```
    layer = cr.nn.LazyLinear(3)
    assert layer(cr.ones(2, 5)).shape == (2, 3) and layer.weight.shape == (3, 5)
    ```
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        self._begin("in_features", out_features, bias, device, dtype)


def _lazy(kind: Any, size: str) -> Any:
    """The lazy layer of a kind: the arguments are those of the kind, without the first."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        self._begin(size, *args, **options)

    name = "Lazy" + kind.__name__
    said = f"`{kind.__name__}`, whose `{size}` is the number of channels of the first input; the other arguments are the same."
    return type(name, (_Lazy, kind), {"__init__": __init__, "__doc__": said, "__module__": __name__, "cls_to_become": kind})


LazyConv1d: Any = _lazy(Conv1d, "in_channels")
LazyConv2d: Any = _lazy(Conv2d, "in_channels")
LazyConv3d: Any = _lazy(Conv3d, "in_channels")
LazyConvTranspose1d: Any = _lazy(ConvTranspose1d, "in_channels")
LazyConvTranspose2d: Any = _lazy(ConvTranspose2d, "in_channels")
LazyConvTranspose3d: Any = _lazy(ConvTranspose3d, "in_channels")
LazyBatchNorm1d: Any = _lazy(BatchNorm1d, "num_features")
LazyBatchNorm2d: Any = _lazy(BatchNorm2d, "num_features")
LazyBatchNorm3d: Any = _lazy(BatchNorm3d, "num_features")
LazyInstanceNorm1d: Any = _lazy(InstanceNorm1d, "num_features")
LazyInstanceNorm2d: Any = _lazy(InstanceNorm2d, "num_features")
LazyInstanceNorm3d: Any = _lazy(InstanceNorm3d, "num_features")

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]
