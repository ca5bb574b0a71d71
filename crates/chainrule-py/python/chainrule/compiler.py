"""Names about `compile`."""

from __future__ import annotations

from typing import Any

from . import _chainrule as _c
from ._errors import _NotInPrograms
from .program import compile as compile


def is_compiling() -> bool:
    """Whether a function is being traced."""
    return bool(_c._session_on())


is_dynamo_compiling = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is; a compiled function that calls it is run as it is, too."""
    import functools

    if fn is None:
        return lambda f: disable(f)

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _c._session_on():
            raise _NotInPrograms(f"compile: {getattr(fn, '__name__', 'a function')} is marked with compiler.disable, and a program would not call it: call it outside")
        return fn(*args, **kwargs)

    return run


def reset() -> None:
    """Nothing: programs belong to their functions."""


__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "reset"]
