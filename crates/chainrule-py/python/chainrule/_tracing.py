"""PyTorch's forward code run on our tensors: so a custom backward pass can be compared with the
gradient of what its forward computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch as _torch

from . import _chainrule as _c
from ._chainrule import Tensor


class Untraceable(Exception):
    """Code that leaves PyTorch's functions, or calls one that is not here."""


class _Context:
    """The operations of `forward` on its `ctx`."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        self.needs_input_grad = tuple(isinstance(x, Stand) for x in inputs)
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("mark_", "set_materialize")):
            return lambda *_: None
        raise AttributeError(name)


def _in(x: Any) -> Any:
    """An argument of PyTorch as ours."""
    if isinstance(x, Stand):
        return x._value
    if isinstance(x, _torch.Tensor):
        t = x.detach().cpu()
        return _c.tensor((t.double() if t.is_floating_point() else t).numpy())
    if isinstance(x, _torch.dtype):
        return _c._dtype("float64" if x.is_floating_point else str(x).removeprefix("torch."))
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple, _torch.Size):
        return [_in(y) for y in x] if isinstance(x, list) else tuple(_in(y) for y in x)
    if isinstance(x, slice):
        return slice(_in(x.start), _in(x.stop), _in(x.step))
    return x


def _out(x: Any) -> Any:
    if isinstance(x, Tensor):
        return Stand(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(_out, x))
    if type(x) in (list, tuple):
        return type(x)(_out(y) for y in x)
    return x


def _call(function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    options = {k: _in(v) for k, v in options.items() if k not in ("memory_format", "device", "layout")}
    return _out(function(*map(_in, args), **options))


_GONE = {"numpy", "cpu", "item", "tolist", "data_ptr", "storage", "register_hook"}
_inside = [0]


class Stand:
    """Stands for a tensor of PyTorch; holds one of ours."""

    def __init__(self, value: Tensor) -> None:
        self._value = value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from . import linalg, nn

        name = func.__name__.removeprefix("linalg_").removeprefix("special_")
        import chainrule

        if name in ("detach", "detach_", "contiguous") or (name in ("requires_grad_",)):
            return getattr(args[0], name)()
        method = getattr(func, "__objclass__", None) is not None
        places = (Tensor,) if method else (nn.functional, chainrule, linalg, Tensor)
        if "linalg" in func.__name__:
            places = (linalg, *places)
        found = next((f for place in places if (f := getattr(place, name, None)) is not None), None)
        if found is None:
            raise Untraceable(name)
        if method and not isinstance(args[0], Stand):
            args = (Stand(_in(args[0])), *args[1:])
        return _call(found, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name in _GONE:
            raise Untraceable(name)
        if name == "detach" and _inside[0]:
            return lambda: self  # what `forward` computes is meant, not what it records
        if name == "data":
            return self if _inside[0] else Stand(self._value.detach())
        if name == "device":
            return _torch.device("cpu")
        if name == "dtype":
            return getattr(_torch, self._value.dtype.name)
        if name == "new_zeros" or name == "new_ones":
            make = getattr(_torch, name.removeprefix("new_"))
            return lambda *size, **_: make(*size, dtype=self.dtype)
        found = getattr(self._value, name, None)
        if found is None and name not in ("grad", "grad_fn"):
            raise Untraceable(name)
        if not callable(found) or isinstance(found, Tensor):
            return _out(found)
        return lambda *args, **options: _call(found, args, options)

    def __setitem__(self, at: Any, value: Any) -> None:
        self._value[_in(at)] = _in(value)

    def __getitem__(self, at: Any) -> Any:
        return Stand(self._value[_in(at)])

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        return (Stand(t) for t in self._value)

    def __bool__(self) -> bool:
        raise Untraceable("the truth of a tensor")

    __float__ = __int__ = __index__ = __array__ = __bool__
    __hash__ = object.__hash__


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Stand, *others: Any) -> Any:
        return _call(getattr(self._value, name), others, {})

    return method


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    for _kind in ("", "r", "i"):
        _dunder = f"__{_kind}{_name}__"
        if hasattr(Tensor, _dunder):
            setattr(Stand, _dunder, _operator(_dunder.replace("__i", "__") if _kind == "i" and _name != "nvert" else _dunder))
for _name in "neg abs invert pos eq ne lt le gt ge".split():
    setattr(Stand, f"__{_name}__", _operator(f"__{_name}__"))


@contextmanager
def _forwards_only() -> Iterator[None]:
    """Functions with a backward pass of their own run their forward alone."""
    base: Any = _torch.autograd.Function
    before = base.__dict__["apply"]

    def apply(cls: Any, *args: Any, **options: Any) -> Any:
        if not any(isinstance(a, Stand) for a in args):
            return before.__func__(cls, *args, **options)
        _inside[0] += 1
        try:
            if cls.setup_context is not base.setup_context:
                return cls.forward(*args, **options)
            return cls.forward(_Context(args), *args, **options)
        finally:
            _inside[0] -= 1

    base.apply = classmethod(apply)
    try:
        yield
    finally:
        base.apply = before


def traced(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The function of our tensors that computes the same as one of PyTorch; for the backward pass
    of what its forward does.

    It raises `Untraceable` where that cannot be followed.
    """

    def reference(*inputs: Tensor) -> Tensor:
        with _forwards_only():
            try:
                out = function(*map(Stand, inputs))
            except (AttributeError, TypeError, ValueError, RuntimeError) as error:
                raise Untraceable(str(error)) from error
        parts = [out] if isinstance(out, Stand) else [p for p in out if isinstance(p, Stand)]
        values = [p._value for p in parts if p._value.is_floating_point()]
        if not values:
            raise Untraceable("no result")
        from ._functions import cat

        return values[0] if isinstance(out, Stand) else cat([v.reshape(-1) for v in values])

    return reference
