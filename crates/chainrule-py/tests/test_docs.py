"""Every Python block of the documentation runs, page by page from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs" / "src" / "python.md", Path(__file__).parents[1] / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_blocks(page):
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
