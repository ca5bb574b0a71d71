"""The scanner of scripts for names that are missing."""

import importlib.util
from pathlib import Path

import chainrule as cr
import pytest

TOOL = Path(__file__).parent.parent / "tools" / "names.py"
spec = importlib.util.spec_from_file_location("names_tool", TOOL)
names = importlib.util.module_from_spec(spec)
spec.loader.exec_module(names)

SCRIPTS = {
    "whole.py": "import torch\nimport torch.nn as nn\nfrom torch.optim import Adam as A\n\nclass M(nn.Module):\n    l = nn.Linear(1, 2)\n\nA(M().parameters())\ntorch.ones(2).nowhere.at_all()\n",
    "lacks.py": "def f():\n    return T.nn.NoLayer(1), F.relu, F.no_function(2), T.nn.NoLayer\n\nimport torch as T\nfrom torch.nn import functional as F\n",
    "deep.py": "import torch.nowhere.deeper\nfrom torch.nn.functional import relu, nothing\n",
    "apart.py": "import torch\ntorch.distributed.init_process_group()\n",
    "other.py": "import numpy as np\nnp.torch_like(1)\n",
    "old.py": "import torch\nprint 'of another Python'\n",
    "sub/inside.py": "from torch import *\nimport torch\ntorch.finfo(torch.float32).eps\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in SCRIPTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_names_that_are_missing(folder):
    found, apart = names.scan(folder, ["torch.distributed"], cr)
    assert apart == 1
    assert {p.relative_to(folder).as_posix(): m for p, m in found.items()} == {
        "whole.py": [],
        "lacks.py": ["torch.nn.NoLayer", "torch.nn.functional.no_function"],
        "deep.py": ["torch.nn.functional.nothing", "torch.nowhere"],
        "sub/inside.py": [],
    }


def test_the_count(folder, capsys):
    names.main([str(folder), "--scripts", "--without", "torch.distributed"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 of 4 scripts need no name that is missing; 1 stand apart"
    assert "     1  torch.nn.NoLayer" in lines


def test_examples_need_no_name_that_is_missing(tmp_path):
    for path in (Path(__file__).parent.parent / "examples").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text().replace("chainrule", "torch"))
    found, _ = names.scan(tmp_path, [], cr)
    assert found and not any(found.values())
