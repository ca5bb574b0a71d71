"""PyTorch's tensors, as the search for a mistake sees them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from .case import Array, Case, Quantity

MOST = 3000
"""The most elements of the inputs for which differences are taken."""


class _Ops(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Keeps the result of every op, and each use of a tensor apart; records through `detach` and `no_grad`, for the function is meant and not its tape."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[str, Any]] = []
        self.uses: list[tuple[str, Any]] = []

    def _apart(self, name: str, x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point():
            own = x.view_as(x)
            self.uses.append((name, own))
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


class Torch:
    """The engine of PyTorch."""

    library = "torch"

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor)

    def is_float(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.is_floating_point()

    def is_bool(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.dtype == torch.bool

    def double(self, x: Any) -> Any:
        """A tensor as it is searched with: floats in f64."""
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().double().clone() if x.is_floating_point() else x.detach().clone()

    def copy(self, x: Any) -> Any:
        return x.detach().clone() if isinstance(x, torch.Tensor) else x

    def copied(self, context: Any) -> Any:
        """What was saved, so that a backward that writes into it spoils no other run."""
        new = copy.copy(context)
        for name, x in vars(new).items():
            if isinstance(x, torch.Tensor):
                setattr(new, name, x.detach().clone())
            elif type(x) in (list, tuple):
                setattr(new, name, type(x)(self.copy(y) for y in x))
        return new

    def array(self, x: Any) -> Array:
        if x.dtype == torch.float64 and x.device.type == "cpu":
            found: Array = x.detach().numpy()
            return found
        x = x.detach().cpu()
        return np.asarray((x.double() if x.is_floating_point() else x).numpy())

    def tensor(self, array: Array, like: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(like.dtype).reshape(like.shape)

    def keep(self, x: Any) -> Any:
        """A copy of a value that may be of use, or None."""
        if isinstance(x, torch.Tensor):
            return x.detach().clone() if x.numel() <= 200_000 else x.detach()
        if isinstance(x, (int, float)) or type(x) is torch.Size:
            return x
        if type(x) in (list, tuple) and 0 < len(x) <= 64 and all(isinstance(y, torch.Tensor) for y in x):
            return type(x)(y.detach().clone() for y in x)
        return None

    def moved(self, x: Any, seed: int, i: int) -> Any:
        """An input near the given one; signs and integers stay, so that it is in the function's domain if that one was."""
        if not self.is_float(x) or not seed:
            return self.copy(x)
        g = torch.Generator().manual_seed(1000 * seed + i)
        size = x.abs().mean() if x.numel() else torch.tensor(0.0)
        away = 1 + 0.3 * (torch.rand(x.shape, generator=g, dtype=torch.float64) - 0.5)
        zeros = (x == 0) * (0.3 * (size if size > 0 else 1.0)) * torch.randn(x.shape, generator=g, dtype=torch.float64)
        return x * away.to(x.dtype) + zeros.to(x.dtype)

    def cut(self, x: Any, axis: int, size: int) -> Any:
        """A tensor with less along an axis."""
        if size < 1:
            raise ValueError("nothing is left")
        return x.narrow(axis, 0, size).contiguous()

    def probe(self, y: Any, seed: int, i: int) -> Any:
        if not self.is_float(y):
            return None
        g = torch.Generator().manual_seed(77 + 1000 * seed + i)
        drawn = torch.randn(y.shape, generator=g, dtype=torch.float64)
        return (drawn + 0.3 * drawn.sign()).to(y.dtype)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Threads and random numbers are afterwards as they were."""
        state, threads = torch.random.get_rng_state(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.random.set_rng_state(state)
            torch.set_num_threads(threads)

    @contextmanager
    def quiet(self, seed: int) -> Iterator[None]:
        """No recording, and random numbers that are the same each time."""
        torch.default_generator.manual_seed(seed)
        with torch.no_grad():
            yield

    def as_gradient(self, g: Any, x: Any) -> Array:
        """A returned gradient as PyTorch takes it: none is zero, and what was stretched is summed."""
        if not isinstance(g, torch.Tensor):
            return np.zeros(tuple(x.shape))
        if g.shape != x.shape:
            try:
                g = g.sum_to_size(x.shape)
            except RuntimeError:
                pass
        return self.array(g)

    def reference(self, case: Case, inputs: list[Any], above: list[Any], quantities: bool) -> tuple[list[Array], list[Quantity]]:
        """The right gradients, and all values on the way."""
        leaves = [x.detach().clone().requires_grad_() if self.is_float(x) else x for x in inputs]
        wanted = [leaves[i] for i in case.graded]
        ops = _Ops()
        torch.default_generator.manual_seed(1)
        try:
            with torch.enable_grad(), ops:
                outputs, _ = case.forward([x.view_as(x) if self.is_float(x) else x for x in leaves])
            pairs = [(y, g) for y, g in zip(outputs, above) if self.is_float(y) and y.requires_grad]
            targets = [*wanted, *([x for _, x in ops.results + ops.uses] if quantities else [])]
            found = torch.autograd.grad([y for y, _ in pairs], targets, [g for _, g in pairs], allow_unused=True)
        except RuntimeError:
            return self._differences(case, inputs, above), []
        right = [np.zeros(tuple(x.shape)) if g is None else self.array(g) for x, g in zip(wanted, found)]
        if not self._agrees(case, inputs, above, right):
            return self._differences(case, inputs, above), []
        known = []
        for (name, x), g in zip(ops.results, found[len(wanted) :]):
            known.append(Quantity(f"the result of `{name}`", self.array(x), False))
            if g is not None:
                known.append(Quantity(f"the gradient of the result of `{name}`", self.array(g), True))
        for (name, x), g in zip(ops.uses, found[len(wanted) + len(ops.results) :]):
            if g is not None:
                known.append(Quantity(f"a part of a gradient, by way of `{name}`", self.array(g), True))
        return right, known

    def _value(self, case: Case, inputs: list[Any], above: list[Any]) -> float:
        outputs, _ = case.run_forward(inputs)
        return sum(float((y * g).sum()) for y, g in zip(outputs, above) if g is not None)

    def _agrees(self, case: Case, inputs: list[Any], above: list[Any], right: list[Array]) -> bool:
        """Whether the gradients agree with a difference along one direction: a forward pass may have a tape that is not its function's."""
        g = torch.Generator().manual_seed(5)
        along = {i: torch.randn(inputs[i].shape, generator=g, dtype=torch.float64) for i in case.graded}
        slope = sum(float((self.array(along[i]) * r).sum()) for i, r in zip(case.graded, right))
        size = sum(float(np.abs(self.array(along[i]) * r).sum()) for i, r in zip(case.graded, right))

        def difference(step: float) -> float:
            ends = [[x + s * step * along[i].to(x.dtype) if i in along else x for i, x in enumerate(inputs)] for s in (1, -1)]
            return (self._value(case, ends[0], above) - self._value(case, ends[1], above)) / (2 * step)

        # At a kink on the way no step agrees with another one; then the tape is believed.
        first, second = difference(1e-5), difference(1e-6)
        near = 1e-4 * (size + abs(first)) + 1e-12
        return abs(first - slope) <= near or abs(second - slope) <= near or abs(first - second) > near

    def _differences(self, case: Case, inputs: list[Any], above: list[Any]) -> list[Array]:
        if sum(inputs[i].numel() for i in case.graded) > MOST:
            raise ValueError("the forward pass cannot be followed, and there are too many elements for differences")
        case.tolerance = max(case.tolerance, 1e-6)
        out = []
        for i in case.graded:
            x = inputs[i]
            right = np.zeros(x.numel())
            for k in range(x.numel()):
                size = 1e-3 * max(1.0, abs(float(x.reshape(-1)[k])))
                values = []
                for s in (1.0, -1.0, 0.5, -0.5):
                    moved = [self.copy(y) for y in inputs]
                    moved[i].view(-1)[k] += s * size
                    values.append(self._value(case, moved, above))
                wide, narrow = (values[0] - values[1]) / (2 * size), (values[2] - values[3]) / size
                right[k] = (4 * narrow - wide) / 3
            out.append(right.reshape(tuple(x.shape)))
        return out
