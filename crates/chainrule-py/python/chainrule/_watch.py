"""Sees where tensors of PyTorch lose their history while a function runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch as _torch
from torch.overrides import TorchFunctionMode

_OWN = (os.path.dirname(os.path.abspath(__file__)) + os.sep, os.path.dirname(os.path.abspath(_torch.__file__)) + os.sep)
_METHOD: Any = _torch.Tensor.detach
_DATA: Any = _torch.Tensor.data.__get__  # type: ignore[attr-defined, unused-ignore]
_TENSORS = {
    _torch.Tensor.detach: "detach()", _torch.detach: "detach()", _torch.Tensor.detach_: "detach_()", _DATA: ".data",
    _torch.tensor: "torch.tensor()", _torch.Tensor.new_tensor: "new_tensor()",
}
_NUMBERS = {
    _torch.Tensor.item: ".item()", _torch.Tensor.tolist: ".tolist()", _torch.Tensor.__float__: "float()", _torch.Tensor.__int__: "int()",
    _torch.Tensor.numpy: ".numpy()",
}
_SUBTRACTIONS = (_torch.sub, _torch.Tensor.sub, _torch.Tensor.__sub__, _torch.subtract)
_ADDITIONS = (_torch.add, _torch.Tensor.add, _torch.Tensor.__add__, _torch.Tensor.__radd__, _torch.Tensor.add_, _torch.Tensor.__iadd__)

_NOTHING: tuple[Any, Any, Any] = (None, None, None)


class Cut:
    """A place where tensors lose their history."""

    def __init__(self, kind: str, file: str, line: int) -> None:
        self.kind, self.file, self.line = kind, file, line
        self.straight_through = False
        # Whether the function runs with the history kept here, and what is lost otherwise.
        self.heals, self.losses = True, list[str]()

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.kind, self.file, self.line)


def _place() -> tuple[str, int]:
    """The file and line of the caller, outside of PyTorch and of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return ("?", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _tensors(args: Any) -> Iterator[Any]:
    for a in args:
        if isinstance(a, _torch.Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from _tensors(a)


def _node(t: Any) -> Any:
    """The node of a tensor in PyTorch's graph."""
    return t.grad_fn if t.grad_fn is not None else t


class Watch(TorchFunctionMode):
    """Notes the cuts, and heals those whose keys are given; or moves one element of what is taken
    out at one of them.
    """

    def __init__(self, healed: Sequence[tuple[str, str, int]], move: tuple[int, int, float] | None = None) -> None:
        super().__init__()
        self.healed, self.move = frozenset(healed), move
        self.cuts: dict[tuple[str, str, int], Cut] = {}
        # Values taken out, with their history, in the order of the calls.
        self.taken: list[tuple[Cut, Any]] = []
        # Depth within functions of PyTorch, whose own calls the mode does not see.
        self.within = 0
        # Places where recording was switched off.
        self.silent: list[tuple[str, str, int] | None] = []
        self.detached: dict[int, tuple[Any, Any, Cut]] = {}
        # Differences from which such a tensor was taken.
        self.minus: dict[int, tuple[Any, Any, Cut]] = {}

    def cut(self, kind: str, file: str, line: int) -> Cut:
        cut = Cut(kind, file, line)
        return self.cuts.setdefault(cut.key, cut)

    def off(self) -> tuple[str, str, int] | None:
        """Places where recording was switched off. Nowhere within the forward of a function with a
        backward of its own, which PyTorch runs without recording: what that
        takes out of the graph is its own business."""
        return None if _torch.is_grad_enabled() or not self.silent else self.silent[-1]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        off = self.off()
        if off is None and not _torch.is_grad_enabled():
            return func(*args, **kwargs)
        linked = any(t.requires_grad and t.is_floating_point() for t in _tensors(args))
        kind = _TENSORS.get(func) or _NUMBERS.get(func)
        if kind and linked:
            return self.lose(self.cut(*(off or (kind, *_place()))), func, args, kwargs)
        if off is not None and linked:
            return self.silenced(self.cut(*off), func, args, kwargs)
        if func in _ADDITIONS and self.detached:
            self.straight_through(list(_tensors(args)))
        self.within += 1
        try:
            out = func(*args, **kwargs)
        finally:
            self.within -= 1
        if func in _SUBTRACTIONS and len(args) == 2:
            self.subtracted(args[0], args[1], out)
        return out

    def lose(self, cut: Cut, func: Any, args: Any, kwargs: Any) -> Any:
        """A tensor is taken out of the graph, as a tensor or as numbers."""
        t = args[1] if func is _torch.Tensor.new_tensor else args[0]
        if not isinstance(t, _torch.Tensor):
            return func(*args, **kwargs)
        if cut.key in self.healed and func not in (_torch.Tensor.__float__, _torch.Tensor.__int__, _torch.Tensor.numpy):
            return t
        moved = self.take(cut, t)
        given = tuple(moved if a is t and moved is not None else a for a in args)
        out = func(*given, **kwargs)
        if isinstance(out, _torch.Tensor):
            self.detached[id(out)] = (out, t, cut)
        return out

    def silenced(self, cut: Cut, func: Any, args: Any, kwargs: Any) -> Any:
        """An operation on a tensor with history, while nothing is recorded."""
        out = func(*args, **kwargs)
        # A function that writes into a tensor is not run twice; its name ends with an underscore,
        # or it has an `out`.
        writes = "out" in kwargs or func.__name__.endswith("_")
        if writes or not isinstance(out, _torch.Tensor) or not out.is_floating_point():
            return out
        try:
            with _torch._C._InferenceMode(False), _torch.enable_grad():
                t = func(*args, **kwargs)
        except RuntimeError:
            return out
        moved = self.take(cut, t)
        return out if moved is None else moved.detach()

    def take(self, cut: Cut, t: Any) -> Any:
        """Notes what is taken out; gives it with an element moved, if that is asked for."""
        self.taken.append((cut, t))
        if self.move is None or self.move[0] != len(self.taken) - 1:
            return None
        moved = t.detach().clone()
        moved.reshape(-1)[self.move[1]] += self.move[2]
        return moved

    def subtracted(self, a: Any, b: Any, out: Any) -> None:
        """Notes `q - x.detach()`; `x - x.detach()` is a straight-through estimator by itself."""
        _, source, cut = self.detached.get(id(b), _NOTHING)
        if cut is not None:
            self.minus[id(out)] = (out, source, cut)
            cut.straight_through |= isinstance(a, _torch.Tensor) and _node(a) is _node(source)

    def straight_through(self, operands: list[Any]) -> None:
        """Marks the cut of `(q - x).detach()` or `q - x.detach()` where `x` is added to it."""
        for t in operands:
            others = [_node(other) for other in operands if other is not t]
            _, source, cut = self.minus.get(id(t), _NOTHING)
            if cut is not None:
                cut.straight_through |= any(node is _node(source) for node in others)
            _, source, cut = self.detached.get(id(t), _NOTHING)
            if cut is not None and source.grad_fn is not None and source.grad_fn.name().startswith("Sub"):
                parts = [n for n, _ in source.grad_fn.next_functions if n is not None]
                nodes = [getattr(n, "variable", n) for n in parts]
                cut.straight_through |= any(node is other for node in nodes for other in others)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Runs under the watch. Functions that its mode does not see are replaced meanwhile: those that
    switch recording off, gradients taken inside, and `detach` within PyTorch's own functions."""
    with _replaced(_all_of(watch)), watch:
        yield


@contextmanager
def _replaced(what: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(owner, name, owner.__dict__[name] if name in vars(owner) else None) for owner, name, _ in what]
    for owner, name, new in what:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, old in before:
            if old is None:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


def _all_of(watch: Watch) -> list[tuple[Any, str, Any]]:
    grad = _torch.autograd.grad

    def differentiated(*args: Any, **options: Any) -> Any:
        if options.get("create_graph") or not _torch.is_grad_enabled():
            return grad(*args, **options)
        cut = watch.cut("autograd.grad without create_graph", *_place())
        return grad(*args, **{**options, "create_graph": cut.key in watch.healed})

    def detached(t: Any) -> Any:
        seen = watch.within and _torch.is_grad_enabled() and t.requires_grad and t.is_floating_point()
        return watch.lose(watch.cut("detach()", *_place()), _METHOD, (t,), {}) if seen else _METHOD(t)

    return [
        (_torch.autograd, "grad", differentiated), (_torch.Tensor, "detach", detached), *_off(watch, _torch.no_grad, "no_grad"),
        *_off(watch, _torch.inference_mode, "inference_mode"), *_off(watch, _torch.set_grad_enabled, "set_grad_enabled"),
    ]


def _off(watch: Watch, switch: Any, kind: str) -> list[tuple[Any, str, Any]]:
    """A switch that tells the watch where it is off, and stays on where that is healed."""
    name = "__init__" if kind == "set_grad_enabled" else "__enter__"
    enter, leave = getattr(switch, name), switch.__exit__

    def entered(self: Any, *mode: Any) -> None:
        if kind == "set_grad_enabled" and sys._getframe(1).f_code.co_filename.startswith(_OWN):
            return _call(enter, self, mode)  # by which `no_grad` does its work
        off = kind == "no_grad" or not (mode[0] if mode else not self.mode)
        cut, on = (kind, *_place()), _torch.is_grad_enabled()
        watch.silent.append(cut if off and on else watch.silent[-1] if watch.silent else None)
        if not (off and on and cut in watch.healed):
            return _call(enter, self, mode)
        if kind == "inference_mode":
            self.mode = False
        _call(enter, self, mode)
        _torch._C._set_grad_enabled(on)

    def left(self: Any, *error: Any) -> None:
        if watch.silent:
            watch.silent.pop()
        leave(self, *error)

    return [(switch, name, entered), (switch, "__exit__", left)]


def _call(method: Callable[..., Any], *args: Any) -> None:
    method(args[0], *args[1])
