"""Data sets, samplers and loaders: the batches and the random streams of PyTorch."""

import itertools

import chainrule as cr
import numpy as np
import pytest
from chainrule.utils import data as D


def shuffled(m):
    m.manual_seed(11)
    loader = m.utils.data.DataLoader(m.utils.data.TensorDataset(m.arange(7)), 3, shuffle=True)
    return [[b[0].tolist() for b in loader] for _ in range(2)], m.rand(1).item()


def test_shuffled_as_pytorch_wrote_it_down():
    """Computed by PyTorch: two passes, and the generator afterwards."""
    order, after = shuffled(cr)
    assert order == [[[1, 6, 3], [4, 2, 5], [0]], [[3, 2, 1], [6, 5, 4], [0]]]
    assert after == pytest.approx(0.5721226334571838, rel=1e-7)


def drawn(m):
    m.manual_seed(2)
    parts = m.utils.data.random_split(range(9), [4, 5])
    return [list(p.indices) for p in parts], list(m.utils.data.WeightedRandomSampler([0.1, 0.5, 0.4, 2.0], 6))


def test_splits_and_weights_as_pytorch_wrote_them_down():
    assert drawn(cr) == ([[0, 8, 6, 3], [7, 1, 2, 5, 4]], [3, 3, 1, 2, 3, 3])


@pytest.mark.parametrize("n, batch, shuffle, draws", list(itertools.product((1, 7, 70), (1, 3, 8), (True, False), (None, 5, 40))))
def test_streams_beside_torch(n, batch, shuffle, draws):
    torch = pytest.importorskip("torch")

    def run(m):
        m.manual_seed(11)
        data = m.utils.data.TensorDataset(m.arange(n), m.arange(n) * 2)
        sampler = draws and m.utils.data.RandomSampler(data, replacement=True, num_samples=draws)
        loader = m.utils.data.DataLoader(data, batch, shuffle=None if draws else shuffle, sampler=sampler or None)
        return [[x.tolist() for x in b] for _ in range(2) for b in loader], len(loader), m.rand(2).tolist()

    assert run(cr) == run(torch)


def test_generators_beside_torch():
    torch = pytest.importorskip("torch")

    def run(m):
        g, d = m.Generator().manual_seed(2**62 + 5), m.utils.data
        parts = d.random_split(range(11), [0.5, 0.3, 0.2], generator=g)
        loader = d.DataLoader(range(9), 2, shuffle=True, generator=g, drop_last=True)
        subset = d.SubsetRandomSampler([5, 6, 7, 8], generator=g)
        few = d.WeightedRandomSampler([0.1, 0.5, 2.0], 2, replacement=False, generator=g)
        return [list(p) for p in parts], [b.tolist() for b in loader], list(subset), list(few), m.rand(1, generator=g).item()

    assert run(cr) == run(torch)


