"""The examples in the texts of the package run."""

import importlib
import inspect
import pkgutil
import re

import chainrule as cr
import pytest

NEEDS_MORE = ("chainrule.torch", "chainrule._lift", "chainrule._torchcheck", "chainrule._cuts", "chainrule._watch", "chainrule._follow", "chainrule.plots")


def examples():
    found = {}
    for info in pkgutil.walk_packages(cr.__path__, "chainrule."):
        if info.name.startswith(NEEDS_MORE) or "_chainrule" in info.name:
            continue
        module = importlib.import_module(info.name)
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
