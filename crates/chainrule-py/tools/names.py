"""Names of PyTorch that scripts use and chainrule lacks.

    python tools/names.py FOLDER            # a line for each name that is missing, and the count
    python tools/names.py FOLDER --scripts  # a line for each script, too
    python tools/names.py FOLDER --without torch.distributed torch.cuda.nccl

A script is a Python file that imports `torch`. Its names are the dotted paths from `torch`, by
way of whatever the imports call it: `import torch.nn as nn` and `nn.Linear` are
`torch.nn.Linear`, and `from torch.optim import Adam` is `torch.optim.Adam`. A name is missing
where an attribute of the path is not there under `chainrule`; what follows a name that is no
module (`torch.ones(2).cuda`) is not looked at, and neither are methods of tensors, whose type no
text tells. A name inside `try: ... except ImportError` or `AttributeError` counts as any other. A
script *needs no name that is missing* where none of its names is, and scripts that use a part
given by `--without` stand apart.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class _Names(ast.NodeVisitor):
    """The dotted names from `torch` in a file."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.found: set[str] = set()
        self.imports_torch = False

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.name.split(".")[0] == "torch":
                self.imports_torch = True
                self.found.add(name.name)
                self.aliases[name.asname or "torch"] = name.name if name.asname else "torch"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module.split(".")[0] != "torch":
            return
        self.imports_torch = True
        for name in node.names:
            if name.name == "*":
                self.found.add(module)
                continue
            self.found.add(f"{module}.{name.name}")
            self.aliases[name.asname or name.name] = f"{module}.{name.name}"

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path, at = [node.attr], node.value
        while isinstance(at, ast.Attribute):
            path.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.aliases:
            self.found.add(".".join([self.aliases[at.id], *reversed(path)]))
            return
        self.generic_visit(node)


def names_of(source: str) -> set[str] | None:
    """The names from `torch` that a script uses; None where it is none of PyTorch."""
    tree = ast.parse(source)
    visitor = _Names()
    # Imports may stand below the functions that use them.
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            visitor.visit(node)
    visitor.visit(tree)
    return visitor.found if visitor.imports_torch else None


def missing(name: str, library: Any) -> str | None:
    """The shortest part of a name that the library lacks, if it lacks one."""
    here, path = library, name.split(".")
    for i, part in enumerate(path[1:], 2):
        if not inspect.ismodule(here):
            return None
        try:
            here = getattr(here, part)
        except AttributeError:
            try:
                here = importlib.import_module(f"{here.__name__}.{part}")
            except ImportError:
                return ".".join(path[:i])
    return None


def scripts(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """The scripts of a folder with their names; files that no parser of today reads are left out.
    """
    for path in sorted(folder.rglob("*.py")):
        try:
            found = names_of(path.read_text(errors="replace"))
        except (SyntaxError, ValueError):
            continue
        if found is not None:
            yield path, found


def scan(folder: Path, without: list[str], library: Any) -> tuple[dict[Path, list[str]], int]:
    """For each script the names that are missing, and the number of scripts that stand apart."""
    out: dict[Path, list[str]] = {}
    apart = 0
    for path, found in scripts(folder):
        if any(name == part or name.startswith(part + ".") for name in found for part in without):
            apart += 1
            continue
        out[path] = sorted({m for name in found if (m := missing(name, library)) is not None})
    return out, apart


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scripts", action="store_true", help="a line for each script")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help="scripts that use these parts stand apart")
    given = parser.parse_args(args)
    import chainrule

    found, apart = scan(given.folder, given.without, chainrule)
    for name, times in Counter(m for names in found.values() for m in names).most_common():
        print(f"{times:6}  {name}")
    if given.scripts:
        for path, names in found.items():
            print(f"{path}: {', '.join(names) or 'no name is missing'}")
    whole = sum(not names for names in found.values())
    print(f"{whole} of {len(found)} scripts need no name that is missing" + (f"; {apart} stand apart" if apart else ""))


if __name__ == "__main__":
    main()