class Drawing(D.Dataset):
    """Samples with a random number, and the worker that drew it."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        info = D.get_worker_info()
        return cr.tensor(i), cr.rand(1), np.random.rand(), -1 if info is None else info.id


class Stream(D.IterableDataset):
    """Numbers that the workers part among them."""

    def __iter__(self):
        info = D.get_worker_info()
        return iter(range(7) if info is None else range(info.id, 7, info.num_workers))


class Broken(Drawing):
    def __getitem__(self, i):
        raise ValueError(f"no sample {i}")


class Ending(Drawing):
    def __getitem__(self, i):
        import os

        os._exit(3)


def plain(batches):
    return [[x.tolist() if hasattr(x, "tolist") else x for x in b] for b in batches]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_beside_torch(persistent):
    torch = pytest.importorskip("torch")

    class Theirs(torch.utils.data.Dataset):
        def __len__(self):
            return 10

        def __getitem__(self, i):
            return torch.tensor(i), torch.rand(1), np.random.rand(), torch.utils.data.get_worker_info().id

    def run(m, data):
        m.manual_seed(0)
        loader = m.utils.data.DataLoader(data, 2, shuffle=True, num_workers=2, persistent_workers=persistent)
        return [plain(loader) for _ in range(2)]

    assert run(cr, Drawing()) == run(torch, Theirs())


def test_workers_give_what_one_process_gives():
    alone, ahead = (D.DataLoader(Drawing(), 3, num_workers=n, prefetch_factor=1 if n else None) for n in (0, 3))
    assert [b[0].tolist() for b in alone] == [b[0].tolist() for b in ahead]
    workers = [b[3].tolist() for b in ahead]
    assert workers[0] == [0, 0, 0] and workers[1] == [1, 1, 1]


def test_streams():
    assert [x.tolist() for x in D.DataLoader(Stream(), 2)] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [x.tolist() for x in D.DataLoader(Stream(), 2, drop_last=True)] == [[0, 1], [2, 3], [4, 5]]
    assert [x.tolist() for x in D.DataLoader(Stream(), 2, num_workers=2)] == [[0, 2], [1, 3], [4, 6], [5]]
    loader = D.DataLoader(Stream(), None, num_workers=2, persistent_workers=True)
    assert [sorted(loader) for _ in range(2)] == [list(range(7))] * 2
    assert list(Stream() + Stream()) == [*range(7), *range(7)]


def test_errors_of_workers_come_here():
    with pytest.raises(ValueError, match="worker process 0"):
        list(D.DataLoader(Broken(), num_workers=1))
    with pytest.raises(RuntimeError, match="ended unexpectedly with exit code 3"):
        list(D.DataLoader(Ending(), num_workers=1))
    with pytest.raises(ValueError, match="no sample 0"):
        list(D.DataLoader(Broken()))


def test_a_pass_that_is_left_ends_its_workers():
    passing = iter(D.DataLoader(Drawing(), num_workers=2))
    next(passing)
    processes = passing._crew._processes
    del passing
    assert not any(p.is_alive() for p in processes)


def test_data_sets():
    a = D.TensorDataset(cr.arange(6).reshape(3, 2), cr.tensor([5, 6, 7]))
    both = a + D.Subset(a, [2, 0])
    assert len(both) == 5 and int(both[3][1]) == 7 and int(both[-1][1]) == 5
    assert D.StackDataset(x=a, y=range(3))[1]["y"] == 1
    with pytest.raises(ValueError, match="index 5 is outside of 5"):
        both[5]
    with pytest.raises(ValueError, match="first sizes"):
        D.TensorDataset(cr.ones(2), cr.ones(3))
    with pytest.raises(ValueError, match="add up to 4, and the data set has 3"):
        D.random_split(a, [1, 3])
    with pytest.raises(ValueError, match="sampler and shuffle"):
        D.DataLoader(a, shuffle=True, sampler=[1])
    with pytest.raises(ValueError, match="shuffle"):
        D.DataLoader(Stream(), shuffle=True)


def test_collated_samples():
    sample = {"a": 1, "b": 2.0, "c": "x", "d": np.float32(1), "e": np.ones(2), "f": (True, [1, 2])}
    got = D.default_collate([sample, sample])
    assert got["a"].dtype == cr.int64 and got["b"].dtype == cr.float64 and got["c"] == ["x", "x"]
    assert got["d"].dtype == cr.float32 and got["e"].shape == (2, 2) and got["f"][0].dtype == cr.bool
    assert [x.tolist() for x in got["f"][1]] == [[1, 1], [2, 2]]
    with pytest.raises(RuntimeError, match=r"\(2,\) and \(3,\)"):
        D.default_collate([cr.ones(2), cr.ones(3)])
    with pytest.raises(TypeError, match="not object"):
        D.default_collate([object()])
    assert list(D.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]


def test_generator_states():
    state = cr.get_rng_state()
    a = cr.randn(9)
    cr.set_rng_state(state)
    assert cr.equal(a, cr.randn(9))
    g = cr.Generator().manual_seed(3)
    kept = g.get_state()
    a = cr.rand(3, generator=g)
    assert cr.equal(a, cr.rand(3, generator=g.set_state(kept)))
    cr.manual_seed(77)
    assert cr.initial_seed() == 77
    with cr.random.fork_rng():
        inside = cr.rand(1)
    assert cr.equal(inside, cr.rand(1))
    with pytest.raises(TypeError, match="bytes"):
        cr.set_rng_state([1.5])
    torch = pytest.importorskip("torch")
    torch.set_rng_state(torch.tensor(cr.get_rng_state().tolist(), dtype=torch.uint8))
    assert torch.randn(20).tolist() == cr.randn(20).tolist()
