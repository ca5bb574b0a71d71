"""Counts how `chainrule diagnose` does on a folder of described programs whose faults are known.

    python scripts/diagnosis_score.py FOLDER [--command chainrule] [--out DIR] [--only ID,ID] [--jobs N] [--from DIR]

FOLDER holds one description a program, as `docs/src/diagnosis.md` has them, with three fields more: `faults`, a list of
`{"kind": ...}`; `fix`, the edits that mend it; and `effect`: `effective` (the fix helps), `harmless` (it does not) or `clean`.
Each program is diagnosed as it is and, where it has a fix, with the fix applied; the last lines of the command go to
DIR/buggy.jsonl and DIR/fixed.jsonl, which `--from DIR` counts again. The programs of our own are in crates/chainrule-diagnose/programs.

If the folder above FOLDER has a `run.py` with `apply` and `train` (which need PyTorch), the proposed edits are applied and trained
there with the seeds 11 to 13, which the diagnosis never saw; a repair reaches what the known fix does, within a tenth.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

Description = dict[str, Any]

# Kinds that name one fault from two sides.
SAME = [
    {"output_activation", "loss", "output_units", "axis", "loss_broadcast"},
    {"lr_low", "epochs_few"},
    {"lr_sign", "gradient_sign"},
    {"init_scale", "init_constant"},
    {"lr_high", "optimizer"},
]
SEEDS = (11, 12, 13)


def agrees(kind: str, kinds: Iterable[str]) -> bool:
    """Whether a cause names one of these faults."""
    known = set(kinds)
    return kind in known or any(kind in group and group & known for group in SAME)


def diagnosed(command: str, path: Path, generator: Path | None, *more: str) -> Description:
    """The last line of the command, or an error with its words."""
    words = [command, "diagnose", str(path), "--json", *more]
    words += ["--generator", str(generator)] if generator else []
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return {"id": path.stem, "causes": [], "learns": None, "error": done.stderr[-300:]}
    out: Description = json.loads(lines[-1])
    out["wall"] = round(time.monotonic() - began, 3)
    return out


def runner(folder: Path) -> ModuleType | None:
    """`run.py` above the folder."""
    path = folder.parent / "run.py"
    if not path.is_file():
        return None
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("run", path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        print(f"no repairs are tried: {error}", file=sys.stderr)
        return None
    return module


def skill(run: ModuleType, program: Description) -> float:
    """The median over seeds."""
    each = (run.train(program, s, cap=4500, time_limit=20)["skill"] for s in SEEDS)
    return float(statistics.median(each))


def repaired(run: ModuleType, program: Description, said: Description) -> tuple[bool, str]:
    """Whether the proposed edits bring the skill of the known fix, and the skills in words."""
    edits = [e for c in said["causes"] for e in c.get("edit", [])]
    measured = program["measured"]
    before = statistics.median(measured["buggy"]["skill"])
    fixed = statistics.median(measured["fixed"]["skill"])
    if not edits:
        return False, f"{before:.2f} -> - (fix {fixed:.2f})"
    try:
        after = skill(run, run.apply(program, edits))
    except Exception as error:
        return False, f"the edit does not run: {error!r}"[:160]
    good = after >= before + 0.08 and after >= max(0.85 * fixed, fixed - 0.12)
    return good, f"{before:.2f} -> {after:.2f} (fix {fixed:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--command", default="chainrule")
    parser.add_argument("--out", type=Path, default=Path("diagnosis-score"))
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-repairs", action="store_true")
    parser.add_argument("--from", dest="known", type=Path, help="count the reports of this folder")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, args.only.split(",")))
    paths = [p for p in sorted(args.folder.glob("*.json")) if not only or p.stem in only]
    programs = {p.stem: json.loads(p.read_text()) for p in paths}
    above = args.folder.parent / "gen.py"
    generator = above if above.is_file() else None
    run = None if args.no_repairs else runner(args.folder)
    mended = [p for p in paths if programs[p.stem].get("fix")]

    def all_of(paths: list[Path], *more: str) -> dict[str, Description]:
        with ThreadPoolExecutor(args.jobs) as pool:
            said = list(pool.map(lambda p: diagnosed(args.command, p, generator, *more), paths))
        return {p.stem: d for p, d in zip(paths, said, strict=True)}

    if args.known:
        buggy, fixed = (reports(args.known / f"{name}.jsonl") for name in ("buggy", "fixed"))
        programs = {stem: p for stem, p in programs.items() if stem in buggy}
    else:
        buggy, fixed = all_of(paths), all_of(mended, "--fix")
        for name, said in (("buggy", buggy), ("fixed", fixed)):
            text = "".join(json.dumps(d) + "\n" for d in said.values())
            (args.out / f"{name}.jsonl").write_text(text)
    report(programs, buggy, fixed, run)


def reports(path: Path) -> dict[str, Description]:
    """Reports by the names of their programs."""
    lines = map(json.loads, filter(str.strip, path.read_text().splitlines()))
    return {line["id"]: line for line in lines}


def report(
    programs: dict[str, Description],
    buggy: dict[str, Description],
    fixed: dict[str, Description],
    run: ModuleType | None,
) -> None:
    """Prints a line a program and the counts."""
    n = flagged = first = three = whole = 0
    quiet: dict[str, list[list[Description]]] = {"clean": [], "harmless": [], "fixed": []}
    for stem, program in programs.items():
        said = buggy[stem]
        causes = said["causes"]
        kinds = [f["kind"] for f in program["faults"]]
        names = [f"{c['kind']} {c['confidence']:.2f}" for c in causes[:3]]
        if "error" in said:
            print(f"{stem:<26} ERROR {said['error']}")
        if program["effect"] != "effective":
            quiet[program["effect"]].append(causes)
            if causes:
                print(f"{stem:<26} ALARM on a {program['effect']} program | said {names}")
            continue
        n += 1
        is_flagged = bool(causes) and said["learns"] is not True
        is_first = bool(causes) and agrees(causes[0]["kind"], kinds)
        is_three = any(agrees(c["kind"], kinds) for c in causes[:3])
        good, text = repaired(run, program, said) if run else (False, "")
        flagged += is_flagged
        first += is_first
        three += is_three
        whole += good
        rank = "first" if is_first else "three" if is_three else "-"
        print(
            f"{stem:<26} {'flagged' if is_flagged else 'MISSED ':<8}{rank:<6} "
            f"{'repaired' if good else '-':<9} {text} {said.get('seconds', 0):.1f} s | said {names} | faults {kinds}"
        )
    for stem, said in fixed.items():
        quiet["fixed"].append(said["causes"])
        if said["causes"]:
            names = [f"{c['kind']} {c['confidence']:.2f}" for c in said["causes"][:3]]
            print(f"{stem:<26} ALARM on the fixed program | said {names}")
    seconds = [d["seconds"] for d in buggy.values() if "seconds" in d]

    def share(part: int, of: int) -> str:
        return f"{part} of {of} ({100 * part / max(of, 1):.0f} %)"

    print(f"programs that fail: flagged {share(flagged, n)}, first cause {share(first, n)},")
    print(f"  one of the first three {share(three, n)}, repaired on new seeds {share(whole, n)}")
    for name, each in quiet.items():
        sure = sum(any(c["confidence"] > 0.5 for c in causes) for causes in each)
        print(f"{name}: alarms {share(sum(map(bool, each)), len(each))}, above one half {sure}")
    if seconds:
        print(f"median {statistics.median(seconds):.2f} s, largest {max(seconds):.1f} s")


if __name__ == "__main__":
    main()
