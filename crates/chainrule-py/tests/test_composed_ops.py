"""Ops that are composed of others, beside NumPy's and by their laws; their gradients beside
differences.
"""

import math

import chainrule as cr
import numpy as np
import pytest

F = cr.nn.functional
f64 = cr.float64
RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 5))
SQUARE = RNG.normal(size=(3, 3)) + 3 * np.eye(3)


def t(a, grad=False):
    return cr.tensor(np.array(a, order="C"), requires_grad=grad)


def same(ours, wanted, rtol=1e-12, atol=1e-12):
    np.testing.assert_allclose(ours.detach().numpy(), wanted, rtol=rtol, atol=atol)


NUMPY = {
    "deg2rad": (cr.deg2rad, np.deg2rad), "rad2deg": (cr.rad2deg, np.rad2deg), "signbit": (cr.signbit, np.signbit), "sinc": (cr.sinc, np.sinc),
    "i0": (cr.i0, np.i0), "fliplr": (cr.fliplr, np.fliplr), "flipud": (cr.flipud, np.flipud), "rot90": (cr.rot90, np.rot90),
    "rot90 back": (lambda x: cr.rot90(x, -1), lambda x: np.rot90(x, -1)), "corrcoef": (cr.corrcoef, np.corrcoef), "cov": (cr.cov, np.cov),
    "nansum": (cr.nansum, np.nansum), "diff": (lambda x: cr.diff(x, 2), lambda x: np.diff(x, 2)), "msort": (cr.msort, lambda x: np.sort(x, 0)),
    "atleast_3d": (cr.atleast_3d, np.atleast_3d), "diagflat": (lambda x: cr.diagflat(x[0], 1), lambda x: np.diagflat(x[0], 1)),
    "gradient": (lambda x: cr.gradient(x, dim=1)[0], lambda x: np.gradient(x, axis=1)),
    "gradient of order 2": (
        lambda x: cr.gradient(x, spacing=[t([0.0, 1, 2.5, 3, 5])], dim=1, edge_order=2)[0],
        lambda x: np.gradient(x, [0.0, 1, 2.5, 3, 5], axis=1, edge_order=2),
    ),
    "vander": (lambda x: cr.linalg.vander(x, 4), lambda x: np.stack([x**i for i in range(4)], -1)),
    "column_stack": (lambda x: cr.column_stack([x, x[:, 0]]), lambda x: np.column_stack([x, x[:, 0]])),
    "dstack": (lambda x: cr.dstack([x, x]), lambda x: np.dstack([x, x])),
    "logaddexp2": (lambda x: cr.logaddexp2(x, x * 3), lambda x: np.logaddexp2(x, x * 3)),
    "ldexp": (lambda x: cr.ldexp(x, cr.tensor(3)), lambda x: np.ldexp(x, 3)),
    "inner": (lambda x: cr.inner(x, x), lambda x: np.inner(x, x)),
}


@pytest.mark.parametrize("name", NUMPY)
def test_beside_numpy(name):
    ours, theirs = NUMPY[name]
    same(ours(t(A)), theirs(A))
    same(ours(t(A.T)), theirs(A.T)) if name not in ("gradient of order 2",) else None


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_quantiles(q, how):
    x = A.copy()
    same(cr.quantile(t(x), q, interpolation=how), np.quantile(x, q, method=how))
    same(cr.quantile(t(x), q, 1, True, interpolation=how), np.quantile(x, q, axis=1, keepdims=True, method=how))
    x[1, 2] = np.nan
    same(cr.nanquantile(t(x), q, 0, interpolation=how), np.nanquantile(x, q, axis=0, method=how))
    assert np.isnan(cr.quantile(t(x), q, 1).numpy()[1])


@pytest.mark.parametrize("x", [-2.5, -0.5, 0.1, 0.5, 1.0, 2.0, 3.7, 12.0, 150.0])
def test_gamma_functions(x):
    y = cr.tensor(x, dtype=f64)
    assert math.isclose(cr.lgamma(y).item(), math.lgamma(x), rel_tol=1e-14, abs_tol=1e-15)
    # psi(x + 1) = psi(x) + 1 / x, and so for its derivatives.
    assert math.isclose(cr.digamma(y + 1).item(), cr.digamma(y).item() + 1 / x, rel_tol=1e-12, abs_tol=1e-12)
    for n in (1, 2, 3):
        step = (-1) ** n * math.factorial(n) / x ** (n + 1)
        assert math.isclose(cr.polygamma(n, y + 1).item(), cr.polygamma(n, y).item() + step, rel_tol=1e-10, abs_tol=1e-10 * abs(step))


