"""Further layers, first weights and losses beside PyTorch's; weights in other coordinates;
parameters that modules know.
"""

import ast
import copy
import importlib
import inspect
import pickle
import pkgutil
import warnings
from pathlib import Path

import chainrule as cr
import numpy as np
import pytest
from beside import torch_or_skip

IMAGES, SIGNALS = (2, 4, 6, 5), (2, 4, 6)
LAYERS = [
    ("Upsample", (), {"scale_factor": 2}), ("Upsample", ((4, 7),), {"mode": "bilinear", "align_corners": True}), ("PixelShuffle", (2,), {}),
    ("PixelUnshuffle", (1,), {}), ("ZeroPad2d", (1,), {}), ("ReflectionPad2d", ((1, 2, 0, 1),), {}), ("ReplicationPad2d", (2,), {}),
    ("CircularPad2d", (1,), {}), ("ConstantPad2d", (1, 0.5), {}), ("Unfold", (2,), {"padding": 1}), ("Unflatten", (1, (2, 2)), {}),
    ("Dropout2d", (0.4,), {}), ("InstanceNorm2d", (4,), {"affine": True}), ("InstanceNorm2d", (4,), {}), ("PReLU", (), {}), ("PReLU", (4,), {}),
    ("Softmax2d", (), {}), ("LocalResponseNorm", (3,), {}), ("Softmin", (1,), {}), ("Threshold", (0.1, 20), {}), ("Hardshrink", (), {}),
    ("Softshrink", (), {}), ("Tanhshrink", (), {}), ("UpsamplingBilinear2d", (), {"scale_factor": 2}), ("ReLU", (True,), {}), ("LeakyReLU", (0.2, True), {}),
    ("DataParallel", (None,), {}),
    ("Conv2d", (4, 2, 3), {"padding": 1, "padding_mode": "reflect"}), ("Conv2d", (4, 2, 3), {"padding": (1, 2), "padding_mode": "circular"}),
    ("ConvTranspose2d", (4, 2, 3, 2, 1, 1), {}),
]
LOSSES = {
    "TripletMarginLoss": lambda m, a, b, c: m.nn.TripletMarginLoss(swap=True)(a, b, c),
    "TripletMarginWithDistanceLoss": lambda m, a, b, c: m.nn.TripletMarginWithDistanceLoss()(a, b, c),
    "MarginRankingLoss": lambda m, a, b, c: m.nn.MarginRankingLoss(margin=0.3)(a, b, (c.detach() > 0).double() * 2 - 1),
    "SoftMarginLoss": lambda m, a, b, c: m.nn.SoftMarginLoss()(a + b, (c.detach() > 0).double() * 2 - 1),
    "MultiLabelSoftMarginLoss": lambda m, a, b, c: m.nn.MultiLabelSoftMarginLoss()(a + b, (c.detach() > 0).double()),
    "GaussianNLLLoss": lambda m, a, b, c: m.nn.GaussianNLLLoss(full=True)(a, b, c.square()),
    "PoissonNLLLoss": lambda m, a, b, c: m.nn.PoissonNLLLoss(full=True)(a, b.detach().abs() * 3),
    "PoissonNLLLoss of means": lambda m, a, b, c: m.nn.PoissonNLLLoss(log_input=False)(a.square(), b.detach().abs() * 3),
    "CosineSimilarity": lambda m, a, b, c: m.nn.CosineSimilarity()(a, b), "PairwiseDistance": lambda m, a, b, c: m.nn.PairwiseDistance()(a, b),
    "gumbel_softmax": lambda m, a, b, c: m.nn.functional.gumbel_softmax(a, 0.7), "hard gumbel_softmax": lambda m, a, b, c: m.nn.functional.gumbel_softmax(a, hard=True),
    "size_average": lambda m, a, b, c: m.nn.L1Loss(size_average=False)(a, b),
    "Bilinear": lambda m, a, b, c: m.nn.Bilinear(3, 3, 2, dtype=m.float64)(a, b),
}


