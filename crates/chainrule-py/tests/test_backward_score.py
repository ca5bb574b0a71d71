"""Backward passes as people get them wrong: each is seen, none gets a wrong name, and most get the
line and the correction first. `CHAINRULE_ALL_BACKWARDS=1` judges all cases, else a sample runs.
"""

import os

import pytest
from backward_cases import CASES, RIGHT
from backward_score import all_cases, judged
from follow_cases import LIBRARIES
from more_backward_cases import MORE


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


@pytest.mark.parametrize("name", CASES | MORE)
def test_the_first_mistake_of_each_kind(name, tmp_path):
    kind, code, mistakes = (CASES | MORE)[name]
    lines = next(iter(mistakes.values()))
    said, report, _ = judged(tmp_path, "chainrule", code, lines)
    assert said in ("corrected", "other line"), f"{said}: {report}"
    said, report, _ = judged(tmp_path, "chainrule", code, [])
    assert said == "right", report


@pytest.mark.parametrize("name", RIGHT)
def test_right_but_unusual_ones(name, tmp_path):
    said, report, _ = judged(tmp_path, "chainrule", RIGHT[name], [])
    assert said == "right", report
