"""Backward passes as people get them wrong: each is seen, none gets a wrong name, and most get the
line and the correction first. `CHAINRULE_ALL_BACKWARDS=1` judges all cases, else a sample runs.
"""

import os

import pytest
from backward_cases import CASES, RIGHT
from backward_score import all_cases, judged, report_of
from chainrule._follow.differences import slope
from contrastive_backward_cases import CONTRASTIVE
from deeper_backward_cases import DEEPER
from follow_cases import LIBRARIES, loaded, spoiled
from further_backward_cases import FURTHER, UNUSUAL
from gated_backward_cases import GATED
from larger_backward_cases import LARGER
from later_backward_cases import LATER
from mixed_backward_cases import MIXED, MIXED_RIGHT
from more_backward_cases import MORE
from rarer_backward_cases import ALSO_RIGHT, RARER
from selective_backward_cases import SELECTIVE, SELECTIVE_RIGHT
from structured_backward_cases import STRUCTURED, STRUCTURED_RIGHT

ALL = CASES | MORE | FURTHER | RARER | MIXED | LATER | DEEPER | SELECTIVE | LARGER | GATED | CONTRASTIVE
UNLIKE = RIGHT | UNUSUAL | ALSO_RIGHT | MIXED_RIGHT | STRUCTURED_RIGHT | SELECTIVE_RIGHT


@pytest.mark.skipif(not os.environ.get("CHAINRULE_ALL_BACKWARDS"), reason="slow; CHAINRULE_ALL_BACKWARDS=1 runs it")
@pytest.mark.parametrize("library", LIBRARIES)
def test_all(library, tmp_path):
    found = {name: judged(tmp_path, of, code, lines) for name, of, code, lines in all_cases([library])}
    kinds = [kind for kind, _, _ in found.values()]
    wrong = [kind for kind in kinds if kind not in ("right", "false alarm")]
    assert kinds.count("false alarm") == kinds.count("wrong name") == 0, [n for n, (k, _, _) in found.items() if k in ("false alarm", "wrong name")]
    assert wrong.count("missed") <= 0.03 * len(wrong)
    assert wrong.count("corrected") >= 0.85 * len(wrong)
    assert wrong.count("located only") + wrong.count("unidentified") <= 0.1 * len(wrong)


@pytest.mark.parametrize("name", ALL)
def test_the_first_mistake_of_each_kind(name, tmp_path):
    kind, code, mistakes = ALL[name]
    lines = next(iter(mistakes.values()))
    said, report, _ = judged(tmp_path, "chainrule", code, lines)
    assert said in ("corrected", "other line"), f"{said}: {report}"
    said, report, _ = judged(tmp_path, "chainrule", code, [])
    assert said == "right", report


@pytest.mark.parametrize("name, mistake", [(name, mistake) for name, (_, _, mistakes) in DEEPER.items() for mistake in mistakes])
def test_the_line_and_the_correction_of_each_deeper_one(name, mistake, tmp_path):
    _, code, mistakes = DEEPER[name]
    said, report, _ = judged(tmp_path, "chainrule", code, mistakes[mistake])
    assert said == "corrected", f"{said}: {report}"


@pytest.mark.parametrize("name", UNLIKE)
def test_right_but_unusual_ones(name, tmp_path):
    said, report, _ = judged(tmp_path, "chainrule", UNLIKE[name], [])
    assert said == "right", report


@pytest.mark.parametrize("mistake", ["fade", "state", "end"])
def test_numbers_that_are_read_out_of_arrays(mistake, tmp_path):
    """A loop over elements computes by floats of NumPy, which are quantities as arrays are."""
    _, code, mistakes = STRUCTURED["point process"]
    said, report, _ = judged(tmp_path, "chainrule", code, mistakes[mistake])
    assert said == "corrected", f"{said}: {report}"


def test_a_factor_belongs_where_its_variable_is_made(tmp_path):
    _, code, mistakes = STRUCTURED["table"]
    said, report, _ = judged(tmp_path, "chainrule", code, mistakes["clamp"])
    assert said == "corrected", f"{said}: {report}"


def test_an_overwritten_value_of_another_shape(tmp_path):
    """No value of the shape that stands there can be right: what was there before is lost."""
    _, code, mistakes = STRUCTURED["balanced experts"]
    said, report, _ = judged(tmp_path, "chainrule", code, mistakes["overwritten"])
    assert said == "corrected" and "what was there before is lost" in str(report), f"{said}: {report}"


