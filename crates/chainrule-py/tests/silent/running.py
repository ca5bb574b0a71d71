"""Runs the programs of this folder and puts all that they give into plain lists of numbers."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = ("views", "states", "compiled", "more", "last", "calls", "memory", "again", "others", "results", "ported", "computed", "signals", "places", "kept", "small", "traced", "arrays", "copies", "derived", "edits", "held", "loops", "deeper", "between", "whole", "shared", "parts", "groups", "daily", "written", "trained", "edited")


def programs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All programs, by `file.name`."""
    for file in FILES:
        path = HERE / f"{file}.py"
        if not path.exists():
            continue
        spec = importlib.util.spec_from_file_location(f"silent_{file}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in list(vars(module).items()):
            if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                yield f"{file}.{name}", value


def plain(x: Any) -> Any:
    """Tensors as nested lists, and numbers that JSON can hold."""
    if hasattr(x, "detach"):
        x = x.detach().tolist()
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    return type(x).__name__


def outcome(program: Callable[..., Any], torch: Any, compile: Any) -> Any:
    """The results of a program, or the error that it ends with, in a dictionary."""
    takes_compile = "compile" in program.__code__.co_varnames[: program.__code__.co_argcount]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = program(torch, compile) if takes_compile else program(torch)
            return plain(found)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}


def is_error(found: Any) -> bool:
    """Whether an outcome is an error."""
    return isinstance(found, dict) and set(found) == {"error"}


def same(a: Any, b: Any, tolerance: float = 2e-6) -> bool:
    """Whether two outcomes agree, floats within rounding of float32."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], tolerance) for k in a)
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or a is None:
        return type(a) is type(b) and a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= tolerance * (1 + abs(b))
    return bool(a == b)