def test_values_that_are_known():
    one = cr.tensor(1.0, dtype=f64)
    assert math.isclose(-cr.digamma(one).item(), 0.57721566490153286, rel_tol=1e-14)
    assert math.isclose(cr.polygamma(1, one).item(), math.pi**2 / 6, rel_tol=1e-14)
    assert math.isclose(cr.special.zeta(4.0 * one, one).item(), math.pi**4 / 90, rel_tol=1e-14)
    # I0(1) and I1(1), and their expansions far away meet the series at 40.
    assert math.isclose(cr.i0(one).item(), 1.2660658777520084, rel_tol=1e-14) and math.isclose(cr.special.i1(one).item(), 0.5651591039924851, rel_tol=1e-14)
    near, far = (cr.special.i0e(cr.tensor(x, dtype=f64)).item() for x in (39.999999999, 40.000000001))
    assert math.isclose(near, far, rel_tol=1e-10)
    # A chi-squared variable with two degrees of freedom is exponential.
    same(cr.igamma(one, cr.tensor([0.3, 2.0, 9.0], dtype=f64)), 1 - np.exp([-0.3, -2, -9]))
    same(cr.igammac(one, cr.tensor([0.3, 2.0, 9.0, 80.0], dtype=f64)), np.exp([-0.3, -2, -9, -80.0]), atol=0)
    assert cr.lgamma(cr.tensor([0.0, -1.0, math.inf])).tolist() == [math.inf] * 3
    # The expansion of the tail, whose next term is 945 / 30^10.
    tail = -450 - 0.5 * math.log(2 * math.pi) - math.log(30) + math.log(1 - 1 / 900 + 3 / 900**2 - 15 / 900**3 + 105 / 900**4)
    assert cr.special.log_ndtr(cr.tensor(-30.0, dtype=f64)).item() == pytest.approx(tail, rel=1e-14)


