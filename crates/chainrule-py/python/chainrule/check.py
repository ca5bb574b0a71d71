"""Checks of gradients by paths that share no code with the backward pass, and the names of
mistakes.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._making import tensor_of
from ._workflow import Finding, Workflow, WorkflowReport


class Report:
    """Whether a check passed, and its text. As a truth value: whether it passed. `outcome` is
    "right", "wrong" or "uncertain"; the last has not passed.
    """

    def __init__(self, passed: bool, text: str, outcome: str | None = None, found: str | None = None) -> None:
        self.passed, self.text = passed, text
        self.outcome = outcome or ("right" if passed else "wrong")
        # A verdict or a comparison, as JSON, and the lines of mistakes.
        self._found, self._corrections = found, list[Any]()
        self.pictures: list[str] = []
        """Pictures of the followed lines of a backward pass: both programs side by side, as SVG."""

    def with_lines(self, found: Sequence[Any], whole: bool = False) -> Report:
        """The report with the lines of the mistakes in front of what the numbers tell: all of that,
        or what the catalogue calls it.
        """
        head, _, rest = self.text.partition("\n")
        corrections = [c for f in found if f.is_whole for c in f.corrections if c.corrected]
        named = _one_entry(rest, corrections[0].what) if len(corrections) == 1 else []
        report = Report(self.passed, "\n".join([head, *map(str, found), *(rest.splitlines() if whole else named)]), None, self._found)
        return report._with_found(found)

    def _with_found(self, found: Sequence[Any]) -> Report:
        self.pictures = [f.picture for f in found]
        self._corrections = [c for f in found for c in f.corrections]
        return self

    def to_json(self) -> str:
        """The report as JSON text, an object with `passed`, `outcome`, `text`, the `mistakes` whose
        lines were found (`file`, `line`, `source`, `corrected`, `why`), and the `verdict` or the
        `comparison` behind it, or null for each; the book's page on JSON has their fields.
        """
        keys = ("file", "line", "source", "corrected", "why")
        mistakes = [{key: getattr(c, key) for key in keys} for c in self._corrections]
        behind = {"verdict": None, "comparison": None} | (json.loads(self._found) if self._found else {})
        return json.dumps({"passed": self.passed, "outcome": self.outcome, "text": self.text, "mistakes": mistakes} | behind)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


# Whether lifted functions of PyTorch must be differentiable twice, as a counter.
_twice = [0]


def _one_entry(text: str, what: str) -> list[str]:
    """The entry of the catalogue of mistakes that gives the same numbers, the op's own one first;
    of several the one that says what the correction does.
    """
    entries = re.findall(r"^- (.*?) in `(.*?)`", text, re.MULTILINE)
    about = "axis" if "axis" in what or "axes" in what else "overwritten" if "missing" in what and "term" in what or "path" in what else ""
    entries.sort(key=lambda entry: about not in entry[0])
    return [f"- {mistake} in `{op}`, as the catalogue of mistakes calls it" for mistake, op in entries[:1]]


def _list(inputs: Any) -> list[Tensor]:
    return [inputs] if isinstance(inputs, Tensor) else list(inputs)


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Tensor], *, order: int = 1, seeds: int = 3, tolerance: float | None = None
) -> Report:
    """Reverse mode beside forward mode and differences, for every output by every float input.

    The check runs in float64, to which float32 inputs are converted; integers stay as they are.
    Beside the given point, at which elements may be zero, equal or one, it looks at another one.
    The backward must give the same numbers each time and be linear in the cotangent. `outcome` is
    "uncertain" where the differences drown in rounding, as at scales like 1e150: that does not
    pass.
    """
    _twice[0] += order == 2
    try:
        return Report(*_c._gradcheck(func, _list(inputs), order, seeds, tolerance))
    finally:
        _twice[0] -= order == 2


def explain(
    func: Callable[..., Tensor], inputs: Tensor | Sequence[Tensor], reference: Callable[..., Tensor] | None = None, *, seeds: int = 3
) -> Report:
    """The classic mistake that makes the gradient of `func` wrong.

    With a `reference` that computes the same by plain ops, a mistake is planted in one op after the
    other until the wrong gradient comes out. Without one the numbers alone are read, beside
    differences; the inputs are float64 then.
    """
    if reference is not None:
        report = Report(*_c._explain(func, reference, _list(inputs), True))
        return report if report.passed else _with_lines(report, func, _list(inputs))
    all_of = _c._explain_opaque(func, _list(inputs))
    lines = [f"input {i}: {reading}" for i, readings in enumerate(all_of) for reading in readings]
    if lines:
        return Report(False, "\n".join(lines))
    # Wrong numbers may follow no pattern: that nothing is read in them does not make them right.
    passed, text, outcome = _c._gradcheck(func, _list(inputs), 1, seeds, None)
    if passed:
        return Report(True, "the gradients agree with differences of the function")
    if outcome == "uncertain":
        return Report(False, text, outcome)
    return Report(False, "the gradients are wrong, and their numbers follow no known pattern\n" + text)


def backward(function: Any, inputs: Any, backward: Callable[..., Any] | None = None) -> Report:
    """Whether a backward pass that was written by hand is right; if not, the line of the mistake
    and the corrected line.

    `function` is a `Function` (of `chainrule.autograd` or of PyTorch) or a function that applies
    one; or, with `backward`, a plain function of tensors, and `backward(gradient, *inputs)` gives
    the gradients of its inputs. The tensors are chainrule's or PyTorch's, or arrays of NumPy, or
    numbers and lists of them, and are taken in float64.

    The lines of the backward are run at random inputs; a line is edited in all ways in which one
    expression may have been meant for another, and an edit after which all gradients are right is
    the correction. Its effects, such as prints and files, happen many times; do not open files in
    it.
    """
    given = [inputs] if hasattr(inputs, "shape") else list(inputs)
    ours = any(isinstance(x, Tensor) for x in given)
    if backward is None and not ours:
        from . import torch

        return torch.gradcheck(function, given)
    if backward is None:
        called = getattr(function, "apply", function)
        report = gradcheck(called, [x.double() if x.is_floating_point() else x for x in given])
        return _far_off(report, called, given) if report.passed else _with_lines(report, called, given)
    return _by_hand(function, backward, given, ours)


def _by_hand(forward: Any, backward: Any, given: list[Any], ours: bool) -> Report:
    from ._follow import beside_kinks, follow, is_of_held_values, of_forward_and_backward, wrong_gradients
    from ._follow.engine_plain import Plain, are_plain

    engine: Any
    if ours:
        from ._follow.engine_chainrule import Chainrule

        engine = Chainrule()
    elif are_plain(given):
        engine = Plain()
    elif any("numpy" in type(x).__module__ for x in given) and not any("torch" in type(x).__module__ for x in given):
        from ._follow.engine_numpy import Numpy

        engine = Numpy()
    else:
        from ._follow.engine_torch import Torch

        engine = Torch()
    case = beside_kinks(of_forward_and_backward(engine, forward, backward, given))
    wrong = wrong_gradients(case)
    if not wrong:
        where = "at the given inputs and at two others"
        if case.at_kink:
            where = "beside the given inputs, which lie at a kink: another of its slopes stands there"
        return Report(True, f"the gradients are right, {where}")
    if (at := _detaches(forward)) and is_of_held_values(case):
        return Report(True, f"the gradients are those of the function with what it detaches held fixed ({at}), and not the slopes of its values")
    head = f"{len(wrong)} of {len(case.graded)} gradients are wrong: {', '.join(f'`{name}`' for name in wrong)}"
    found = follow(case)
    if found is None:
        return Report(False, f"{head}\nunidentified: no small edit of one line, or of two, makes them right")
    return Report(False, head).with_lines([found])


def _detaches(function: Any) -> str:
    """The file and line on which a function detaches a value; empty where it does nowhere."""
    try:
        rows, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return ""
    at = next((i for i, row in enumerate(rows) if re.search(r"\.detach\(|no_grad\(", row.split("#")[0])), None)
    return "" if at is None else f"{os.path.basename(inspect.getsourcefile(function) or '')}:{max(first, 1) + at}"


def _far_off(report: Report, function: Any, inputs: list[Any]) -> Report:
    """The report, or where a `Function` is wrong at larger inputs that of its mistake."""
    from ._follow.of_chainrule import beyond

    names = beyond(function, inputs)
    if not names:
        return report
    said = ", ".join(f"`{name}`" for name in names)
    return _with_lines(Report(False, f"the gradients are wrong: of {said}, at larger inputs than those given, where bounds are reached that these do not reach"), function, inputs)


def _with_lines(report: Report, function: Any, inputs: list[Any]) -> Report:
    from ._follow.of_chainrule import followed

    found = followed(function, inputs)
    return report.with_lines(found) if found else report


def compare(loss: Tensor, by_hand: Mapping[str, Any] | Callable[[], Mapping[str, Any]], *, rtol: float = 1e-5, atol: float = 0.0) -> Report:
    """Gradients written by hand (tensors or NumPy arrays), by the names of their tensors
    (`t.named(...)`), beside those of autograd.

    Instead of the gradients, the code may be given that computes them: a function without arguments
    that gives such a mapping. If a gradient is wrong, the lines of the function are followed, and
    the report begins with the wrong line and the line as it should be. The forward pass ran once,
    so an edit is confirmed at these values alone; its lines are found best in float64.

    An element is right if `|by hand - autograd| <= atol + rtol * |autograd|`, or if no more than
    rounding keeps it from that: the backward pass is run again with its numbers changed in their
    last bits, in the dtype that it runs in, and what that does to an element is its rounding.
    Without an `atol` each element is judged by its own size, however small and whatever stands
    beside it. A gradient that cannot be compared does not pass. If one is wrong, `verdict` is asked
    what gives these numbers.
    """
    given = by_hand() if callable(by_hand) else by_hand
    report = Report(*_c._compare(loss, [(name, tensor_of(g)) for name, g in given.items()], rtol, atol))
    if report.passed or not callable(by_hand):
        return report
    return _with_code(report, loss, by_hand, list(given))


def _with_code(report: Report, loss: Tensor, code: Callable[[], Mapping[str, Any]], names: list[str]) -> Report:
    """The report with the wrong lines of the code in front, where all gradients have tensors."""
    from ._follow.of_loss import followed

    targets = {n: t for n, t in zip(names, _c._named_behind(loss, names)) if t is not None}
    found = followed(loss, code, targets) if len(targets) == len(names) else None
    if found is None:
        return report
    return Report(False, "\n".join([str(found), report.text]), report.outcome, report._found)._with_found([found])


def verdict(loss: Tensor, given: Sequence[tuple[Tensor, Any]]) -> Report:
    """The verdict on gradients that are given for tensors behind `loss`, as pairs of tensor and
    gradient (a tensor or a NumPy array).

    First the classic mistakes are planted in the right backward pass, one at a time, until these
    gradients come out. If none gives them, other edits of the right pass are tried: another
    gradient or value in the place of one, parts with factors of their own, rows or columns or
    elements that are multiplied by numbers, any other instruction, and two of them. Nothing is said
    that does not give just these numbers.
    """
    return Report(*_c._verdict(loss, [(x, tensor_of(g)) for x, g in given]))


__all__ = ["Finding", "Report", "Workflow", "WorkflowReport", "backward", "compare", "explain", "gradcheck", "verdict"]

if __name__ == "__main__":
    from chainrule._follow.command import main

    raise SystemExit(main())
