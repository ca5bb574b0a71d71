"""Score of the followed backward passes over the cases of `backward_cases`.

`python backward_score.py [chainrule|torch|both] [-v] [PART OF A NAME]...` prints each case with its
class, and how many of each there are. Wrong names come first: there must be none.
"""

import sys
import tempfile
import time
from pathlib import Path

import chainrule as cr
from backward_cases import CASES, NUMPY, RIGHT
from contrastive_backward_cases import CONTRASTIVE
from deeper_backward_cases import DEEPER
from follow_cases import function_is_right, function_of, line_of, loaded, mended, pair_is_right, pair_of, spoiled, torch
from further_backward_cases import FURTHER, UNUSUAL
from gated_backward_cases import GATED
from larger_backward_cases import LARGER
from later_backward_cases import LATER
from mixed_backward_cases import MIXED, MIXED_RIGHT
from more_backward_cases import MORE
from rarer_backward_cases import ALSO_RIGHT, RARER
from selective_backward_cases import SELECTIVE, SELECTIVE_RIGHT
from structured_backward_cases import STRUCTURED, STRUCTURED_RIGHT

CLASSES = ["false alarm", "wrong name", "missed", "unidentified", "other line", "located only", "corrected"]


def has_function(module):
    """Whether a module has a `Function` of either library."""
    owners = (cr.autograd.Function, torch.autograd.Function) if torch else cr.autograd.Function
    return any(isinstance(v, type) and issubclass(v, owners) for v in vars(module).values())


def report_of(module):
    if has_function(module):
        function, inputs = function_of(module)
        ours = isinstance(inputs[0], cr.Tensor)
        return cr.check.backward(function, inputs) if ours else cr.torch.gradcheck(function, inputs), (function, inputs)
    forward, backward, inputs = pair_of(module)
    return cr.check.backward(forward, inputs, backward), (forward, backward, inputs)


def is_right(case):
    return function_is_right(*case) if len(case) == 2 else pair_is_right(*case, sizes=(1.0,))


def judged(folder, library, code, lines):
    """The class of what is said of a case, the report, and how long it took."""
    path = Path(folder) / "spoiled.py"
    module = loaded(path, library, spoiled(code, lines))
    start = time.thread_time()
    report, case = report_of(module)
    seconds = time.thread_time() - start
    if not lines:
        return ("false alarm" if not report else "right"), report, seconds
    if report:
        return "missed", report, seconds
    text = str(report)
    places = [f"spoiled.py:{line_of(code, right)} " in text for right, _ in lines]
    if any(row.startswith("corrected") for row in text.splitlines()):
        new = loaded(Path(folder) / "mended.py", library, mended(path, text))
        works = is_right(case_of(new))
        # A correction elsewhere that is right is one, too: of two lines that do not fit each other
        # either may be meant.
        return "corrected" if works and all(places) else "other line" if works else "located only" if "still" in text and any(places) else "wrong name", report, seconds
    return "located only" if all(places) else "wrong name" if "spoiled.py:" in text else "unidentified", report, seconds


def case_of(module):
    return function_of(module) if has_function(module) else pair_of(module)


def all_cases(libraries):
    for name, (kind, code, mistakes) in (CASES | MORE | FURTHER | RARER | MIXED | LATER | STRUCTURED | DEEPER | SELECTIVE | LARGER | GATED | CONTRASTIVE).items():
        for library in ["chainrule"] if kind == NUMPY else libraries:
            yield f"{name} ({kind if kind == NUMPY else library})", library, code, []
            for mistake, lines in mistakes.items():
                yield f"{name}: {mistake} ({kind if kind == NUMPY else library})", library, code, lines
    for name, code in (RIGHT | UNUSUAL | ALSO_RIGHT | MIXED_RIGHT | STRUCTURED_RIGHT | SELECTIVE_RIGHT).items():
        for library in libraries:
            yield f"{name} ({library})", library, code, []


def main(words):
    names = [w for w in words if not w.startswith("-") and w not in ("both", "torch", "chainrule")]
    libraries = ["torch"] if "torch" in words else ["chainrule", "torch"] if "both" in words and torch else ["chainrule"]
    count, slowest, worst = {}, 0.0, ""
    with tempfile.TemporaryDirectory() as folder:
        for name, library, code, lines in all_cases(libraries):
            if names and not any(n in name for n in names):
                continue
            try:
                kind, report, seconds = judged(folder, library, code, lines)
            except Exception as error:
                kind, report, seconds = "failed", f"{type(error).__name__}: {error}", 0.0
            count[kind] = count.get(kind, 0) + 1
            if seconds > slowest:
                slowest, worst = seconds, name
            print(f"{kind:<13} {seconds:5.2f} s  {name}", flush=True)
            if "-v" in words or kind in ("false alarm", "wrong name", "failed", "missed", "unidentified", "other line", "located only"):
                rows = [*(f"meant: {right.strip()}" for right, _ in lines), *(f"there: {wrong.strip()}" for _, wrong in lines), *str(report).splitlines()]
                print("".join(f"      {row[:170]}\n" for row in rows), end="", flush=True)
    wrong = sum(n for k, n in count.items() if k not in ("right", "false alarm"))
    print(f"\n{wrong} wrong ones:", ", ".join(f"{k} {n} ({100 * n / max(wrong, 1):.0f}%)" for k, n in sorted(count.items()) if k not in ("right", "false alarm")))
    print(f"{count.get('right', 0) + count.get('false alarm', 0)} right ones, {count.get('false alarm', 0)} false alarms; the slowest took {slowest:.2f} s: {worst}")


if __name__ == "__main__":
    main(sys.argv[1:])
