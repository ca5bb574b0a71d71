"""Functions, methods, types and help of the ops come from the table of ops."""

import importlib.util
import inspect
import os
from pathlib import Path

import chainrule as cr
import pytest
from chainrule import _chainrule

F = cr.nn.functional
ROOT = Path(__file__).parent.parent
# Name, other names, reason why it is written by hand, result, ways to call it: as a method, in
# place, as a function, in nn.functional.
TABLE = _chainrule._bindings()
# Rows that PyTorch has under another name in nn.functional, or not at all.
NOWHERE = {"lstm_cell", "hinge"}


def stubs():
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_types_are_those_of_the_table():
    for name, text in stubs().stubs().items():
        path = ROOT / "python" / "chainrule" / name
        if os.environ.get("CHAINRULE_UPDATE_DOCS"):
            path.write_text(text)
        assert path.read_text() == text, f"{name}: run tools/stubs.py, or this test with CHAINRULE_UPDATE_DOCS=1"


def test_every_row_says_how_python_calls_it():
    rows = {name for row in cr.op_table() for name in row[0].split(", ")}
    assert len(rows) >= 174
    assert len({name for name, *_ in TABLE}) > 150


@pytest.mark.parametrize("name, reason, ways", [(name, reason, ways) for name, _, reason, _, ways in TABLE if reason is not None])
def test_what_is_written_by_hand_has_a_reason_and_is_there(name, reason, ways):
    assert len(reason) > 10
    method, _, function, _ = ways
    places = [cr.Tensor] * bool(method) + [cr] * bool(function) or [cr, F, cr.linalg]
    if name not in NOWHERE:
        assert any(callable(getattr(place, name, None)) for place in places)


def public(place, names):
    return [(place, n) for n in names if not n.startswith("_")]


PLACES = (cr.Tensor, cr.nn.Module, cr.optim.Optimizer, cr.distributions.Distribution)
MODULES = (
    cr, cr.linalg, cr.special, cr.signal.windows, cr.nn.init, cr.nn.utils, cr.nn.utils.rnn, cr.optim, cr.optim.lr_scheduler, cr.distributions,
    cr.autograd, cr.func, cr.utils.data, cr.memory,
)


@pytest.mark.parametrize(
    "place, name",
    [
        *[pair for place in PLACES for pair in public(place, dir(place))],
        *[pair for m in MODULES for pair in public(m, getattr(m, "__all__", dir(m)))],
        *public(F, [n for n in dir(F) if callable(getattr(F, n))]),
        *public(cr.nn, [n for n in dir(cr.nn) if isinstance(getattr(cr.nn, n), type)]),
    ],
)
def test_help_has_a_text(place, name):
    value = getattr(place, name)
    if getattr(value, "__module__", "").startswith(("typing", "collections")):
        return
    if isinstance(value, type):
        # A class has a text of its own, not that of the class above it.
        assert len((vars(value).get("__doc__") or "").strip()) > 10
        for method, f in vars(value).items():
            if not method.startswith("_") and inspect.isfunction(f):
                assert inspect.getdoc(f) or any(hasattr(base, method) for base in value.__mro__[1:])
    elif callable(value) or inspect.isdatadescriptor(value):
        assert value.__doc__ and len(value.__doc__.strip()) > 10


@pytest.mark.parametrize("name, in_place", [(name, ways[1]) for name, _, _, _, ways in TABLE if ways[0] and ways[1]])
def test_a_method_that_writes_gives_what_the_op_gives(name, in_place):
    x, mask, index = cr.tensor([[0.25, 0.5], [0.75, 0.125]]), cr.tensor([[True, False], [False, True]]), cr.tensor([1, 0])
    if name.startswith(("bitwise", "logical")):
        x = cr.tensor([[3, 0], [1, 2]])
    if name == "index_put":
        args = ((index, index), cr.tensor([5.0, 6.0]))
    elif name == "scatter":
        args = (0, cr.tensor([[1, 0], [0, 1]]), x * 2.0)
    else:
        given = {
            "mask": mask, "index": index if name.startswith("index") else cr.tensor([[1, 0], [0, 1]]), "dim": 0, "end": x + 1.0,
            "weight": 0.5, "value": 2.0, "src": x * 2.0, "source": x * 3.0, "min": 0.3, "max": 0.6, "tensor1": x, "tensor2": x,
        }
        needed = [p for p in list(inspect.signature(getattr(cr.Tensor, name)).parameters.values())[1:] if p.default is p.empty]
        args = tuple(given.get(p.name, x) for p in needed) or ((0.3, 0.6) if name == "clamp" else ())
    expected, y = getattr(x, name)(*args), x.clone()
    view = y.view(4)
    assert getattr(y, name + "_")(*args) is y
    wanted = expected.to(dtype=x.dtype)
    assert cr.equal(y.nan_to_num(), wanted.nan_to_num()) and cr.equal(view.view(2, 2).nan_to_num(), wanted.nan_to_num())


