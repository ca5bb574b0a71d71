"""The inputs that PyTorch tests its own functions with: values, dtypes, shapes and gradients are
PyTorch's. Needs torch and expecttest.
"""

import warnings

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

# The samples are small: threads would only wait for each other.
torch.set_num_threads(1)

# Tolerances of values, relative and absolute; gradients have ten times as much.
TOLERANCE = {torch.float64: (1e-7, 1e-9), torch.float32: (2e-5, 2e-5), torch.int64: (0, 0), torch.bool: (0, 0)}
DTYPES = [torch.float64, torch.float32, torch.int64, torch.bool]
# Functions of PyTorch's own in its table, in PyTorch's terms; and those that change a copy.
OTHER_ORDER = {
    "einsum": lambda operands, equation: cr.einsum(equation, *operands),
    "where": lambda x, condition, other: cr.where(condition, x, other),
    "nn.functional.embedding": lambda weight, indices, **options: F.embedding(indices, weight, **options),
    "normal.number_mean": lambda std, mean, *args, **options: cr.normal(mean, std, *args, **options),
    "normal.in_place": lambda x, *args, **options: x.detach().clone().normal_(*args, **options),
    "zero_": lambda x: x.clone().zero_(),
    "linalg.pinv.singular": lambda a, b: cr.linalg.pinv(a @ b.mT),
    "linalg.lstsq.grad_oriented": lambda *args, **options: cr.linalg.lstsq(*args, **options)[:2],
    "nn.functional.embedding_bag": lambda weight, indices, **options: F.embedding_bag(indices, weight, **options),
    # The random matrix is that of PyTorch's own test.
    "svd_lowrank": lambda a, b, **options: (cr.manual_seed(42), cr.svd_lowrank(a @ b.mT, **options))[1],
    "pca_lowrank": lambda a, b, **options: (cr.manual_seed(42), cr.pca_lowrank(a @ b.mT, **options))[1],
    **{f"polygamma.polygamma_n_{n}": lambda x, n, **options: cr.polygamma(n, x, **options) for n in range(5)},
    "special.polygamma.special_polygamma_n_0": lambda x, n, **options: cr.special.polygamma(n, x, **options),
}
# Only dtype and shape count: nobody set the elements.
UNSET = "empty empty_like empty_permuted empty_strided new_empty".split()
# Signs are free: absolute values are compared.
SIGNS = "linalg.eigh linalg.svd pca_lowrank svd svd_lowrank".split()

FLOATS, WHOLE = ("float64", "float32"), ("int64", "bool")
NO_INTEGERS = "an average, a product with weights or a pool of integers is refused"
NO_BOOLS = "with bools there are +, *, maximum and minimum only"
# Differences, for these dtypes, with their reasons. An entry that is not needed any more fails.
DIFFERENT = {
    "nn.functional.group_norm": (FLOATS, "a negative eps is refused"),
    "cholesky_inverse": (FLOATS, "the gradient of the formula, which PyTorch's is not for a full matrix"),
    "cholesky_solve": (FLOATS, "the gradient of the formula, which PyTorch's is not for a full matrix"),
    "as_strided_scatter": (FLOATS, "the gradient of elements that several places share"),
    "nn.functional.max_unpool1d": (FLOATS, "the gradient of places that occur twice"),
    "nn.functional.max_unpool2d": (FLOATS, "the gradient of places that occur twice"),
    "nn.functional.max_unpool3d": (FLOATS, "the gradient of places that occur twice"),
    "nn.functional.fractional_max_pool3d": (("float32",), "some windows begin elsewhere, for a reason that is not known yet"),
    "nn.functional.triplet_margin_with_distance_loss": ((*FLOATS, "int64"), "a distance of PyTorch's takes PyTorch's tensors"),
    "histc": (("float64",), "the edges of a thousand bins between 0 and 0.00001 are rounded elsewhere"),
    "logcumsumexp": (("float32",), "PyTorch's gradient beside an element of 10,000 is off by 0.002, ours by 0.0001"),
    "special.hermite_polynomial_he": (("float32",), "terms of thousands cancel to 1.95632: PyTorch's is off by 0.00002, ours by 0.00004"),
    "add": (("bool",), "a factor that is False"),
    "nn.functional.ctc_loss": (FLOATS, "the gradient of the loss itself, where PyTorch's is right behind log_softmax alone"),
    **{
        name: (("float32",), "beside a pole PyTorch's polygamma is off by 2e-5, ours by 2e-8")
        for name in [*(f"polygamma.polygamma_n_{n}" for n in range(5)), "special.polygamma.special_polygamma_n_0"]
    },
    "matrix_exp": (("float32",), "single elements of a gradient beside others 10,000 times as large"),
    "nn.functional.local_response_norm": (("int64",), NO_INTEGERS),
    "kthvalue": (("int64",), "which of equal elements comes first"),
    "mode": (WHOLE, "which of equal elements is meant"),
    "topk": (("int64",), "which of equal elements come first"),
    "sort": (("bool",), "which of equal elements come first, where stable=False"),
    "argsort": (("bool",), "which of equal elements come first, where stable=False"),
    **{name: (("int64",), "factors that are no integers give floats") for name in "addmm addmv addbmm baddbmm".split()},
    "nn.functional.hardtanh": (("int64",), "a bound that is no integer gives floats"),
    "__rpow__": (("int64",), "integers take no negative exponents"),
    "scatter": (WHOLE, "there is no reduce"),
    "nn.functional.cosine_embedding_loss": (WHOLE, NO_INTEGERS),
    **{
        "nn.functional." + name: (("int64",), NO_INTEGERS)
        for name in (
            "avg_pool1d avg_pool2d avg_pool3d max_pool2d conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear"
        ).split()
    },
    **{name: (("bool",), NO_BOOLS) for name in "addr put scatter_reduce.sum scatter_reduce.prod clamp_max clamp_min outer kron square index_add index_put scatter_add".split()},
}


