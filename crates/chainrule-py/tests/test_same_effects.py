"""Training loops of the examples, the book and the notebooks have the same effects eager and
compiled, or are an error before they run.
"""

import contextlib
import importlib.util
import inspect
import io
import re
import sys
import textwrap
from pathlib import Path

import chainrule as cr
import numpy as np
import pytest
from looped import compiled_loops, with_locals

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
PAGES = [HERE.parents[2] / "docs" / "src" / "python.md", HERE.parent / "README.md"]
STEPS = {"names_mlp": 8, "names_batch_norm": 8, "names_wavenet": 4, "typed_training": 2}
# Refused, with what the message says: functions that bind attributes of Python anew.
REFUSED = {"names_wavenet": "changes", "layers": "keeps a tensor"}


def same(a, b, seen=None):
    """Whether both hold the same numbers, whatever they are: tensors with their gradients, modules,
    optimizers, lists, numbers.
    """
    seen = set() if seen is None else seen
    if id(a) in seen:
        return True
    seen.add(id(a))
    if isinstance(a, cr.Tensor):
        near = np.allclose(a.tolist(), b.tolist(), rtol=1e-4, atol=1e-5)
        # Results whose graph was used up require a gradient no more.
        is_leaf = a.is_leaf and a.requires_grad
        return near and (not is_leaf or (b.requires_grad and same_gradients(a, b)))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, seen) for x, y in zip(a, b))
    if isinstance(a, dict):
        return [k for k in a if k not in b] == [] and all(same(v, b[k], seen) for k, v in a.items())
    if isinstance(a, cr.optim.Optimizer):
        return same(a.state_dict(), b.state_dict(), seen)
    if isinstance(a, (int, float)):
        return bool(np.isclose(a, b, rtol=1e-4, atol=1e-5))
    if isinstance(a, str) or a is None:
        return a == b
    return not hasattr(a, "__dict__") or inspect.ismodule(a) or inspect.isroutine(a) or inspect.isclass(a) or same(vars(a), vars(b), seen)


def gradient(p):
    """A gradient that a program used up is an error to read, which is as good as the gradient."""
    try:
        return p.grad
    except cr.GradientError as error:
        assert "used up" in str(error)
        return error


def same_gradients(a, b):
    found = [gradient(a), gradient(b)]
    return any(isinstance(g, Exception) for g in found) or same(*found)


def executed(source, filename, run=None):
    """The variables of the code after its run, from one state of the generators on, and what it
    printed.
    """
    cr.manual_seed(7)
    names = {"__name__": "example", "_compile": cr.compile}
    told = io.StringIO()
    sys.path.insert(0, str(EXAMPLES))
    try:
        with contextlib.redirect_stdout(told):
            exec(compile(source, filename, "exec"), names)
            found = names if run is None else run(names)
    finally:
        sys.path.remove(str(EXAMPLES))
    return found


def assert_same(source, filename, run=None):
    code, loops = compiled_loops(source, filename)
    eager = executed(source, filename, run)
    compiled = executed(code, filename, run)
    for name, value in eager.items():
        if not name.startswith("__"):
            assert same(value, compiled.get(name)), name
    return loops


@pytest.mark.parametrize("name", STEPS)
def test_example(name):
    source = with_locals((EXAMPLES / f"{name}.py").read_text())
    if name in REFUSED:
        code, loops = compiled_loops(source, name)
        assert loops
        with pytest.raises(cr.GradientError, match=REFUSED[name]):
            executed(code, name, lambda names: names["main"](STEPS[name]))
        return
    assert assert_same(source, name, lambda names: names["main"](STEPS[name])) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    source = "\n".join(blocks)
    assert_same(source, page.name)


def test_every_example_with_a_loop_is_there():
    for path in EXAMPLES.glob("*.py"):
        loops = compiled_loops(path.read_text(), path.name)[1]
        assert (path.stem in STEPS) == bool(loops), path.stem


@pytest.mark.parametrize("part", ["bigrams", "by_hand", "layers"])
def test_notebook(part):
    spec = importlib.util.spec_from_file_location("notebooks", HERE / "test_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = textwrap.dedent(inspect.getsource(getattr(module, part)))
    code, loops = compiled_loops(source, part)
    if part in REFUSED:
        with pytest.raises(cr.GradientError, match=REFUSED[part]):
            call(code, part)
        return
    assert same(call(source, part), call(code, part))
    assert loops == (part == "bigrams")


def call(source, name):
    names = {"_compile": cr.compile}
    exec(compile(source, name, "exec"), names)
    return names[name](cr, cr.nn.functional)
