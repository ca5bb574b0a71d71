"""Handles of registered hooks, for annotations and `isinstance`."""

from __future__ import annotations

from typing import Any

from .._chainrule import Handle


class _Removable(type):
    def __instancecheck__(cls, x: Any) -> bool:
        from ..nn.module import HookHandle

        return isinstance(x, (Handle, HookHandle))


class RemovableHandle(metaclass=_Removable):
    """The handle that `register_hook` and its kin give: `remove()` takes the hook away."""

    def remove(self) -> None:
        """The hook is not called any more."""


__all__ = ["RemovableHandle"]
