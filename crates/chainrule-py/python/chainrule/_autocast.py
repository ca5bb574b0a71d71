"""Mixed precision in blocks, under PyTorch's names: products round their operands to bfloat16."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from . import _chainrule as _c
from ._chainrule import Tensor
from ._chainrule import dtype as DType
from ._errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])
bfloat16, float16, float64 = (_c._dtype(name) for name in ("bfloat16", "float16", "float64"))

# The dtype of each type of device where none is said, as in PyTorch; products of the processor
# alone are computed here.
_DTYPES: dict[str, Any] = {name: bfloat16 if name in ("cpu", "hpu", "xla") else float16 for name in ("cpu", "cuda", "xpu", "mps", "hpu", "xla", "mtia", "maia")}


def _device(name: str, device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ArgumentError(f"{name}: the type of a device is a text such as 'cpu', not {type(device_type).__name__}")
    kind = device_type.partition(":")[0]
    if kind not in _DTYPES:
        raise RuntimeError(f"{name}: there is no type of device '{device_type}'; products are computed on 'cpu'")
    return kind


class autocast:
    """A block or a decorator in which products of float32 round their operands to bfloat16 and sum
    in float32: `matmul`, `linear` and what is made of them, in their backward passes too, wherever
    `backward` is called. It holds for its thread, and functions compiled before are traced anew
    inside of it.

    Results stay float32, where PyTorch's are bfloat16: weights, gradients and all other ops keep
    their digits, and nothing has to be cast. Convolutions are among the products; attention
    computes in the dtype of its operands.

    With `enabled=False` a block inside of another has whole products. float16 is an error on the
    CPU; other dtypes, and devices that are not there, warn and switch it off, as in PyTorch.
    `cache_enabled` has no effect.

    ```
    x, w = cr.tensor([[1.00390625]]), cr.ones(1, 1, requires_grad=True)
    with cr.autocast("cpu", dtype=cr.bfloat16):
        y = x @ w
    assert y.item() == 1.0 and y.dtype == cr.float32
    y.sum().backward()
    assert w.grad.item() == 1.0 and (x @ w).item() == 1.00390625
    ```
    """

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        self.device = _device("autocast", device_type)
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self.enabled = self._enabled = enabled and self._works()
        self._before: list[bool] = []

    def _works(self) -> bool:
        if self.device != "cpu":
            warnings.warn(f"autocast: there is no device '{self.device}' here: it is switched off", stacklevel=3)
            return False
        if not isinstance(self.fast_dtype, DType):
            raise TypeError(f"autocast: dtype is a dtype such as cr.bfloat16, not {type(self.fast_dtype).__name__}")
        if self.fast_dtype == float16:
            raise RuntimeError("autocast: products of float16 are not computed on the CPU: use dtype=cr.bfloat16, or enabled=False")
        if self.fast_dtype != bfloat16:
            warnings.warn(f"autocast: products round to bfloat16, not to {self.fast_dtype.name}: it is switched off", stacklevel=3)
            return False
        return True

    def __enter__(self) -> autocast:
        # A block for another device leaves the products of the processor as they are.
        self._before.append(_c._set_autocast(self._enabled) if self.device == "cpu" else _c._is_autocast())
        return self

    def __exit__(self, *_: object) -> None:
        before = self._before.pop()
        if self.device == "cpu":
            _c._set_autocast(before)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    def _again(self) -> autocast:
        # One of its own for each call: threads may run the function at the same time.
        new = object.__new__(autocast)
        new.device, new.fast_dtype, new.enabled, new._enabled, new._before = self.device, self.fast_dtype, self.enabled, self._enabled, []
        return new


def is_autocast_available(device_type: str) -> bool:
    """Whether there is such a type of device for `autocast`."""
    return _device("is_autocast_available", device_type) in _DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether products of this type of device round their operands, on this thread; as in PyTorch
    for "cuda" if no other is named, where it is never so.

    ```
    with cr.autocast("cpu"):
        assert cr.is_autocast_enabled("cpu") and not cr.is_autocast_enabled()
    ```
    """
    return _device("is_autocast_enabled", device_type) == "cpu" and _c._is_autocast()


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switches the products of this thread until they are switched again. `autocast` as a block is
    safer.
    """
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    if _device("set_autocast_enabled", device_type) == "cpu":
        _c._set_autocast(enabled)
    elif enabled:
        warnings.warn(f"set_autocast_enabled: there is no device '{device_type}' here: it has no effect", stacklevel=2)


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype of `autocast` where none is said: bfloat16 for "cpu"."""
    return _DTYPES[_device("get_autocast_dtype", device_type)]  # type: ignore[no-any-return]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Another dtype where none is said; the processor has bfloat16 alone."""
    kind = _device("set_autocast_dtype", device_type)
    if kind == "cpu" and dtype != bfloat16:
        raise RuntimeError(f"set_autocast_dtype: products of the CPU round to bfloat16, not to {dtype.name}")
    _DTYPES[kind] = dtype


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("cpu", enabled)`."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    """`get_autocast_dtype("cpu")`."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """`set_autocast_dtype("cpu", dtype)`."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> DType:
    """`get_autocast_dtype("cuda")`."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """No: each product rounds its operands itself."""
    return False


def clear_autocast_cache() -> None:
    """Nothing: there is no cache of rounded weights."""


def _cast(x: Any, to: Any) -> Any:
    """The floats in a nest in another dtype; float64 stays, as in PyTorch."""
    if isinstance(x, Tensor):
        return x.to(to) if x.is_floating_point() and x.dtype != float64 else x
    if isinstance(x, dict):
        return {_cast(k, to): _cast(v, to) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(*(_cast(y, to) for y in x)) if hasattr(x, "_fields") else type(x)(_cast(y, to) for y in x)
    return x


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """For the `forward` of a Function: notes whether products round there, for `custom_bwd`. With
    `cast_inputs` floats come in that dtype where they do, and its own products are whole.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        rounds = is_autocast_enabled(device_type)
        ctx._rounds = rounds and cast_inputs is None
        if cast_inputs is None or not rounds:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *(_cast(a, cast_inputs) for a in args), **_cast(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """For the `backward` of a Function: its products round if those of its `forward` did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._rounds):
            return bwd(ctx, *args, **kwargs)

    return backward


__all__ = [
    "autocast", "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled",
]