def beside(function, *shapes, tolerance=1e-12):
    torch = torch_or_skip()

    def run(m):
        m.manual_seed(1)
        inputs = [m.tensor(np.random.default_rng(i).normal(size=s), requires_grad=True) for i, s in enumerate(shapes)]
        out = function(m, *inputs)
        (out * m.tensor(np.random.default_rng(9).normal(size=tuple(out.shape)))).sum().backward()
        return [out.detach().numpy(), *(x.grad.numpy() if x.grad is not None else np.zeros(0) for x in inputs)]

    for a, b in zip(run(cr), run(torch)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, args, options", LAYERS)
def test_layers_beside_torch(name, args, options):
    def function(m, x):
        given = (m.nn.Conv2d(4, 2, 3, dtype=m.float64),) if name == "DataParallel" else args
        dtype = {"dtype": m.float64} if "Conv" in name else {}
        return getattr(m.nn, name)(*given, **options, **dtype).double()(x * 1.0)

    beside(function, IMAGES)


@pytest.mark.parametrize("name, args", [("Dropout1d", (0.5,)), ("InstanceNorm1d", (4,)), ("ReflectionPad1d", (1,)), ("Dropout2d", (0.5,))])
def test_layers_of_signals_beside_torch(name, args):
    with warnings.catch_warnings():
        # PyTorch warns of images without a batch.
        warnings.simplefilter("ignore")
        beside(lambda m, x: getattr(m.nn, name)(*args).double()(x), SIGNALS)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_beside_torch(name):
    beside(LOSSES[name], (5, 3), (5, 3), (5, 3))


def drawn(m, made):
    m.manual_seed(3)
    found = made(m)
    return [t.detach().numpy() for t in (found if isinstance(found, list) else [found])] + [m.rand(1).numpy()]


MODULES = [
    ("Linear", (7, 300)), ("Linear", (3, 2)), ("Conv2d", (3, 8, 5)), ("Conv1d", (3, 8, 5)), ("ConvTranspose2d", (3, 8, 5)), ("LSTM", (7, 33, 2)),
    ("GRUCell", (7, 33)), ("MultiheadAttention", (24, 3)), ("TransformerEncoderLayer", (24, 3, 50)), ("Bilinear", (3, 4, 5)), ("Embedding", (30, 9)),
]
FILLS = {
    "uniform": lambda i, t: i.uniform_(t, -0.3, 1.7), "normal": lambda i, t: i.normal_(t, 0.3, 0.02), "xavier_uniform": lambda i, t: i.xavier_uniform_(t, 1.3),
    "xavier_normal": lambda i, t: i.xavier_normal_(t), "kaiming_uniform": lambda i, t: i.kaiming_uniform_(t), "trunc_normal": lambda i, t: i.trunc_normal_(t),
    "kaiming_normal": lambda i, t: i.kaiming_normal_(t), "narrow trunc_normal": lambda i, t: i.trunc_normal_(t, 0.1, 0.02, 0.11, 0.2),
}


@pytest.mark.parametrize("name, args", MODULES)
def test_first_weights_are_those_of_torch_to_the_last_bit(name, args):
    torch = torch_or_skip()
    for a, b in zip(*(drawn(m, lambda m: list(getattr(m.nn, name)(*args).parameters())) for m in (cr, torch))):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 4), (40, 30)])
def test_random_numbers_in_place_are_those_of_torch_to_the_last_bit(name, dtype, shape):
    torch = torch_or_skip()
    for a, b in zip(*(drawn(m, lambda m: FILLS[name](m.nn.init, m.zeros(*shape, dtype=getattr(m, dtype)))) for m in (cr, torch))):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3, 3)])
def test_orthogonal_weights(shape):
    w = cr.nn.init.orthogonal_(cr.zeros(*shape, dtype=cr.float64), gain=2.0).reshape(shape[0], -1)
    few = w if w.shape[0] < w.shape[1] else w.t()
    assert (few @ few.t()).allclose(4 * cr.eye(len(few), dtype=cr.float64), rtol=1e-12, atol=1e-12)
    torch = torch_or_skip()
    cr.manual_seed(3)
    torch.manual_seed(3)
    ours, theirs = cr.nn.init.orthogonal_(cr.zeros(*shape)), torch.nn.init.orthogonal_(torch.zeros(*shape))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=2e-6)


