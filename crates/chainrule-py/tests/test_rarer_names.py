"""Names that public scripts import now and then; the numbers are those of the formulas."""

import importlib

import chainrule as cr
import numpy as np
import pytest

MODULES = {
    "nn.modules.padding": "ReflectionPad2d ZeroPad1d", "nn.modules.upsampling": "Upsample", "nn.modules.flatten": "Flatten", "nn.modules.fold": "Fold Unfold",
    "nn.modules.instancenorm": "InstanceNorm2d", "nn.modules.pixelshuffle": "PixelShuffle", "nn.modules.distance": "CosineSimilarity", "nn.modules.sparse": "Embedding",
    "nn.modules.adaptive": "AdaptiveLogSoftmaxWithLoss", "nn.modules.channelshuffle": "ChannelShuffle", "optim.adam": "Adam", "optim.sgd": "SGD", "optim.adamw": "AdamW",
    "optim.radam": "RAdam", "distributions.beta": "Beta", "distributions.multivariate_normal": "MultivariateNormal", "distributions.relaxed_bernoulli": "RelaxedBernoulli",
    "distributions.transformed_distribution": "TransformedDistribution", "distributions.utils": "broadcast_all lazy_property", "autograd.variable": "Variable",
    "autograd.profiler": "profile record_function", "autograd.graph": "save_on_cpu register_multi_grad_hook", "utils.hooks": "RemovableHandle", "utils.model_zoo": "load_url",
    "utils.benchmark": "Timer", "functional": "einsum norm cdist meshgrid split", "types": "Device Number", "overrides": "has_torch_function", "_utils": "_flatten_dense_tensors",
    "nn.utils.stateless": "functional_call", "nn.attention": "SDPBackend sdpa_kernel", "cuda.nvtx": "range_push range_pop", "_dynamo": "disable reset config",
    "testing": "make_tensor", "jit": "annotate script_if_tracing",
}


@pytest.mark.parametrize("module", MODULES)
def test_module(module):
    found = importlib.import_module(f"chainrule.{module}")
    at = cr
    for part in module.split("."):
        at = getattr(at, part)
    assert at is found
    for name in MODULES[module].split():
        assert hasattr(found, name)


def test_in_place_functions():
    x = cr.tensor([-1.0, 0.5, 2.0])
    for name, args in (("celu_", (0.5,)), ("selu_", ()), ("threshold_", (0.6, 9.0))):
        y = x.clone()
        assert getattr(cr, name)(y, *args) is y and y.tolist() == getattr(cr.nn.functional, name[:-1])(x, *args).tolist()
    y = (x.requires_grad_() * 2)
    assert cr.detach_(y) is y and not y.requires_grad and cr.fill_(y, 3).tolist() == [3, 3, 3]


def test_memory_of_buffers():
    raw = bytearray(np.arange(6, dtype=np.float32).tobytes())
    x = cr.frombuffer(raw, dtype=cr.float32, count=4, offset=8)
    assert x.tolist() == [2, 3, 4, 5]
    assert cr.empty_strided((2, 3), (1, 2)).stride() == (1, 2)


def test_decompositions_of_few_ranks():
    cr.manual_seed(0)
    for sizes in ((12, 7), (7, 12), (2, 9, 6)):
        a = cr.randn(*sizes[:-1], 3, dtype=cr.float64) @ cr.randn(*sizes[:-2], 3, sizes[-1], dtype=cr.float64)
        u, s, v = cr.svd_lowrank(a, q=4)
        np.testing.assert_allclose(((u * s.unsqueeze(-2)) @ v.mT).tolist(), a.tolist(), atol=1e-10)
        np.testing.assert_allclose(s.tolist(), cr.linalg.svdvals(a)[..., :4].tolist(), atol=1e-10)
        u, s, v = cr.pca_lowrank(a, q=4)
        np.testing.assert_allclose(s.tolist(), cr.linalg.svdvals(a - a.mean(-2, keepdim=True))[..., :4].tolist(), atol=1e-10)


def test_cells_are_those_of_the_layers():
    cr.manual_seed(0)
    x, h, c = cr.randn(3, 4), cr.randn(3, 5), cr.randn(3, 5)
    for cell, f, state in (
        (cr.nn.LSTMCell(4, 5), cr.lstm_cell, (h, c)), (cr.nn.GRUCell(4, 5), cr.gru_cell, h), (cr.nn.RNNCell(4, 5), cr.rnn_tanh_cell, h),
        (cr.nn.RNNCell(4, 5, nonlinearity="relu"), cr.rnn_relu_cell, h),
    ):
        want, got = cell(x, state), f(x, state, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        for a, b in zip(*((y if isinstance(y, tuple) else (y,)) for y in (want, got))):
            assert cr.allclose(a, b, atol=1e-6)


def test_hooks_of_several_gradients():
    a, b = (cr.ones(2, requires_grad=True) for _ in range(2))
    seen, first = [], []
    handle = cr.autograd.graph.register_multi_grad_hook([a, b], seen.append)
    other = cr.autograd.graph.register_multi_grad_hook((a, b), first.append, mode="any")
    for k in (2.0, 3.0):
        (a * b * k).sum().backward()
    assert [[g.tolist() for g in gs] for gs in seen] == [[[2, 2]] * 2, [[3, 3]] * 2] and len(first) == 2
    handle.remove(), other.remove()
    (a * b).sum().backward()
    assert len(seen) == 2 and len(first) == 2


def test_parts_of_distributions():
    U = cr.distributions.utils
    p = cr.tensor([0.2, 0.8])
    assert cr.allclose(U.logits_to_probs(U.probs_to_logits(p)), p) and cr.allclose(U.logits_to_probs(U.probs_to_logits(p, True), True), p)
    assert [t.shape for t in U.broadcast_all(cr.ones(2, 1), 3.0)] == [(2, 1)] * 2

    class Once:
        made = 0

        @U.lazy_property
        def value(self):
            self.made += 1
            return self.made

    once = Once()
    assert (once.value, once.value, once.made) == (1, 1, 1)


def test_small_parts():
    layer, norm = cr.nn.Conv2d(2, 3, 2), cr.nn.BatchNorm2d(3)
    norm.running_mean.uniform_()
    norm.running_var.uniform_(0.5, 2)
    x = cr.rand(2, 2, 4, 4)
    w, b = cr.nn.utils.fusion.fuse_conv_bn_weights(layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    assert cr.allclose(cr.nn.functional.conv2d(x, w, b), norm.eval()(layer(x)), atol=1e-5)
    assert cr.nn.init._calculate_correct_fan(layer.weight, "fan_out") == 12
    tensors = [cr.ones(2, 3), cr.zeros(4)]
    flat = cr._utils._flatten_dense_tensors(tensors)
    back = cr._utils._unflatten_dense_tensors(flat, tensors)
    assert flat.shape == (10,) and [t.tolist() for t in back] == [t.tolist() for t in tensors]
    t = cr.testing.make_tensor(3, 2, dtype=cr.float32, low=1, high=2, requires_grad=True)
    assert t.shape == (3, 2) and t.requires_grad and bool((t >= 1).all())
    with cr.nn.attention.sdpa_kernel(cr.nn.attention.SDPBackend.MATH), cr.backends.cudnn.flags(enabled=False), cr.autograd.graph.save_on_cpu():
        cr.backends.cuda.enable_flash_sdp(False)
    assert isinstance(cr.ones(1, requires_grad=True).register_hook(lambda g: None), cr.utils.hooks.RemovableHandle)
    assert isinstance(cr.strided, cr.layout) and isinstance(cr.channels_last, cr.memory_format)
