"""PyTorch's tensors, as the search for a mistake sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from .case import Array, Case, Quantity
from .engine import Engine, sums_of_parts
from .engine_numpy import WithArrays


class _Ops(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Keeps the result of every op, and each use of a tensor apart; records through `detach` and
    `no_grad`, for the function is meant and not its tape.
    """

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[str, Any]] = []
        self.uses: list[tuple[str, Any]] = []
        self.sources: list[Any] = []
        """The tensor of each use."""

    def _apart(self, name: str, x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point():
            own = x.view_as(x)
            self.uses.append((name, own))
            self.sources.append(x)
            return own
        if type(x) in (list, tuple):
            return type(x)(self._apart(name, y) for y in x)
        return x

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        with torch.enable_grad():
            if name in ("detach", "detach_") or func is torch.Tensor.data.__get__:  # type: ignore[attr-defined, unused-ignore]
                return args[0].view_as(args[0])
            in_place = name == "__setitem__" or "out" in kwargs or (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")
            if not in_place and name not in ("__get__", "size", "dim"):
                args = tuple(self._apart(name, x) for x in args)
            out = func(*args, **kwargs)
        for x in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point() and not in_place:
                self.results.append((name, x))
        return out


class _Tensors(Engine):
    """Tensors of PyTorch."""

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor)

    def is_float(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.is_floating_point()

    def is_bool(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.dtype == torch.bool

    def double(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().double().clone() if x.is_floating_point() else x.detach().clone()

    def copy(self, x: Any) -> Any:
        return x.detach().clone() if isinstance(x, torch.Tensor) else x

    def array(self, x: Any) -> Array:
        if x.dtype == torch.float64 and x.device.type == "cpu":
            found: Array = x.detach().numpy()
            return found
        x = x.detach().cpu()
        return np.asarray((x.double() if x.is_floating_point() else x).numpy())

    def tensor(self, array: Array, like: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(like.dtype).reshape(like.shape)

    def cut(self, x: Any, axis: int, size: int) -> Any:
        if size < 1:
            raise ValueError("nothing is left")
        return x.narrow(axis, 0, size).contiguous()

    @contextmanager
    def apart(self) -> Iterator[None]:
        state, threads, dtype = torch.random.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
        torch.set_num_threads(1)
        # Numbers of the user's code that become tensors are taken in f64, as all else is.
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.random.set_rng_state(state)
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)

    @contextmanager
    def quiet(self, seed: int) -> Iterator[None]:
        torch.default_generator.manual_seed(seed)
        with torch.no_grad():
            yield

    def summed_to(self, g: Any, shape: Any) -> Any:
        try:
            return g.sum_to_size(shape)
        except RuntimeError:
            return g

    def tape(self, case: Case, inputs: list[Any], above: list[Any], quantities: bool) -> tuple[list[Array], list[Quantity]]:
        leaves = [x.detach().clone().requires_grad_() if self.is_float(x) else x for x in inputs]
        wanted = [leaves[i] for i in case.graded]
        ops = _Ops()
        torch.default_generator.manual_seed(1)
        with torch.enable_grad(), ops:
            outputs, _ = case.forward([x.view_as(x) if self.is_float(x) else x for x in leaves])
        pairs = [(y, g) for y, g in zip(outputs, above) if self.is_float(y) and y.requires_grad]
        targets = [*wanted, *([x for _, x in ops.results + ops.uses] if quantities else [])]
        found = torch.autograd.grad([y for y, _ in pairs], targets, [g for _, g in pairs], allow_unused=True)
        right = [np.zeros(tuple(x.shape)) if g is None else self.array(g) for x, g in zip(wanted, found)]
        known = []
        for (name, x), g in zip(ops.results, found[len(wanted) :]):
            known.append(Quantity(f"the result of `{name}`", self.array(x), False))
            if g is not None:
                known.append(Quantity(f"the gradient of the result of `{name}`", self.array(g), True))
        parts = found[len(wanted) + len(ops.results) :]
        for (name, _), g in zip(ops.uses, parts):
            if g is not None:
                known.append(Quantity(f"a part of a gradient, by way of `{name}`", self.array(g), True))
        known += sums_of_parts([(id(x), self.array(g)) for x, g in zip(ops.sources, parts) if g is not None])
        return right, known

    def held(self, case: Case, inputs: list[Any], above: list[Any]) -> list[Array]:
        leaves = [x.detach().clone().requires_grad_() if self.is_float(x) else x for x in inputs]
        torch.default_generator.manual_seed(1)
        with torch.enable_grad():
            outputs, _ = case.forward([x.view_as(x) if self.is_float(x) else x for x in leaves])
        pairs = [(y, g) for y, g in zip(outputs, above) if self.is_float(y) and y.requires_grad]
        wanted = [leaves[i] for i in case.graded]
        found = torch.autograd.grad([y for y, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True)
        return [np.zeros(tuple(x.shape)) if g is None else self.array(g) for x, g in zip(wanted, found)]


class Torch(WithArrays, _Tensors):
    """The engine of PyTorch."""
