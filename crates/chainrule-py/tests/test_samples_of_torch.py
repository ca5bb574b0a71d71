"""The inputs that PyTorch tests its own functions with: values, dtypes, shapes and gradients are PyTorch's. Needs torch and expecttest."""

import warnings

import chainrule as cr
import chainrule.nn.functional as F
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

# What values may differ by, relatively and absolutely; gradients by ten times as much.
TOLERANCE = {torch.float64: (1e-7, 1e-9), torch.float32: (2e-5, 2e-5), torch.int64: (0, 0), torch.bool: (0, 0)}
DTYPES = {torch.float32, torch.float64, torch.int64, torch.bool}
OTHER_ORDER = {
    "einsum": lambda operands, equation: cr.einsum(equation, *operands),
    "where": lambda x, condition, other: cr.where(condition, x, other),
    "nn.functional.embedding": lambda weight, indices, **options: F.embedding(indices, weight, **options),
}
# What is different, and why.
DIFFERENT = {
    "nn.functional.group_norm": "a negative eps is refused",
    "nn.functional.batch_norm": "an input of one axis is refused",
    "nn.functional.dropout": "the mask is random",
    "nn.functional.scaled_dot_product_attention": "the mask of its dropout is random",
    "histc": "the edges of a thousand bins between 0 and 0.00001 are rounded elsewhere",
    "unfold": "a tensor without axes is refused",
    "normal": "the samples of the method without a function",
    "zero_": "a leaf that requires a gradient is written without its gradient only",
    "empty": "elements that nobody set", "empty_like": "elements that nobody set", "new_empty": "elements that nobody set",
    "sgn": "the gradient there is a tensor without memory",
    "multinomial": "the samples draw other numbers before", "bernoulli": "the samples draw other numbers before",
}
RANDOM = "randn randn_like rand_like randint".split()


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


def function(name):
    """The function of this name, or the method."""
    if name in OTHER_ORDER:
        return OTHER_ORDER[name]
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
    got = flat(function(op.name)(a, *b, **c))
    assert len(got) == len(want)
    theirs, our = 0, 0
    for g, w in zip(got, want):
        if not isinstance(w, torch.Tensor):
            assert g == w
            continue
        assert (g.dtype.name, tuple(g.shape)) == (str(w.dtype).removeprefix("torch."), tuple(w.shape))
        rtol, atol = TOLERANCE[w.dtype]
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=rtol, atol=atol)
        if w.requires_grad and g.requires_grad:
            up = np.random.default_rng(1).normal(size=tuple(w.shape)).astype(g.dtype.name)
            our, theirs = our + (g * cr.tensor(up)).sum(), theirs + (w * torch.tensor(up)).sum()
    if leaves and isinstance(our, cr.Tensor):
        theirs.backward()
        our.backward()
        for p, q in leaves:
            want = np.zeros(q.shape) if q.grad is None else q.grad.to_dense().numpy()
            rtol, atol = (10 * x for x in TOLERANCE[q.dtype])
            np.testing.assert_allclose(np.zeros(q.shape) if p.grad is None else p.grad.numpy(), want, rtol=rtol, atol=atol)


KNOWN = [op for op in op_db if torch.float64 in op.dtypes and callable(function(op.name))]


@pytest.mark.parametrize("op", KNOWN, ids=lambda op: f"{op.name}.{op.variant_test_name}".rstrip("."))
def test_samples(op):
    if op.name in DIFFERENT:
        pytest.skip(DIFFERENT[op.name])
    seen = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in op.sample_inputs("cpu", torch.float64, requires_grad=op.supports_autograd):
            try:
                check(op, sample)
                seen += 1
            except Other:
                continue
    if not seen:
        pytest.skip("all samples are of other dtypes")
