"""Our own functions whose backward passes are followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import Function
from .case import Case, wrong_far_off
from .engine_chainrule import Chainrule
from .functions import of_function
from .report import Followed, follow


def cases(fn: Any, inputs: Sequence[Any]) -> list[Case]:
    """Each `Function` with a backward of its own that runs in `fn`, with the arguments that it gets
    there.
    """
    engine = Chainrule()
    owner = getattr(fn, "__self__", fn)
    if isinstance(owner, type) and issubclass(owner, Function):
        return [of_function(engine, owner, inputs)]
    called: dict[Any, tuple[Any, ...]] = {}
    before = Function.__dict__["apply"]

    def apply(cls: Any, *args: Any) -> Any:
        called.setdefault(cls, tuple(engine.copy(a) for a in args))
        return before.__func__(cls, *args)

    Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]
    try:
        fn(*(engine.double(x) for x in inputs))
    finally:
        Function.apply = before  # type: ignore[method-assign]
    return [of_function(engine, cls, args) for cls, args in called.items()]


def beyond(fn: Any, inputs: Sequence[Any]) -> list[str]:
    """The inputs of a `Function` in `fn` whose gradients are right at the given inputs, and wrong
    at larger ones.
    """
    try:
        return [name for case in cases(fn, inputs) for name in wrong_far_off(case)]
    except Exception:
        # As below: the numbers have been judged without it.
        return []


def followed(fn: Any, inputs: Sequence[Any], seconds: float = 1.2) -> list[Followed]:
    """The mistakes in the backward passes of a function, or of a `Function`."""
    try:
        found = [follow(case, seconds) for case in cases(fn, inputs)]
    except Exception:
        # The search runs the user's code in ways in which it need not run; the numbers have been
        # judged without it.
        return []
    return [f for f in found if f is not None]
