"""Hooks of optimizers: before and after steps, and around their state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

KINDS = ("_step_before", "_step_after", "_state_before", "_state_after", "_load_before", "_load_after")


class Hooked:
    """The part of `Optimizer` that calls hooks. A copy of the optimizer has none of them."""

    def _hook(self, kind: str, hook: Callable[..., Any], first: bool = False) -> Any:
        from ..nn.module import HookHandle

        return HookHandle(self.__dict__.setdefault(kind, OrderedDict()), hook, first)

    def _hooks(self, kind: str) -> list[Callable[..., Any]]:
        found = self.__dict__.get(kind)
        return list(found.values()) if found else []

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls `hook(optimizer, args, kwargs)` before each step; what it returns replaces the
        arguments.

        ```
        w, steps = cr.ones(1, requires_grad=True), []
        opt = cr.optim.SGD([w], lr=0.1)
        opt.register_step_pre_hook(lambda opt, args, kwargs: steps.append(w.item()))
        opt.step()
        assert steps == [1.0]
        ```
        """
        return self._hook("_step_before", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return self._hook("_step_after", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Calls `hook(optimizer)` before `state_dict`."""
        return self._hook("_state_before", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Calls `hook(optimizer, state_dict)` after `state_dict`; what it returns replaces that."""
        return self._hook("_state_after", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Calls `hook(optimizer, state_dict)` before the state is taken over; what it returns
        replaces that.
        """
        return self._hook("_load_before", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Calls `hook(optimizer)` after the state was taken over."""
        return self._hook("_load_after", hook, prepend)

    def _stepped(self, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A step between its hooks. Steps inside of it have none."""
        self.__dict__["_is_in_step"] = True
        try:
            for hook in self._hooks("_step_before"):
                new = hook(self, args, kwargs)
                args, kwargs = (args, kwargs) if new is None else new
            out = step(self, *args, **kwargs)
            for hook in self._hooks("_step_after"):
                hook(self, args, kwargs)
        finally:
            del self.__dict__["_is_in_step"]
        return out

    def _has_step_hooks(self) -> bool:
        own = self.__dict__
        return ("_step_before" in own or "_step_after" in own) and "_is_in_step" not in own
