"""Memory of dropped tensors, and values that must be refused before they do harm."""

from __future__ import annotations

import math
import threading

import pytest

import chainrule as cr


def test_memory_is_given_back():
    without = cr.memory.statistics()["in_use"]
    x = cr.ones(1 << 18)
    before = cr.memory.statistics()
    assert before["in_use"] >= without + (1 << 20)
    assert before["most_in_use"] >= before["in_use"]
    del x
    now = cr.memory.statistics()
    assert now["kept"] >= 1 << 20 and now["kept"] <= now["limit"] <= now["limit_of_all"]
    y = cr.ones(1 << 18)
    assert cr.memory.statistics()["reused"] > now["reused"]
    del y
    cr.memory.trim()
    after = cr.memory.statistics()
    assert after["kept"] == 0 and after["given_back"] > now["given_back"]


def test_tensors_of_other_threads_are_counted():
    def make():
        made.extend(cr.ones(1 << 20) for _ in range(8))

    without = cr.memory.statistics()["in_use"]
    made = []
    worker = threading.Thread(target=make)
    worker.start()
    worker.join()
    assert cr.memory.statistics()["in_use"] >= without + (32 << 20) - (1 << 20)
    made.clear()
    assert abs(cr.memory.statistics()["in_use"] - without) < 1 << 20


def test_changing_shapes_do_not_grow():
    cr.memory.trim()
    for n in range(20, 900):
        x = cr.ones(n * 100, requires_grad=True)
        (x.tanh() * x).sum().backward()
    s = cr.memory.statistics()
    assert s["kept"] <= s["limit"] and s["kept"] <= 64 << 20


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [cr.float32, cr.float64])
def test_decompositions_refuse_what_is_not_finite(bad, dtype):
    for n in (1, 3, 40):
        A = cr.eye(n, dtype=dtype)
        A[n // 2, n // 2] = bad
        L = cr.linalg
        for f in (L.svd, L.svdvals, L.eigh, L.eigvalsh, L.pinv, L.matrix_rank, L.cond, lambda A: L.matrix_norm(A, "nuc")):
            with pytest.raises(ValueError, match="not finite"):
                f(A)
    # One triangle alone is read.
    A = cr.tensor([[2.0, bad], [1.0, 3.0]], dtype=dtype)
    assert cr.linalg.eigvalsh(A).isfinite().all()
    with pytest.raises(ValueError, match="not finite"):
        cr.linalg.eigvalsh(A, UPLO="U")


@pytest.mark.parametrize("name, dims", [("adaptive_avg_pool1d", 1), ("adaptive_max_pool1d", 1), ("adaptive_avg_pool2d", 2), ("adaptive_max_pool2d", 2)])
def test_sizes_of_adaptive_pools(name, dims):
    x = cr.ones(1, 2, *[4] * dims)
    for sizes in ((), (1, 2, 3)):
        with pytest.raises(ValueError, match=f"{name}: output_size"):
            getattr(cr.nn.functional, name)(x, sizes)


def test_full_wants_one_number():
    for dtype in (None, cr.float32, cr.int64, cr.bool):
        for fill in (cr.tensor([]), cr.tensor([7, 8, 9]), cr.ones(2, 2)):
            with pytest.raises(ValueError, match="full: one number"):
                cr.full((2,), fill, dtype=dtype)
    assert cr.full((2,), cr.tensor([5])).tolist() == [5, 5] and cr.full((2,), cr.tensor(5)).tolist() == [5, 5]
