"""Writes losses.safetensors: losses and group norms in f64 with PyTorch, for tests/losses.rs.

Run: python make_losses.py            (needs torch, numpy, safetensors)

A case NAME holds its inputs NAME.x0, NAME.x1, ..., the value NAME.y, the upstream gradient
NAME.dout, and NAME.grad.x0, ... for the inputs that have one. The cross-entropies share their
inputs: ce.TARGET.SHAPE.x0 and so on, with NAME = ce.TARGET.SHAPE.OPTIONS.
"""
import itertools
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
out = {}
inf, nan = float("inf"), float("nan")


def case(name, f, *xs, shared=False):
    xs = [x.clone().requires_grad_(True) if x.is_floating_point() else x for x in xs]
    y = f(*xs)
    dout = torch.linspace(-1.5, 2.0, y.numel()).reshape(y.shape) if y.dim() else torch.tensor(1.5)
    y.backward(dout)
    out[f"{name}.y"] = y.detach()
    if not shared:
        out[f"{name}.dout"] = dout
    for i, x in enumerate(xs):
        if not shared:
            out[f"{name}.x{i}"] = x.detach()
        if x.is_floating_point() and x.grad is not None:
            out[f"{name}.grad.x{i}"] = x.grad


def pointwise():
    x, t = torch.randn(3, 4) * 1.5, torch.randn(3, 4)
    p, q = torch.rand(3, 4), torch.rand(3, 4)
    sign = torch.where(torch.rand(3, 4) > 0.5, 1.0, -1.0)
    w, pw = torch.rand(4) + 0.5, torch.rand(3, 1) + 0.5
    out["weight"], out["pos_weight"] = w, pw
    for r in ("mean", "sum", "none"):
        case(f"mse.{r}", lambda x, t: F.mse_loss(x, t, reduction=r), x, t)
        case(f"l1.{r}", lambda x, t: F.l1_loss(x, t, reduction=r), x, t)
        case(f"smooth_l1.{r}", lambda x, t: F.smooth_l1_loss(x, t, reduction=r, beta=0.7), x, t)
        case(f"huber.{r}", lambda x, t: F.huber_loss(x, t, reduction=r, delta=0.7), x, t)
        case(f"bce.{r}", lambda x, t: F.binary_cross_entropy(x, t, reduction=r), p, q)
        case(f"bce_weight.{r}", lambda x, t: F.binary_cross_entropy(x, t, weight=w, reduction=r), p, q)
        logits = F.binary_cross_entropy_with_logits
        case(f"logits.{r}", lambda x, t: logits(x, t, reduction=r), x, q)
        case(f"logits_weight.{r}", lambda x, t: logits(x, t, weight=w, reduction=r), x, q)
        case(f"logits_pos.{r}", lambda x, t: logits(x, t, pos_weight=pw, reduction=r), x, q)
        case(f"logits_both.{r}", lambda x, t: logits(x, t, weight=w, pos_weight=pw, reduction=r), x, q)
        case(f"hinge.{r}", lambda x, t: F.hinge_embedding_loss(x, t, margin=0.8, reduction=r), x, sign)
    for r in ("mean", "sum", "none", "batchmean"):
        case(f"kl.{r}", lambda x, t: F.kl_div(x, t, reduction=r), x, q)
        case(f"kl_log.{r}", lambda x, t: F.kl_div(x, t, reduction=r, log_target=True), x, t)


