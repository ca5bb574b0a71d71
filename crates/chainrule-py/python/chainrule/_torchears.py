"""Whether more backward passes through a graph of PyTorch would be heard by somebody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch as _torch
from torch.autograd.function import BackwardCFunction
from torch.nn.modules import module as _module
from torch.utils.hooks import BackwardHook

# Nodes of a graph that are looked at; a larger one is not asked.
_MOST = 20_000


class Ears:
    """Notes from now on whether a forward pass leaves something behind that hears of each backward
    pass: hooks on tensors, gradients that they retain, saved tensors that a function unpacks
    or computes again. PyTorch lists these nowhere.
    """

    def __init__(self) -> None:
        self.heard = False
        self._undo: list[Any] = []
        self._follow(_torch.Tensor, "register_hook")
        self._follow(_torch.Tensor, "retain_grad")
        self._follow(BackwardHook, "__init__")
        self._follow(_torch.autograd.graph.saved_tensors_hooks, "__enter__")

    def _follow(self, owner: Any, name: str) -> None:
        original, has_own = getattr(owner, name), name in vars(owner)

        def called(this: Any, *args: Any, **kwargs: Any) -> Any:
            # Hooks of the monitor itself sleep meanwhile.
            if not (args and str(getattr(args[0], "__module__", "")).startswith("chainrule.")):
                self.heard = True
            return original(this, *args, **kwargs)

        setattr(owner, name, called)
        self._undo.append(lambda: setattr(owner, name, original) if has_own else delattr(owner, name))

    def close(self) -> None:
        """Listens no more."""
        while self._undo:
            self._undo.pop()()


def is_silent(loss: Any, modules: Iterable[Any]) -> bool:
    """Whether nothing of the user is called by a pass through the graph of a loss, as far as it
    can be seen there: no hook of a module or a leaf, and no backward written in Python.
    """
    kinds = ("_backward_hooks", "_backward_pre_hooks")
    if _module._global_backward_hooks or _module._global_backward_pre_hooks or loss._backward_hooks or loss.grad_fn is None:
        return False
    if any(vars(m).get(kind) for m in modules for kind in kinds):
        return False
    seen, rest = {loss.grad_fn}, [loss.grad_fn]
    while rest:
        node = rest.pop()
        leaf = getattr(node, "variable", None)
        if isinstance(node, BackwardCFunction) or len(seen) > _MOST or (leaf is not None and leaf._backward_hooks):
            return False
        new = [n for n, _ in node.next_functions if n is not None and n not in seen]
        seen.update(new)
        rest += new
    return True
