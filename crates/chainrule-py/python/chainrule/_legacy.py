"""PyTorch's older names, which scripts still have: typed constructors, `Variable`, and methods."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._devices import CPU
from ._dtypes import iinfo
from ._filling import singly
from ._memory_order import drawn_like
from ._random import random63
from ._size import Size


class _Typed(type):
    """A class whose instances are the tensors of one dtype."""

    _dtype: Any
    _on_gpu: bool

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and not cls._on_gpu and x.dtype == cls._dtype

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if cls._on_gpu:
            raise ArgumentError(f"cuda.{cls.__name__}: there is one device, the processor; use {cls.__name__}")
        if len(args) == 1 and isinstance(args[0], Size):
            args = tuple(args[0])
        if not args or all(isinstance(n, int) and not isinstance(n, bool) for n in args):
            return _c._full(args or (0,), 0.0, cls._dtype)
        if len(args) > 1:
            raise TypeError(f"{cls.__name__}: either sizes, or one list, array or tensor, not {len(args)} arguments")
        if isinstance(args[0], Tensor) and args[0].dtype != cls._dtype:
            raise TypeError(f"{cls.__name__}: a tensor of {args[0].dtype.name} is not taken; use x.to({cls._dtype!r})")
        return args[0].view(args[0].shape) if isinstance(args[0], Tensor) else _c.tensor(args[0], cls._dtype)

    def __repr__(cls) -> str:
        return f"<class 'chainrule.{'cuda.' if cls._on_gpu else ''}{cls.__name__}'>"


def _typed(name: str, dtype: Any, on_gpu: bool) -> Any:
    text = f"A tensor of {getattr(dtype, 'name', dtype)}: of sizes, whose elements do not matter, or of data. `isinstance` asks for the dtype."
    return _Typed(name, (), {"_dtype": dtype, "_on_gpu": on_gpu, "__doc__": text, "__module__": __name__})


_KINDS = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "LongTensor": "int64",
    "IntTensor": "int32", "ShortTensor": "int16", "CharTensor": "int8", "ByteTensor": "uint8", "BoolTensor": "bool",
}


def typed(on_gpu: bool) -> dict[str, Any]:
    """The constructors by name; those of graphics processors can be named, and not called."""
    return {name: _typed(name, _c._dtype(d), on_gpu) for name, d in _KINDS.items()}


if TYPE_CHECKING:
    # Annotations take classes by their names.
    class FloatTensor(Tensor): ...  # type: ignore[misc]

    class DoubleTensor(Tensor): ...  # type: ignore[misc]

    class HalfTensor(Tensor): ...  # type: ignore[misc]

    class BFloat16Tensor(Tensor): ...  # type: ignore[misc]

    class LongTensor(Tensor): ...  # type: ignore[misc]

    class IntTensor(Tensor): ...  # type: ignore[misc]

    class ShortTensor(Tensor): ...  # type: ignore[misc]

    class CharTensor(Tensor): ...  # type: ignore[misc]

    class ByteTensor(Tensor): ...  # type: ignore[misc]

    class BoolTensor(Tensor): ...  # type: ignore[misc]

else:
    globals().update(typed(False))


def dtype_of_name(dtype: Any) -> Any:
    """The dtype that `x.type(...)` means: a dtype, a typed constructor, or the name of one."""
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        if ".cuda." in dtype:
            raise ArgumentError(f"type: there is one device, the processor, and no {dtype}")
        return _KINDS.get(name, name)
    if isinstance(dtype, _Typed):
        if dtype._on_gpu:
            raise ArgumentError(f"type: there is one device, the processor, and no {dtype.__name__} on another")
        return dtype._dtype
    return dtype


if TYPE_CHECKING:

    class Variable(Tensor):  # type: ignore[misc]
        """A leaf over the memory of a tensor."""

        def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Variable: ...

else:

    class _VariableMeta(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, Tensor)

        def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
            if not isinstance(data, Tensor):
                raise TypeError(f"Variable: a tensor is needed, not {type(data).__name__}")
            out = data.detach()
            out._as_leaf(requires_grad)
            return out

    class Variable(metaclass=_VariableMeta):
        """A leaf over the memory of a tensor: PyTorch's older name for a tensor that may need a
        gradient. All tensors are instances.
        """


# Methods


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return self.to(other.dtype)


def random_(self: Tensor, *bounds: int, generator: Any = None) -> Tensor:
    """Random integers from `0` (or the first of two bounds) up to, without, the last bound; without
    bounds up to the largest that the dtype holds exactly. The numbers are PyTorch's."""
    name = self.dtype.name
    if len(bounds) > 2:
        raise TypeError(f"random_: at most two bounds, got {len(bounds)}")
    if bounds:
        low, high = (0, *bounds) if len(bounds) == 1 else bounds
        if low >= high:
            raise ArgumentError(f"random_: there is no integer from {low} up to, without, {high}")
        return self._assign(drawn_like(self, lambda dims: _c._randint(low, high, dims, generator))._to_dtype(self.dtype))
    if name in ("int64", "uint64"):
        drawn = [random63(generator) for _ in range(self.numel())]
        return self._assign(drawn_like(self, lambda dims: _c.tensor(drawn, "int64").reshape(tuple(dims)))._to_dtype(self.dtype))
    digits = {"bool": 1, "bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
    high = 2 ** digits[name] + (name != "bool") if name in digits else iinfo(self.dtype).max + 1
    return self._assign(drawn_like(self, lambda dims: _c._randint(0, high, dims, generator))._to_dtype(self.dtype))


def bernoulli(self: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities that the elements are, or with probability `p`; zeros else."""
    from . import _making

    return _making.bernoulli(self if p is None else _c._full(self._dims, p, self.dtype), generator=generator)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Ones with probability `p`, zeros else, in place; those of PyTorch."""
    from . import _making

    if isinstance(p, Tensor):
        drawn = _making.bernoulli(p.expand(self.shape), generator=generator)
    else:
        drawn = _uniform(self, generator) < float(p)
    return self._assign(drawn._to_dtype(self.dtype))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Numbers of the exponential distribution with rate `lambd`, in place: `-log(1 - u) / lambd`;
    those of PyTorch.
    """
    u = _uniform(self, generator)
    return self._assign((-(1 - u).log() / lambd)._to_dtype(self.dtype))


def _uniform(self: Tensor, generator: Any) -> Tensor:
    return drawn_like(self, lambda dims: _c._rand(dims, "float64", generator))


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Numbers whose logarithms are normal with this mean and standard deviation, in place; those of
    PyTorch.
    """
    if std <= 0:
        raise ArgumentError(f"log_normal_: std must be positive, got {std}")
    drawn = drawn_like(self, lambda dims: singly(dims, mean, std, generator))
    return self._assign(drawn.exp()._to_dtype(self.dtype))


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Numbers of Cauchy's distribution, in place: `median + sigma tan(pi (u - 1/2))`; those of
    PyTorch.
    """
    if sigma <= 0:
        raise ArgumentError(f"cauchy_: sigma must be positive, got {sigma}")
    return self._assign((median + sigma * (math.pi * (_uniform(self, generator) - 0.5)).tan())._to_dtype(self.dtype))


def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Numbers of trials up to the first success of probability `p`, in place; those of PyTorch."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: p is between 0 and 1, got {p}")
    drawn = (_uniform(self, generator).log() / math.log1p(-p)).ceil()
    return self._assign(drawn._to_dtype(self.dtype))


def detach_(self: Tensor) -> Tensor:
    """Cuts the tensor itself off the tape: it needs no gradient from here on."""
    if self._shown()[1] is not None:
        raise _c.GradientError("detach_: a view cannot be cut off in place: its base would not be; use detach()")
    if self.requires_grad or not self.is_leaf:
        self._as_leaf(False)
    return self


def new(self: Tensor, *args: Any) -> Any:
    """A tensor of the same dtype: of sizes, or of data."""
    return _typed("new", self.dtype, False)(*args)


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Each element by what a function of Python gives for it, in place. Slow, and without a
    gradient.
    """
    if self.requires_grad:
        raise _c.GradientError("apply_: a function of Python has no gradient; use x.detach().apply_(f)")
    flat = [callable(x) for x in self.reshape(-1).tolist()]
    return self._assign(_c.tensor(flat, self.dtype).reshape(self.shape))


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The same: memory of the processor is not pinned."""
    return self


def share_memory_(self: Tensor) -> Tensor:
    """The same: memory is not shared with other processes."""
    return self


def is_pinned(self: Tensor) -> bool:
    """False: memory of the processor is not pinned."""
    return False


def is_shared(self: Tensor) -> bool:
    """False: memory is not shared with other processes."""
    return False


def get_device(self: Tensor) -> int:
    """-1: the elements are in the memory of the processor."""
    return -1


def _false(what: str) -> Any:
    return property(lambda self: False, doc=f"False: there are no {what} tensors.")


def attach() -> None:
    """Gives the native class the methods of this module."""
    methods: dict[str, Any] = {
        "type_as": type_as, "random_": random_, "bernoulli": bernoulli, "bernoulli_": bernoulli_, "exponential_": exponential_, "log_normal_": log_normal_, "cauchy_": cauchy_,
        "geometric_": geometric_, "detach_": detach_, "new": new,
        "apply_": apply_, "is_cuda": _false("CUDA"), "is_sparse": _false("sparse"),
        "is_quantized": _false("quantized"), "is_mps": _false("MPS"), "get_device": get_device, "pin_memory": pin_memory,
        "is_pinned": is_pinned, "share_memory_": share_memory_, "is_shared": is_shared,
        "device": property(lambda self: CPU, doc="Device of the elements: there is one, the processor."),
        "layout": property(lambda self: "chainrule.strided", doc="How the elements lie in memory: there are strided tensors only."),
    }
    for name, value in methods.items():
        setattr(Tensor, name, value)