POINT = np.array([[0.4, 1.7, -0.6], [2.3, 0.9, 3.1]])
SMOOTH = {
    "lgamma": lambda x: cr.lgamma(x), "digamma": lambda x: cr.digamma(x), "polygamma": lambda x: cr.polygamma(1, x), "i0": cr.i0,
    "i1": cr.special.i1, "i0e": cr.special.i0e, "i1e": cr.special.i1e, "erfcx": cr.special.erfcx, "log_ndtr": cr.special.log_ndtr,
    "sinc": cr.sinc, "xlogy": lambda x: cr.xlogy(x, x.abs()), "igamma": lambda x: cr.igamma(cr.tensor(1.4, dtype=f64), x.abs()),
    "quantile": lambda x: cr.quantile(x, 0.3, 1), "cov": lambda x: cr.cov(x), "gradient": lambda x: cr.gradient(x, dim=1)[0],
    "renorm": lambda x: cr.renorm(x, 2, 0, 1.0), "scatter_reduce prod": lambda x: cr.scatter_reduce(
        x, 1, cr.tensor([[0, 0, 2], [1, 1, 1]]), x * 2, "prod"),
    "scatter_reduce amax": lambda x: cr.scatter_reduce(x, 1, cr.tensor([[0, 0, 2], [1, 1, 1]]), x * 0.7, "amax"),
    "scatter_reduce mean": lambda x: cr.scatter_reduce(x, 1, cr.tensor([[0, 0, 2], [1, 1, 1]]), x * 2, "mean", include_self=False),
    "select_scatter": lambda x: cr.select_scatter(x, x[0] * x[1], 0, 1), "frexp": lambda x: cr.frexp(x).mantissa,
    "interpolate bicubic": lambda x: F.interpolate(x.reshape(1, 1, 2, 3), (5, 4), mode="bicubic"),
    "interpolate antialias": lambda x: F.interpolate(x.reshape(1, 1, 2, 3), (1, 2), mode="bilinear", antialias=True),
    "grid_sample": lambda x: F.grid_sample(x.reshape(1, 1, 2, 3), cr.tensor([[[[0.13, -0.4], [0.61, 0.3]]]], dtype=f64) * x.sin().sum()),
    "fold": lambda x: F.fold(x.reshape(1, 1, 6), (2, 3), 1), "pdist": lambda x: F.pdist(x),
    "ctc_loss": lambda x: F.ctc_loss(x.log_softmax(1), cr.tensor([1]), [2], [1], reduction="sum"),
    "conv3d": lambda x: F.conv3d(x.reshape(1, 1, 2, 1, 3), x.reshape(1, 1, 2, 1, 3), padding=1),
    "conv_transpose3d": lambda x: F.conv_transpose3d(x.reshape(1, 1, 2, 1, 3), x.reshape(1, 1, 2, 1, 3), stride=2, padding=(1, 0, 1)),
    "avg_pool3d": lambda x: F.avg_pool3d(x.reshape(1, 1, 2, 3), (1, 2, 2), ceil_mode=True, padding=(0, 1, 1)),
    "max_pool3d": lambda x: F.max_pool3d(x.reshape(1, 1, 2, 3), (1, 1, 2), stride=1),
    "embedding_bag": lambda x: F.embedding_bag(cr.tensor([[0, 1], [1, 1]]), x),
    "multilabel_margin": lambda x: F.multilabel_margin_loss(x, cr.tensor([[0, 2, -1], [1, -1, 0]])),
    "multi_margin": lambda x: F.multi_margin_loss(x, cr.tensor([0, 2]), p=2),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    report = cr.check.gradcheck(SMOOTH[name], t(POINT, True))
    assert report.passed, str(report)


OF_MATRICES = {
    "matrix_exp": cr.matrix_exp, "matrix_exp of a large one": lambda x: cr.matrix_exp(x * 3), "lu": lambda x: cr.linalg.lu(x).L @ cr.linalg.lu(x).U.sin(),
    "lu of a tall one": lambda x: cr.linalg.lu_factor(x[:, :2]).LU.sin(), "lu of a wide one": lambda x: cr.linalg.lu_factor(x[:2]).LU.sin(),
    "solve_triangular": lambda x: cr.linalg.solve_triangular(x, x + 1, upper=True),
    "lu_solve": lambda x: cr.linalg.lu_solve(*cr.linalg.lu_factor(x), x * x, left=False, adjoint=True),
    "cholesky_solve": lambda x: cr.cholesky_solve(x + 1, x), "cholesky_inverse": lambda x: cr.cholesky_inverse(x, upper=True),
    "householder_product": lambda x: cr.linalg.householder_product(x, x[0, :2]), "lstsq": lambda x: cr.linalg.lstsq(x[:, :2], x).solution,
    "tensorinv": lambda x: cr.linalg.tensorinv(x.reshape(1, 3, 3)), "baddbmm": lambda x: cr.baddbmm(x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0), beta=0.5),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_gradients_of_matrices(name):
    report = cr.check.gradcheck(OF_MATRICES[name], t(SQUARE, True))
    assert report.passed, str(report)


def test_laws_of_matrices():
    x = t(SQUARE)
    P, L, U = cr.linalg.lu(x)
    same(P @ L @ U, SQUARE)
    e = cr.matrix_exp(x) @ cr.matrix_exp(-x)
    same(e, np.eye(3), atol=1e-11)
    same(cr.linalg.lu_solve(*cr.linalg.lu_factor(x), x), np.eye(3))
    same(cr.linalg.tensorsolve(x.reshape(3, 3), x[0]), np.linalg.solve(SQUARE, SQUARE[0]))
    same(cr.pinverse(t(A)), np.linalg.pinv(A))
    for shape in ((0, 0), (2, 0, 0)):
        assert tuple(cr.matrix_exp(cr.zeros(*shape)).shape) == shape


def test_sizes_of_images():
    x = t(RNG.normal(size=(2, 3, 6, 4)))
    for mode in ("nearest", "nearest-exact", "area", "bilinear", "bicubic"):
        assert F.interpolate(x, (6, 4), mode=mode).sub(x).abs().max().item() < 1e-12
    # A grid at the pixels reads the pixels.
    theta = cr.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=f64)
    for corners in (False, True):
        grid = F.affine_grid(theta, (2, 3, 6, 4), align_corners=corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            same(F.grid_sample(x, grid, mode, align_corners=corners), x.numpy())
    # Columns folded back count each pixel as often as windows hold it.
    ones = F.fold(F.unfold(cr.ones(1, 1, 4, 4), 3, padding=1), (4, 4), 3, padding=1)
    assert ones[0, 0].tolist() == [[4, 6, 6, 4], [6, 9, 9, 6], [6, 9, 9, 6], [4, 6, 6, 4]]


def test_ctc_loss_is_the_sum_over_all_paths():
    scores = t(RNG.normal(size=(4, 1, 3))).log_softmax(2)
    p = scores.exp().numpy()[:, 0]
    for target in ([1], [1, 1], [1, 2], []):
        total = 0.0
        for path in np.ndindex(3, 3, 3, 3):
            spelled = [k for i, k in enumerate(path) if k and (i == 0 or path[i - 1] != k)]
            total += math.prod(p[i, k] for i, k in enumerate(path)) if spelled == target else 0.0
        targets = cr.tensor([target], dtype=cr.int64).reshape(1, len(target))
        loss = F.ctc_loss(scores, targets, [4], [len(target)], reduction="sum")
        assert math.isclose(loss.item(), -math.log(total), rel_tol=1e-12)
    impossible = F.ctc_loss(scores[:1], cr.tensor([[1, 2]]), [1], [2])
    assert impossible.item() == math.inf
    assert F.ctc_loss(scores[:1], cr.tensor([[1, 2]]), [1], [2], zero_infinity=True).item() == 0


def test_scatter_reduce_of_ties_and_of_nothing():
    x = cr.tensor([1.0, 1.0, 0.0], requires_grad=True)
    y = cr.tensor([1.0, 1.0], requires_grad=True)
    cr.scatter_reduce(x, 0, cr.tensor([0, 0]), y, "amax").sum().backward()
    assert x.grad.tolist() == pytest.approx([1 / 3, 1, 1]) and y.grad.tolist() == pytest.approx([1 / 3, 1 / 3])
    tiny = cr.scatter_reduce(cr.ones(1), 0, cr.tensor([0, 0]), cr.tensor([1e-20, 1e-10]), "prod")
    assert tiny.item() == pytest.approx(1e-30, rel=1e-5)
    none = cr.tensor([], dtype=cr.int64)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        assert cr.scatter_reduce(x.detach(), 0, none, cr.tensor([]), reduce).tolist() == x.tolist()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: cr.quantile(cr.ones(3), 1.5), "from 0 to 1"), (lambda: cr.kthvalue(cr.ones(3), 4), r"k is from 1 to 3, got 4"),
        (lambda: cr.gcd(cr.ones(2), cr.tensor(2)), "integers are needed"), (lambda: cr.linalg.vander(cr.ones(3), -1), "N must not be negative"),
        (lambda: cr.linalg.solve_triangular(cr.zeros(2, 2), cr.ones(2, 1), upper=True), "0 on its diagonal"),
        (lambda: cr.matrix_exp(cr.full((2, 2), math.inf)), "not finite"), (lambda: F.interpolate(cr.ones(1, 1, 2), 4, mode="bicubic"), "interpolate: shape"),
        (lambda: F.grid_sample(cr.ones(1, 1, 2, 2), cr.ones(2, 2, 2, 2)), "do not go together"), (lambda: F.fold(cr.ones(1, 5, 4), (2, 2), 2), "no columns"),
        (lambda: cr.as_strided(cr.ones(3), (2, 2), (2, 1)), "reach beyond 3"), (lambda: cr.scatter_reduce(cr.ones(3), 0, cr.tensor([0]), cr.ones(1), "max"), "reduce is one of"),
        (lambda: cr.select_scatter(cr.ones(2, 2), cr.ones(3), 0, 0), "src has shape"), (lambda: F.embedding_bag(cr.tensor([0]), cr.ones(2, 2)), "rows without offsets"),
        (lambda: cr.signal.windows.gaussian(5, std=0.0), "std must be positive"), (lambda: cr.hsplit(cr.ones(3), 2), "equal parts"),
        (lambda: F.ctc_loss(cr.ones(2, 1, 3), cr.tensor([[1]]), [5], [1]), "input_lengths"),
    ],
)
def test_errors(call, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