class Other(Exception):
    """A sample of something that is not here: another dtype, a sparse tensor."""


def ours(x, leaves):
    """A sample in our tensors; the leaves are noted, each beside PyTorch's."""
    if isinstance(x, torch.Tensor):
        if x.dtype not in DTYPES or x.layout != torch.strided:
            raise Other
        t = cr.tensor(np.array(x.detach().numpy()), requires_grad=x.requires_grad)
        if x.requires_grad:
            leaves.append((t, x))
        return t
    if isinstance(x, torch.dtype):
        if x not in DTYPES:
            raise Other
        return getattr(cr, str(x).removeprefix("torch."))
    if isinstance(x, (torch.memory_format, torch.layout, torch.Generator, complex)):
        raise Other
    if isinstance(x, torch.device):
        return str(x)
    if isinstance(x, dict):
        return {k: ours(v, leaves) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (list if isinstance(x, list) else tuple)(ours(y, leaves) for y in x)
    return x


def again(x):
    """The same sample with leaves of its own."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if isinstance(x, dict):
        return {k: again(v) for k, v in x.items()}
    return type(x)(again(y) for y in x) if type(x) in (list, tuple) else x


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, (list, tuple)) else [x]


def identity(op):
    """The name and the variant, by which the tables here go."""
    return f"{op.name}.{op.variant_test_name}".rstrip(".")


def function(op):
    """The function of this name, or the method."""
    name = op.name
    if identity(op) in OTHER_ORDER:
        return OTHER_ORDER[identity(op)]
    found = F if name.startswith("nn.functional.") else cr
    for part in name.removeprefix("nn.functional.").split("."):
        found = getattr(found, part, None)
    return found if callable(found) else getattr(cr.Tensor, name, None)


def check(op, sample):
    x, args, options = again(sample.input), again(sample.args), again(sample.kwargs)
    leaves = []
    a, b, c = ours(x, leaves), ours(args, leaves), ours(options, leaves)
    try:
        want = flat(op.op(x, *args, **options))
    except RuntimeError:  # a sample of an error
        raise Other from None
    if any(isinstance(w, torch.Tensor) and w.dtype not in DTYPES for w in want):
        raise Other
    cr.manual_seed(42)
    got = flat(function(op)(a, *b, **c))
    assert len(got) == len(want)
    if op.name in SIGNS:
        if "svd" in op.name:  # what full matrices add is arbitrary
            k = want[1].shape[-1]
            rows = (slice(k), slice(None)) if op.name == "linalg.svd" else (slice(None), slice(k))
            got, want = ([u[..., :k], s, v[(..., *rows)]] for u, s, v in (got, want))
        got, want = [g.abs() for g in got], [w.abs() for w in want]
    theirs, our = 0, 0
    for g, w in zip(got, want):
        if not isinstance(w, torch.Tensor):
            assert g == w
            continue
        assert (g.dtype.name, tuple(g.shape)) == (str(w.dtype).removeprefix("torch."), tuple(w.shape))
        if op.name in UNSET or options.get("dropout_p"):  # the mask of a dropout is random
            continue
        if w.layout != torch.strided:
            g, w = g.to_dense(), w.to_dense()
        rtol, atol = TOLERANCE[w.dtype]
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=rtol, atol=atol)
        if w.requires_grad and g.requires_grad:
            up = np.random.default_rng(1).normal(size=tuple(w.shape)).astype(g.dtype.name)
            our, theirs = our + (g * cr.tensor(up)).sum(), theirs + (w * torch.tensor(up)).sum()
    if leaves and isinstance(our, cr.Tensor):
        theirs.backward()
        our.backward()
        for p, q in leaves:
            # A sum, for some gradients are tensors without memory.
            want = np.zeros(q.shape) if q.grad is None else (torch.zeros_like(q) + q.grad.to_dense()).numpy()
            rtol, atol = (10 * x for x in TOLERANCE[q.dtype])
            np.testing.assert_allclose(np.zeros(q.shape) if p.grad is None else p.grad.numpy(), want, rtol=rtol, atol=atol)


KNOWN = [(dtype, op) for dtype in DTYPES for op in op_db if dtype in op.dtypes and callable(function(op))]


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype, op", KNOWN, ids=[f"{name_of(dtype)}-{identity(op)}" for dtype, op in KNOWN])
def test_samples(dtype, op):
    seen, failures = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point)):
            try:
                check(op, sample)
                seen += 1
            except Other:
                continue
            except Exception as error:  # noqa: BLE001
                failures.append(f"sample {i}: {type(error).__name__}: {error}")
    dtypes, why = DIFFERENT.get(identity(op), ((), ""))
    if name_of(dtype) in dtypes:
        assert failures, f"the exception is not needed any more: {why}"
        return
    assert not failures, f"{len(failures)} of {len(failures) + seen} differ\n" + "\n".join(failures[:3])
    if not seen:
        pytest.skip("all samples are of other dtypes")


def test_exceptions_are_of_functions_that_exist():
    names = {identity(op) for _, op in KNOWN}
    assert not [name for name in (*DIFFERENT, *OTHER_ORDER) if name not in names]
