"""Whole modules in files, hooks of states and of steps, and layers that wait for their sizes."""

import copy
import io
import pickle

import chainrule as cr
import pytest


def through_a_file(x, **how):
    file = io.BytesIO()
    cr.save(x, file)
    file.seek(0)
    return cr.load(file, **how)


def test_whole_modules_are_saved():
    net = cr.nn.Sequential(cr.nn.Linear(2, 3), cr.nn.ReLU(), cr.nn.Linear(3, 1)).eval()
    opt = cr.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(cr.ones(1, 2)).sum().backward()
    opt.step()
    again = through_a_file({"model": net, "opt": opt, "epoch": 3}, weights_only=False)
    assert cr.equal(again["model"](cr.ones(1, 2)), net(cr.ones(1, 2))) and not again["model"].training and again["epoch"] == 3
    # The optimizer of the file steps the module of the file.
    for model, optimizer in ((net, opt), (again["model"], again["opt"])):
        optimizer.zero_grad()
        model(cr.ones(1, 2)).sum().backward()
        optimizer.step()
    assert all(cr.equal(a, b) for a, b in zip(net.parameters(), again["model"].parameters()))
    for how in ({}, {"weights_only": True}):
        with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
            through_a_file(net, **how)
    with pytest.raises(TypeError, match="cannot be pickled"):
        through_a_file({"f": lambda: 1})


class Old(cr.nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.count = cr.nn.Parameter(cr.zeros(2)), 1

    def _load_from_state_dict(self, state_dict, prefix, *args):
        if prefix + "old" in state_dict:
            state_dict[prefix + "w"] = state_dict.pop(prefix + "old")
        super()._load_from_state_dict(state_dict, prefix, *args)

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_ways_of_loading():
    net = cr.nn.Sequential(Old())
    net.load_state_dict({"0.old": cr.ones(2), "0._extra_state": {"count": 7}})
    assert net[0].w.tolist() == [1, 1] and net[0].count == 7 and list(net.state_dict()) == ["0.w", "0._extra_state"]
    layer, seen = cr.nn.Linear(2, 2), []
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *_: state.update({prefix + "bias": state.pop(prefix + "b")}))
    layer.register_load_state_dict_post_hook(lambda m, keys: seen.append(list(keys.missing_keys)))
    layer.register_state_dict_post_hook(lambda m, state, prefix, about: state.update(pop=state.pop(prefix + "weight")))
    cr.nn.Sequential(layer).load_state_dict({"0.weight": cr.ones(2, 2), "0.b": cr.ones(2)})
    assert layer.bias.tolist() == [1, 1] and seen == [[]] and list(layer.state_dict(prefix="a.")) == ["a.bias", "pop"]


def test_all_that_fits_of_a_state_is_taken():
    layer = cr.nn.Linear(2, 1)
    for k, (state, words) in enumerate([({}, "missing"), ({"bias": cr.ones(3)}, "size mismatch for bias"), ({"bias": cr.ones(1), "x": cr.ones(1)}, "unexpected")]):
        with pytest.raises(RuntimeError, match=words):
            layer.load_state_dict({"weight": cr.full((1, 2), float(k)), **state})
        assert layer.weight.tolist() == [[k, k]]
    with pytest.raises(RuntimeError, match="missing.*size mismatch"):
        cr.nn.Sequential(layer, cr.nn.Linear(2, 1)).load_state_dict({"0.weight": cr.ones(1), "0.bias": cr.ones(1)})
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight and layer.state_dict()._metadata[""] == {"version": 1}
    state = {"weight": cr.ones(1, 2), "bias": cr.ones(1)}
    layer.load_state_dict(state, assign=True)
    state["weight"].zero_()
    assert layer.weight.tolist() == [[0, 0]] and layer.weight.requires_grad
    norm = cr.nn.BatchNorm1d(1)
    norm.load_state_dict({k: v for k, v in norm.state_dict().items() if k != "num_batches_tracked"})


def test_parameters_are_drawn_anew():
    class Zero(cr.nn.Linear):
        def reset_parameters(self):
            cr.nn.init.zeros_(self.weight)

    assert Zero(2, 2).weight.abs().sum().item() == 0
    for layer in (cr.nn.Linear(2, 3), cr.nn.Conv2d(2, 3, 3), cr.nn.LSTM(2, 3), cr.nn.GRUCell(2, 3), cr.nn.Embedding(4, 2, padding_idx=1)):
        cr.manual_seed(5)
        layer.reset_parameters()
        first = [p.clone() for p in layer.parameters()]
        layer.reset_parameters()
        assert not any(cr.equal(a, b) for a, b in zip(first, layer.parameters()))
        cr.manual_seed(5)
        layer.reset_parameters()
        assert all(cr.equal(a, b) for a, b in zip(first, layer.parameters()))
    norm = cr.nn.BatchNorm1d(2)
    norm(cr.randn(4, 2))
    norm.reset_running_stats()
    assert norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked.item() == 0


