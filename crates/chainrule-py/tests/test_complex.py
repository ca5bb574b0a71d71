"""Complex tensors: NumPy's values, derivatives by the parts, PyTorch's gradients."""

import copy
import io
import operator
import pickle

import chainrule as cr
import numpy as np
import pytest

rng = np.random.default_rng(5)


def array(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def close(a, b, rtol=1e-12):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max(initial=0.0)))


ONE = (
    "exp expm1 log log2 log10 log1p sqrt rsqrt reciprocal sigmoid sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh square neg conj sgn "
    "abs angle exp2"
).split()
TWO = "add sub mul div pow".split()
NUMPY = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "neg": np.negative,
    "rsqrt": lambda z: z**-0.5, "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "sgn": lambda z: z / np.abs(z), "add": np.add, "sub": np.subtract,
    "mul": np.multiply, "div": np.divide, "pow": np.power, "exp2": lambda z: 2.0**z,
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name):
    x = array(3, 4)
    f = NUMPY.get(name) or getattr(np, name)
    close(getattr(cr.asarray(x), name)().numpy(), f(x))
    x = x.astype("complex64")
    close(getattr(cr.asarray(x), name)().numpy(), f(x).astype("float32" if name in ("abs", "angle") else "complex64"), 3e-6)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name):
    x, y = array(3, 1), array(4)
    a, b = cr.asarray(x), cr.asarray(y)
    close(getattr(a, name)(b).numpy(), NUMPY[name](x, y))
    r = rng.standard_normal(4)
    close(getattr(a, name)(cr.tensor(r)).numpy(), NUMPY[name](x, r))
    for number in (3, 2.5, 1 - 2j, np.float32(1.5), np.complex64(2j)):
        close(getattr(a, name)(number).numpy(), NUMPY[name](x, complex(number)))


def test_operators_with_real_tensors_and_numbers_on_both_sides():
    x, r = array(4), rng.standard_normal(4)
    z, t = cr.asarray(x), cr.tensor(r)
    close((t + z - 1).numpy(), r + x - 1)
    close((2 * t * z / 3j).numpy(), 2 * r * x / 3j)
    close((1j - z).numpy(), 1j - x)
    close((1 / z).numpy(), 1 / x)
    close((t / z).numpy(), r / x)
    close((2.0**z).numpy(), 2.0**x)
    close((t - z).numpy(), r - x)
    close((t @ z).numpy(), np.asarray(r @ x))
    close((r * z).numpy(), r * x)
    assert (t == cr.complex(t, 0 * t)).all() and (z != t).all() and not (z == t).any()
    assert (z == z).all() and z in z and complex(z[0]) == x[0]


def derivatives(f, x, h=1e-6):
    """The derivatives of a real function by the parts of one complex number, by differences."""
    return (f(x + h) - f(x - h)) / (2 * h) + 1j * (f(x + 1j * h) - f(x - 1j * h)) / (2 * h)


@pytest.mark.parametrize("name", ONE)
def test_gradients_are_derivatives_by_the_parts(name):
    f = NUMPY.get(name) or getattr(np, name)
    for x in (0.6 + 0.8j, -1.3 + 0.4j, -0.2 - 1.7j):
        z = cr.asarray(np.array(x)).requires_grad_()
        y = getattr(z, name)()
        (y.abs().square() + 2 * y.real).backward()
        want = derivatives(lambda p: abs(f(p)) ** 2 + 2 * np.real(f(p)), x)
        assert complex(z.grad) == pytest.approx(want, rel=1e-6, abs=1e-6)


def parts(f):
    """A function of complex tensors as one of their real and imaginary parts."""

    def run(*pairs):
        y = f(*map(cr.view_as_complex, pairs))
        return cr.view_as_real(y) if isinstance(y, cr.ComplexTensor) else y

    return run