@pytest.mark.parametrize("name", sorted(cr._ops.FUNCTIONS))
def test_a_function_takes_the_names_of_its_signature(name):
    function = getattr(cr, name)
    first, *rest = inspect.signature(function).parameters.values()
    assert first.name in ("input", "x1", "input1") and all(p.kind is not p.VAR_POSITIONAL for p in rest)
    with pytest.raises(TypeError, match="nothing_has_this_name|takes no keyword arguments"):
        function(cr.ones(2, 2), nothing_has_this_name=1, **{p.name: 1 for p in rest if p.default is p.empty})


def test_two_names_of_one_argument():
    x = cr.arange(6.0).reshape(2, 3)
    assert cr.equal(x.sum(axis=1, keepdims=True), x.sum(1, True)) and cr.equal(x.cumsum(axis=0), x.cumsum(0))
    assert cr.equal(cr.sum(input=x, dim=1), x.sum(1)) and cr.equal(cr.reshape(x, shape=(3, 2)), x.reshape(3, 2))
    with pytest.raises(TypeError, match="sum: dim and axis are two names of one argument; give one"):
        x.sum(0, axis=0)
    with pytest.raises(TypeError, match=r"cumsum\(\) missing 1 required positional argument: 'dim'"):
        x.cumsum()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: x.tanh(1), r"Tensor.tanh\(\) takes no arguments \(1 given\)"),
        (lambda x: cr.tanh(x, 1), r"tanh\(\) takes 1 positional argument but 2 were given"),
        (lambda x: x.div(x, "floor"), r"div\(\) takes 2 positional arguments but 3 were given"),
        (lambda x: x.mul(), r"mul\(\) missing 1 required positional argument: 'other'"),
        (lambda x: x.mul(x, other=x), r"mul\(\) got multiple values for argument 'other'"),
        (lambda x: x.div(x, rounding="floor"), r"div\(\) got an unexpected keyword argument 'rounding'"),
        (lambda x: x.leaky_relu("a"), "leaky_relu: argument 'negative_slope': must be real number, not str"),
        (lambda x: x.sum("a"), "sum: argument 'dim': expected an integer or a list of integers, not str"),
        (lambda x: x.gather(0, [1]), "gather: argument 'index': expected a tensor, not list"),
        (lambda x: F.cross_entropy(x, x, size_average=True), "cross_entropy: argument 'size_average'"),
    ],
)
def test_errors_name_the_op_and_the_argument(call, text):
    with pytest.raises(TypeError, match=text):
        call(cr.ones(2, 2))


def test_words_and_numbers_that_do_not_fit():
    x = cr.ones(2, 2)
    with pytest.raises(ValueError, match="mse_loss: reduction is 'mean', 'sum' or 'none', not 'all'"):
        F.mse_loss(x, x, reduction="all")
    with pytest.raises(ValueError, match="topk: k must not be negative, got -1"):
        x.topk(-1)


def test_in_place_activations_write_to_the_tensor():
    x = cr.tensor([-1.0, 2.0])
    row = x[0:1]
    assert F.relu(x, True) is x and x.tolist() == [0.0, 2.0] and row.tolist() == [0.0]
    y = cr.tensor([-1.0, 2.0])
    assert F.leaky_relu(y, negative_slope=0.5, inplace=False) is not y and y.tolist() == [-1.0, 2.0]