def test_convolutions_that_give_their_input_back():
    x = cr.randn(2, 4, 5, 5)
    w = cr.nn.init.dirac_(cr.zeros(4, 4, 3, 3))
    assert cr.nn.functional.conv2d(x, w, padding=1).allclose(x)


@pytest.mark.parametrize("kind", ["weight_norm", "weight_norm of all", "spectral_norm"])
def test_weights_in_other_coordinates_beside_torch(kind):
    def function(m, x):
        layer = m.nn.Conv2d(4, 2, 3, dtype=m.float64)
        u = m.nn.utils
        layer = u.spectral_norm(layer) if kind == "spectral_norm" else u.weight_norm(layer, dim=None if "all" in kind else 0)
        layer(x)
        return layer(x)

    beside(function, IMAGES)


def test_weights_in_other_coordinates_are_undone():
    for make, undo in (("weight_norm", "remove_weight_norm"), ("spectral_norm", "remove_spectral_norm")):
        m = getattr(cr.nn.utils, make)(cr.nn.Linear(3, 2))
        want = m.eval()(cr.ones(1, 3))
        with pytest.raises(RuntimeError, match="in this way already"):
            getattr(cr.nn.utils, make)(m)
        getattr(cr.nn.utils, undo)(m)
        assert list(m.state_dict()) == ["bias", "weight"] and m(cr.ones(1, 3)).allclose(want)
        with pytest.raises(ValueError, match="not computed"):
            getattr(cr.nn.utils, undo)(m)


def test_parameters():
    p = cr.nn.Parameter(cr.ones(2))
    assert isinstance(p, cr.nn.Parameter) and not isinstance(cr.ones(2), cr.nn.Parameter)
    for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert isinstance(q, cr.nn.Parameter) and q.requires_grad
    m = cr.nn.Linear(2, 2, device="cpu")
    assert all(isinstance(q, cr.nn.Parameter) for q in copy.deepcopy(m).parameters())
    with pytest.raises(TypeError, match="Parameter"):
        m.weight = m.weight * 0.5
    tied = cr.nn.Sequential(m, m)
    tied[1].weight = m.weight
    both = copy.deepcopy(tied).double()
    assert both[0].weight is both[1].weight and both[0].weight.dtype == cr.float64


def test_hooks_before_a_call():
    m = cr.nn.Linear(2, 1)
    handle = m.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 0,))
    assert m(cr.ones(1, 2)).item() == m.bias.item()
    handle.remove()
    assert m(cr.ones(1, 2)).item() == pytest.approx((m.weight.sum() + m.bias).item())


def test_embeddings_of_given_rows():
    table = cr.nn.Embedding.from_pretrained(cr.arange(6.0).reshape(3, 2))
    assert table(cr.tensor([2, 0])).tolist() == [[4, 5], [0, 1]] and not table.weight.requires_grad
    assert cr.nn.Embedding.from_pretrained(cr.ones(3, 2), freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match="padding_idx 3"):
        cr.nn.Embedding(3, 2, padding_idx=3)