def test_lazy_layers():
    net = cr.nn.Sequential(cr.nn.LazyConv2d(4, 3, padding=1), cr.nn.LazyBatchNorm2d(), cr.nn.Flatten(), cr.nn.LazyLinear(2))
    assert net[3].has_uninitialized_params() and isinstance(net[3], cr.nn.Linear) and isinstance(net[3].weight, cr.nn.Parameter)
    with pytest.raises(TypeError, match="UninitializedParameter"):
        cr.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="call the lazy module"):
        sum(p.numel() for p in net.parameters())
    cr.manual_seed(3)
    out = net(cr.ones(2, 3, 5, 5))
    assert out.shape == (2, 2) and type(net[3]) is cr.nn.Linear and net[3].in_features == 100 and net[0].in_channels == 3
    cr.manual_seed(3)
    same = cr.nn.Sequential(cr.nn.Conv2d(3, 4, 3, padding=1), cr.nn.BatchNorm2d(4), cr.nn.Flatten(), cr.nn.Linear(100, 2))
    assert all(cr.equal(a, b) for a, b in zip(net.parameters(), same.parameters()))
    lazy, known = cr.nn.LazyLinear(3), cr.nn.Linear(2, 3)
    lazy.load_state_dict(known.state_dict())
    assert cr.equal(lazy(cr.ones(1, 2)), known(cr.ones(1, 2)))


@pytest.mark.parametrize("compiled", [False, True])
def test_hooks_after_a_gradient_was_added(compiled):
    w, seen = cr.ones(3, requires_grad=True), []
    handle = w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()) if not compiled else p.grad.mul_(2))

    def run(x):
        (w * x).sum().backward()
        return x

    (cr.compile(run) if compiled else run)(cr.full((3,), 2.0))
    (cr.compile(run) if compiled else run)(cr.full((3,), 3.0))
    if compiled:
        assert w.grad.tolist() == [14, 14, 14]
    else:
        handle.remove()
        run(cr.ones(3))
        assert seen == [[2, 2, 2], [5, 5, 5]] and w.grad.tolist() == [6, 6, 6]
    with pytest.raises(cr.GradientError, match="a leaf"):
        (w * 2).register_post_accumulate_grad_hook(print)


