"""The verdict on the backward pass of a function of PyTorch: differences of the function judge,
what the forward pass computes names the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch as _torch

from . import check
from ._chainrule import Tensor
from ._cuts import cuts_of, gradients, healed, text_of
from ._lift import Case, floats_of, lift, one, to_chainrule
from ._watch import Cut

# Tolerance of a gradient in the function's own dtype, in multiples of the effect of changes of the
# last bits, and in units of its largest element.
_NOISE, _UNITS = 64.0, 256.0
# The unit of dtypes that are narrower than float32 is larger than this.
_NARROW = 1e-6


_FEW = 50_000
"""The elements of inputs and parameters up to which PyTorch's threads cost more than they give."""


@contextmanager
def few_threads(fn: Any, inputs: Any) -> Iterator[None]:
    """PyTorch computes on one thread where inputs and parameters are small: a check runs thousands
    of small ops, and waking threads for each takes longer than the op.
    """
    given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    own = fn.parameters() if isinstance(fn, _torch.nn.Module) else ()
    count, before = sum(t.numel() for t in [*given, *own] if isinstance(t, _torch.Tensor)), _torch.get_num_threads()
    _torch.set_num_threads(1 if count <= _FEW else before)
    try:
        yield
    finally:
        _torch.set_num_threads(before)


class Checked:
    """Findings on one function, before a mistake is named."""

    def __init__(self, fn: Any, inputs: Any, order: int, seeds: int) -> None:
        self.order, self.seeds, self.notes = order, seeds, list[str]()
        self.case = Case(fn, inputs)
        self.function = self.case.in_double()
        self.values = self.case.values()
        if not self.values:
            raise ValueError("gradcheck: there is no float input and no parameter that requires a gradient, so there is nothing to differentiate by")
        self.own = self._own_dtypes(fn, inputs)
        self.ours = [to_chainrule(t) for t in self.values]
        self.numeric = self.judge(self.function)

    def _own_dtypes(self, fn: Any, inputs: Any) -> Case:
        """The same as it is given. If that alone runs, as with code that names float32, it is
        checked."""
        own = Case(fn, inputs, None)
        try:
            out = self._run(self.case, self.values)
        except RuntimeError as error:
            try:
                out = self._run(own, own.values())
            except RuntimeError:
                raise error from None
            self.function, self.values = own.in_double(), [t.double() for t in own.values()]
            self.notes.append("it does not run in float64, so it was checked as it is")
        if not floats_of(out):
            raise ValueError("gradcheck: the function gives no float tensor, so there is nothing to differentiate")
        return own

    @staticmethod
    def _run(case: Case, values: Sequence[Any]) -> Any:
        leaves = [t.clone().requires_grad_() for t in values]
        with _torch.enable_grad():
            out = case(*leaves)
            results = [t for t in floats_of(out) if t.requires_grad]
            if results:
                _torch.autograd.grad([t.sum() for t in results], leaves, allow_unused=True)
        return out

    def judge(self, function: Callable[..., Any]) -> check.Report:
        report = check.gradcheck(lift(function), self.ours, order=self.order, seeds=self.seeds)
        return check.Report(report.passed, self.named(report.text), report.outcome)

    def named(self, text: str) -> str:
        """The text with the names of inputs and parameters for their numbers."""
        names = self.case.labels
        text = re.sub(r"\binput (\d+)\b", lambda m: names[int(m[1])] if int(m[1]) < len(names) else m[0], text)
        return text if "output 1" in text else text.replace("output 0", "the result")

    def lines(self, *marks: str) -> list[str]:
        """The lines of the check on which one of these words stands."""
        return [line for line in self.numeric.text.splitlines() if any(mark in line for mark in marks)]

    @property
    def is_lawless(self) -> bool:
        """Whether the backward gives other numbers each time."""
        return "is random" in self.numeric.text

    def cuts(self) -> check.Report | None:
        """The paths through which no gradient flows, if they are what is wrong."""
        found = cuts_of(self.function, self.values, self.case.labels)
        if not found:
            return None
        text = ["the gradients are not those of the function", *map(text_of, found)]
        text.append(self._rest(found))
        return check.Report(False, "\n".join(text), "wrong")

    def _rest(self, cuts: Sequence[Cut]) -> str:
        try:
            rest = self.judge(healed(self.function, cuts)) if all(cut.heals for cut in cuts) else None
        except Exception:  # in-place changes of what has a history, for one
            rest = None
        if rest is None:
            seen = self.lines("WRONG", "CUT OFF")
            return "\n".join(["the rest of the backward pass cannot be judged without that path" + ("; by differences of the function:" if seen else ""), *seen])
        if rest.outcome == "right":
            return "all else of the backward pass is right: with the gradient kept there, it agrees with differences of the function"
        return "with the gradient kept there it still differs from the function:\n" + rest.text

    def as_it_is(self) -> check.Report | None:
        """Errors of the gradients in the dtypes that the function was given in, beside those in
        float64: nothing, if rounding explains it."""
        if all(t.dtype == _torch.float64 for t in self.own.values()) or self.notes:
            return None
        for i, (name, narrow, wide, noise) in enumerate(self._pairs()):
            if not bool(_torch.isfinite(narrow).all()) and bool(_torch.isfinite(wide).all()):
                at = [int(k) for k in _torch.nonzero(~_torch.isfinite(narrow))[0]]
                text = f"the gradient of {name} is {float(narrow[tuple(at)])} at {at} in {self.own.values()[i].dtype}, and right in float64"
                return check.Report(False, text, "wrong")
            own = _torch.finfo(self.own.values()[i].dtype)
            unit = own.eps
            if not narrow.numel():
                continue
            if unit > _NARROW:
                # Rounding moves elements over kinks, so the gradient is judged as a whole.
                off, size = float((narrow - wide).norm()), float(wide.norm())
                if off > _NOISE / 8 * float(noise.norm()) + _UNITS / 16 * (unit * size + own.tiny * narrow.numel() ** 0.5):
                    name_of = str(self.own.values()[i].dtype).removeprefix("torch.")
                    text = f"the gradient of {name} is off by {off / size if size else off:.0%} in {name_of}, as a whole, beside float64: more than rounding explains"
                    return check.Report(False, text, "wrong")
                continue
            allowed = _NOISE * noise.clamp(min=float(noise.square().mean().sqrt())) + _UNITS * unit * float(wide.abs().max())
            over = (narrow - wide).abs() - allowed
            if float(over.max()) > 0:
                at = [int(k) for k in _torch.unravel_index(over.argmax(), over.shape)]
                found, due = float(narrow[tuple(at)]), float(wide[tuple(at)])
                text = f"the gradient of {name} is {found:.6g} at {at} in float32, and {due:.6g} in float64: more than rounding explains"
                return check.Report(False, text, "wrong")
        return None

    def _pairs(self) -> list[tuple[str, Any, Any, Any]]:
        """For each value its name, its gradient in its own dtype and in float64, and how far the
        last bits of all values move the former.
        """
        values, wide = self.own.values(), self.values
        out = one(self._run(self.own, values))
        v = _torch.randn(out.shape, dtype=_torch.float64, generator=_torch.Generator().manual_seed(1)).to(out.dtype).double()
        narrow = [g.double() for g in gradients(self.own, values, v)]
        exact = gradients(self.case, wide, v)
        noise = [_torch.zeros_like(g) for g in exact]
        for k in range(4):
            random = _torch.Generator().manual_seed(k)

            def moved(t: Any) -> Any:
                by = _torch.rand(t.shape, dtype=_torch.float64, generator=random) - 0.5  # noqa: B023
                unit = _torch.finfo(t.dtype).eps
                return (t.double() * (1 + (8 if unit < _NARROW else 2) * unit * by)).to(t.dtype)

            for n, g, h in zip(noise, narrow, gradients(self.own, [moved(t) for t in values], v)):
                n.copy_(_torch.maximum(n, (g - h).abs()))
        return list(zip(self.case.labels, narrow, exact, noise))


