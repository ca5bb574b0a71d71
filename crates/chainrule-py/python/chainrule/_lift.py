"""Functions and modules of PyTorch as functions of our tensors, with the backward pass that PyTorch
runs.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch as _torch
from torch.overrides import TorchFunctionMode

from . import _chainrule as _c
from ._chainrule import Tensor, is_grad_enabled
from ._making import zeros_like
from .check import _twice

def to_chainrule(t: Any, requires_grad: bool = False) -> Tensor:
    """PyTorch's tensor as ours, with memory of its own. Narrow floats become float32, small
    integers int64.
    """
    if t.is_complex():
        raise TypeError("to_chainrule: complex tensors are not supported; take real and imaginary part apart with torch.view_as_real")
    t = t.detach().cpu()
    if t.is_floating_point() and t.dtype not in (_torch.float32, _torch.float64):
        t = t.float()
    elif not t.is_floating_point() and t.dtype not in (_torch.int64, _torch.bool):
        t = t.long()
    return _c.tensor(t.resolve_neg().numpy(), None, requires_grad)


def to_pytorch(t: Tensor) -> Any:
    """Our tensor as PyTorch's, with memory of its own."""
    if t.dtype.name == "bfloat16":
        return _torch.from_numpy(t.detach().float().numpy().copy()).bfloat16()
    return _torch.from_numpy(t.detach().numpy().copy())


def callable_of(fn: Any) -> Callable[..., Any]:
    """The name of a callable: `apply` of a `torch.autograd.Function`."""
    return fn.apply if isinstance(fn, type) and issubclass(fn, _torch.autograd.Function) else fn  # type: ignore[attr-defined, no-any-return, unused-ignore]


def floats_of(out: Any) -> list[Any]:
    """All float tensors of a result, however they are nested."""
    if isinstance(out, _torch.Tensor):
        return [out] if out.is_floating_point() else []
    if isinstance(out, dict):
        return [t for part in out.values() for t in floats_of(part)]
    if isinstance(out, (list, tuple)):
        return [t for part in out for t in floats_of(part)]
    return []


def one(out: Any) -> Any:
    """Several results as the row of all their elements."""
    if isinstance(out, _torch.Tensor):
        return out
    return _torch.cat([t.reshape(-1) for t in floats_of(out)])


def _leaves(tensors: Sequence[Tensor]) -> list[Any]:
    return [to_pytorch(t).requires_grad_(t.is_floating_point()) for t in tensors]


def _gradients(function: Callable[..., Any], leaves: list[Any], cotangent: Any, create_graph: bool = False) -> list[Any]:
    """The gradient of each leaf that requires one: None where no path leads to it."""
    with _torch.enable_grad():
        out = function(*leaves)
    wanted = [t for t in leaves if t.requires_grad]
    if not out.requires_grad:
        return [None] * len(wanted)
    return list(_torch.autograd.grad(out, wanted, cotangent.to(out.dtype), allow_unused=True, create_graph=create_graph))


