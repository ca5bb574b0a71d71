"""Every Python block of the documentation runs, page by page from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BOOK = ROOT / "docs" / "src"
PAGES = [BOOK / "python.md", Path(__file__).parents[1] / "README.md", BOOK / "onnx.md", BOOK / "weights.md", BOOK / "from-pytorch.md"]
NEEDS = {"onnx.md": ["onnx", "onnxruntime"], "from-pytorch.md": ["torch", "onnx", "onnxruntime"]}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_blocks(page, tmp_path, monkeypatch):
    for name in NEEDS.get(page.name, []):
        pytest.importorskip(name, reason=f"the page needs {name}")
    # Pages write files.
    monkeypatch.chdir(tmp_path)
    names = {}
    text = page.read_text()
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.S))
    assert blocks
    for block in blocks:
        # At its lines of the page, where programs look for the names of values.
        above = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(above + block[1], str(page), "exec"), names)
