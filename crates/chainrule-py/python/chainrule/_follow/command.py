"""`python -m chainrule.check FILE.py [--picture FILE.svg] [--json]`: the backward passes that a
file holds, checked; `chainrule check backward FILE.py` runs it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

USAGE = "usage: python -m chainrule.check FILE.py [--picture FILE.svg] [--json]"


class _Unusable(Exception):
    """The file cannot be checked; the text says what to do."""


def _loaded(path: str) -> Any:
    if not os.path.isfile(path):
        raise _Unusable(f"{path}: no such file")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, os.path.abspath(path))
    if spec is None or spec.loader is None:
        raise _Unusable(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _Unusable(f"{path}: it cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _is_function(value: Any) -> bool:
    """Whether it is a `Function` of PyTorch or of ours: a class with a forward and a backward."""
    return isinstance(value, type) and any(c.__name__ == "Function" and c.__module__.startswith(("torch.autograd", "chainrule.")) for c in value.__mro__[1:])


def _passes(module: Any) -> Iterator[tuple[str, Any, Any]]:
    """Names, functions and, where it stands apart, the backward pass of each."""
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
    for name, value in own.items():
        if _is_function(value):
            yield name, value, None
        elif inspect.isfunction(value) and inspect.isfunction(own.get(f"{name}_backward")):
            yield name, value, own[f"{name}_backward"]


def _inputs(module: Any, name: str, value: Any) -> Any:
    given = getattr(value, "example_inputs", None)
    if given is None:
        given = getattr(module, "inputs", None)
        given = given.get(name) if isinstance(given, dict) else given
    if given is None:
        raise _Unusable(f"{module.__name__}.{name}: it needs inputs: give the class `example_inputs`, or the file `inputs` (a list, a dict by name, or a function that makes them)")
    return given() if callable(given) else given


def _expect_runs(name: str, function: Any, inputs: Any) -> None:
    """The refusal of inputs that the function does not take."""
    given = [inputs] if hasattr(inputs, "shape") else list(inputs)
    # In f64, as they are checked.
    given = [x.double() if hasattr(x, "is_floating_point") and x.is_floating_point() else x for x in given]
    try:
        getattr(function, "apply", function)(*given)
    except Exception as error:
        raise _Unusable(f"{name}: it fails on its own inputs: {type(error).__name__}: {error}") from error


def _asked(words: list[str]) -> tuple[str | None, str | None, bool]:
    """The file to check, the file for the picture, and whether JSON is wanted; no file where the
    words are not usable.
    """
    rest, picture = [word for word in words if word != "--json"], None
    if "--picture" in rest[:-1]:
        at = rest.index("--picture")
        picture = rest[at + 1]
        del rest[at : at + 2]
    return (rest[0] if len(rest) == 1 and not rest[0].startswith("-") else None), picture, "--json" in words


def _draw(path: str, pictures: list[str]) -> None:
    """The picture of the first followed backward pass at a path, those of others beside it."""
    if not pictures:
        print("no picture: no line of a wrong backward pass was found")
    root, end = os.path.splitext(path)
    for i, picture in enumerate(pictures):
        name = path if i == 0 else f"{root}-{i + 1}{end}"
        try:
            with open(name, "w", encoding="utf-8") as out:
                out.write(picture)
        except OSError as error:
            raise _Unusable(f"{name}: cannot write the picture: {error.strerror or error}") from error
        print(f"wrote {name}")


def _checked(file: str, picture: str | None, is_told: bool) -> list[tuple[str, Any]]:
    """The reports on the backward passes of a file, by name; told as they come, if at all."""
    from ..check import backward

    module = _loaded(file)
    passes = list(_passes(module))
    if not passes:
        raise _Unusable(f"{file}: there is no class with `forward` and `backward`, and no function NAME with a NAME_backward")
    reports = []
    for name, function, by_hand in passes:
        inputs = _inputs(module, name, function)
        _expect_runs(name, function, inputs)
        reports.append((name, backward(function, inputs, by_hand)))
        if is_told:
            print(f"{name}: {reports[-1][1]}", flush=True)
    if picture is not None:
        _draw(picture, [drawn for _, report in reports for drawn in report.pictures])
    return reports


def main(arguments: list[str] | None = None) -> int:
    """The status: 0 if all backward passes are right, 1 if one is not, 2 if the file is of no use.
    """
    words = sys.argv[1:] if arguments is None else arguments
    file, picture, as_json = _asked(words)
    if file is None:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        # The object stands alone on standard output, whatever the file prints.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            reports = _checked(file, picture, not as_json)
    except _Unusable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    right = all(report.passed for _, report in reports)
    if as_json:
        passes = [{"name": name, **json.loads(report.to_json())} for name, report in reports]
        print(json.dumps({"file": file, "passed": right, "passes": passes}))
    return 0 if right else 1