def lift(fn: Any) -> Callable[..., Tensor]:
    """A function of PyTorch as one of ours: its backward pass is the one that PyTorch runs, a
    user's own included.
    """
    called = callable_of(fn)

    def function(*inputs: Any) -> Any:
        return one(called(*inputs))

    name = getattr(fn, "__name__", type(fn).__name__)

    def forward(*inputs: Tensor) -> Tensor:
        # As in the backward pass: a function may differentiate something itself.
        with _torch.enable_grad():
            return to_chainrule(function(*_leaves(inputs)))

    def backward(cotangent: Tensor, *rest: Tensor) -> list[Any]:
        inputs = rest[:-1]
        if _twice[0] and is_grad_enabled() and any(t.requires_grad for t in (cotangent, *inputs)):
            row = _c._apply_custom(f"backward of {name}", first, second, [cotangent, *inputs])
            return _parts(row, inputs)
        found = iter(_gradients(function, _leaves(inputs), to_pytorch(cotangent)))
        grads = [next(found) if t.is_floating_point() else None for t in inputs]
        # No gradient is one of zeros, as for PyTorch: an unused parameter has none.
        return [None if not t.is_floating_point() else zeros_like(t) if g is None else _like(g, t) for g, t in zip(grads, inputs)]

    def first(cotangent: Tensor, *inputs: Tensor) -> Tensor:
        leaves = _leaves(inputs)
        return to_chainrule(_row(_gradients(function, leaves, to_pytorch(cotangent)), leaves).double())

    def second(w: Tensor, cotangent: Tensor, *rest: Tensor) -> list[Any]:
        leaves = _leaves(rest[:-1])
        v = to_pytorch(cotangent).requires_grad_()
        row = _row(_gradients(function, leaves, v, create_graph=True), leaves)
        wanted = [t for t in (v, *leaves) if t.requires_grad]
        weights = to_pytorch(w).to(row.dtype)
        found = iter(_torch.autograd.grad(row, wanted, weights, allow_unused=True) if row.requires_grad else [None] * len(wanted))
        out = []
        for t, ours in zip((v, *leaves), (cotangent, *rest[:-1])):
            g = next(found) if t.requires_grad else None
            out.append(_like(_torch.zeros_like(t) if g is None else g, ours) if t.requires_grad else None)
        return out

    def lifted(*inputs: Tensor) -> Tensor:
        return _c._apply_custom(name, forward, backward, list(inputs))

    lifted.__name__ = name
    return lifted


def _like(gradient: Any, t: Tensor) -> Tensor:
    """The gradient in the dtype of its input, as a plain tensor."""
    ours = to_chainrule(gradient)
    return ours if ours.dtype == t.dtype else ours.to(t.dtype)


def _row(gradients: list[Any], leaves: list[Any]) -> Any:
    wanted = [t for t in leaves if t.requires_grad]
    return _torch.cat([(_torch.zeros_like(t) if g is None else g).reshape(-1) for g, t in zip(gradients, wanted)])


def _parts(row: Tensor, inputs: Sequence[Tensor]) -> list[Any]:
    parts: list[Any] = []
    start = 0
    for t in inputs:
        if not t.is_floating_point():
            parts.append(None)
            continue
        n = t.numel()
        parts.append(row[start : start + n].reshape(t.shape))
        start += n
    return parts


def _seed(seed: int) -> None:
    """Seeds the generators in use. `torch.manual_seed` also asks for devices that were never used,
    which takes longer than many a function.
    """
    _torch.default_generator.manual_seed(seed)
    if _torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        _torch.cuda.manual_seed_all(seed)


class Padding:
    """Rows of `padding_idx` in the tables of embeddings. PyTorch gives them no gradient, whatever
    they do to the result, so they count as constants: what they were in the first call.
    """

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}
        self.places: dict[int, tuple[str, int]] = {}
        self.is_known = False

    @contextmanager
    def held(self) -> Iterator[None]:
        if self.is_known and not self.rows:
            yield
            return
        with _Held(self):
            yield
        self.is_known = True

    def notes(self) -> list[str]:
        """Words about the rows that were held, for a report."""
        shown = sorted({place for place in self.places.values()})
        return [f"row {row} of the table of `{name}` gets no gradient, as `padding_idx` asks, and was taken for constant" for name, row in shown]


class _Held(TorchFunctionMode):
    """Holds the rows of `padding_idx` while a function runs."""

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        self.padding, self.calls = padding, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func not in (_torch.nn.functional.embedding, _torch.nn.functional.embedding_bag):
            return func(*args, **kwargs)
        bound = inspect.signature(func).bind(*args, **kwargs).arguments
        row, weight = bound.get("padding_idx"), bound["weight"]
        call, self.calls = self.calls, self.calls + 1
        if row is None:
            return func(*args, **kwargs)
        first = self.padding.rows.setdefault(call, weight.detach()[row].clone())
        self.padding.places[call] = (func.__name__, row if row >= 0 else row + len(weight))
        pads = _torch.arange(len(weight), device=weight.device)[:, None] == self.padding.places[call][1]
        return func(**{**bound, "weight": _torch.where(pads, first.to(weight.dtype), weight)})


