"""Exceptions are what code written for NumPy and for PyTorch expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule as cr

ARGUMENTS: dict[str, Callable[[], Any]] = {
    "shapes of a product": lambda: cr.ones(2, 3) @ cr.ones(4, 5),
    "shapes of a sum": lambda: cr.ones(2) + cr.ones(3),
    "a shape": lambda: cr.ones(6).view(4, 2),
    "parts": lambda: cr.cat([cr.ones(2, 3), cr.ones(3, 2)]),
    "a layer": lambda: cr.nn.Linear(3, 2)(cr.ones(2, 4)),
    "channels": lambda: cr.nn.functional.conv2d(cr.ones(1, 2, 4, 4), cr.ones(1, 3, 2, 2)),
    "a loss": lambda: cr.nn.functional.cross_entropy(cr.ones(2, 3), cr.zeros(5, dtype=cr.long)),
    "a written range": lambda: cr.ones(3).__setitem__(slice(0, 2), cr.ones(3)),
}
MATRICES: dict[str, Callable[[], Any]] = {
    "solve": lambda: cr.linalg.solve(cr.zeros(2, 2), cr.ones(2)),
    "inv": lambda: cr.linalg.inv(cr.zeros(2, 2)),
    "a batch of inverses": lambda: cr.zeros(3, 2, 2).inverse(),
    "cholesky": lambda: cr.linalg.cholesky(-cr.eye(2)),
    "svd": lambda: cr.linalg.svd(cr.full((2, 2), float("nan"))),
    "eigh": lambda: cr.linalg.eigh(cr.full((2, 2), float("inf"))),
    "complex": lambda: cr.linalg.solve(cr.zeros(2, 2, dtype=cr.complex128), cr.ones(2, dtype=cr.complex128)),
}


@pytest.mark.parametrize("expected", [ValueError, RuntimeError, cr.ArgumentError])
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_wrong_arguments(kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        ARGUMENTS[kind]()


@pytest.mark.parametrize("expected", [ValueError, RuntimeError, cr.linalg.LinAlgError])
@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_without_a_decomposition(kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        MATRICES[kind]()


@pytest.mark.parametrize("expected", [TypeError, RuntimeError, cr.DTypeError])
def test_wrong_dtypes(expected: type[Exception]) -> None:
    with pytest.raises(expected):
        cr.nn.functional.embedding(cr.ones(2), cr.ones(2, 2))


@pytest.mark.parametrize("expected", [MemoryError, RuntimeError, cr.cuda.OutOfMemoryError])
def test_no_memory(expected: type[Exception]) -> None:
    with pytest.raises(expected):
        cr.ones(1 << 20, 1 << 30)


def test_jitter_until_a_matrix_has_a_factor() -> None:
    """A loop that kernels of Gaussian processes need, as it is written for PyTorch."""
    K = cr.ones(3, 3, dtype=cr.float64) * (1 - 1e-12)
    tried = 0
    for tried, jitter in enumerate((-1e-3, 0.0, 1e-6, 1e-3)):
        try:
            L = cr.linalg.cholesky(K + jitter * cr.eye(3, dtype=cr.float64))
            break
        except RuntimeError:
            continue
    assert tried >= 1
    assert cr.allclose(L @ L.mT, K, atol=2e-3)