def gradcheck(fn: Any, inputs: Any, order: int, seeds: int, name_it: Callable[[Checked, bool], check.Report | None]) -> check.Report:
    """The verdict. `name_it` gives what the forward pass has to say of the gradients at the point,
    or beside it.
    """
    found = Checked(fn, inputs, order, seeds)
    outcome = found.numeric.outcome
    if outcome == "right":
        # Numbers that were taken out and rounded leave steps, which look like kinks.
        lost = found.cuts() if found.lines("KINK") else None
        return _right(found) if lost is None else lost
    # Numbers that were taken out and rounded may leave no more than that differences drown in them.
    if outcome == "uncertain" or "not linear" not in found.numeric.text and "is random" not in found.numeric.text:
        if (lost := found.cuts()) is not None:
            return lost
    named = name_it(found, False)
    if outcome == "uncertain":
        if named is None:
            return check.Report(False, "uncertain: " + _clauses(found, "UNCERTAIN"), "uncertain")
        if named.passed:
            return check.Report(True, "the gradients are right: they agree with those of what the forward pass computes", "right")
        return check.Report(False, named.text, "wrong")
    if named is None or named.passed:
        named = name_it(found, True) if "beside the given one" in found.numeric.text else None
    by = _clauses(found, "WRONG", "CUT OFF", "NOT FINITE", "PROBLEM")
    if named is None or named.passed:
        return check.Report(False, "the gradients are wrong\n" + by, "wrong")
    return check.Report(False, named.text if "WRONG" in named.text else f"{named.text}\n\nby differences of the function:\n{by}", "wrong")


def _clauses(found: Checked, *marks: str) -> str:
    lines = found.lines(*marks)
    return "\n".join(lines or [found.numeric.text])


def _right(found: Checked) -> check.Report:
    if (narrow := found.as_it_is()) is not None:
        return narrow
    text = ["the gradients are right: they agree with differences of the function"]
    if (kinks := found.lines("KINK")) != []:
        text = ["the gradients are right where there is a derivative. At a kink there is none, and which slope stands there is a choice:", *kinks]
    return check.Report(True, "\n".join([*text, *found.notes, *found.case.padded.notes()]), "right")


def tensors_beside(values: Sequence[Any]) -> list[Tensor]:
    """The values at another point, at which none is special."""
    random = _torch.Generator().manual_seed(2)

    def moved(t: Any) -> Any:
        by = _torch.randn(t.shape, dtype=t.dtype, generator=random) / 8
        return t + by * t.abs().clamp(min=0.5)

    return [to_chainrule(moved(t)) for t in values]