class Case:
    """The function under check, of its float tensors alone: inputs, and of a module its parameters.
    All else stays as it was given."""

    def __init__(self, fn: Any, inputs: Any, dtype: Any = _torch.float64) -> None:
        self.given = [inputs] if isinstance(inputs, _torch.Tensor) or not isinstance(inputs, (list, tuple)) else list(inputs)
        self.dtype = dtype
        self.module = isinstance(fn, _torch.nn.Module)
        own: Any = copy.deepcopy(fn) if self.module else callable_of(fn)
        self.fn = own.to(dtype) if self.module and dtype is not None else own
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        if any(isinstance(t, _torch.Tensor) and t.is_complex() for t in self.given):
            raise TypeError("gradcheck: complex inputs are not supported; take real and imaginary part apart with torch.view_as_real")
        self.places = [i for i, t in enumerate(self.given) if isinstance(t, _torch.Tensor) and t.is_floating_point()]
        self.names = [f"input {i}" for i in self.places]
        self.parameters = [n for n, p in self.fn.named_parameters() if p.requires_grad and p.is_floating_point()] if self.module else []
        self.names += self.parameters
        self.labels = [n if n not in self.parameters else f"`{n}`" for n in self.names]
        self.start = {n: self.fn.get_parameter(n).detach().clone() for n in self.parameters}
        self.slots = {n: self._slots(self.fn.get_parameter(n)) for n in self.parameters}
        self.buffers = {n: b.clone() for n, b in self.fn.named_buffers()} if self.module else {}
        self.seed = int(_torch.initial_seed() % (1 << 31))
        self.padded = Padding()

    def values(self) -> list[Any]:
        """The float tensors at which it is checked."""
        inputs = [self._own(self.given[i]) for i in self.places]
        return inputs + [self.start[n].clone() for n in self.parameters]

    def _slots(self, parameter: Any) -> list[tuple[Any, str]]:
        """All places of a parameter in the module: several, if layers share it."""
        return [(m, leaf) for m in self.fn.modules() for leaf, p in m._parameters.items() if p is parameter]

    def _own(self, t: Any) -> Any:
        return t.detach().clone() if self.dtype is None else t.detach().to(self.dtype)

    def inputs(self, floats: Sequence[Any]) -> list[Any]:
        """All arguments, with these float tensors in their places."""
        out = [t.clone() if isinstance(t, _torch.Tensor) else t for t in self.given]
        for place, t in zip(self.places, floats):
            out[place] = t
        return out

    def __call__(self, *floats: Any) -> Any:
        """The result. Random numbers are the same in each call, so that dropout draws the same
        mask; buffers start as they were.
        """
        arguments = self.inputs(floats)
        with _torch.random.fork_rng(devices=[]), self.padded.held():
            _seed(self.seed)
            if not self.module:
                return self.fn(*arguments)
            self._set(floats[len(self.places) :])
            return self.fn(*arguments)

    def _set(self, parameters: Sequence[Any]) -> None:
        """Puts tensors in the places of the parameters, and buffers back to what they were. They
        stay there: what runs the forward pass again in the backward pass needs them."""
        for name, t in zip(self.parameters, parameters):
            for owner, leaf in self.slots[name]:
                owner._parameters[leaf] = t
        for name, buffer in self.buffers.items():
            owner, _, leaf = name.rpartition(".")
            self.fn.get_submodule(owner)._buffers[leaf] = buffer.clone()

    def in_double(self) -> Callable[..., Any]:
        """The function of float64 tensors that runs in its own dtypes."""
        dtypes = [t.dtype for t in self.values()]

        def function(*floats: Any) -> Any:
            return one(self(*(t.to(dtype) for t, dtype in zip(floats, dtypes)))).double()

        function.__name__ = self.__name__
        return function
