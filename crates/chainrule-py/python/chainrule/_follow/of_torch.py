"""Functions and modules of PyTorch whose backward passes are followed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from .case import Case, lost_gradients, wrong_far_off
from .engine_torch import Torch
from .functions import of_function
from .report import Followed, follow


def _is_function(fn: Any) -> bool:
    return isinstance(fn, type) and issubclass(fn, torch.autograd.Function)


def cases(fn: Any, inputs: Sequence[Any]) -> list[Case]:
    """Each `Function` with a backward of its own that runs in `fn`, with the arguments that it gets
    there.
    """
    engine = Torch()
    fn = getattr(fn, "__self__", fn) if _is_function(getattr(fn, "__self__", None)) else fn
    if _is_function(fn):
        return [of_function(engine, fn, inputs)]
    called: dict[Any, tuple[Any, ...]] = {}
    base: Any = torch.autograd.Function
    before = base.__dict__["apply"]

    def apply(cls: Any, *args: Any, **options: Any) -> Any:
        if not cls.__module__.startswith("torch.") and not options:
            called.setdefault(cls, tuple(engine.copy(a) for a in args))
        # Written in Python or in C, by the version of PyTorch; bound to the class, both take the
        # same.
        return before.__get__(None, cls)(*args, **options)

    base.apply = classmethod(apply)
    try:
        run = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
        run(*(engine.double(x) for x in inputs))
    finally:
        base.apply = before
    return [of_function(engine, cls, args) for cls, args in called.items()]


def lost(fn: Any, inputs: Any) -> list[str]:
    """The inputs of a `Function` in `fn` whose gradients are tiny, and not what they should be."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    try:
        return [name for case in cases(fn, given) for name in lost_gradients(case)]
    except Exception:
        # Running the forward pass in another way than the user does may fail; the numbers have been
        # judged without it.
        return []


def beyond(fn: Any, inputs: Any) -> list[str]:
    """The inputs of a `Function` in `fn` whose gradients are right at the given inputs, and wrong
    at larger ones.
    """
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    try:
        return [name for case in cases(fn, given) for name in wrong_far_off(case)]
    except Exception:
        # As above.
        return []


def followed(fn: Any, inputs: Any, seconds: float = 1.2) -> list[Followed]:
    """The mistakes in the backward passes of a function, of a `Function` or of a module."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    try:
        found = [follow(case, seconds) for case in cases(fn, given)]
    except Exception:
        # The search runs the user's code in ways in which it need not run; the numbers have been
        # judged without it.
        return []
    return [f for f in found if f is not None]
