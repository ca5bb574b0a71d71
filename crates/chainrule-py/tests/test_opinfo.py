"""Ops that are composed of others beside PyTorch's, over the sample inputs of its own table: values
and first gradients.
"""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")


def load():
    path = Path(__file__).parent.parent / "tools" / "opinfo.py"
    spec = importlib.util.spec_from_file_location("opinfo", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OPINFO = load()
TABLE = {}
for op in OPINFO.op_db:
    TABLE.setdefault(op.name, []).append(op)

WHOLE = """
deg2rad rad2deg signbit isposinf isneginf angle frexp fmax fmin heaviside ldexp logaddexp2 float_power aminmax nansum nanmean kthvalue
nanmedian quantile nanquantile corrcoef renorm diff gradient cumulative_trapezoid mode lgamma digamma mvlgamma polygamma sinc xlogy i0 igamma
igammac special.i0e special.i1 special.i1e special.ndtr special.xlog1py special.zeta special.entr special.ndtri special.log_ndtr special.erfcx
atleast_1d atleast_3d block_diag cartesian_prod combinations column_stack dstack tensor_split hsplit dsplit fliplr rot90 diagonal_scatter
select_scatter slice_scatter argwhere isin unique_consecutive put index_reduce scatter_reduce msort sum_to_size
addmv addbmm baddbmm addr inner matrix_exp lu lu_solve lu_unpack triangular_solve svd pinverse linalg.lu linalg.lu_factor linalg.lu_solve
linalg.lstsq linalg.solve_triangular linalg.tensorinv linalg.tensorsolve linalg.householder_product linalg.cholesky_ex
signal.windows.kaiser signal.windows.general_cosine signal.windows.exponential
nn.functional.interpolate nn.functional.conv3d nn.functional.conv_transpose3d nn.functional.avg_pool3d nn.functional.adaptive_avg_pool3d
nn.functional.adaptive_max_pool3d nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.embedding_bag nn.functional.multi_margin_loss
nn.functional.multilabel_margin_loss nn.functional.alpha_dropout nn.functional.rrelu nn.functional.pdist nn.functional.channel_shuffle
nn.functional.pixel_shuffle geometric log_normal cauchy searchsorted to float double cat einsum
""".split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WHOLE)
def test_whole(name):
    for op in TABLE[name]:
        torch.manual_seed(0)
        count, bad = OPINFO.run_op(op)
        assert count and not bad, bad[:3]


def test_ctc_loss_behind_a_log_softmax():
    """Gradients of the scores; those of the logarithms themselves are not those of the formula in
    PyTorch."""
    import chainrule as cr

    torch.manual_seed(3)
    scores = torch.randn(12, 3, 5, dtype=torch.float64)
    targets = torch.tensor([[1, 1, 2, 3], [4, 2, 0, 0], [1, 2, 3, 4]])
    for ins, outs in (([12, 9, 3], [4, 2, 4]), ([12, 12, 12], [4, 0, 1])):
        for reduction in ("none", "mean", "sum"):
            a = scores.clone().requires_grad_()
            b = cr.tensor(scores.numpy(), requires_grad=True)
            x = torch.nn.functional.ctc_loss(a.log_softmax(2), targets, torch.tensor(ins),
            torch.tensor(outs), 0, reduction, True)
            y = cr.nn.functional.ctc_loss(b.log_softmax(2), cr.tensor(targets.numpy()), ins, outs,
            0, reduction, True)
            OPINFO.compare("loss", x, y, (1e-10, 1e-10))
            x.sum().backward()
            y.sum().backward()
            OPINFO.compare("gradient", a.grad, b.grad, (1e-9, 1e-10))


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_pools_name_the_axes_as_pytorch(axes):
    """Samples of its table have axes of nearly one size, for which the order does not show."""
    import chainrule as cr

    name, shape = f"fractional_max_pool{axes}d", (2, 2, 9, 7, 6)[: axes + 2]
    x = torch.randperm(torch.Size(shape).numel()).reshape(shape).double()
    for seed in range(20):
        samples = torch.rand(2, 2, axes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        settings = {"kernel_size": (3, 2, 2)[:axes], "output_size": (4, 3, 2)[:axes]}
        theirs = getattr(torch.nn.functional, name)(x, **settings, _random_samples=samples)
        ours = getattr(cr.nn.functional, name)(cr.tensor(x.numpy()), **settings, _random_samples=cr.tensor(samples.numpy()))
        assert ours.tolist() == theirs.tolist()
