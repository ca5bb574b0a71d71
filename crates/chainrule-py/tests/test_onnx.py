"""ONNX files, run by onnxruntime beside chainrule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chainrule as cr
import numpy as np
import pytest
from chainrule import nn

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx onnxruntime")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnx onnxruntime")
ort.set_default_logger_severity(3)


def judged(path: Path) -> Any:
    """The file, after ONNX's own checks."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    return model


OPTIMIZERS = {
    "sgd": lambda p: cr.optim.SGD(p, lr=0.1),
    "momentum": lambda p: cr.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: cr.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: cr.optim.AdamW(p, lr=1e-3),
    "rmsprop": lambda p: cr.optim.RMSprop(p, lr=1e-3),
    "centered": lambda p: cr.optim.RMSprop(p, lr=1e-3, momentum=0.9, centered=True),
    "adagrad": lambda p: cr.optim.Adagrad(p, lr=1e-2),
    "lion": lambda p: cr.optim.Lion(p, lr=1e-4),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_onnxruntime_trains_as_chainrule_does(name: str, tmp_path: Path) -> None:
    """200 steps of the names model."""
    cr.manual_seed(0)
    model = nn.Sequential(nn.Embedding(27, 10), nn.Flatten(), nn.Linear(30, 100), nn.Tanh(), nn.Linear(100, 27))
    optimizer = OPTIMIZERS[name](model.parameters())

    def step(x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 27, (200, 32, 3)), rng.integers(0, 27, (200, 32))
    path = tmp_path / "step.onnx"
    made = cr.onnx.export(step, (cr.tensor(x[0]), cr.tensor(y[0])), path)
    file = judged(path)
    meta = {p.key: json.loads(p.value) for p in file.metadata_props}
    gradients = meta["chainrule.parameters"]
    values = {o for n in file.graph.node for o in n.output}
    assert len(gradients) == 5 and set(gradients.values()) <= values
    assert gradients.keys() <= meta["chainrule.state"].keys() <= set(made.inputs)
    session, kept = ort.InferenceSession(path), {}
    for i in range(200):
        ours = step(cr.tensor(x[i]), cr.tensor(y[i])).item()
        out = dict(zip(made.outputs, session.run(None, {"x": x[i], "y": y[i], **kept})))
        assert abs(ours - out["loss"]) < 1e-5, i
        kept = {before: out[after] for before, after in meta["chainrule.state"].items()}
    for before, after in zip(kept, model.parameters()):
        assert np.abs(kept[before] - after.detach().numpy()).max() < 1e-4


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.rest = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        """The block."""
        h = self.norm(x)
        x = x + self.attention(h, h, h)[0]
        return x + self.rest(x)


class Recurrent(nn.Module):
    """An LSTM and what it says in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        """The last output."""
        return self.out(self.lstm(x)[0][:, -1])


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3), nn.Softmax(-1)), (5,)),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(6, 3)
        ),
        (1, 12, 12),
    ),
    "volumes": (lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.MaxPool3d(3, 2, 1), nn.Flatten(), nn.Linear(16, 3)), (1, 4, 4, 4)),
    "lstm": (Recurrent, (5, 8)),
    "transformer": (Block, (6, 16)),
}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_same_values(name: str, batch: bool, tmp_path: Path) -> None:
    """Values within 1e-5, for every size of the batch where it is open."""
    cr.manual_seed(0)
    make, shape = MODELS[name]
    model, path = make().eval(), tmp_path / "model.onnx"
    made = cr.onnx.export(model, (cr.randn((4, *shape)),), path, batch=batch)
    judged(path)
    session = ort.InferenceSession(path)
    for rows in (1, 4, 9) if batch else (4,):
        x = cr.randn((rows, *shape))
        with cr.no_grad():
            want = model(x).numpy()
        (got,) = session.run(None, {made.inputs[0]: x.numpy()})
        assert got.shape == want.shape and np.abs(got - want).max() < 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_networks_train_as_in_chainrule(name: str, tmp_path: Path) -> None:
    """20 steps of each model, in training mode, with running statistics."""
    cr.manual_seed(0)
    make, shape = MODELS[name]
    model, path = make(), tmp_path / "step.onnx"
    optimizer = cr.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: cr.Tensor) -> cr.Tensor:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = cr.randn((8, *shape))
    made = cr.onnx.export(step, (x,), path)
    state = {p.key: json.loads(p.value) for p in judged(path).metadata_props}["chainrule.state"]
    session, kept = ort.InferenceSession(path), {}
    for i in range(20):
        ours = step(x).item()
        out = dict(zip(made.outputs, session.run(None, {"x": x.numpy(), **kept})))
        assert abs(ours - out["loss"]) < 1e-5, i
        kept = {before: out[after] for before, after in state.items()}


def test_names_of_nodes_begin_with_their_modules(tmp_path: Path) -> None:
    """As PyTorch's exporter names them; stored tensors have the names of the state."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.mlp = nn.LayerNorm(4), nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

        def forward(self, x: cr.Tensor) -> cr.Tensor:
            return x + self.mlp(self.norm(x))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks, self.last = nn.ModuleList([Block(), Block()]), nn.BatchNorm1d(4)

        def forward(self, x: cr.Tensor) -> cr.Tensor:
            for block in self.blocks:
                x = block(x)
            return self.last(x)

    net, x = Net(), cr.randn(6, 4)
    cr.onnx.export(net.eval(), (x,), tmp_path / "net.onnx", batch=True)
    graph = judged(tmp_path / "net.onnx").graph
    names = [n.name for n in graph.node]
    assert len(set(names)) == len(names) and all(n.startswith("/") for n in names)
    for scope in ("blocks.0/norm", "blocks.1/norm", "blocks.0/mlp/0", "blocks.0/mlp/1", "blocks.1/mlp/2", "last"):
        assert any(n.startswith(f"/{scope}/") for n in names), (scope, names)
    assert {"/blocks.0/Add", "/blocks.1/Add", "/blocks.1/mlp/0/MatMul"} <= set(names)
    stored = {t.name for t in graph.initializer}
    assert {n for n, _ in net.named_parameters()} | {"last.running_mean", "last.running_var"} <= stored

    optimizer = cr.optim.SGD(net.train().parameters(), lr=0.1)

    def step(x: cr.Tensor) -> cr.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    made = cr.onnx.export(step, (x,), tmp_path / "step.onnx")
    names = [n.name for n in judged(tmp_path / "step.onnx").graph.node]
    assert len(set(names)) == len(names)
    assert any(n.startswith("/backward/blocks.1/mlp/0/") for n in names), names
    assert "blocks.0.mlp.0.weight" in made.inputs and "blocks.0.mlp.0.weight_new" in made.outputs
    # The modules do not remember that they were asked for their names.
    net(x)


def test_an_op_without_a_form_is_named(tmp_path: Path) -> None:
    """One clear line, and no file."""
    with pytest.raises(ValueError, match="`cholesky` has no ONNX form"):
        cr.onnx.export(lambda x: cr.linalg.cholesky(x), (cr.eye(3),), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


def test_the_same_argument_twice_and_an_argument_as_a_result(tmp_path: Path) -> None:
    """Results that are no node of their own have a name each."""
    made = cr.onnx.export(lambda x: (x * 2, x * 2, x.exp()), (cr.ones(3),), tmp_path / "x.onnx")
    judged(tmp_path / "x.onnx")
    out = ort.InferenceSession(tmp_path / "x.onnx").run(None, {"x": np.ones(3, np.float32)})
    assert len(set(made.outputs)) == 3
    assert np.allclose(out, [[2] * 3, [2] * 3, [np.e] * 3])


def test_objects_of_native_code_are_no_hindrance(tmp_path: Path) -> None:
    """A file that was read is among what the function sees; its result would carry a gradient."""
    layer = nn.Linear(2, 2)
    cr.onnx.export(layer, (cr.ones(1, 2),), tmp_path / "x.onnx")
    file = onnx.load(tmp_path / "x.onnx")
    cr.onnx.export(lambda x: layer(x) if file is not None else x, (cr.ones(1, 2),), tmp_path / "y.onnx")
    judged(tmp_path / "y.onnx")


def test_a_model_that_was_read_trains(tmp_path: Path) -> None:
    """Eagerly and compiled, from the file's parameters, with the losses of the model itself."""
    cr.manual_seed(1)
    own = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    x, y = cr.randn(5, 3), cr.randn(5, 2)
    path = tmp_path / "model.onnx"
    cr.onnx.export(own, (x,), path, batch=True)
    losses = []
    for model in (own, cr.onnx.load(path), cr.onnx.load(path.read_bytes())):
        optimizer = cr.optim.Adam(model.parameters(), lr=0.01)

        def step(x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = cr.compile(step) if len(losses) == 2 else step
        losses.append([run(x, y).item() for _ in range(20)])
    assert losses[0][-1] < losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-5)


def test_a_model_that_was_read_is_a_module(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    own = nn.Linear(3, 2)
    cr.onnx.export(own, (cr.ones(4, 3),), path)
    model = cr.onnx.load(path)
    (given,) = model.inputs
    assert given.sizes == [4, 3] and model.outputs and "Add" in model.ops, (given, model.outputs, model.ops)
    assert model.inputs[0].dtype == cr.float32
    shapes = sorted(tuple(p.shape) for p in model.parameters())
    assert shapes == [(2,), (2, 3)], shapes
    cr.onnx.export(model, (cr.ones(4, 3),), tmp_path / "again.onnx")
    x = cr.randn(4, 3)
    again = ort.InferenceSession(judged(tmp_path / "again.onnx").SerializeToString())
    got = again.run(None, {again.get_inputs()[0].name: x.numpy()})[0]
    np.testing.assert_allclose(got, own(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="gets 2 tensors"):
        model(x, x)
    (tmp_path / "cut.onnx").write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Exception, match=r"cut\.onnx.*ONNX"):
        cr.onnx.load(tmp_path / "cut.onnx")


def test_names_with_dots_are_those_of_modules() -> None:
    h = onnx.helper
    w = onnx.numpy_helper.from_array(np.array([[1.0, 2.0]], np.float32), "head.weight")
    value = h.make_tensor_value_info
    graph = h.make_graph([h.make_node("Mul", ["x", "head.weight"], ["y"])], "g", [value("x", 1, ["n", 2])], [value("y", 1, ["n", 2])], [w])
    model = cr.onnx.load(h.make_model(graph).SerializeToString())
    assert list(model.state_dict()) == ["head.weight"]
    model.head.weight.data.fill_(3.0)
    assert model(cr.ones(1, 2)).tolist() == [[3.0, 3.0]]
    assert model.inputs[0].sizes == [None, 2]
