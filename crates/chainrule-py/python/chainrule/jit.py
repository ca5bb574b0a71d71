"""PyTorch's compiler of scripts, which is not there; each name says what to use."""

from __future__ import annotations

from typing import Any, Final as Final


def _absent(name: str, instead: str, module: str = "jit") -> Any:
    def function(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{module}.{name} is not there: {instead}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"An error: {instead}."
    return function


script = _absent("script", "use chainrule.compile(f), or the function as it is")
trace = _absent("trace", "use chainrule.compile(f).trace(*args)")
save = _absent("save", "use chainrule.save(model.state_dict(), path)")
load = _absent("load", "make the model, and load_state_dict(chainrule.load(path))")


def ignore(function: Any = None, **_: Any) -> Any:
    """The function as it is."""
    return (lambda f: f) if function is None else function


unused = export = ignore


def is_scripting() -> bool:
    """No."""
    return False


def is_tracing() -> bool:
    """No."""
    return False


class ScriptModule:
    """An error: there is no compiler of scripts."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("jit.ScriptModule is not there: derive from chainrule.nn.Module")


def script_method(fn: Any) -> Any:
    """The method as it is."""
    return fn


script_if_tracing = script_method


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value
