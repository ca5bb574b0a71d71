"""Orthogonal polynomials, transforms of Hermitian signals and p-norms of windows, by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

# Without -1 and 1, where the formulas by angles are 0 / 0.
X = np.linspace(-1.3, 1.45, 28)


def _series(kind: Any) -> Callable[[Any, int], Any]:
    """A polynomial of NumPy's, whose series has one term."""
    return lambda x, n: kind([0.0] * n + [1.0])(x)


def _angles(x: Any) -> Any:
    return np.arccos(x.astype(complex))


POLYNOMIALS: dict[str, Callable[[Any, int], Any]] = {
    "chebyshev_polynomial_t": _series(np.polynomial.Chebyshev),
    "chebyshev_polynomial_u": lambda x, n: (np.sin((n + 1) * _angles(x)) / np.sin(_angles(x))).real,
    "chebyshev_polynomial_v": lambda x, n: (np.cos((n + 0.5) * _angles(x)) / np.cos(_angles(x) / 2)).real,
    "chebyshev_polynomial_w": lambda x, n: (np.sin((n + 0.5) * _angles(x)) / np.sin(_angles(x) / 2)).real,
    "hermite_polynomial_h": _series(np.polynomial.Hermite),
    "hermite_polynomial_he": _series(np.polynomial.HermiteE),
    "laguerre_polynomial_l": _series(np.polynomial.Laguerre),
    "legendre_polynomial_p": _series(np.polynomial.Legendre),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    ours, theirs = getattr(cr.special, name), POLYNOMIALS[name]
    for n in (0, 1, 2, 3, 7, 12):
        np.testing.assert_allclose(ours(cr.tensor(X), n).numpy(), theirs(X, n), rtol=1e-11, atol=1e-11)
        if "chebyshev" in name:
            shifted = getattr(cr.special, "shifted_" + name)
            np.testing.assert_allclose(shifted(cr.tensor((X + 1) / 2), n).numpy(), theirs(X, n), rtol=1e-10, atol=1e-10)
    degrees = np.arange(28) % 6 - 1
    expected = np.concatenate([0 * x if n < 0 else theirs(x, n) for x, n in zip(X[:, None], degrees)])
    np.testing.assert_allclose(ours(cr.tensor(X), cr.tensor(degrees)).numpy(), expected, rtol=1e-11, atol=1e-11)
    x = cr.tensor(X, requires_grad=True)
    assert cr.check.gradcheck(lambda x: ours(x, 5), [x]).passed
    assert ours(cr.zeros(0, 3), 4).shape == (0, 3)
    assert ours(cr.tensor(float("inf")), 0).item() == 1.0
    with pytest.raises(RuntimeError, match="10000 is the most"):
        ours(cr.ones(2), 10**9)


def test_transforms_of_hermitian_signals() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=(2, 5, 4)) + 1j * rng.normal(size=(2, 5, 4))
    r = rng.normal(size=(2, 5, 6))
    for norm, over in (("backward", 1.0), ("ortho", 30**-0.5), ("forward", 1 / 30)):
        expected = np.fft.irfft2(z.conj(), s=(5, 6)) * 30 * over
        np.testing.assert_allclose(cr.fft.hfft2(cr.tensor(z), norm=norm).numpy(), expected, atol=1e-12)
        expected = np.fft.rfft2(r).conj() / 30 / over
        np.testing.assert_allclose(cr.fft.ihfft2(cr.tensor(r), norm=norm).numpy(), expected, atol=1e-12)
        back = cr.fft.hfftn(cr.fft.ihfftn(cr.tensor(r), norm=norm), r.shape, norm=norm)
        np.testing.assert_allclose(back.numpy(), r, atol=1e-12)
    x = cr.tensor(r, requires_grad=True)
    assert cr.check.gradcheck(lambda x: cr.fft.hfft2(cr.fft.ihfft2(x) * 2).square(), [x]).passed


def test_norms_of_windows_of_volumes() -> None:
    x = np.abs(np.random.default_rng(4).normal(size=(2, 3, 4, 5, 6))) + 0.1
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), axis=(2, 3, 4))[:, :, ::2, ::1, ::2]
    expected = (windows**3).sum((-3, -2, -1)) ** (1 / 3)
    layer = cr.nn.LPPool3d(3, (2, 3, 2), stride=(2, 1, 2))
    np.testing.assert_allclose(layer(cr.tensor(x)).numpy(), expected, rtol=1e-12)
    assert cr.check.gradcheck(layer, [cr.tensor(x, requires_grad=True)]).passed


def test_instance_norm_that_learns_its_channels() -> None:
    x = cr.randn(2, 3, 5)
    lazy, plain = cr.nn.LazyInstanceNorm1d(affine=True), cr.nn.InstanceNorm1d(3, affine=True)
    assert cr.equal(lazy(x), plain(x)) and lazy.weight.shape == (3,) and type(lazy) is cr.nn.InstanceNorm1d
