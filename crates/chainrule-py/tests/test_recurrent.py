"""Recurrent layers, cells and packed sequences: beside PyTorch, and by the laws that hold among
them.
"""

import itertools

import chainrule as cr
import numpy as np
import pytest
from beside import all_of, numbers, pair, same, torch_or_skip
from chainrule.nn.utils import rnn as R

SETTINGS = [
    {}, {"num_layers": 2, "bidirectional": True, "batch_first": True}, {"num_layers": 3, "dropout": 0.4}, {"bias": False, "bidirectional": True},
    {"proj_size": 2, "num_layers": 2, "bidirectional": True}, {"nonlinearity": "relu"},
]
CASES = [
    (kind, s) for kind, s in itertools.product(("RNN", "LSTM", "GRU"), SETTINGS)
    if ("proj_size" not in s or kind == "LSTM") and ("nonlinearity" not in s or kind == "RNN")
]


@pytest.mark.parametrize("kind, settings", CASES)
@pytest.mark.parametrize("how", ["plain", "state given", "unbatched", "packed", "packed, state given"])
def test_beside_torch(kind, settings, how):
    torch = torch_or_skip()
    ours, theirs = pair(torch, kind, 3, 4, **settings)
    first = settings.get("batch_first", False)

    def run(m, module):
        rows = settings.get("num_layers", 1) * (1 + settings.get("bidirectional", False))
        x = numbers(m, 1, 5, 3) if how == "unbatched" else numbers(m, 1, 5, 2, 3)
        states = [numbers(m, 2, rows, 2, settings.get("proj_size", 4)), *([numbers(m, 3, rows, 2, 4)] if kind == "LSTM" else [])]
        pack = m.nn.utils.rnn

        def call(x, *states):
            x = x.transpose(0, 1) if first and x.ndim == 3 else x
            if "packed" in how:
                x = pack.pack_padded_sequence(x, [3, 5], batch_first=first, enforce_sorted=False)
            out, last = module(x, *([tuple(states) if kind == "LSTM" else states[0]] if states else []))
            if "packed" in how:
                out = pack.pad_packed_sequence(out, batch_first=first, padding_value=0.5)[0]
            return out, last

        return all_of(m, module, call, x, *(states if "given" in how else []))

    same(run(cr, ours), run(torch, theirs))
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_beside_torch(kind):
    torch = torch_or_skip()
    ours, theirs = pair(torch, kind, 3, 4)

    def run(m, module):
        return all_of(m, module, lambda x, y: module(y, module(x)), numbers(m, 1, 2, 3), numbers(m, 2, 2, 3))

    same(run(cr, ours), run(torch, theirs))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_layer_is_its_cell_step_by_step(kind):
    layer, cell = getattr(cr.nn, kind)(3, 4).double(), getattr(cr.nn, kind + "Cell")(3, 4).double()
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x, state, outs = numbers(cr, 1, 5, 2, 3), None, []
    for step in x:
        state = cell(step, state)
        outs.append(state[0] if kind == "LSTM" else state)
    assert layer(x)[0].allclose(cr.stack(outs), rtol=1e-12)
    # The other direction of a layer is the layer over the sequence turned round.
    both = getattr(cr.nn, kind)(3, 4, bidirectional=True).double()
    both.load_state_dict({k + end: v for k, v in layer.state_dict().items() for end in ("", "_reverse")})
    assert both(x)[0][..., 4:].allclose(layer(x.flip(0))[0].flip(0), rtol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_sequences_are_each_by_itself(kind):
    layer = getattr(cr.nn, kind)(3, 4, bidirectional=True, num_layers=2).double()
    rows = [numbers(cr, i, n, 3) for i, n in enumerate((2, 5, 1, 5))]
    out, last = layer(R.pack_sequence(rows, enforce_sorted=False))
    for i, (got, row) in enumerate(zip(R.unpack_sequence(out), rows)):
        want, state = layer(row)
        assert got.allclose(want, rtol=1e-12)
        for a, b in zip(last if kind == "LSTM" else [last], state if kind == "LSTM" else [state]):
            assert a[:, i].allclose(b, rtol=1e-12)


def test_sequences():
    x = cr.tensor([[1, 2, 3], [4, 5, 0]])
    packed = R.pack_padded_sequence(x, cr.tensor([3, 2]), batch_first=True)
    assert packed.data.tolist() == [1, 4, 2, 5, 3] and packed.batch_sizes.tolist() == [2, 2, 1] and packed.sorted_indices is None
    padded, lengths = R.pad_packed_sequence(packed, batch_first=True, total_length=4, padding_value=-1)
    assert padded.tolist() == [[1, 2, 3, -1], [4, 5, -1, -1]] and lengths.tolist() == [3, 2]
    assert R.pad_sequence([cr.tensor([1, 2]), cr.tensor([3])], padding_side="left").tolist() == [[1, 0], [2, 3]]
    for call, words in [
        (lambda: R.pack_padded_sequence(x, [2, 3], batch_first=True), "do not fall"), (lambda: R.pack_padded_sequence(x, [3, 0], batch_first=True), "from 1 to 3"),
        (lambda: R.pack_padded_sequence(x, [3], batch_first=True), "1 lengths for 2"), (lambda: R.pad_sequence([]), "no sequences"),
        (lambda: R.pad_sequence([cr.ones(2, 3), cr.ones(2, 4)]), "but the first size"), (lambda: cr.nn.LSTM(3, 4)(cr.ones(2, 2, 5)), "input_size is 3"),
        (lambda: cr.nn.GRU(3, 4)(cr.ones(2, 2, 3), cr.ones(1, 3, 4)), r"\(1, 2, 4\)"), (lambda: cr.nn.LSTM(3, 4)(cr.ones(0, 2, 3)), "at least one step"),
        (lambda: cr.nn.RNN(3, 4, nonlinearity="x"), "not 'x'"), (lambda: cr.nn.LSTM(3, 4, proj_size=4), "proj_size"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=words):
            call()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_compiled_as_eager(kind):
    def losses(compiled):
        cr.manual_seed(5)
        m = getattr(cr.nn, kind)(3, 4, 2, dropout=0.3)
        o = cr.optim.Adam(m.parameters(), lr=0.05)
        x = cr.randn(4, 2, 3)

        def step(x):
            o.zero_grad()
            loss = m(x)[0].square().sum()
            loss.backward()
            o.step()
            return loss

        run = cr.compile(step) if compiled else step
        return [run(x).item() for _ in range(4)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)
