"""Fourier transforms: laws that need no other library, and PyTorch's values and gradients."""

import itertools

import chainrule as cr
import numpy as np
import pytest

rng = np.random.default_rng(3)
HALF = ("irfft", "hfft")
SIZES = (None, 1, 2, 3, 4, 7, 8)
NORMS = ("backward", "ortho", "forward")


def complex_array(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def close(a, b, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol * max(1.0, np.abs(np.asarray(b)).max(initial=0.0)))


def dot(a, b):
    """The real inner product of two arrays."""
    return float((np.conj(np.asarray(a)) * np.asarray(b)).real.sum())


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("norm", NORMS)
def test_the_sum_that_defines_it(n, norm):
    x = complex_array(n)
    j = np.arange(n)
    scale = {"backward": 1.0, "ortho": n**-0.5, "forward": 1.0 / n}[norm]
    close(cr.fft.fft(cr.asarray(x), norm=norm).numpy(), scale * np.exp(-2j * np.pi * np.outer(j, j) / n) @ x)
    half = np.exp(-2j * np.pi * np.outer(np.arange(n // 2 + 1), j) / n) @ x.real
    close(cr.fft.rfft(cr.tensor(x.real), norm=norm).numpy(), scale * half)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [4, 5])
def test_inverses(n, norm):
    z, x = cr.asarray(complex_array(3, n)), cr.tensor(rng.standard_normal((3, n)))
    close(cr.fft.ifft(cr.fft.fft(z, norm=norm), norm=norm).numpy(), z.numpy())
    close(cr.fft.ifftn(cr.fft.fftn(z, norm=norm), norm=norm).numpy(), z.numpy())
    close(cr.fft.irfft(cr.fft.rfft(x, norm=norm), n, norm=norm).numpy(), x.numpy())
    close(cr.fft.irfftn(cr.fft.rfftn(x, norm=norm), (3, n), norm=norm).numpy(), x.numpy())
    close(cr.fft.hfft(cr.fft.ihfft(x, norm=norm), n, norm=norm).numpy(), x.numpy())


def test_parseval_and_linearity():
    x, y = cr.asarray(complex_array(7)), cr.asarray(complex_array(7))
    X, Y = cr.fft.fft(x), cr.fft.fft(y)
    assert X.abs().square().sum().item() == pytest.approx(7 * x.abs().square().sum().item(), rel=1e-13)
    close(cr.fft.fft(x * (2 - 1j) + y).numpy(), (X * (2 - 1j) + Y).numpy())


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
def test_gradients_are_the_adjoint(name, norm):
    f = getattr(cr.fft, name)
    for shape, n, dim in itertools.product([(6,), (3, 5)], SIZES, (-1, 0)):
        if name in HALF and n is None and shape[dim] == 1:
            continue
        real = name in ("rfft", "ihfft")
        x = rng.standard_normal(shape) if real else complex_array(*shape)
        t = cr.asarray(x).requires_grad_()
        y = f(t, n, dim, norm)
        g = complex_array(*y.shape) if y.is_complex() else rng.standard_normal(y.shape)
        y.backward(cr.asarray(g))
        assert t.grad.shape == t.shape and t.grad.dtype == t.dtype
        other = rng.standard_normal(shape) if real else complex_array(*shape)
        # <g, F other> = <F* g, other>
        assert dot(g, f(cr.asarray(other), n, dim, norm).numpy()) == pytest.approx(dot(t.grad.numpy(), other), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("n", [None, 3, 6])
def test_gradcheck_of_second_order(n):
    def by_spectrum(x):
        X = cr.fft.rfft(x, n)
        return cr.fft.irfft(X * X * X.conj(), 5).square().sum()

    def by_all(a, b):
        z = cr.fft.fft2(cr.complex(a, b), None if n is None else (2, n))
        return (z * z).real.sum() + cr.fft.hfft(z, 4).square().sum()

    x = cr.tensor(rng.standard_normal(5))
    a, b = (cr.tensor(rng.standard_normal((2, 4))) for _ in range(2))
    assert cr.check.gradcheck(by_spectrum, x, order=2)
    assert cr.check.gradcheck(by_all, [a, b], order=2)


@pytest.mark.parametrize("part, whole", [("float32", "complex64"), ("float64", "complex128")])
def test_dtypes(part, whole):
    x = cr.ones(2, 4, dtype=part)
    z = cr.fft.rfft(x)
    assert z.dtype.name == whole == cr.fft.fft(z).dtype.name and cr.fft.irfft(z).dtype.name == part
    assert cr.fft.fft(cr.arange(3)).dtype == cr.complex64
    with pytest.raises(TypeError, match="rfft: .*complex"):
        cr.fft.rfft(z)
    with pytest.raises(TypeError, match="float16"):
        cr.fft.fft(x.half())


@pytest.mark.parametrize("call, words", [
    (lambda: cr.fft.fft(cr.ones(3), 0), "at least one"), (lambda: cr.fft.fft(cr.ones(3), norm="orthogonal"), "norm is one of"),
    (lambda: cr.fft.fft(cr.ones(0)), "at least one"), (lambda: cr.fft.irfft(cr.ones(1)), "say how many"), (lambda: cr.fft.fft(cr.tensor(1.0)), "axis"),
    (lambda: cr.fft.fftn(cr.ones(2, 2), dim=(0, 0)), "twice"), (lambda: cr.fft.fftn(cr.ones(2, 2), (2,), dim=(0, 1)), "1 sizes for 2 axes"),
    (lambda: cr.fft.fft(cr.ones(3), dim=2), "out of range"), (lambda: cr.fft.fftfreq(0), "from 1"),
])
def test_errors_name_the_function(call, words):
    with pytest.raises((ValueError, IndexError), match=words) as caught:
        call()
    assert "fft" in str(caught.value) and "\n" not in str(caught.value)


def test_empty_batches_and_frequencies():
    assert cr.fft.fft(cr.ones(0, 4)).shape == (0, 4) and cr.fft.rfft(cr.ones(2, 0, 5)).shape == (2, 0, 3)
    for n in (1, 4, 5):
        close(cr.fft.fftfreq(n, 0.5, dtype=cr.float64).numpy(), np.fft.fftfreq(n, 0.5))
        close(cr.fft.rfftfreq(n, 0.5, dtype=cr.float64).numpy(), np.fft.rfftfreq(n, 0.5))
        x = cr.asarray(complex_array(n, 3))
        for axes in (None, 0, (0, 1)):
            close(cr.fft.fftshift(x, axes).numpy(), np.fft.fftshift(x.numpy(), axes))
            close(cr.fft.ifftshift(cr.fft.fftshift(x, axes), axes).numpy(), x.numpy())


def test_a_program_refuses_before_it_runs():
    with pytest.raises(cr.GradientError, match="compile: rfft of float32"):
        cr.compile(lambda x: cr.fft.rfft(x).abs())(cr.ones(4))


def both(name, shape, real, **options):
    """Values, gradients of a function that is not linear, and gradients of their squares."""
    torch = pytest.importorskip("torch")
    x = rng.standard_normal(shape) if real else complex_array(*shape)
    out = []
    weight = None
    for m, t in ((torch, torch.tensor(x, requires_grad=True)), (cr, cr.asarray(x).requires_grad_())):
        y = getattr(m.fft, name)(t, **options)
        if weight is None:
            weight = rng.standard_normal((2, *y.shape))
        u, v = (m.tensor(w) for w in weight)
        loss = (y.real**3 * u).sum() + ((y.imag**3 * v).sum() if y.is_complex() else 0.0)
        g = m.autograd.grad(loss, t, create_graph=True)[0]
        (g * g.conj()).real.sum().backward()
        found = [y.detach(), g.detach(), t.grad]
        out.append([a.resolve_conj().numpy() for a in found])
    for theirs, ours in zip(*out):
        close(ours, theirs, 1e-10)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis_beside_torch(name):
    for shape, n, norm in itertools.product([(1,), (2,), (3, 5), (3, 4)], SIZES, NORMS):
        if name in HALF and n is None and shape[-1] == 1:
            continue
        both(name, shape, name in ("rfft", "ihfft"), n=n, norm=norm, dim=-1)
        both(name, shape, name not in ("irfft", "hfft"), n=n or 3, norm=norm, dim=0)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_several_axes_beside_torch(name):
    real = name in ("rfftn", "rfft2")
    for s, norm in itertools.product([None, (2, 3), (5, 4)], NORMS):
        both(name, (3, 2, 4), real, s=s, dim=(0, 2), norm=norm)
    both(name, (3, 2, 4), real)
    if name.endswith("n"):
        both(name, (3, 2, 4), real, s=(3, 4))
