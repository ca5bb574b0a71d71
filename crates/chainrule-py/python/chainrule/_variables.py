"""Names that the user's code has for tensors: the paths of a module's parameters and variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._chainrule import Tensor

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = f"{os.sep}torch{os.sep}"

# Longer lists and dictionaries are data, and no parameters.
_LONGEST = 4096


def _is_own(frame: Any) -> bool:
    """Whether the code of a frame is of this package or of PyTorch."""
    file = frame.f_code.co_filename
    return file.startswith(_OWN) or _TORCH in file


def scopes() -> Iterator[Mapping[str, Any]]:
    """The variables of the user's functions that led here, the nearest first."""
    frame: Any = sys._getframe(1)
    seen: set[int] = set()
    while frame is not None:
        if not _is_own(frame):
            yield frame.f_locals
            if id(frame.f_globals) not in seen:
                seen.add(id(frame.f_globals))
                yield frame.f_globals
        frame = frame.f_back


def shown_names() -> list[tuple[Tensor, str]]:
    """Tensors that the user's functions know by a name. Paths of modules count before variables,
    and nearer variables before those further out.
    """
    from .nn.module import Module

    modules: dict[int, tuple[str, Any]] = {}
    variables: dict[int, tuple[Tensor, str]] = {}

    def take(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            variables.setdefault(id(value), (value, name))
        elif isinstance(value, Module):
            modules.setdefault(id(value), (name, value))

    for scope in scopes():
        for name, value in list(scope.items()):
            if name.startswith("_"):
                continue
            take(name, value)
            # Lists and dictionaries of parameters, as loops without modules have them.
            if type(value) in (list, tuple) and len(value) <= _LONGEST:
                for i, x in enumerate(value):
                    take(f"{name}[{i}]", x)
            elif type(value) is dict and len(value) <= _LONGEST:
                for key, x in value.items():
                    take(f"{name}[{key!r}]", x)
    return [*_paths(list(modules.values())), *variables.values()]


def _paths(modules: list[tuple[str, Any]]) -> list[tuple[Tensor, str]]:
    """Paths in the modules that are within no other one; they begin with the module's own name
    where there are several.
    """
    inner = {id(m) for _, module in modules for m in module.modules() if m is not module}
    roots = [(name, module) for name, module in modules if id(module) not in inner]
    out = []
    for name, module in roots:
        before = f"{name}." if len(roots) > 1 else ""
        out += [(p, before + path) for path, p in (*module.named_parameters(), *module.named_buffers())]
    return out


def parameters_by_name(model: Any, optimizer: Any, frame: Any, kind: Any) -> dict[str, Any]:
    """The parameters that are trained, by their names."""
    out: dict[str, Any] = {}
    variables = _variables(frame, kind)
    known: set[int] = set()

    def add(name: str, p: Any) -> None:
        if id(p) not in known and p.requires_grad:
            known.add(id(p))
            out[name] = p

    if callable(getattr(model, "named_parameters", None)):
        for name, p in model.named_parameters():
            add(name, p)
    elif isinstance(model, Mapping):
        for name, p in model.items():
            add(str(name), p)
    elif isinstance(model, Iterable):
        for i, p in enumerate(model):
            add(variables.get(id(p), f"parameter {i}"), p)
    for group in getattr(optimizer, "param_groups", ()):
        for i, p in enumerate(group["params"]):
            add(variables.get(id(p), f"parameter {i} of the optimizer"), p)
    return out


def _variables(frame: Any, kind: Any) -> dict[int, str]:
    out: dict[int, str] = {}
    for scope in (frame.f_globals, frame.f_locals):
        for name, value in list(scope.items()):
            if isinstance(value, (list, tuple)):
                for i, x in enumerate(value):
                    if isinstance(x, kind):
                        out.setdefault(id(x), f"{name}[{i}]")
        out.update({id(value): name for name, value in list(scope.items()) if isinstance(value, kind)})
    return out


def caller_line() -> str:
    """File and line of the caller outside of this package and of PyTorch."""
    frame: Any = sys._getframe(1)
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
