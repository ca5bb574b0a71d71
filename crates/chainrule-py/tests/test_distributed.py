"""Several processes that train together."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import chainrule as cr

PROGRAM = textwrap.dedent(
    """
    import hashlib
    import chainrule as cr
    ranks = cr.distributed.init(timeout=20)
    ranks.agree({"rate": RATE})
    cr.manual_seed(0)
    model = cr.nn.Sequential(cr.nn.Linear(4, 8), cr.nn.Tanh(), cr.nn.Linear(8, 1))
    unused = cr.ones(3, requires_grad=True)
    parameters = [*model.parameters(), unused]
    optimizer = cr.optim.Adam(parameters, lr=0.01)
    x = cr.randn(6, 12, 5, 4)
    for step in range(6):
        for i in ranks.share(12):
            y = x[step, i].sum(1, keepdim=True)
            cr.nn.functional.mse_loss(model(x[step, i]), y).backward()
            ranks.add(parameters)
        ranks.average()
        optimizer.step()
    data = b"".join(p.detach().numpy().tobytes() for p in parameters)
    print(hashlib.sha256(data).hexdigest())
    """
)


def run(size, rates=None):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(size):
        more = {"WORLD_SIZE": str(size), "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CHAINRULE_TOKEN": "of the tests"}
        env = {**os.environ, **(more if size > 1 else {})}
        text = PROGRAM.replace("RATE", str((rates or [1] * size)[rank]))
        ranks.append(subprocess.Popen([sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return [(*rank.communicate(timeout=120), rank.returncode) for rank in ranks]


def test_the_number_of_ranks_changes_no_bit():
    hashes = set()
    for size in (1, 2, 3):
        for out, err, code in run(size):
            assert code == 0, err
            hashes.add(out)
    assert len(hashes) == 1


def test_ranks_that_differ_end_with_the_reason():
    for _, err, code in run(2, rates=[1, 2]):
        assert code == 1
        assert "rank 1 has another rate than rank 0: `2` in place of `1`" in err.splitlines()[-1]


def started(texts, size=None, **env):
    """The outputs of ranks with these programs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    more = {"WORLD_SIZE": str(size or len(texts)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CHAINRULE_TOKEN": "of the tests", **env}
    ranks = [
        subprocess.Popen([sys.executable, "-c", text], env={**os.environ, "RANK": str(rank), **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank, text in enumerate(texts)
    ]
    return [(*rank.communicate(timeout=120), rank.returncode) for rank in ranks]


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        # An error of one rank is the end of all.
        ("ranks.barrier()", "raise KeyError('lost')", "rank 1 has ended: KeyError: 'lost'"),
        # Other numbers of micro-batches, of parameters, another order of calls.
        ("one(4)", "one(5)", "rank 1"),
        ("one(2)", "one(2, cr.ones(7, requires_grad=True))", "other sizes"),
        ("ranks.barrier(); ranks.barrier(); ranks.barrier()", "ranks.all_gather(b'x'); ranks.agree({'a': 1})", "rank 1"),
        ("ranks.agree({'lr': 1, 'seed': 2})", "ranks.agree({'lr': 1})", "lacks `seed` = `2`, which rank 0 has"),
    ],
)
def test_a_rank_that_goes_wrong_ends_the_others(first, second, says):
    head = textwrap.dedent(
        """
        import chainrule as cr
        def one(parts, w=cr.ones(3, requires_grad=True)):
            for i in ranks.share(parts):
                w.sum().backward()
                ranks.add([w])
            ranks.average()
        with cr.distributed.init(timeout=5, start=10) as ranks:
            ranks.barrier()
        """
    )
    (_, err, code), (_, other, code_other) = started([f"{head}    {first}", f"{head}    {second}"])
    assert code == 1 and says in err.splitlines()[-1], err
    assert code_other in (0, 1) and (code_other == 0 or len(other.splitlines()[-1]) < 400)


def test_a_rank_that_never_comes_is_named():
    text = "import chainrule as cr\ncr.distributed.init(timeout=5, start=1)"
    for _, err, code in started([text, text], size=3):
        assert code == 1
        assert "rank 2 did not come in time" in err.splitlines()[-1]
    for name, value, says in [("WORLD_SIZE", "two", "no number of ranks"), ("MASTER_PORT", "-1", "a port is"), ("MASTER_ADDR", "0.0.0.0", "no address of one machine")]:
        ((_, err, code),) = started([text], **{"WORLD_SIZE": "2", name: value})
        assert code == 1 and says in err.splitlines()[-1], err


@pytest.mark.parametrize("given", [None, b"", ["x", "y"], [b"a"], [b"a", b"b", b"c"], 7])
def test_a_communicator_that_gives_nonsense_is_an_error(given):
    class Wrong:
        def Get_rank(self):
            return 0

        def Get_size(self):
            return 2

        def alltoall(self, parts):
            return given

    with pytest.raises((ValueError, RuntimeError), match="communicator"):
        cr.distributed.init(Wrong()).barrier()


def test_an_object_that_is_no_communicator_is_an_error():
    for wrong in (object(), "MPI", 3):
        with pytest.raises((AttributeError, TypeError)):
            cr.distributed.init(wrong)
    wrong = Communicator(3, 2, {}, threading.Barrier(1))
    with pytest.raises(ValueError, match="rank 3 of a communicator of 2"):
        cr.distributed.init(wrong)


class Communicator:
    """A communicator as mpi4py's, between threads, with the methods that are called."""

    def __init__(self, rank, size, table, barrier):
        self.rank, self.size, self.table, self.barrier = rank, size, table, barrier

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def alltoall(self, parts):
        self.table[self.rank] = parts
        self.barrier.wait()
        got = [self.table[rank][self.rank] for rank in range(self.size)]
        self.barrier.wait()
        return got


def test_a_communicator_carries_the_data():
    def total(size):
        table, barrier, got = {}, threading.Barrier(size), {}

        def work(rank):
            ranks = cr.distributed.init(Communicator(rank, size, table, barrier))
            w = cr.zeros(1000, requires_grad=True)
            for i in ranks.share(7):
                x = cr.tensor(np.sin(np.arange(1000) * (i + 1)), dtype=cr.float32)
                (w * x).sum().backward()
                ranks.add([w])
            ranks.average()
            got[rank] = w.grad.numpy().tobytes()

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(got) == size and len(set(got.values())) == 1
        return got[0]

    assert len({total(size) for size in (1, 2, 3, 7)}) == 1


def test_misuse_is_an_error():
    ranks = cr.distributed.init()
    w = cr.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="call share"):
        ranks.average()
    with pytest.raises(ValueError, match="micro-batches"):
        ranks.share(0)
    ranks.share(2)
    w.sum().backward()
    ranks.add([w])
    with pytest.raises(ValueError, match="1 of the 2"):
        ranks.average()
    with pytest.raises(ValueError, match="other parameters"):
        ranks.add([cr.ones(2, requires_grad=True)])
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout"):
            cr.distributed.init(timeout=wrong)
        with pytest.raises(ValueError, match="start"):
            cr.distributed.init(start=wrong)


def test_mpi4py_under_mpirun():
    """The bits of one process, where `mpirun` and `mpi4py` are."""
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun here")
    ((alone, err, code),) = run(1)
    assert code == 0, err
    over = "init(__import__('mpi4py.MPI').MPI.COMM_WORLD)"
    text = PROGRAM.replace("RATE", "1").replace("init(timeout=20)", over)
    assert over in text
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", sys.executable, "-c", text]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Lines of different ranks may come as one.
    bits = alone.strip()
    assert done.stdout.replace("\n", "") == 3 * bits


def test_sync_batch_norm_is_that_of_the_whole_batch():
    """Three ranks with batches of different sizes beside one process with all, in f64."""
    x = cr.tensor(np.random.default_rng(0).normal(size=(9, 3, 4)), dtype=cr.float64)
    w = cr.tensor(np.random.default_rng(1).normal(size=(9, 3, 4)), dtype=cr.float64)
    rows = [(0, 4), (4, 6), (6, 9)]

    def passed(net, first, end):
        part = x[first:end].detach().clone().requires_grad_()
        y = net(part)
        (y * w[first:end]).square().sum().backward()
        return y.detach().numpy(), part.grad.numpy(), [p.grad.numpy() for p in net.parameters()], [b.numpy() for b in net.buffers()]

    def net():
        net = cr.nn.Sequential(cr.nn.Tanh(), cr.nn.BatchNorm1d(3, momentum=None, dtype=cr.float64))
        net[1].weight.data = cr.tensor([0.5, 2.0, -1.0], dtype=cr.float64)
        return net

    whole = passed(net(), 0, 9)
    table, barrier, got = {}, threading.Barrier(3), {}

    def work(rank):
        ranks = cr.distributed.init(Communicator(rank, 3, table, barrier))
        made = cr.nn.SyncBatchNorm.convert_sync_batchnorm(net(), ranks)
        got[rank] = passed(made, *rows[rank])

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(got) == 3
    for i in (0, 1):
        np.testing.assert_allclose(np.concatenate([got[r][i] for r in range(3)]), whole[i], rtol=1e-12, atol=1e-13)
    for k, want in enumerate(whole[2]):
        np.testing.assert_allclose(sum(got[r][2][k] for r in range(3)), want, rtol=1e-12, atol=1e-13)
    for r in range(3):
        for have, want in zip(got[r][3], whole[3]):
            np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-13)