def test_a_line_that_a_loop_lacks(tmp_path):
    """The path of a carried gradient whose line is not there at all: it is put in, in the user's
    words.
    """
    line = "            ds = ds - k[t][:, None] * de\n"
    said, report, _ = judged(tmp_path, "chainrule", FURTHER["delta rule"][1], [(line, "")])
    assert said != "missed" and "before it `ds = ds - de * k[t][:, None]` is missing" in str(report), report


@pytest.mark.parametrize("name, mistake", [("deconvolution", "stride one"), ("dilated", "silu without product")])
def test_an_index_and_a_slope_of_the_forward_pass(name, mistake, tmp_path):
    """All bounds of an index at once, as another one has them; and the slope of what the forward
    pass sees in another shape.
    """
    _, code, mistakes = SELECTIVE[name]
    said, report, _ = judged(tmp_path, "chainrule", code, mistakes[mistake])
    assert said == "corrected", f"{said}: {report}"


def test_the_slope_of_a_softmax_for_that_of_its_logarithm(tmp_path):
    _, code, mistakes = LARGER["clipped policy"]
    said, report, _ = judged(tmp_path, "chainrule", code, mistakes["log softmax"])
    assert said == "corrected", f"{said}: {report}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_held_fixed_is_told(library, tmp_path):
    """A straight-through estimator is no mistake, and is not the slope of its function either."""
    said, report, _ = judged(tmp_path, library, SELECTIVE_RIGHT["straight through by hand"], [])
    assert said == "right" and "held fixed (spoiled.py:5)" in str(report), report


def test_one_edit_comes_before_two(tmp_path):
    """A sum over the other axis is a known quantity, too: its line looks right by itself."""
    said, report, _ = judged(tmp_path, "chainrule", FURTHER["forward sums of a chain"][1], [("dscore.sum(1)", "dscore.sum(0)")])
    assert said == "corrected" and "mistake 1 of 2" not in str(report), report


def test_a_helper_of_both_passes_is_right(tmp_path):
    """The forward pass calls it too, so another sign in it would change what is due."""
    code = MIXED["ranked pairs of arrays"][1]
    said, report, _ = judged(tmp_path, "chainrule", code, [("-(1 - logistic(margin)) /", "-logistic(margin) /")])
    assert said in ("corrected", "other line") and "spoiled.py:7 " not in str(report), report


def test_a_place_that_occurs_several_times_is_taken_away_from_too(tmp_path):
    code = MIXED["ranked pairs of arrays"][1]
    said, report, _ = judged(tmp_path, "chainrule", code, [("np.add.at(di, j, -coef[:, None] * users)", "di[j] -= coef[:, None] * users")])
    assert said == "corrected" and "np.add.at" in str(report), report


TAILS = """
def survival(x, beta, order):
    risk = (x @ beta)[order]
    tail = torch.flip(torch.cumsum(torch.flip(torch.exp(risk), [0]), 0), [0])
    return -(risk - torch.log(tail)).mean()

def survival_backward(g, x, beta, order):
    n = x.shape[0]
    risk = (x @ beta)[order]
    e = torch.exp(risk)
    tail = torch.flip(torch.cumsum(torch.flip(e, [0]), 0), [0])
    dtail = g / n / tail
    drisk = torch.cumsum(dtail, 0) * e - g / n
    dall = torch.zeros_like(x[:, 0])
    dall[order] = drisk
    return dall[:, None] * beta[None, :], x.T @ dall, None

inputs = [torch.randn(6, 3), torch.randn(3), torch.tensor([3, 0, 5, 1, 4, 2])]
"""


@pytest.mark.parametrize(
    "right, wrong, said",
    [
        ("dall[order] = drisk", "dall = drisk[order]", "dall[order] = drisk"),
        ("torch.cumsum(dtail, 0)", "torch.flip(torch.cumsum(torch.flip(dtail, [0]), 0), [0])", "cumsum(dtail, 0) * e - g / n"),
    ],
)
def test_elements_in_another_order(right, wrong, said, tmp_path):
    module = loaded(tmp_path / "spoiled.py", "chainrule", spoiled(TAILS, [(right, wrong)]))
    report, _ = report_of(module)
    rows = [row for row in str(report).splitlines() if row.startswith("corrected")]
    assert not report and len(rows) == 1 and said in rows[0], report


def test_a_difference_beside_a_kink():
    """A bound within the step: a smaller one keeps clear of it."""
    for x in (1e-3, 5e-5, -2e-3):
        assert abs(slope(lambda step, x=x: 3 * max(x + step, 0.0) + (x + step) ** 2, 1.0) - (3 * (x > 0) + 2 * x)) < 1e-7
    assert abs(slope(lambda step: 1 / (1 + 2.718281828459045 ** -(0.3 + step)), 1.0) - 0.24445831169074586) < 1e-9
