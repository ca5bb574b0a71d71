"""Singular values and eigenvalues with their vectors, beside their definitions and LAPACK's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

TYPES = {"float32": 2e-5, "float64": 1e-13}
SHAPES = [(1, 1), (5, 3), (3, 5), (40, 40), (2, 3, 6, 4), (70, 1), (0, 3, 3), (3, 0)]


def _matrix(shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Any:
    return (np.random.default_rng(len(shape)).standard_normal(shape) * scale).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors_give_the_matrix(shape: tuple[int, ...], full: bool, dtype: str) -> None:
    x = _matrix(shape, dtype)
    U, S, V = (t.numpy() for t in cr.linalg.svd(cr.tensor(x), full_matrices=full))
    theirs = np.linalg.svd(x, full_matrices=full)
    assert [t.shape for t in (U, S, V)] == [t.shape for t in theirs]
    assert U.dtype == S.dtype == V.dtype == x.dtype
    tol = TYPES[dtype]
    np.testing.assert_allclose(S, theirs[1], atol=10 * tol)
    k = S.shape[-1]
    np.testing.assert_allclose(U[..., :k] * S[..., None, :] @ V[..., :k, :], x, atol=10 * tol)
    for q in (np.swapaxes(U, -1, -2) @ U, V @ np.swapaxes(V, -1, -2)):
        np.testing.assert_allclose(q, np.broadcast_to(np.eye(q.shape[-1]), q.shape), atol=10 * tol)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("half", ["L", "U"])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_eigenvectors_are_of_the_triangle_that_is_read(n: int, half: str, dtype: str) -> None:
    x = _matrix((3, n, n), dtype)
    other = np.triu(np.full((n, n), np.nan), 1) if half == "L" else np.tril(np.full((n, n), np.nan), -1)
    values, vectors = (t.numpy() for t in cr.linalg.eigh(cr.tensor((x + other).astype(dtype)), half))
    read = np.tril(x) if half == "L" else np.triu(x)
    whole = read + np.swapaxes(read, -1, -2) - read * np.eye(n, dtype=dtype)
    tol = TYPES[dtype] * n
    np.testing.assert_allclose(values, np.linalg.eigvalsh(whole), atol=10 * tol)
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(whole @ vectors, vectors * values[..., None, :], atol=10 * tol)
    square = np.swapaxes(vectors, -1, -2) @ vectors
    np.testing.assert_allclose(square, np.broadcast_to(np.eye(n), square.shape), atol=10 * tol)


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e-36), ("float32", 1e-20), ("float32", 1e30), ("float32", 1e36), ("float64", 1e-300), ("float64", 1e300)])
def test_scales_change_nothing_but_the_values(dtype: str, scale: float) -> None:
    x = _matrix((12, 9), "float64")
    U, S, V = (t.numpy() for t in cr.linalg.svd(cr.tensor((x * scale).astype(dtype)), full_matrices=False))
    tol = 10 * TYPES[dtype]
    np.testing.assert_allclose(S / scale, np.linalg.svd(x, compute_uv=False), rtol=tol)
    np.testing.assert_allclose((U * (S / scale)) @ V, x, atol=tol)
    y = x.T @ x
    values = cr.linalg.eigh(cr.tensor((y * scale / 50).astype(dtype))).eigenvalues.numpy()
    np.testing.assert_allclose(values / scale * 50, np.linalg.eigvalsh(y), atol=20 * tol)


def test_zeros_equal_values_and_low_ranks() -> None:
    for x in (np.zeros((4, 3)), np.eye(5), np.ones((6, 4)), np.outer(np.arange(5.0), np.arange(3.0))):
        U, S, V = (t.numpy() for t in cr.linalg.svd(cr.tensor(x), full_matrices=False))
        np.testing.assert_allclose(U * S @ V, x, atol=1e-12)
        np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
        y = x @ x.T
        values, vectors = (t.numpy() for t in cr.linalg.eigh(cr.tensor(y)))
        np.testing.assert_allclose(vectors * values @ vectors.T, y, atol=1e-11)


def test_one_bad_number_is_an_error() -> None:
    for bad in (np.nan, np.inf, -np.inf):
        x = np.ones((2, 3, 3))
        x[1, 2, 0] = bad
        for f in (cr.linalg.svd, cr.linalg.eigh):
            with pytest.raises(cr.linalg.LinAlgError, match="not finite"):
                f(cr.tensor(x))


def test_a_view_gives_what_its_elements_give() -> None:
    x = cr.tensor(_matrix((6, 4, 4), "float32"))
    for f in (cr.linalg.svd, cr.linalg.eigh):
        for got, expected in zip(f(x[1].t()), f(x[1].t().contiguous())):
            np.testing.assert_array_equal(got.numpy(), expected.numpy())
