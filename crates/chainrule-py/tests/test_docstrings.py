"""The examples in the texts of the package run."""

import importlib
import inspect
import pkgutil
import re

import chainrule as cr
import pytest

OPTIONAL = ("torch", "matplotlib", "tqdm")
"""Packages that some modules need, and that need not be there."""


def examples():
    found = {}
    for info in pkgutil.walk_packages(cr.__path__, "chainrule."):
        if "_chainrule" in info.name:
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if error.name not in OPTIONAL:
                raise
            continue
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != info.name:
                continue
            members = [value, *vars(value).values()] if inspect.isclass(value) else [value]
            for member in members:
                text = inspect.cleandoc(getattr(member, "__doc__", None) or "")
                for i, code in enumerate(re.findall(r"^```(?:python)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)):
                    found[f"{info.name}.{name}.{getattr(member, '__name__', '')}.{i}"] = code
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    exec(compile(EXAMPLES[name], name, "exec"), {"cr": cr})


def test_there_are_examples():
    assert len(EXAMPLES) > 30
