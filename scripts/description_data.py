"""Arrays of a training program's description, written once into an .npz file beside it.

    python scripts/description_data.py PROGRAM.json [SEED] [GEN.py]

Runs the NumPy text of `data.numpy` with the seed (1) and writes PROGRAM.npz and PROGRAM.file.json, the description that reads
it. The text is code: run it only if you trust it.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np


def generators(path: Path) -> ModuleType:
    """The module that descriptions see as `g`."""
    spec = importlib.util.spec_from_file_location("gen", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str]) -> None:
    if not arguments:
        raise SystemExit(__doc__)
    path = Path(arguments[0])
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    above = [folder / "gen.py" for folder in path.resolve().parents]
    given = [Path(arguments[2])] if len(arguments) > 2 else [p for p in above if p.is_file()]
    scope = {
        "np": np,
        "g": generators(given[0]) if given else None,
        "rng": np.random.default_rng(seed),
    }
    description = json.loads(path.read_text())
    exec(description["data"]["numpy"], scope)
    arrays = {k: np.asarray(scope[k]) for k in ("X", "y", "Xv", "yv") if k in scope}
    file = path.with_suffix(".npz")
    np.savez(file, **arrays)
    del description["data"]["numpy"]
    description["data"]["file"] = file.name
    path.with_suffix(".file.json").write_text(json.dumps(description, indent=1))
    print(file, {k: v.shape for k, v in arrays.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