def test_sync_batch_norm_alone_is_batch_norm():
    cr.distributed.init()
    x = cr.randn(6, 3, 2, 2)
    plain, sync = cr.nn.BatchNorm2d(3), cr.nn.SyncBatchNorm(3)
    assert (plain(x) == sync(x)).all() and (plain.running_var == sync.running_var).all()
    assert list(plain.state_dict()) == list(sync.state_dict())
    with pytest.raises(ValueError, match=r"\[n, 3\]"):
        sync(cr.randn(6, 4))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("waits", ["for ranks to come", "for rank 0", "in an exchange"])
def test_ctrl_c_ends_a_rank_that_waits(waits):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Jobs in the background of a shell ignore Ctrl-C, and so would the ranks.
    text = "import signal, time, chainrule as cr\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nprint('here', flush=True)\nranks = cr.distributed.init(start=60)\n"
    text += "time.sleep(60 * ranks.rank)\nranks.barrier()\n"
    at = {"for ranks to come": [0], "for rank 0": [1], "in an exchange": [0, 1]}[waits]
    started = []
    for rank in at:
        more = {"WORLD_SIZE": "2", "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CHAINRULE_TOKEN": "of the tests"}
        env = {**os.environ, **more}
        started.append(subprocess.Popen([sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        for rank in started:
            assert rank.stdout.readline() == "here\n"
        time.sleep(1.5)
        started[0].send_signal(signal.SIGINT)
        _, err = started[0].communicate(timeout=20)
        assert "KeyboardInterrupt" in err
    finally:
        for rank in started:
            rank.kill()
            rank.communicate()


def test_ranks_that_lost_step_end_with_the_reason():
    table, barrier, errors = {}, threading.Barrier(2), {}

    def work(rank):
        ranks = cr.distributed.init(Communicator(rank, 2, table, barrier))
        try:
            if rank == 0:
                ranks.barrier()
            else:
                ranks.all_gather(b"data")
        except RuntimeError as error:
            errors[rank] = str(error)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert "rank 1 sends data where this one only waits" in errors[0]
