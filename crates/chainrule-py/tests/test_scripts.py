"""Training scripts as people write them: the same losses and the same effects with PyTorch, eager,
and with a compiled step.
"""

import importlib.util
from pathlib import Path

import chainrule as cr
import numpy as np
import pytest

HERE = Path(__file__).parent / "scripts"
STEPS = 20


def scripts():
    for path in sorted(HERE.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"scripts_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, script in vars(module).items():
            if callable(script) and getattr(script, "__module__", "") == module.__name__:
                yield f"{path.stem}.{name}", script


SCRIPTS = dict(scripts())
# Steps that are run as they are, with what says so.
RUN_AS_THEY_ARE = {"attentive.graph_attention": "read inside a trace", "attentive.speech": "ctc_loss goes by the elements"}


def numbers(x):
    """All that a script gave, as arrays in a row."""
    if hasattr(x, "detach"):
        return [np.asarray(x.detach().tolist(), dtype=float)]
    if isinstance(x, (list, tuple)):
        return [part for y in x for part in numbers(y)]
    return [np.asarray(x, dtype=float)]


def outcome(script, library, compile):
    before = library.get_default_dtype()
    library.set_default_dtype(library.float64)
    library.manual_seed(1234)
    try:
        losses, effects = script(library, compile)
        return losses, numbers(effects)
    finally:
        library.set_default_dtype(before)


def assert_same(found, want, tolerance):
    (losses, effects), (right, right_effects) = found, want
    assert len(losses) >= STEPS and len(losses) == len(right)
    np.testing.assert_allclose(losses, right, rtol=0, atol=tolerance)
    assert len(effects) == len(right_effects)
    for a, b in zip(effects, right_effects):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


class Counted:
    """`compile`, and how many calls of its functions ran as a program."""

    def __init__(self, **passes):
        self.passes, self.made = passes, []

    def __call__(self, f):
        self.made.append(cr.compile(f, **self.passes))
        return self.made[-1]

    def assert_compiled(self, name):
        for f in self.made:
            assert (f.eager is None) == (name not in RUN_AS_THEY_ARE), f.eager
            assert f.eager is None or RUN_AS_THEY_ARE[name] in f.eager


@pytest.mark.parametrize("name", SCRIPTS)
def test_compiled_as_eager(name):
    eager = outcome(SCRIPTS[name], cr, lambda f: f)
    compiled = Counted()
    assert_same(outcome(SCRIPTS[name], cr, compiled), eager, 1e-9)
    compiled.assert_compiled(name)
    plain = Counted(simplify=False, fuse=False)
    assert_same(outcome(SCRIPTS[name], cr, plain), eager, 0)


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    right = outcome(SCRIPTS[name], torch, lambda f: f)
    assert_same(outcome(SCRIPTS[name], cr, lambda f: f), right, 1e-9)
    assert_same(outcome(SCRIPTS[name], cr, cr.compile), right, 1e-9)