def edges():
    t = torch.tensor
    x0 = t([1.0, 2, nan, inf, -inf, inf, 0.5, -0.5])
    t0 = t([1.0, 1, 0, 0, 0, inf, 0.0, 0.0])
    case("edge.l1", lambda x, t: F.l1_loss(x, t, reduction="none"), x0, t0)
    case("edge.mse", lambda x, t: F.mse_loss(x, t, reduction="none"), x0, t0)
    case("edge.smooth_l1", lambda x, t: F.smooth_l1_loss(x, t, reduction="none", beta=0.5), x0, t0)
    case("edge.smooth_l1_0", lambda x, t: F.smooth_l1_loss(x, t, reduction="none", beta=0.0), x0, t0)
    case("edge.huber", lambda x, t: F.huber_loss(x, t, reduction="none", delta=0.5), x0, t0)
    certain, asked = t([0.0, 0, 1, 1, 0.5, 1e-13, 1e-14]), t([0.0, 1, 0, 1, 0.5, 0, 0.5])
    case("edge.bce", lambda x, t: F.binary_cross_entropy(x, t, reduction="none"), certain, asked)
    x0, t0 = t([0.0, inf, inf, -inf, nan, 1000, -1000, 0]), t([0.0, 0, 1, 0, 0, 1, 1, nan])
    case("edge.logits", lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"), x0, t0)
    x0, t0 = t([0.0, -1, -1, -inf, -inf, -1, -1]), t([0.0, 1, -1, 0, 0.5, nan, inf])
    case("edge.kl", lambda x, t: F.kl_div(x, t, reduction="none"), x0, t0)
    x0, t0 = t([0.0, -1, -1, -inf, -inf]), t([-inf, 0, -1, -inf, 0.5])
    case("edge.kl_log", lambda x, t: F.kl_div(x, t, reduction="none", log_target=True), x0, t0)
    x0, t0 = t([2.0, 1, 0.5, 3, 0.3, nan, nan, inf]), t([1, -1, -1, -1, 0, 1, -1, -1])
    case("edge.hinge", lambda x, t: F.hinge_embedding_loss(x, t, reduction="none"), x0, t0)
    case("edge.margin", lambda x, t: torch.clamp(1 - t * x, min=0), t([1.0, -1, 0.5, 2]), t([1.0, -1, 1, 1]))


def classes():
    shapes = {"c": (4,), "nc": (3, 4), "ncd": (2, 3, 2, 2)}
    for key, shape in shapes.items():
        c = shape[1] if len(shape) > 1 else shape[0]
        x, w = torch.randn(shape) * 2, torch.rand(c) + 0.5
        index = torch.randint(0, c, shape[:1] + shape[2:] if len(shape) > 1 else ())
        index.view(-1)[0] = 2  # never the class that is ignored, so that something is left
        probs = torch.softmax(torch.randn(shape), min(1, len(shape) - 1))
        for r, s, weighted in itertools.product(("mean", "sum", "none"), (0.0, 0.3), (False, True)):
            options = f"{r}.{'smooth' if s else 'plain'}.{'weight' if weighted else 'even'}"
            weight = w if weighted else None
            for ignore in (None, 1):
                kept = -100 if ignore is None else ignore
                name = f"{options}.{'all' if ignore is None else 'ignore'}"
                f = lambda x: F.cross_entropy(x, index, weight, ignore_index=kept, reduction=r, label_smoothing=s)
                case(f"ce.index.{key}.{name}", f, x, shared=True)
                if not s:
                    f = lambda x: F.nll_loss(x, index, weight, ignore_index=kept, reduction=r)
                    case(f"nll.index.{key}.{name}", f, x, shared=True)
            f = lambda x, t: F.cross_entropy(x, t, weight, reduction=r, label_smoothing=s)
            case(f"ce.probs.{key}.{options}.all", f, x, probs, shared=True)
        for kind, target in (("ce.index", index), ("nll.index", index), ("ce.probs", probs)):
            out[f"{kind}.{key}.x0"], out[f"{kind}.{key}.x1"], out[f"{kind}.{key}.weight"] = x, target, w
    impossible = torch.tensor([[1.0, -inf, 0], [1, 2, 3]])
    f = lambda x, t: F.cross_entropy(x, t, reduction="none")
    case("edge.ce_probs", f, impossible, torch.tensor([[0.5, 0, 0.5], [0.2, 0.3, 0.5]]))
    f = lambda x, t: F.nll_loss(x, t, reduction="none", ignore_index=-100)
    case("edge.nll", f, torch.tensor([[1.0, -inf], [nan, 1]]), torch.tensor([1, -100]))


def norms():
    for name, shape, groups in (("gn", (2, 6, 5), 3), ("gn_one", (3, 4, 2, 2), 1), ("gn_flat", (4, 6), 2), ("gn_each", (2, 3, 7), 3)):
        x, w, b = torch.randn(shape) * 2 + 1, torch.randn(shape[1]), torch.randn(shape[1])
        case(name, lambda x, w, b: F.group_norm(x, groups, w, b, eps=1e-4), x, w, b)
        case(f"{name}_plain", lambda x: F.group_norm(x, groups), x)
    x, w, b = torch.randn(2, 3, 4, 2) * 2 + 1, torch.randn(3), torch.randn(3)
    case("in", lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=1e-4), x, w, b)
    case("in_plain", lambda x: F.instance_norm(x), x)


def cosines():
    a, b = torch.randn(3, 4, 2), torch.randn(3, 4, 2)
    case("cos", lambda a, b: F.cosine_similarity(a, b), a, b)
    case("cos_last", lambda a, b: F.cosine_similarity(a, b, dim=-1), a, b)
    case("cos_row", lambda a, b: F.cosine_similarity(a, b, dim=1), torch.randn(3, 4), torch.randn(4))
    zeros, other = torch.tensor([[0.0, 0], [3e-9, 4e-9], [nan, 1], [inf, 1]]), torch.tensor([[1.0, 0], [1, 1], [1, 1], [1, 1]])
    case("edge.cos", lambda a, b: F.cosine_similarity(a, b, dim=1), zeros, other)
    case("edge.cos_eps", lambda a, b: F.cosine_similarity(a, b, dim=0, eps=0.5), torch.tensor([0.3, 0.4]), torch.tensor([1.0, 3]))
    a, b, t = torch.randn(5, 4), torch.randn(5, 4), torch.tensor([1, -1, -1, 1, -1])
    for r in ("mean", "sum", "none"):
        case(f"cosemb.{r}", lambda a, b: F.cosine_embedding_loss(a, b, t, margin=-0.4, reduction=r), a, b)
    out["cosemb.target"] = t


def dropout():
    for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
        torch.manual_seed(42)
        x = torch.arange(1, 41, dtype=dtype).reshape(5, 8)
        out[f"dropout.{name}.x0"] = x
        out[f"dropout.{name}.y"] = F.dropout(x, 0.3)
        out[f"dropout.{name}.again"] = F.dropout(x, 0.9)
        out[f"dropout.{name}.after"] = torch.rand(3, dtype=dtype)


pointwise()
edges()
classes()
norms()
cosines()
dropout()
path = pathlib.Path(__file__).parent / "losses.safetensors"
save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, path)
