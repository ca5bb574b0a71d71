"""Our own tensors, as the search for a mistake sees them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from ..autograd import enable_grad, no_grad
from .case import Array, Case, Quantity
from .engine import Engine, sums_of_parts
from .engine_numpy import WithArrays
from .record import Hook, hooked, watched
from .units import Unit, called, unit_of


class _Uses(Hook):
    """Each read of a variable gets a tensor of its own, so that a gradient's parts are told apart.
    """

    def __init__(self, units: list[Unit]) -> None:
        # The tensors themselves are kept, with the tape that they are on.
        super().__init__(lambda x: x if isinstance(x, Tensor) else None)
        nodes: Iterator[Any] = (n for u in units for n in ast.walk(u.node))
        self.reads = {n.number for n in nodes if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))}  # type: ignore[union-attr]
        self.uses: list[Tensor] = []
        self.sources: list[Tensor] = []
        """The tensor of each use."""

    def see(self, number: int, value: Any) -> Any:
        value = super().see(number, value)
        if number not in self.reads or not isinstance(value, Tensor) or not value.requires_grad or not value.is_floating_point():
            return value
        own = value.clone()
        self.uses.append(own)
        self.sources.append(value)
        return own


class _Tensors(Engine):
    """Tensors of chainrule."""

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, Tensor)

    def is_float(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.is_floating_point()

    def is_bool(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype.name == "bool"

    def double(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return x.detach().double() if x.is_floating_point() else x.detach()

    def copy(self, x: Any) -> Any:
        return x.detach().clone() if isinstance(x, Tensor) else x

    def array(self, x: Any) -> Array:
        a = np.asarray(x.detach().numpy())
        return a.astype(np.float64) if a.dtype == np.float32 else a

    def tensor(self, array: Array, like: Any) -> Any:
        return _c.tensor(np.ascontiguousarray(array), like.dtype, False).reshape(tuple(like.shape))

    def cut(self, x: Any, axis: int, size: int) -> Any:
        if size < 1:
            raise ValueError("nothing is left")
        return x.narrow(axis, 0, size).contiguous()

    @contextmanager
    def apart(self) -> Iterator[None]:
        state, dtype = _c._rng_state(), _c.get_default_dtype()
        # Numbers of the user's code that become tensors are taken in f64, as all else is.
        _c.set_default_dtype("float64")
        try:
            yield
        finally:
            _c._set_rng_state(state)
            _c.set_default_dtype(dtype)

    @contextmanager
    def quiet(self, seed: int) -> Iterator[None]:
        _c._manual_seed(seed)
        with no_grad():
            yield

    def summed_to(self, g: Any, shape: Any) -> Any:
        a, to = self.array(g), tuple(shape)
        lead = a.ndim - len(to)
        if lead < 0 or any(b not in (1, d) for d, b in zip(a.shape[lead:], to)):
            return g
        a = a.sum(tuple(range(lead)))
        a = a.sum(tuple(i for i, b in enumerate(to) if b == 1), keepdims=True)
        return _c.tensor(np.ascontiguousarray(a), g.dtype, False).reshape(to)

    def tape(self, case: Case, inputs: list[Any], above: list[Any], quantities: bool) -> tuple[list[Array], list[Quantity]]:
        units: list[Unit] = []
        if quantities:
            (functions,) = called(lambda: case.run_forward(inputs))
            numbers = iter(range(10**9))
            units = [u for f in functions if (u := unit_of(f, numbers)) is not None]
        hook = _Uses(units)
        right, known, outputs = self._walked(case, inputs, above, units, hook)
        if not units:
            return right, known
        plain, _, before = self._walked(case, inputs, above, [], _Uses([]))
        if all(self._same(a, b) for a, b in zip(outputs, before)) and all(np.allclose(a, b, rtol=1e-9, atol=1e-12 * np.abs(b).max(initial=0.0)) for a, b in zip(right, plain)):
            return right, known
        # Something is written into a variable that was read.
        hook.reads = set()
        return self._walked(case, inputs, above, units, hook)[:2]

    def _same(self, a: Any, b: Any) -> bool:
        return not self.is_float(b) or np.array_equal(self.array(a), self.array(b), equal_nan=True)

    def _walked(self, case: Case, inputs: list[Any], above: list[Any], units: list[Unit], hook: _Uses) -> tuple[list[Array], list[Quantity], list[Any]]:
        """The gradients, the values on the way and their gradients, and the outputs."""
        leaves = [x._apart() if self.is_float(x) else x for x in inputs]
        wanted = [leaves[i] for i in case.graded]
        hook.values, hook.moments, hook.uses, hook.sources = {}, [], [], []
        _c._manual_seed(1)
        with enable_grad(), hooked(units, [watched(u) for u in units], hook):
            outputs, _ = case.forward(list(leaves))
        pairs = [(y, g) for y, g in zip(outputs, above) if self.is_float(y) and y.requires_grad]
        seen: dict[int, Any] = {}
        # One use of a variable gets a part of its gradient.
        uses = {id(x) for x in hook.uses}
        for values in hook.values.values():
            for x in values:
                if self.is_float(x) and x.requires_grad and id(x) not in uses:
                    seen.setdefault(id(x), x)
        targets = [*wanted, *seen.values(), *hook.uses]
        found = _c._grad([y for y, _ in pairs], targets, [g for _, g in pairs], False)
        right = [np.zeros(tuple(x.shape)) if g is None else self.array(g) for x, g in zip(wanted, found)]
        known = []
        for x, g in zip(seen.values(), found[len(wanted) :]):
            known.append(Quantity("a value of the forward pass", self.array(x), False))
            if g is not None:
                known.append(Quantity("the gradient of a value of the forward pass", self.array(g), True))
        parts = found[len(wanted) + len(seen) :]
        known += [Quantity("a part of a gradient", self.array(g), True) for g in parts if g is not None]
        known += sums_of_parts([(id(x), self.array(g)) for x, g in zip(hook.sources, parts) if g is not None])
        return right, known, outputs


class Chainrule(WithArrays, _Tensors):
    """The engine of chainrule."""
