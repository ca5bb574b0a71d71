"""Names for what a traced function captures, so that its program speaks of `w` and not of `leaf`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._chainrule import Tensor
from .nn.module import Module, scopes


def name_captured(function: Callable[..., Any]) -> None:
    """Gives the parameters that the function captures the names of its variables, where they have
    none.
    """
    found = list(_variables(function))
    modules = {id(value) for _, value in found if isinstance(value, Module)}
    for name, value in found:
        if isinstance(value, Tensor):
            _name(value, name)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                _name(item, f"{name}_{i}")
        elif isinstance(value, dict):
            for key, item in value.items():
                _name(item, str(key))
        elif isinstance(value, Module):
            for path, parameter in value.named_parameters(prefix=name if len(modules) > 1 else ""):
                _name(parameter, path)


@contextmanager
def module_scopes(function: Callable[..., Any]) -> Iterator[None]:
    """Traces know the modules that the function captures, or is, by their names, and these names
    are given to their parameters and buffers that have none.
    """
    found = [("", function)] if isinstance(function, Module) else [(n, v) for n, v in _variables(function) if isinstance(v, Module)]
    several = len({id(module) for _, module in found}) > 1
    for name, module in found:
        prefix = name if several else ""
        for path, t in [*module.named_parameters(prefix=prefix), *module.named_buffers(prefix=prefix)]:
            if t.is_leaf and t.name is None:
                t.named(path)
        scopes.update({id(inner): path for path, inner in module.named_modules(prefix=prefix) if path})
    try:
        yield
    finally:
        scopes.clear()


def _variables(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The variables that the function reads beside its arguments, and the fields of the object that
    it is a method of. Single tensors come first, so that they are not named by a list that they are
    in as well."""
    owner = getattr(function, "__self__", None)
    every: list[tuple[str, Any]] = []
    if isinstance(owner, Module):
        every.append(("self", owner))
    elif owner is not None and hasattr(owner, "__dict__"):
        every.extend(vars(owner).items())
    try:
        captured = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        pass
    else:
        every.extend(captured.nonlocals.items())
        every.extend(captured.globals.items())
    return iter(sorted(every, key=lambda pair: not isinstance(pair[1], Tensor)))


def _name(value: Any, name: str) -> None:
    if isinstance(value, Tensor) and value.is_leaf and value.requires_grad and value.name is None:
        value.named(name)