def test_a_step_for_each_gradient():
    net = cr.nn.Linear(2, 2)
    steps = {p: cr.optim.SGD([p], lr=0.1) for p in net.parameters()}

    def step(p):
        steps[p].step()
        steps[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(step)
    cr.nn.init.ones_(net.weight)
    cr.nn.init.zeros_(net.bias)
    net(cr.ones(1, 2)).sum().backward()
    assert net.weight.allclose(cr.full((2, 2), 0.9)) and net.bias.allclose(cr.full((2,), -0.1)) and net.weight.grad is None


def test_hooks_of_optimizers():
    class Plain(cr.optim.Optimizer):
        def step(self, closure=None):
            seen.append("step")

    w = cr.ones(1, requires_grad=True)
    for opt in (cr.optim.SGD([w], lr=0.1), Plain([w], {})):
        seen = []
        opt.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
        after = opt.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
        opt.step()
        after.remove()
        opt.step()
        assert [s for s in seen if s != "step"] == ["before", "after", "before"]
        opt.register_state_dict_post_hook(lambda o, state: state.update(more=1))
        opt.register_load_state_dict_pre_hook(lambda o, state: seen.append("loads"))
        state = opt.state_dict()
        opt.load_state_dict(state)
        assert state["more"] == 1 and seen[-1] == "loads"
    groups = [{"params": [w], "lr": 0.5}]
    opt = cr.optim.SGD(groups, lr=0.1)
    assert opt.param_groups[0] is groups[0] and list(groups[0])[:2] == ["params", "lr"]


def test_leaves_and_kinds_are_kept_in_files():
    w, p = cr.ones(2, requires_grad=True), cr.nn.Parameter(cr.ones(1), requires_grad=False)
    again = through_a_file({"w": w, "p": p, "s": {1, 2}, "b": b"x", "z": 1 + 2j, "size": cr.Size([2]), "o": cr.nn.Linear(1, 1).state_dict()})
    assert again["w"].requires_grad and again["w"].is_leaf and isinstance(again["p"], cr.nn.Parameter) and not again["p"].requires_grad
    assert (again["s"], again["b"], again["z"], again["size"]) == ({1, 2}, b"x", 1 + 2j, (2,)) and list(again["o"]) == ["weight", "bias"]
    assert through_a_file({"w": w})["w"].requires_grad and through_a_file(w).requires_grad and not isinstance(through_a_file(w), cr.nn.Parameter)


def test_statistics_that_are_not_tracked_any_more_stay():
    norm = cr.nn.BatchNorm1d(2)
    norm(cr.randn(4, 2) + 5)
    kept, norm.track_running_stats = norm.running_mean.clone(), False
    out = norm(cr.randn(4, 2))
    assert cr.equal(norm.running_mean, kept) and norm.num_batches_tracked.item() == 1 and out.mean().abs().item() < 1e-5
    assert cr.equal(norm.eval()(kept.unsqueeze(0)), cr.zeros(1, 2))


def test_texts_are_pytorchs():
    nn = cr.nn
    for layer, text in [
        (nn.Conv2d(2, 4, 3, stride=2, padding=1, bias=False), "Conv2d(2, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)"),
        (nn.ConvTranspose1d(2, 4, 3, output_padding=0, groups=2), "ConvTranspose1d(2, 4, kernel_size=(3,), stride=(1,), groups=2)"),
        (nn.LayerNorm(3, bias=False), "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=False)"), (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"), (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
        (nn.ModuleList([nn.ReLU(), nn.ReLU()]), "ModuleList(\n  (0-1): 2 x ReLU()\n)"), (nn.Embedding(4, 3, padding_idx=0), "Embedding(4, 3, padding_idx=0)"),
    ]:
        assert repr(layer) == text
    conv = nn.Conv2d(1, 1, 3, padding="same")
    assert conv.stride == (1, 1) and conv.dilation == (1, 1) and conv.padding == "same" and repr(conv.load_state_dict(conv.state_dict())) == "<All keys matched successfully>"


@pytest.mark.parametrize("compiled", [False, True])
def test_instance_norm_with_statistics(compiled):
    norm = cr.nn.InstanceNorm1d(2, momentum=0.5, track_running_stats=True)
    run = cr.compile(lambda x: norm(x)) if compiled else norm
    x = cr.tensor([[[0.0, 2.0, 4.0], [1.0, 1.0, 4.0]], [[2.0, 2.0, 5.0], [0.0, 0.0, 0.0]]])
    assert run(x).mean(-1).abs().max().item() < 1e-6
    # Means over the samples of means and variances: (2 + 3) / 2 and (4 + 3) / 2, half of the way.
    assert norm.running_mean.tolist() == [1.25, 0.5] and norm.running_var.tolist() == [2.25, 1.25]
    norm.eval()
    assert cr.nn.functional.batch_norm(x, norm.running_mean, norm.running_var).allclose(run(x), atol=1e-6)


def test_views_in_one_file_alias_when_they_are_read(tmp_path):
    x = cr.arange(12.0).reshape(3, 4)
    w = cr.nn.Parameter(cr.ones(2))
    kinds = {
        "nest": {"parts": [x[1], x.t(), x[:, ::2], x.diagonal()], "x": x, "n": 1, "again": x, "apart": x.clone()},
        "named": {"a": x, "b": x[2], "c": x},
        "no whole": {"a": x[1:], "b": x[:2]},
        "leaves": {"w": w, "again": w, "data": w.data},
    }
    for name, nest in kinds.items():
        cr.save(nest, tmp_path / name)
    read = cr.load(tmp_path / "nest")
    read["x"][1, 0] = 100.0
    read["parts"][1][3, 2] = 50.0
    row, turned, steps, diagonal = read["parts"]
    assert row.tolist() == [100, 5, 6, 7] and turned[0, 1].item() == 100 and steps[1, 0].item() == 100 and read["again"][2, 3].item() == 50
    diagonal.zero_()
    assert read["x"][1, 1].item() == 0 and row[1].item() == 0 and read["apart"].tolist() == x.tolist()
    read = cr.load(tmp_path / "named")
    read["b"][0] = -1.0
    assert read["a"][2, 0].item() == -1 and read["c"][2, 0].item() == -1
    read = cr.load(tmp_path / "no whole")
    assert read["a"].tolist() == x[1:].tolist() and read["b"].tolist() == x[:2].tolist()
    assert cr.load(tmp_path / "leaves")["w"].requires_grad
    tied = cr.nn.Sequential(cr.nn.Embedding(4, 3), cr.nn.Linear(3, 4, bias=False))
    tied[1].weight = tied[0].weight
    cr.save(tied.state_dict(), tmp_path / "tied")
    state = cr.load(tmp_path / "tied")
    state["0.weight"][0] = 7.0
    assert state["1.weight"][0].tolist() == [7, 7, 7]
    tied.load_state_dict(state)
    assert tied[0].weight[0].tolist() == [7, 7, 7]


def test_a_cast_keeps_a_used_up_gradient_unknown():
    layer = cr.nn.Linear(2, 1)
    optimizer = cr.optim.SGD(layer.parameters(), lr=0.1)

    @cr.compile
    def step(x):
        optimizer.zero_grad()
        layer(x).sum().backward()
        optimizer.step()

    step(cr.ones(1, 2))
    assert copy.deepcopy(layer).weight.grad is None
    layer.double()
    with pytest.raises(cr.GradientError, match="used up"):
        _ = layer.weight.grad
    layer.zero_grad()
    assert layer.weight.grad is None
