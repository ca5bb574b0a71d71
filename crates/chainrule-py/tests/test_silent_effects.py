"""Programs that PyTorch's users write, and whose effects must be PyTorch's, or an error: `silent/`
has them, with what PyTorch gave.
"""

import copy
import json
import re
import sys
from pathlib import Path

import chainrule as cr
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "silent"))
from running import HERE, is_error, outcome, programs, same  # noqa: E402

EXPECTED = json.loads((HERE / "expected.json").read_text())
PROGRAMS = dict(programs())

# Other effects, each told in the book under *Views alias*.
DIFFERENT = {
    "views.sum_of_aliases",  # PyTorch refuses operands that overlap
    "last.cumulative_in_place_gradient",  # PyTorch refuses a saved value that was written; here the old one was kept
    "daily.saved_values_written_are_refused_or_right",  # likewise
}
# Refused with a word of what to do.
REFUSED = {
    "views.numpy_view_writes_tensor": "read-only",
    "views.from_numpy_written": "NumPy array",
    "compiled.item_inside": "inside a trace",
    "compiled.branch_on_value": "inside a trace",
    "compiled.hidden_state_kept": "changes `m.h`",
    "compiled.list_appended": "changes `seen`",
    "compiled.counter_incremented": "changes `c`",
    "more.buffer_reassigned_compiled": "mean`",
    "more.leftover_gradient_compiled": "used up",
    "more.leftover_gradient_added_to": "used up",
    "more.leftover_gradient_stepped": "used it up",
    "more.schedule_inside_compiled": "changes",
    "more.random_state_python": "random numbers from Python",
    "last.mode_set_inside_compiled": "m.training",
    "last.seed_inside_compiled": "seeds",
    "last.iterator_consumed_compiled": "changes `batches`",
    "last.generator_function_consumed_compiled": "changes `it`",
    "again.state_grows": "changes `hist`",
    "calls.generators_of_others": "random numbers from Python",
    "memory.compiled_data_with_a_view": "copy_",
    "memory.compiled_data_of_another": "copy_",
    "last.gradient_assigned_inside_compiled": "used up",
    "others.zeroed_rows_by_mask": "used up",
    "others.gradients_of_gradients_compiled": "used up",
    "others.frozen_backbone": "used up",
    "arrays.large_array_written": "numpy",
    "arrays.array_of_a_tensor_written": "read-only",
    "derived.rule_that_appends_compiled": "changes `seen`",
    "edits.out_resizes": "another shape",
    "edits.put_take_mask": "inside a trace",
    "edits.always_call_hook": "always_call",
    "deeper.grad_hook_on_tied": "inside a trace",
    "deeper.buffer_swap_inside_compiled": "changes `m.a`",
    "deeper.global_seed_then_numpy": "random numbers from Python",
    "deeper.object_put": "into one of its arguments",
    "daily.saved_tensors_in_another_form": "stay as they are",
}


def test_every_program_has_what_pytorch_gave():
    assert set(PROGRAMS) == set(EXPECTED)
    assert set(REFUSED) | DIFFERENT <= set(EXPECTED)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in DIFFERENT])
def test_same_effects_as_pytorch_or_an_error(name):
    found, want = outcome(PROGRAMS[name], cr, cr.compile), EXPECTED[name]
    if name in REFUSED or is_error(want):
        assert is_error(found), found
        assert re.search(REFUSED.get(name, ""), found["error"]), found
        assert not any(kind in found["error"] for kind in ("InternalError", "PanicException")), found
    else:
        assert same(found, want), f"{found}, PyTorch has {want}"


# `x.data = y` of another leaf shares no memory, which a warning says.
TOLD = {"memory.compiled_data_of_another"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in DIFFERENT | TOLD])
def test_same_effects_without_compile(name):
    found, want = outcome(PROGRAMS[name], cr, lambda f: f), EXPECTED[name]
    if is_error(want) or is_error(found):
        assert is_error(found) and (is_error(want) or name in REFUSED), found
    else:
        assert same(found, want), f"{found}, PyTorch has {want}"


def test_memory_that_is_not_shared_is_told():
    x, n = cr.ones(2, requires_grad=True), np.zeros(4, np.float32)
    y = cr.from_numpy(n)
    with pytest.warns(RuntimeWarning, match="no memory"):
        x.data = y[:2]


def test_a_gradient_that_is_not_shared_is_told():
    a, b = cr.ones(2, requires_grad=True), cr.ones(2, requires_grad=True)
    g = cr.ones(2)
    a.grad = g
    n = np.ones(4, np.float32)
    whole = cr.from_numpy(n)
    with pytest.warns(RuntimeWarning, match="no memory with it"):
        b._grad = whole[:2]
    a.grad = a.grad
    assert b.grad.tolist() == [1, 1]


def test_the_line_whose_gradient_is_nan_is_named():
    w = cr.zeros(1, requires_grad=True)
    with cr.autograd.detect_anomaly():
        root = (w * 0).sqrt()
        with pytest.raises(RuntimeError, match=r"sqrt.*test_silent_effects.py:\d+.*nan"):
            (root * 0).sum().backward()


def test_a_parameter_of_a_part_is_told():
    n = np.ones(2, np.float32)
    p = cr.from_numpy(n)
    with pytest.warns(RuntimeWarning, match="no memory"):
        cr.nn.Parameter(p[:1])


def test_a_graph_from_before_the_memory_changed_keeps_its_values():
    """PyTorch takes the new memory, and gives the gradient at a point that was never computed."""
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    loss = (w**2).sum()
    w.data = cr.tensor([5.0, 6.0])
    assert cr.autograd.grad(loss, [w])[0].tolist() == [2, 4]
    loss = (w**2).sum()
    w.data.mul_(2)
    assert cr.autograd.grad(loss, [w])[0].tolist() == [10, 12]
    m = cr.nn.Linear(2, 1, bias=False)
    cr.nn.init.ones_(m.weight)
    loss = m(cr.ones(1, 2)).pow(2).sum()
    m.weight.data = cr.full((1, 2), 3.0)
    assert cr.autograd.grad(loss, list(m.parameters()))[0].tolist() == [[4, 4]]


def test_a_copy_of_a_leaf_whose_gradient_was_used_up():
    x = cr.ones(2, requires_grad=True)
    o = cr.optim.SGD([x], lr=0.1)

    @cr.compile
    def step():
        o.zero_grad()
        (x**2).sum().backward()
        o.step()

    step()
    both = copy.deepcopy([x, x])
    assert both[0] is both[1] and both[0].allclose(x) and both[0].requires_grad
    with pytest.raises(cr.GradientError, match="used up"):
        both[0].grad  # noqa: B018
    both[0].grad = None
    both[0].sum().backward()
    assert both[1].grad.tolist() == [1, 1]