FUNCTIONS = {
    "pow": lambda a, b: a**b, "div": lambda a, b: a / b, "matmul": lambda a, b: a @ b.mT, "prod": lambda a, b: (a * b).prod(1),
    "cumprod": lambda a, b: (a - b).cumprod(-1), "mean": lambda a, b: (a * b.conj()).mean(0), "var": lambda a, b: (a * b).var(1),
    "where": lambda a, b: cr.where(a.detach().real > 0, a * a, b), "cat": lambda a, b: cr.cat([a, b * b], 1), "polar": lambda a, b: cr.polar(a.abs(), b.angle()),
    "einsum": lambda a, b: cr.einsum("ij,kj,kl->il", a, b, a), "tensordot": lambda a, b: cr.tensordot(a, b, ([1], [1])),
    "index": lambda a, b: a[[1, 0, 1]] * b[..., :1][0], "norm": lambda a, b: cr.linalg.vector_norm(a * b), "log": lambda a, b: (a / b).log(),
    "solve": lambda a, b: cr.linalg.solve(a[:, :2] + 3, b), "inv": lambda a, b: (a @ b.mH + 3).inverse(), "det": lambda a, b: cr.linalg.det(a @ b.mH),
    "slogdet": lambda a, b: cr.linalg.slogdet(a @ b.mH + 2).logabsdet, "sign of a determinant": lambda a, b: cr.linalg.slogdet(a @ b.mH + 2).sign,
    "cholesky": lambda a, b: cr.linalg.cholesky(a @ a.mH), "pinv": lambda a, b: cr.linalg.pinv(a) @ b, "eigvalsh": lambda a, b: cr.linalg.eigvalsh(a @ a.mH),
    "eigvals": lambda a, b: cr.linalg.eigvals(a @ b.mH), "eigh": lambda a, b: abs(cr.linalg.eigh(a @ a.mH).eigenvectors.mH @ b),
    "eig": lambda a, b: abs(cr.linalg.eig(a @ b.mH).eigenvectors.mH @ b), "vecdot": lambda a, b: cr.linalg.vecdot(a, b), "trace": lambda a, b: (a @ b.mT).trace(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck(name):
    pairs = [cr.tensor(rng.standard_normal((2, 3, 2))) for _ in range(2)]
    report = cr.check.gradcheck(parts(FUNCTIONS[name]), pairs, order=2)
    assert report, str(report)


def test_singular_values_have_a_first_derivative_only():
    pairs = cr.tensor(rng.standard_normal((3, 2, 2)))
    assert cr.check.gradcheck(parts(cr.linalg.svdvals), pairs)
    z = cr.view_as_complex(pairs).requires_grad_()
    g = cr.autograd.grad(cr.linalg.svdvals(z).sum(), z, create_graph=True)[0]
    with pytest.raises(cr.GradientError, match="svdvals"):
        g.abs().sum().backward()
    for f in (lambda: cr.linalg.svd(z).U, lambda: cr.linalg.qr(z).Q):
        with pytest.raises(cr.GradientError, match="no gradient for complex128"):
            f().abs().sum().backward()


def test_zeros_have_gradients_too():
    z = cr.zeros(2, dtype=cr.complex128, requires_grad=True)
    (z.abs() + z.angle() + z.sgn().real + (z * 2).prod().real).sum().backward()
    assert z.grad.tolist() == [0, 0]


def test_decompositions_multiply_back():
    x = array(2, 3, 3)
    A = cr.asarray(x)
    E, V = cr.linalg.eig(A)
    close((V * E.unsqueeze(-2)).numpy(), (A @ V).numpy())
    close(cr.linalg.eig(cr.tensor(x.real)).eigenvalues.sum(-1).real.numpy(), np.trace(x.real, axis1=1, axis2=2))
    U, S, Vh = cr.linalg.svd(A)
    close((U * S.unsqueeze(-2) @ Vh).numpy(), x)
    Q, R = cr.linalg.qr(A)
    close((Q @ R).numpy(), x)
    L = cr.linalg.cholesky(A @ A.mH)
    close((L @ L.mH).numpy(), x @ x.conj().mT)
    close(cr.linalg.matrix_power(A, -2).numpy(), np.linalg.matrix_power(x, -2), 1e-10)
    for ord in ("fro", "nuc", 1, -2, 2, np.inf):
        close(cr.linalg.matrix_norm(A, ord).numpy(), np.linalg.norm(x, ord, (-2, -1)))
    assert cr.linalg.matrix_rank(A).tolist() == [3, 3]


def test_equal_eigenvalues_and_phases_are_errors():
    z = cr.eye(2, dtype=cr.complex128, requires_grad=True)
    cr.linalg.eigvals(z).abs().sum().backward()
    with pytest.raises(cr.GradientError, match="two eigenvalues are equal"):
        cr.linalg.eig(z).eigenvectors.abs().sum().backward()
    z = cr.asarray(array(2, 2)).requires_grad_()
    with pytest.raises(cr.GradientError, match="phases"):
        cr.linalg.eig(z).eigenvectors.real.sum().backward()


def test_views_alias():
    z = cr.zeros(2, 3, dtype=cr.complex64)
    z[0][1] = 1 + 2j
    z.T[2].fill_(3j)
    z.real[1] = 5
    z.imag[1, 0] = -1
    row = z[1]
    row *= 2
    cr.view_as_real(z)[0, 0, 1] = 9
    assert z.tolist() == [[9j, 1 + 2j, 3j], [10 - 2j, 10, 10 + 6j]]
    z[z == 9j] = cr.tensor(1.0)
    z.exp_().zero_().add_(1j)
    assert (z == 1j).all() and z.dtype == cr.complex64


def test_shapes_are_those_of_numpy():
    x = array(2, 3, 4)
    z = cr.asarray(x)
    close(z.reshape(6, -1).numpy(), x.reshape(6, -1))
    close(z.permute(2, 0, 1).numpy(), x.transpose(2, 0, 1))
    close(z.transpose(0, -1).numpy(), x.swapaxes(0, -1))
    close(z.mH.numpy(), x.swapaxes(1, 2).conj())
    close(z[..., 1:, None, ::2].numpy(), x[..., 1:, None, ::2])
    close(z[:, [0, 2], [1, 3]].numpy(), x[:, [0, 2], [1, 3]])
    close(z[z.real > 0].numpy(), x[x.real > 0])
    close(z.flatten(1).numpy(), x.reshape(2, 12))
    close(z.unsqueeze(-1).squeeze().numpy(), x)
    close(z.movedim(0, -1).numpy(), np.moveaxis(x, 0, -1))
    close(z.roll(1, -1).flip(0).numpy(), np.roll(x, 1, -1)[::-1])
    close(z.diagonal(1, 1, 2).numpy(), x.diagonal(1, 1, 2))
    close(z.tril(-1).numpy(), np.tril(x, -1))
    close(z.sum((0, -1), keepdim=True).numpy(), x.sum((0, -1), keepdims=True))
    close(z.mean(1).numpy(), x.mean(1))
    close(z.prod(1).numpy(), x.prod(1))
    close(z.prod().numpy(), x.prod()[()])
    close(z.cumsum(1).numpy(), x.cumsum(1))
    close(z.std(0, correction=0).numpy(), x.std(0))
    close(cr.stack([z, z.real], -1).numpy(), np.stack([x, x.real], -1))
    close(cr.hstack([z, z]).numpy(), np.hstack([x, x]))
    close(z.repeat(2, 1, 1).numpy(), np.tile(x, (2, 1, 1)))
    close(cr.cat(z.split(2, 2) + z.chunk(2, 2), 2).numpy(), np.concatenate([x, x], 2))
    close(z.index_select(1, cr.tensor([2, 0])).numpy(), x[:, [2, 0]])
    assert z.shape == (2, 3, 4) and len(z) == 2 and z.stride is not None and z.numel() == 24 and z.nbytes == 24 * 16
    with pytest.raises(IndexError):
        z[0, 0, 0, 0]
    with pytest.raises(IndexError):
        z.sum(3)


def test_dtypes_are_promoted():
    a, b = cr.ones(2, dtype=cr.complex64), cr.ones(2, dtype=cr.complex128)
    assert (a * b).dtype == (a + cr.ones(2, dtype=cr.float64)).dtype == cr.complex128
    assert (a * cr.ones(2)).dtype == (a / cr.tensor([1, 2])).dtype == (a + 1j).dtype == (a * np.complex128(1)).dtype == cr.complex64
    assert (a * cr.tensor(1.0, dtype=cr.float64)).dtype == cr.complex64
    assert cr.ones(2).cfloat().dtype == cr.ones(2).type(cr.complex64).dtype == cr.eye(2, dtype=cr.cfloat).dtype == cr.complex64
    assert cr.ones(2).to(cr.complex128).dtype == a.to(complex).dtype == a.cdouble().dtype == cr.complex128
    assert cr.complex64 is cr.cfloat and cr.complex64 == pickle.loads(pickle.dumps(cr.complex64)) and cr.complex64.is_complex
    assert a.abs().dtype == a.real.dtype == cr.float32 and a.type() == repr(cr.complex64)
    xp = cr.array_api
    assert xp.result_type(cr.float64, a) == cr.complex128 and xp.result_type(cr.ones(1), 1j) == cr.complex64 and xp.isdtype(cr.complex64, "numeric")
    assert xp.add(cr.ones(1, dtype=cr.float64), a).dtype == cr.complex128 and not xp.can_cast(cr.complex64, cr.float64)


def test_there_and_back():
    x = array(2, 3)
    z = cr.asarray(x)
    close(np.asarray(z), x)
    close(np.from_dlpack(z), x)
    close(cr.from_dlpack(x).numpy(), x)
    close(pickle.loads(pickle.dumps(z)).numpy(), x)
    leaf = cr.asarray(x, requires_grad=True)
    again = copy.deepcopy([leaf, leaf])
    assert again[0] is again[1] and again[0].requires_grad and pickle.loads(pickle.dumps(leaf)).requires_grad
    assert cr.asarray([[1, 2j]]).tolist() == [[1, 2j]] == cr.as_tensor([[1.0, cr.complex(cr.tensor(0.0), cr.tensor(2.0))]]).tolist()
    file = io.BytesIO()
    cr.save({"z": z, "dtype": z.dtype}, file)
    file.seek(0)
    found = cr.load(file)
    close(found["z"].numpy(), x)
    assert found["dtype"] == cr.complex128
    with pytest.raises(cr.GradientError):
        leaf.numpy()
    assert cr.view_as_complex(cr.view_as_real(z)).equal(z) and cr.polar(z.abs(), z.angle()).allclose(z)
    assert cr.is_complex(z) and not cr.is_complex(z.real) and cr.is_tensor(z) and not z.is_floating_point()


def test_printing_is_that_of_pytorch():
    z = cr.asarray([1 + 2j, 0.5 - 1j])
    assert repr(z) == "tensor([1.0000+2.j, 0.5000-1.j])"
    assert repr(cr.asarray(np.array(1j))) == "tensor(0.+1.j, dtype=chainrule.complex128)"


NOT_THERE = {
    "lt": lambda z: z < 1, "clamp": lambda z: z.clamp(0), "floor_divide": lambda z: z // 2, "remainder": lambda z: z % 2, "max": lambda z: z.max(),
    "sort": lambda z: z.sort(), "relu": lambda z: z.relu(), "maximum": lambda z: cr.array_api.maximum(z, 1), "floor": lambda z: cr.array_api.floor(z),
    "float": lambda z: float(z), "imag": lambda z: cr.imag(z.real), "to": lambda z: z.to(cr.float32), "histogram": lambda z: cr.histogram(z),
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_what_is_not_there_is_an_error_that_names_it(name):
    with pytest.raises(TypeError, match=name + r"\b.*(complex64|float32)") as caught:
        NOT_THERE[name](cr.asarray([1 + 2j]))
    assert "\n" not in str(caught.value)


def test_functions_of_python_conjugate_where_they_must():
    x, y, A = array(3), array(3), array(2, 3, 3)
    a, b = cr.asarray(x), cr.asarray(y)
    close(cr.vdot(a, b).numpy(), np.asarray(np.vdot(x, y)))
    close(cr.linalg.vecdot(a, b).numpy(), np.asarray(np.vecdot(x, y)))
    close(cr.inner(a, b).numpy(), np.asarray(np.inner(x, y)))
    close(cr.cross(a, b, -1).numpy(), np.cross(x, y))
    close(cr.asarray(A).norm("nuc", (1, 2)).numpy(), np.linalg.norm(A, "nuc", (1, 2)))
    close(cr.meshgrid(a, b)[1].numpy(), np.meshgrid(x, y, indexing="ij")[1])
    close(a.masked_select(cr.tensor([[True], [False]])).numpy(), x)
    close(cr.std_mean(a)[0].numpy(), np.asarray(x.std(ddof=1)))
    assert cr.resolve_conj(a) is a and cr.float_power(a, 2).dtype == cr.complex128 and cr.atleast_2d(a).shape == (1, 3)
    assert cr.finfo(cr.complex64).eps == cr.finfo(cr.float32).eps
    with pytest.raises(TypeError, match="householder_product: complex128"):
        cr.linalg.householder_product(cr.asarray(A), a)


def test_derivatives_as_functions():
    z = cr.asarray([1 + 2j, 0.5j])
    g = cr.func.grad(lambda z: (z * z * z.conj()).real.sum())
    h = cr.func.grad(lambda z: g(z).abs().square().sum())(z)
    leaf = z.clone().detach().requires_grad_()
    first = cr.autograd.grad((leaf * leaf * leaf.conj()).real.sum(), leaf, create_graph=True)[0]
    first.abs().square().sum().backward()
    close(h.numpy(), leaf.grad.numpy(), 1e-6)
    with pytest.raises(TypeError, match="jacrev: complex64"):
        cr.func.jacrev(lambda z: z * z)(z)

    class Twice(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(TypeError, match="Twice.apply"):
        Twice.apply(z)


def test_a_loss_is_real():
    z = cr.asarray([1 + 2j]).requires_grad_()
    with pytest.raises(cr.GradientError, match="complex64"):
        (z * z).sum().backward()
    with pytest.raises(cr.GradientError, match="complex64"):
        cr.autograd.grad((z * z).sum(), z)
    g = cr.autograd.grad((z * z).sum(), z, grad_outputs=cr.asarray(1 + 0j))[0]
    assert g.tolist() == [2 - 4j] and z.grad is None and z.is_leaf
    seen = []
    y = z * 1j
    y.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    y.imag.sum().backward()
    assert seen == [[1j]] and z.grad.tolist() == [2] and z.detach().requires_grad is False


def test_compiled_functions():
    def f(z, w):
        return {"z": z * w.conj() @ w, "norm": (z + 1).abs().sum()}

    c = cr.compile(f)
    for _ in range(3):
        z, w = cr.asarray(array(3, 3)), cr.asarray(array(3, 3))
        ours, eager = c(z, w), f(z, w)
        assert isinstance(ours["z"], cr.ComplexTensor) and ours["z"].equal(eager["z"]) and ours["norm"] == eager["norm"]
    w = cr.asarray(array(2)).requires_grad_()
    step = cr.compile(lambda z: (z * w).abs().square().sum().backward())
    z = cr.asarray(array(2))
    step(z)
    close(w.grad.numpy(), 2 * w.detach().numpy() * np.abs(z.numpy()) ** 2)
    with pytest.raises(cr.GradientError, match="compile: exp of complex128"):
        cr.compile(lambda z: z.exp())(z)


def test_special_values_of_the_standard():
    inf, nan = np.inf, np.nan
    xp = cr.array_api

    def same(z, real, imag):
        np.testing.assert_array_equal([complex(z).real, complex(z).imag], [real, imag])

    same(xp.expm1(xp.asarray(complex(inf, 0.0))), inf, 0.0)
    same(xp.expm1(xp.asarray(complex(-inf, nan))), -1.0, 0.0)
    same(xp.exp(xp.asarray(complex(-inf, inf))), 0.0, 0.0)
    same(xp.sqrt(xp.asarray(complex(-inf, nan))), nan, inf)
    assert float(xp.abs(xp.asarray(complex(inf, nan)))) == inf


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_gradients_beside_torch(name):
    torch = pytest.importorskip("torch")
    if name == "exp2" and not hasattr(torch.Tensor, "exp2"):
        return
    xs = [array(3, 2), array(2)][: 1 + (name in TWO)]
    weight = array(3, 2)
    out = []
    for m, make in ((torch, torch.tensor), (cr, cr.asarray)):
        ts = [make(x).requires_grad_() for x in xs]
        y = getattr(ts[0], name)(*ts[1:])
        w = make(weight)
        loss = (y * w).real.sum() if y.is_complex() else (y * w.real).sum()
        grads = m.autograd.grad(loss, ts, create_graph=True)
        sum((g * g.conj()).real.sum() for g in grads).backward() if any(g.requires_grad for g in grads) else None
        out.append([a.detach().resolve_conj().numpy() for a in (y, *grads, *(t.grad for t in ts if t.grad is not None))])
    assert len(out[0]) == len(out[1])
    for theirs, ours in zip(*out):
        close(ours, theirs, 1e-10)


def test_random_numbers_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for name in ("rand", "randn"):
        for d in ("complex64", "complex128"):
            cr.manual_seed(3)
            torch.manual_seed(3)
            close(getattr(cr, name)(2, 20, dtype=getattr(cr, d)).numpy(), getattr(torch, name)(2, 20, dtype=getattr(torch, d)).numpy(), 1e-6)


@pytest.mark.parametrize("name", ["eig", "eigvals", "eigh", "inv", "det", "cholesky", "pinv", "solve"])
def test_linear_algebra_beside_torch(name):
    torch = pytest.importorskip("torch")
    x, b = array(3, 3), array(3, 2)
    x = x @ x.conj().T + np.eye(3) if name in ("eigh", "cholesky") else x
    out = []
    for m, make in ((torch, torch.tensor), (cr, cr.asarray)):
        A, B = make(x).requires_grad_(), make(b).requires_grad_()
        if name == "solve":
            loss = m.linalg.solve(A, B).abs().square().sum()
        elif name in ("eig", "eigh"):
            E, V = getattr(m.linalg, name)(A)
            loss = (E.abs() ** 3).sum() + ((V.mH @ B).abs() ** 3).sum()
        else:
            loss = (getattr(m.linalg, name)(A).abs() ** 3).sum()
        loss.backward()
        out.append((loss.detach().numpy(), A.grad.resolve_conj().numpy()))
    close(out[1][0], out[0][0], 1e-9)
    close(out[1][1], out[0][1], 1e-9)


def test_real_tensors_beside_complex_numbers():
    a, i = np.array([1.0, 2.0]), np.array([1, 2])
    for dtype in (cr.float32, cr.float64):
        x = cr.tensor(a, dtype=dtype)
        wanted = cr.complex64 if dtype == cr.float32 else cr.complex128
        for got, want in [
            (x + 1j, a + 1j), (1j - x, 1j - a), (x * 2j, a * 2j), (2j / x, 2j / a), (x / 1j, a / 1j), (x**1j, a**1j), (1j**x, 1j**a),
            (cr.add(x, 1j), a + 1j), (cr.mul(2j, x), a * 2j), (x - np.complex64(1j), a - 1j),
        ]:
            assert got.dtype == wanted
            close(got.numpy(), want.astype(wanted.name), 1e-6)
        assert (x == 1 + 0j).tolist() == [True, False] and (x != 1j).tolist() == [True, True] and (2 + 0j == x).tolist() == [False, True]
    assert (cr.tensor(i) * 1j).dtype == cr.complex64
    close((cr.tensor(i) * 1j).numpy(), (i * 1j).astype(np.complex64))
    x = cr.tensor(a, requires_grad=True)
    z = cr.exp(1j * x)
    (z.imag.sum() + cr.abs(z).sum()).backward()
    close(x.grad.numpy(), np.cos(a).astype(x.grad.dtype.name), 1e-6)
    for f in (lambda: x < 1j, lambda: x & 1j, lambda: cr.maximum(x, 1j), lambda: x.detach().add_(1j)):
        with pytest.raises(TypeError) as caught:
            f()
        assert "\n" not in str(caught.value)
    x = cr.tensor(a)
    for name in ("iadd", "isub", "imul", "itruediv", "ipow"):
        with pytest.raises(TypeError, match=f"{name}: a complex result does not fit into a tensor of float64"):
            getattr(operator, name)(x, 1j)


def test_tensors_of_complex_numbers():
    for data in (1j, [1j, 2.0], [[1, 2j], [3.5, True]], np.array([1j]), (1 + 2j, 3)):
        want = np.asarray(data)
        z = cr.tensor(data)
        assert z.dtype == (cr.complex128 if isinstance(data, np.ndarray) else cr.complex64) and tuple(z.shape) == want.shape
        close(z.numpy(), want.astype(z.dtype.name))
    z = cr.tensor([1.0, 2.0], dtype=cr.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.dtype == cr.complex128 and z.grad.tolist() == [2, 4]
    with pytest.raises(TypeError):
        cr.tensor([1j], dtype=cr.float32)
    with pytest.raises(ValueError, match="cpu"):
        cr.tensor([1j], device="cuda")


def test_functions_take_complex_tensors():
    x = array(4)
    z = cr.asarray(x)
    for name in "exp log sin cos tan sinh cosh tanh sqrt square reciprocal angle abs negative conj sum prod mean cumsum flip".split():
        args = (0,) if name in ("cumsum", "flip") else ()
        close(getattr(cr, name)(z, *args).numpy(), np.asarray(getattr(np, name)(x, *args)), 1e-6)
    close(cr.matmul(z, z).numpy(), np.asarray(x @ x))
    close(cr.outer(input=z, vec2=z).numpy(), np.outer(x, x))
    with pytest.raises(TypeError, match="maximum"):
        cr.maximum(z, z)
