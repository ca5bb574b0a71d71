"""Hooks of all modules, which are called beside those of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _chainrule as _c
from .._errors import _NotInPrograms
from .module import EVERYWHERE, HookHandle, Module


def _before(module: Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs of a module, as the hooks give them."""
    if _c._session_on():
        raise _NotInPrograms("compile: there are hooks of all modules, which a program would not call again: remove them, or call the module outside")
    for hook in list(_BEFORE.values()):
        new = hook(module, args)
        args = args if new is None else new if isinstance(new, tuple) else (new,)
    return args


def _behind(module: Module, args: tuple[Any, ...], out: Any) -> Any:
    """The output of a module, as the hooks give it."""
    for hook in list(_BEHIND.values()):
        new = hook(module, args, out)
        out = out if new is None else new
    return out


_BEFORE: OrderedDict[Any, Any] = OrderedDict()
_BEHIND: OrderedDict[Any, Any] = OrderedDict()


class _Handle(HookHandle):
    """Takes a hook of all modules away again."""

    def __init__(self, hooks: Any, hook: Any) -> None:
        super().__init__(hooks, hook)
        EVERYWHERE[:] = [_before, _behind]

    def remove(self) -> None:
        super().remove()
        EVERYWHERE[:] = [_before, _behind] if _BEFORE or _BEHIND else []


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls `hook(module, inputs)` before each call of any module; what it returns replaces the
    inputs.
    """
    return _Handle(_BEFORE, hook)


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> HookHandle:
    """Calls `hook(module, inputs, output)` after each call of any module; what it returns replaces
    the output.

    ```
    seen = []
    handle = cr.nn.modules.module.register_module_forward_hook(lambda m, x, y: seen.append(type(m)))
    cr.nn.ReLU()(cr.ones(1))
    handle.remove()
    assert seen == [cr.nn.ReLU]
    ```
    """
    if with_kwargs or always_call:
        raise NotImplementedError("register_module_forward_hook: with_kwargs and always_call are not there; take register_forward_hook of each module")
    return _Handle(_BEHIND, hook)
