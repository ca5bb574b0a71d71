"""Training loops with one planted mistake, which the session names, and right ones."""

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np
import pytest

nn = cr.nn
Workflow = cr.check.Workflow


def run(model, optimizer, steps=6, loss=None, zero=True, lib=cr, watch=None, data=None):
    rng = np.random.default_rng(1)
    watch = watch or Workflow(model, optimizer)
    make = lib.from_numpy if lib is not cr else cr.from_numpy
    for _ in range(steps):
        x = rng.normal(size=(16, 4)).astype("float32") if data is None else data
        y = (x[:, :1] - 0.5 * x[:, 1:2]).astype("float32")
        x, y = make(np.ascontiguousarray(x)), make(np.ascontiguousarray(y))
        value = loss(model, x, y) if loss else ((model(x) - y) ** 2).mean()
        watch.forward(value)
        if zero:
            optimizer.zero_grad()
        value.backward()
        optimizer.step()
        watch.step()
    return watch.report


def mlp(depth=2, act=nn.Tanh, width=8):
    layers = [nn.Linear(4, width), act()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def sgd(model, lr=0.05):
    return cr.optim.SGD(model.parameters(), lr=lr)


def names(report):
    return [f.mistake for f in report.findings]


@pytest.mark.parametrize("act", [nn.Tanh, nn.ReLU, nn.GELU])
def test_right_loops_are_left_alone(act):
    model = mlp(3, act, 32)
    report = run(model, sgd(model), 20)
    assert report and "no mistake found" in str(report), str(report)


def test_twenty_sigmoid_layers():
    model = mlp(20, nn.Sigmoid, 16)
    report = run(model, sgd(model))
    assert names(report) == ["vanishing gradient"], str(report)
    found = report.findings[0]
    assert found.numbers["first_layer"] < 1e-9 and found.where == "0.weight" and "ReLU" in found.fix


def test_dead_relus():
    model = mlp(2, nn.ReLU)
    with cr.no_grad():
        model[2].bias.copy_(model[2].bias - 100.0)
    report = run(model, sgd(model))
    assert names(report) == ["dead units"] and report.findings[0].where == "2.weight", str(report)
    assert report.findings[0].numbers["share"] == 1.0


def test_weights_of_zero():
    model = mlp(2)
    with cr.no_grad():
        for p in model.parameters():
            p.copy_(p * 0.0)
    assert "equal weights" in names(run(model, sgd(model)))


def test_a_last_layer_of_zero_is_right():
    model = mlp(2)
    with cr.no_grad():
        model[4].weight.copy_(model[4].weight * 0.0)
    assert "equal weights" not in names(run(model, sgd(model)))


def test_a_loss_that_grows():
    model = mlp(2, nn.ReLU)
    report = run(model, sgd(model, 3.0), 30, data=np.random.default_rng(2).normal(size=(16, 4)).astype("float32") * 3)
    assert {"growing loss", "not finite"} & set(names(report)), str(report)


def test_a_loss_that_is_not_finite():
    model = mlp()
    report = run(model, sgd(model), 2, lambda m, x, y: (m(x) - y).mean() * float("nan"))
    assert names(report)[0] == "not finite" and "step 1" in report.findings[0].evidence


def test_gradients_that_are_not_forgotten():
    model = mlp()
    assert names(run(model, sgd(model), zero=False)) == ["missing zero_grad"]


def test_a_branch_that_is_cut_off():
    model = mlp()
    report = run(model, sgd(model), loss=lambda m, x, y: ((m[4](m[3](m[2](m[1](m[0](x)).detach()))) - y) ** 2).mean())
    assert set(names(report)) == {"detached branch"} and {f.where for f in report.findings} == {"0.weight", "0.bias"}


def test_a_parameter_that_no_optimizer_has():
    model = mlp()
    report = run(model, cr.optim.SGD(model[0].parameters(), lr=0.05))
    assert set(names(report)) == {"parameter not held by the optimizer"}, str(report)
    meant = Workflow(model, cr.optim.SGD(model[0].parameters(), lr=0.05), meant=["parameter not held by the optimizer"])
    assert run(model, meant.optimizers[0], watch=meant)


def test_evaluations():
    x = cr.from_numpy(np.random.default_rng(3).normal(size=(8, 4)).astype("float32"))
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    watch = Workflow(model)
    model.train()
    watch.evaluate(model, x)
    assert names(watch.report) == ["dropout in evaluation"]
    norm = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    watch = Workflow(norm)
    watch.evaluate(norm, x)
    assert names(watch.report) == ["batch statistics in evaluation"]
    norm.eval()
    watch = Workflow(norm)
    assert watch.evaluate(norm, x).shape == (8, 1) and watch.report


def test_the_loop_has_the_same_bits():
    def trained(watched):
        cr.manual_seed(4)
        model = mlp()
        optimizer = sgd(model)
        x = cr.from_numpy(np.random.default_rng(5).normal(size=(16, 4)).astype("float32"))
        watch = Workflow(model, optimizer)
        for _ in range(4):
            loss = F.mse_loss(model(x), x[:, :1])
            if watched:
                watch.forward(loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if watched:
                watch.step()
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    assert trained(True) == trained(False)


def test_unknown_mistakes_are_refused():
    with pytest.raises(ValueError, match="there are not finite, growing loss"):
        Workflow(mlp(), meant=["typo"])


def test_models_of_pytorch():
    torch = pytest.importorskip("torch")
    layers = []
    for _ in range(20):
        layers += [torch.nn.Linear(4, 4), torch.nn.Sigmoid()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(4, 1))
    report = run(model, torch.optim.SGD(model.parameters(), lr=0.1), lib=torch)
    assert names(report) == ["vanishing gradient"], str(report)
