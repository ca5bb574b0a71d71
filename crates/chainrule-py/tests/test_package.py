"""The metadata of the package: what a wheel says of itself, and that its parts agree."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import chainrule as cr
import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_parts_agree():
    manifest = (ROOT / "Cargo.toml").read_text()
    oldest = re.search(r"abi3-py3(\d+)", manifest).group(1)
    assert PROJECT["requires-python"] == f">=3.{oldest}"
    assert any(c.endswith(f" 3.{oldest}") for c in PROJECT["classifiers"])
    workspace = tomllib.loads((ROOT.parent.parent / "Cargo.toml").read_text())["workspace"]["package"]
    assert PROJECT["urls"]["Repository"] == workspace["repository"] and cr.__version__ == workspace["version"]
    assert PROJECT["license"] == workspace["license"]
    for name in (*PROJECT["license-files"], PROJECT["readme"]):
        assert len((ROOT / name).read_text()) > 500


def test_the_readme_runs():
    text = (ROOT / PROJECT["readme"]).read_text()
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(code, "README.md", "exec"), {})


def test_an_installed_package_says_all():
    try:
        found = importlib.metadata.distribution("chainrule")
    except importlib.metadata.PackageNotFoundError:
        found = None
    here = Path(cr.__file__).parent.resolve()
    if found is None or Path(str(found.locate_file("chainrule"))).resolve() != here:
        pytest.skip("the package is run from its sources")
    data = found.metadata
    assert data["Version"] == cr.__version__ and data["License-Expression"] == PROJECT["license"]
    assert set(data.get_all("License-File")) == set(PROJECT["license-files"])
    assert data["Description-Content-Type"].startswith("text/markdown") and "import chainrule as cr" in found.read_text("METADATA")
    assert {"Repository", "Documentation"} <= {url.split(",")[0] for url in data.get_all("Project-URL")}
    names = {str(f) for f in found.files}
    assert "chainrule/py.typed" in names and any(re.fullmatch(r"chainrule/_chainrule\.(abi3\.so|pyd)", n) for n in names)
