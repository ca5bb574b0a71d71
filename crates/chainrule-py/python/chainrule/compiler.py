"""`compile`, and the names beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, Unpack, overload

from . import _chainrule as _c
from ._errors import _NotInPrograms
from .program import Compiled


class _OfTorch(TypedDict, total=False):
    """Options of PyTorch's `compile`, which choose among its ways to do it; here there is one."""

    fullgraph: bool
    dynamic: bool | None
    backend: Any
    mode: str | None
    options: dict[str, Any] | None


class _Options(_OfTorch, total=False):
    """Every option of `compile`, with the defaults that stand there."""

    simplify: bool
    fuse: bool
    device: str | None
    precision: str | None
    compare_first: bool
    disable: bool


@overload
def compile(f: Callable[..., Any], **options: Unpack[_Options]) -> Compiled: ...
@overload
def compile(
    f: None = None, **options: Unpack[_Options]
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(
    f: Callable[..., Any] | None = None,
    *,
    simplify: bool = True,
    fuse: bool = True,
    device: str | None = None,
    precision: str | None = None,
    compare_first: bool = True,
    disable: bool = False,
    **of_torch: Unpack[_OfTorch],
) -> Any:
    """The function as a program: see `Compiled`. Also a decorator, with or without brackets.

    The program is simplified by algebra and its chains of ops are fused. Without both the results
    are those of the eager mode, bit for bit.

    A `device` runs it: "wgpu" or "cuda", with a number such as "wgpu:1", where the package was
    built with them. Parameters and the optimizer's state live there; what a call changed is
    fetched by whatever reads it, and what was written since is seen by the next one. Random
    numbers are another stream there. The first run of a program there is compared with the
    processor's, and an error where they part, unless it draws random numbers or `compare_first` is
    false. `precision` is that of large products of f32 there: "f32", "tf32" or "bf16", all with
    sums of f32; "bf16" rounds the results, too.

    With `disable=True` the function stays as it is. PyTorch's `fullgraph`, `dynamic`, `backend`,
    `mode` and `options` choose among its ways to compile, and have no effect here.
    """
    unknown = set(of_torch) - set(_OfTorch.__annotations__)
    if unknown:
        raise TypeError(f"compile() got an unexpected keyword argument '{min(unknown)}'")
    if disable:
        return f if f is not None else lambda f: f
    passes = simplify, fuse, device, precision, compare_first
    return Compiled(f, *passes) if f is not None else lambda f: Compiled(f, *passes)


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


def allow_in_graph(fn: Any) -> Any:
    """The function: ops that it calls are traced as those of its caller."""
    return fn


def reset() -> None:
    """Nothing: programs belong to their functions."""


__all__ = ["allow_in_graph", "compile", "disable", "is_compiling", "is_dynamo_compiling", "reset"]
