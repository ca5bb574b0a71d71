"""The examples run, and print what the same code prints with PyTorch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNS = {"names_mlp": ["--steps", "60"], "names_batch_norm": ["--steps", "60"], "names_by_hand": [], "names_wavenet": ["--steps", "20"], "typed_training": []}


def run(folder, name):
    path = os.pathsep.join([str(folder), str(EXAMPLES), *filter(None, map(os.path.abspath, sys.path))])
    out = subprocess.run(
        [sys.executable, str(folder / f"{name}.py"), *RUNS[name]], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert out.returncode == 0, out.stderr
    return out.stdout.split()


def close(a, b):
    try:
        return abs(float(a) - float(b)) < 2e-4
    except ValueError:
        return a == b


@pytest.mark.parametrize("name", RUNS)
def test_example(name, tmp_path):
    ours = run(EXAMPLES, name)
    assert ours and "WRONG" not in ours
    pytest.importorskip("torch")
    # In float64: in float32 steps of this size make 1e-4 of the last digits in twenty steps.
    text = (EXAMPLES / f"{name}.py").read_text()
    text = text.replace("import chainrule as cr\n", "import chainrule as cr\ncr.set_default_dtype(cr.float64)\n")
    for folder, change in [("ours", str), ("theirs", lambda t: t.replace("import chainrule as cr", "import torch as cr").replace("from chainrule.", "from torch.").replace("import chainrule.", "import torch."))]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(change(text))
    ours, theirs = run(tmp_path / "ours", name), run(tmp_path / "theirs", name)
    if name == "names_by_hand":
        assert ours[:2] == theirs[:2]
        return
    assert len(ours) == len(theirs) and all(close(a, b) for a, b in zip(ours, theirs)), (ours, theirs)
