"""Hooks that are called once a leaf has its gradient."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor

_native = Tensor.backward
# Leaves with hooks whose gradients came in the backward pass that runs.
_reached = threading.local()
# Whether any leaf ever had one.
_is_used = False


def backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    if inputs is not None:
        inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not _is_used:
        return _native(self, gradient, retain_graph, create_graph, inputs)
    outer, _reached.leaves = getattr(_reached, "leaves", None), OrderedDict()
    try:
        _native(self, gradient, retain_graph, create_graph, inputs)
        leaves = [leaf for known in _reached.leaves if (leaf := known()) is not None]
    finally:
        _reached.leaves = outer
    for leaf in leaves:
        for hook in list(getattr(leaf, "_hooks_after").values()):
            if leaf.grad is not None:
                hook(leaf)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> Any:
    """Calls `hook(x)` after a backward pass has added to the gradient of this leaf, as for a step
    of the optimizer for each parameter at once.

    ```
    w = cr.ones(2, requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda w: w.grad.mul_(10))
    w.sum().backward()
    assert w.grad.tolist() == [10, 10]
    ```
    """
    from .nn.module import HookHandle

    if not (self.is_leaf and self.requires_grad):
        raise _c.GradientError("register_post_accumulate_grad_hook: a leaf that requires a gradient has one to be added to; take register_hook")
    if not hasattr(self, "_hooks_after"):
        global _is_used
        _is_used = True
        setattr(self, "_hooks_after", OrderedDict())
        known = weakref.ref(self)

        def reached(_: Tensor) -> None:
            leaves = getattr(_reached, "leaves", None)
            if leaves is not None:
                leaves[known] = None

        self.register_hook(reached)

    class Told(HookHandle):
        """Programs that hold the leaf are traced anew once it is removed."""

        def remove(self) -> None:
            super().remove()
            leaf = known()
            if leaf is not None:
                _tell(leaf)

    known = weakref.ref(self)
    _tell(self)
    return Told(getattr(self, "_hooks_after"), hook)


def _tell(leaf: Tensor) -> None:
    """The hooks of the leaf are others now."""
    leaf.register_hook(lambda _: None).remove()


def attach() -> None:
    """Gives the native class the methods of this module."""
    backward.__doc__ = _native.__doc__
    setattr(Tensor, "backward", backward)
    setattr(Tensor, "register_post_accumulate_grad_hook", register_post_accumulate_grad_hook)
