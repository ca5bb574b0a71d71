"""The monitor on loops of PyTorch of rarer kinds."""

import pytest

torch = pytest.importorskip("torch")

from torch_loops import MISTAKES, RIGHT, is_sure_and_clipped  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    # The tensors are tiny: threads would wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_said_of_a_right_loop(name):
    assert [str(f) for f in RIGHT[name]()] == []


def test_answers_at_the_bound_of_a_logarithm_count_as_right():
    assert [str(f) for f in is_sure_and_clipped() if f.confidence > 0.5] == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name):
    run, kinds = MISTAKES[name]
    found = run()
    assert found, "silent"
    assert found[0].confidence >= 0.5 and any(f.kind in kinds for f in found[:2]), [str(f) for f in found]
