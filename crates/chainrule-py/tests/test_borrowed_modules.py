"""Modules of PyTorch's that scripts import beside tensors and layers: sparse matrices, pruning,
event files, comparisons, and names that do nothing.
"""

import struct

import chainrule as cr
import numpy as np
import pytest


def test_sparse_matrices():
    at = cr.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    values = cr.tensor([3.0, 4.0, 5.0, 1.0], requires_grad=True)
    a = cr.sparse_coo_tensor(at, values, (2, 3))
    x = cr.arange(6.0).reshape(3, 2).requires_grad_()
    dense = a.to_dense()
    assert dense.tolist() == [[0, 0, 4], [4, 0, 5]] and a.coalesce().values().tolist() == [4, 4, 5] and a.coalesce().indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    for product in (a @ x, cr.spmm(a, x), cr.mm(a, x), cr.sparse.mm(a, x), cr.matmul(a, x)):
        assert product.tolist() == (dense.detach() @ x.detach()).tolist()
    (a @ x).sum().backward()
    assert values.grad.tolist() == [9, 1, 9, 9] and x.grad.tolist() == [[4, 4], [0, 0], [9, 9]]
    assert a.t().shape == (3, 2) and (2 * a).to_dense()[0, 2].item() == 8 and (a + a).coalesce()._nnz() == 3 and a.is_sparse and not x.is_sparse
    assert cr.tensor([[0.0, 2.0]]).to_sparse().values().tolist() == [2] and a.sum().item() == 13
    for make, words in [
        (lambda: cr.sparse_coo_tensor(at, values, (1, 3)), "outside of the shape"), (lambda: a.values(), "coalesce"), (lambda: cr.exp(a), "to_dense"),
        (lambda: a @ cr.ones(2, 2), "shapes"),
    ]:
        with pytest.raises((ValueError, RuntimeError, TypeError), match=words):
            make()


def test_pruning():
    prune = cr.nn.utils.prune
    m = cr.nn.Linear(3, 2)
    m.weight.data.copy_(cr.tensor([[1.0, -0.1, 3.0], [0.2, -5.0, 0.3]]))
    prune.l1_unstructured(m, "weight", amount=2)
    assert m.weight.tolist() == [[1, 0, 3], [0, -5, pytest.approx(0.3)]] and prune.is_pruned(m) and list(m.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    prune.ln_structured(m, "weight", amount=1, n=2, dim=0)
    assert m.weight_mask.tolist() == [[0, 0, 0], [0, 1, 1]]
    opt = cr.optim.SGD(m.parameters(), lr=1.0)
    m(cr.ones(1, 3)).sum().backward()
    opt.step()
    assert m(cr.zeros(1, 3)).shape == (1, 2) and m.weight.tolist() == [[0, 0, 0], [0, -6, pytest.approx(-0.7)]]
    prune.remove(m, "weight")
    assert isinstance(m.weight, cr.nn.Parameter) and not prune.is_pruned(m) and sorted(m.state_dict()) == ["bias", "weight"]
    a, b = cr.nn.Linear(4, 4), cr.nn.Linear(4, 1)
    prune.global_unstructured([(a, "weight"), (b, "weight")], pruning_method=prune.L1Unstructured, amount=0.25)
    assert (a.weight == 0).sum().item() + (b.weight == 0).sum().item() == 5
    with pytest.raises(ValueError, match="amount"):
        prune.random_unstructured(b, "bias", 1.5)


def test_norms_fused_with_layers():
    for layer, norm, x in [(cr.nn.Conv2d(2, 3, 3), cr.nn.BatchNorm2d(3), cr.randn(4, 2, 5, 5)), (cr.nn.Linear(2, 3, bias=False), cr.nn.BatchNorm1d(3), cr.randn(4, 2))]:
        both = cr.nn.Sequential(layer, norm)
        both(x)
        fuse = cr.nn.utils.fuse_conv_bn_eval if x.ndim == 4 else cr.nn.utils.fuse_linear_bn_eval
        with pytest.raises(ValueError, match="eval"):
            fuse(layer, norm)
        both.eval()
        assert fuse(layer, norm)(x).allclose(both(x), atol=1e-5)


def records(path):
    data, at, out = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        assert cr.utils.tensorboard._checksum(data[at : at + 8]) == struct.unpack_from("<I", data, at + 8)[0]
        out.append(data[at + 12 : at + 12 + size])
        at += 16 + size
    return out


def test_event_files(tmp_path):
    # The known value of CRC-32C of these digits, turned and shifted.
    crc = 0xE3069283
    assert cr.utils.tensorboard._checksum(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    with cr.utils.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", cr.tensor(0.5), 3)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 1)
        writer.add_text("note", "hello")
        writer.add_histogram("w", cr.randn(100), 2)
        writer.add_image("im", cr.rand(3, 4, 5))
        with pytest.raises(NotImplementedError):
            writer.add_graph(None)
    (path,) = tmp_path.glob("events*")
    found = records(path)
    assert b"brain.Event:2" in found[0] and b"loss" in found[1] and struct.pack("<f", 0.5) in found[1] and b"hello" in found[2] and b"\x89PNG" in found[4]
    assert len(list(tmp_path.glob("both_*/events*"))) == 2
    with pytest.raises(ValueError, match="closed"):
        writer.add_scalar("loss", 1.0)


def test_comparisons():
    close = cr.testing.assert_close
    close({"a": [cr.ones(2), 1.0]}, {"a": [cr.ones(2) + 1e-6, 1.0]})
    for a, b, words in [
        (cr.ones(2), cr.ones(3), "shapes"), (cr.ones(2), cr.ones(2).double(), "dtypes"), (cr.tensor([1.0, 2.0]), cr.tensor([1.0, 2.5]), r"1 of 2 elements"),
        ([1.0], [1.0, 2.0], "lengths"), (cr.tensor([float("nan")]), cr.tensor([float("nan")]), "differ"),
    ]:
        with pytest.raises(AssertionError, match=words):
            close(a, b)
    close(cr.tensor([float("nan")]), cr.tensor([float("nan")]), equal_nan=True)


def test_names_that_do_nothing():
    with cr.profiler.profile(activities=[cr.profiler.ProfilerActivity.CPU]) as prof, cr.profiler.record_function("step"):
        prof.step()
    with pytest.raises(NotImplementedError, match="bench"):
        prof.key_averages()
    with pytest.raises(NotImplementedError, match="load_state_dict"):
        cr.hub.load("a/b", "c")
    m = cr.nn.parallel.DistributedDataParallel(cr.nn.Linear(2, 1))
    assert list(m.state_dict()) == ["module.weight", "module.bias"] and m(cr.ones(1, 2)).shape == (1, 1)
    assert not cr.mps.is_available() and cr.cuda.get_rng_state_all() == [] and not cr.compiler.is_compiling() and cr.version.cuda is None
    assert cr.vander(cr.tensor([2.0, 3.0])).tolist() == [[2, 1], [3, 1]] and cr.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
    x = cr.masked_scatter(cr.zeros(4), cr.tensor([True, False, True, True]), cr.arange(3.0))
    assert x.tolist() == [0, 0, 1, 2] and cr.index_put(x, (cr.tensor([0, 0]),), cr.ones(2), accumulate=True).tolist() == [2, 0, 1, 2]
    assert np.asarray(cr.cumsum_(cr.ones(3), 0) if hasattr(cr, "cumsum_") else cr.ones(3).cumsum_(0)).tolist() == [1, 2, 3]