def test_layers_of_volumes_are_their_functions():
    nn, f = cr.nn, cr.nn.functional
    x = cr.randn(2, 2, 4, 4, 4)
    conv, back = nn.Conv3d(2, 4, 3, 2, 1, groups=2), nn.ConvTranspose3d(2, 2, 3, 2, 1, 1)
    assert conv(x).shape == (2, 4, 2, 2, 2) and back(x).shape == (2, 2, 8, 8, 8) and conv.weight.shape == (4, 1, 3, 3, 3)
    assert cr.equal(nn.MaxPool3d(2)(x), f.max_pool3d(x, 2)) and cr.equal(nn.AvgPool3d(2, 1)(x), f.avg_pool3d(x, 2, 1))
    values, at = f.max_pool3d(x, 2, return_indices=True)
    assert cr.equal(f.max_pool3d(nn.MaxUnpool3d(2)(values - values.min(), at), 2), values - values.min())
    norm = nn.BatchNorm3d(2)(x)
    assert norm.mean((0, 2, 3, 4)).abs().max() < 1e-6
    columns = f.unfold(x[:, :, 0], 2)
    assert cr.equal(nn.Fold((4, 4), 2)(columns), f.fold(columns, (4, 4), 2))
    assert cr.equal(nn.Dropout3d(0.5).eval()(x), x) and nn.AlphaDropout(0.5)(x).shape == x.shape
    bags = nn.EmbeddingBag(5, 3, mode="sum")
    ids = cr.tensor([[0, 1], [4, 4]])
    assert cr.allclose(bags(ids), cr.stack([bags.weight[0] + bags.weight[1], 2 * bags.weight[4]]))
    scores = cr.randn(5, 2, 4).log_softmax(2)
    targets = cr.tensor([[1, 2], [3, 3]])
    assert cr.equal(nn.CTCLoss(reduction="sum")(scores, targets, [5, 5], [2, 2]), f.ctc_loss(scores, targets, [5, 5], [2, 2], reduction="sum"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": (2, 3, 2), "stride": (1, 2, 1), "padding": (1, 1, 0), "ceil_mode": True}])
def test_windows_at_the_border_take_places_inside(options, dtype):
    """Also those that hold nothing but -inf, as PyTorch's; the same in a program."""
    torch, f = torch_or_skip(), cr.nn.functional
    a = np.random.default_rng(0).normal(size=(2, 3, 7, 6, 7)).astype(dtype)
    a[0, 1] = -np.inf
    x, t = cr.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    values, at = f.max_pool3d(x, return_indices=True, **options)
    wanted, places = torch.nn.functional.max_pool3d(t, return_indices=True, **options)
    assert np.array_equal(values.detach().numpy(), wanted.detach().numpy()) and np.array_equal(at.numpy(), places.numpy())
    wanted.backward(torch.ones_like(wanted))
    values.backward(cr.ones_like(values))
    assert x.grad is not None and np.array_equal(x.grad.numpy(), t.grad.numpy())
    assert cr.equal(cr.compile(lambda x: f.max_pool3d(x, **options))(x.detach()), values.detach())


@pytest.mark.parametrize("name", sorted(n for _, n, _ in pkgutil.iter_modules(cr.nn.__path__) if n.endswith("_layers") or n in ("_multihead", "layers", "rnn", "transformer")))
def test_a_module_exports_its_layers(name):
    # A list that is computed is none to a type checker; one that is written out may lack a layer.
    module = importlib.import_module(f"chainrule.nn.{name}")
    own = {n for n, v in vars(module).items() if inspect.isclass(v) and issubclass(v, cr.nn.Module) and v.__module__ == module.__name__ and n[0] != "_"}
    assert set(module.__all__) == own and len(module.__all__) == len(own) and own <= set(cr.nn.__all__)
    tree = ast.parse(Path(module.__file__).read_text())
    (value,) = [n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    assert all(isinstance(e, ast.Constant) for e in value.elts)


OPTIONS = {
    "Threshold": (0.1, 2.0), "MaxPool1d": (2,), "MaxPool2d": (2,), "MaxPool3d": (2,), "AvgPool1d": (2,), "AvgPool2d": (2,), "AvgPool3d": (2,), "LPPool1d": (2, 2), "LPPool2d": (2, 2), "LPPool3d": (2, 2),
    "AdaptiveAvgPool1d": (1,), "AdaptiveAvgPool2d": (1,), "AdaptiveAvgPool3d": (1,), "AdaptiveMaxPool1d": (1,), "AdaptiveMaxPool2d": (1,), "AdaptiveMaxPool3d": (1,),
    "Fold": (4, 2), "ChannelShuffle": (2,),
}
CALLED = [cr.nn.activation_layers, cr.nn.pooling_layers, cr.nn.loss_layers, cr.nn.pad_layers]


@pytest.mark.parametrize("name", sorted(n for m in CALLED for n in m.__all__))
def test_arguments_are_those_of_torch(name):
    torch = torch_or_skip()
    theirs, ours = (inspect.signature(getattr(m.nn, name).__init__).parameters for m in (torch, cr))
    wanted = [p for p in theirs if p not in ("min_value", "max_value", "args", "kwargs")]
    assert [p for p in ours if p != "value" or "value" in wanted] == wanted
    for p in wanted:
        assert ours[p].kind == theirs[p].kind and (ours[p].default == theirs[p].default or ours[p].default is inspect.Parameter.empty), p
    args = OPTIONS.get(name, (1, 0.5) if name.startswith("ConstantPad") else (1,) if "Pad" in name else ())
    theirs, ours = getattr(torch.nn, name)(*args), getattr(cr.nn, name)(*args)
    for p in wanted:
        if p not in ("size_average", "reduce", "padding", "weight", "pos_weight", "distance_function") and hasattr(theirs, p):
            # PyTorch has tuples of one.
            assert getattr(ours, p) in (getattr(theirs, p), *([getattr(theirs, p)[0]] if isinstance(getattr(theirs, p), tuple) else [])), p


def test_options_of_layers_may_be_changed():
    x = cr.tensor([-1.0, 2.0])
    leaky, loss, pool = cr.nn.LeakyReLU(0.5), cr.nn.MSELoss(), cr.nn.MaxPool1d(2)
    leaky.negative_slope, loss.reduction, pool.kernel_size = 0.25, "sum", 1
    assert leaky(x).tolist() == [-0.25, 2.0] and loss(x, 0 * x).item() == 5.0 and pool(x.reshape(1, 1, 2)).shape == (1, 1, 1)
    with pytest.raises(TypeError, match="reduction='sum'"):
        cr.nn.MSELoss("sum")


def test_weights_of_losses_are_part_of_the_state():
    loss = cr.nn.CrossEntropyLoss(cr.tensor([1.0, 3.0]))
    assert list(loss.state_dict()) == ["weight"] and loss.double().weight.dtype == cr.float64
    found = cr.nn.Sequential(cr.nn.Linear(2, 2), loss)
    assert "1.weight" in found.state_dict() and len(list(found.parameters())) == 2


def test_containers():
    items = [cr.nn.Linear(1, i + 1) for i in range(4)]
    for kind in (cr.nn.Sequential(*items), cr.nn.ModuleList(items)):
        new = cr.nn.Tanh()
        kind.insert(1, new)
        kind += [cr.nn.ReLU()]
        assert kind[1] is new and len(kind) == 6 and kind.pop(1) is new and list(kind)[:4] == items
        del kind[-1]
        assert list(kind) == items and list(kind.state_dict())[2] == "1.weight" and list(kind[1:3]) == items[1:3]
        kind[-1] = new
        assert kind[3] is new
        with pytest.raises(IndexError, match="no module 7"):
            kind[7]
    named = cr.nn.ModuleDict([("a", items[0]), ("b", items[1])])
    named.update({"c": items[2]})
    assert list(named) == ["a", "b", "c"] == list(named.keys()) and named.pop("b") is items[1] and list(named.values()) == [items[0], items[2]]
    weights = cr.nn.ParameterDict({"a": cr.ones(2)})
    weights["b"] = cr.zeros(3)
    assert [n for n, _ in weights.named_parameters()] == ["a", "b"] and all(p.requires_grad for p in weights.values())
    assert weights.get("c") is None and weights.get("a") is weights["a"] and weights.setdefault("a", cr.zeros(1)) is weights["a"]
    assert weights.setdefault("c", cr.zeros(1)).requires_grad and dict(weights.copy().items()).keys() == {"a", "b", "c"}
    row = cr.nn.ParameterList([cr.ones(1)]).append(cr.ones(2)).extend([cr.ones(3)])
    row[-1] = cr.ones(4)
    assert [len(p) for p in row] == [1, 2, 4] and len(row[1:]) == 2
