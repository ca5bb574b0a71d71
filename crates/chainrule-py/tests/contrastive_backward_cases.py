"""Backward passes of models that compare, filter and mix, and lines of theirs as people
get them wrong; see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY

NTX = """
import numpy as np

def ntxent(a, b, W, tau):
    za, zb = a @ W, b @ W
    na = np.sqrt((za ** 2).sum(1, keepdims=True))
    nb = np.sqrt((zb ** 2).sum(1, keepdims=True))
    ua, ub = za / na, zb / nb
    sim = ua @ ub.T / tau
    rows = sim - sim.max(1, keepdims=True)
    logp = rows - np.log(np.exp(rows).sum(1, keepdims=True))
    cols = sim - sim.max(0, keepdims=True)
    logq = cols - np.log(np.exp(cols).sum(0, keepdims=True))
    n = len(a)
    return -(np.trace(logp) + np.trace(logq)) / (2 * n)

def ntxent_backward(g, a, b, W, tau):
    n = len(a)
    za, zb = a @ W, b @ W
    na = np.sqrt((za ** 2).sum(1, keepdims=True))
    nb = np.sqrt((zb ** 2).sum(1, keepdims=True))
    ua, ub = za / na, zb / nb
    dots = ua @ ub.T
    sim = dots / tau
    p = np.exp(sim - sim.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    q = np.exp(sim - sim.max(0, keepdims=True))
    q = q / q.sum(0, keepdims=True)
    dsim = g * (p + q - 2 * np.eye(n)) / (2 * n)
    ddots = dsim / tau
    dtau = -(dsim * dots).sum() / tau ** 2
    dua = ddots @ ub
    dub = ddots.T @ ua
    dza = (dua - ua * (dua * ua).sum(1, keepdims=True)) / na
    dzb = (dub - ub * (dub * ub).sum(1, keepdims=True)) / nb
    dW = a.T @ dza + b.T @ dzb
    return dza @ W.T, dzb @ W.T, dW, dtau

rng = np.random.default_rng(21)
inputs = [rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), np.array(0.6)]
"""
LORA = """
class LowRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, base, down, up, mag):
        alpha = 4.0
        rank = down.shape[1]
        delta = down @ up
        w = base + alpha / rank * delta
        norm = (w ** 2).sum(0, keepdim=True).sqrt()
        unit = w / norm
        full = mag * unit
        ctx.save_for_backward(x, down, up, mag, norm, unit, full)
        ctx.alpha = alpha
        return x @ full

    @staticmethod
    def backward(ctx, dy):
        x, down, up, mag, norm, unit, full = ctx.saved_tensors
        scale = ctx.alpha / down.shape[1]
        dx = dy @ full.t()
        dfull = x.t() @ dy
        dmag = (dfull * unit).sum(0)
        dunit = dfull * mag
        dw = (dunit - unit * (dunit * unit).sum(0, keepdim=True)) / norm
        ddelta = scale * dw
        ddown = ddelta @ up.t()
        dup = down.t() @ ddelta
        return dx, dw, ddown, dup, dmag

inputs = [torch.randn(3, 4), torch.randn(4, 5), torch.randn(4, 2), torch.randn(2, 5), torch.rand(5) + 0.5]
"""
GUMBEL = """
NOISE = torch.tensor([[0.3, -0.2, 1.1, 0.4], [0.9, 0.1, -0.5, 0.2], [-0.3, 0.8, 0.6, 1.5]])

def codes(x, W, book, tau):
    logits = x @ W
    y = torch.softmax((logits + NOISE) / tau, dim=1)
    quant = y @ book
    prior = torch.softmax(logits, dim=1)
    kl = (prior * (torch.log(prior) + 1.3862943611198906)).sum(1).mean()
    return ((quant - x) ** 2).mean() + 0.1 * kl

def codes_backward(g, x, W, book, tau):
    logits = x @ W
    scaled = (logits + NOISE) / tau
    y = torch.softmax(scaled, dim=1)
    quant = y @ book
    prior = torch.softmax(logits, dim=1)
    n = x.shape[0]
    dquant = g * 2 * (quant - x) / x.numel()
    dbook = y.t() @ dquant
    dy = dquant @ book.t()
    dscaled = y * (dy - (dy * y).sum(1, keepdim=True))
    dlogits = dscaled / tau
    dtau = -(dscaled * scaled).sum() / tau
    dprior = 0.1 * g / n * (torch.log(prior) + 1.3862943611198906 + 1)
    dlogits = dlogits + prior * (dprior - (dprior * prior).sum(1, keepdim=True))
    dW = x.t() @ dlogits
    dx = dlogits @ W.t() - dquant
    return dx, dW, dbook, dtau

inputs = [torch.randn(3, 5), torch.randn(5, 4), torch.randn(4, 5), torch.tensor(0.8)]
"""
KALMAN = """
import numpy as np

OBS = np.array([0.3, -0.5, 1.2, 0.7])

def filtered(m0, v0, a, q, r):
    m, v, nll = m0, v0, 0.0
    for t in range(len(OBS)):
        mp = a * m
        vp = a * a * v + q
        s = vp + r
        e = OBS[t] - mp
        k = vp / s
        nll = nll + 0.5 * (np.log(s) + e * e / s)
        m = mp + k * e
        v = (1 - k) * vp
    return nll

def filtered_backward(g, m0, v0, a, q, r):
    kept, m, v = [], m0, v0
    for t in range(len(OBS)):
        mp = a * m
        vp = a * a * v + q
        s = vp + r
        e = OBS[t] - mp
        k = vp / s
        kept.append((m, v, vp, s, e, k))
        m = mp + k * e
        v = (1 - k) * vp
    dm, dv, da, dq, dr = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(OBS) - 1, -1, -1):
        m, v, vp, s, e, k = kept[t]
        dk = dm * e - dv * vp
        dvp = dv * (1 - k) + dk / s
        de = dm * k + g * e / s
        ds = g * 0.5 * (1 / s - e * e / s ** 2) - dk * vp / s ** 2
        dvp = dvp + ds
        dr = dr + ds
        dmp = dm - de
        dq = dq + dvp
        da = da + dvp * 2 * a * v + dmp * m
        dv = dvp * a * a
        dm = dmp * a
    return dm, dv, da, dq, dr

inputs = [np.array(0.2), np.array(1.1), np.array(0.9), np.array(0.3), np.array(0.5)]
"""
CONVT = """
class ConvBlock(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, gain):
        n, c, h, wd = x.shape
        cols = torch.nn.functional.unfold(x, 3, padding=1, stride=2)
        flat = w.reshape(w.shape[0], -1)
        y = flat @ cols + b[:, None]
        act = torch.where(y > 0, y, torch.exp(y) - 1)
        mean = act.mean(dim=(0, 2), keepdim=True)
        std = torch.sqrt(((act - mean) ** 2).mean(dim=(0, 2), keepdim=True) + 1e-3)
        hat = (act - mean) / std
        ctx.save_for_backward(cols, flat, y, act, std, hat, gain)
        ctx.shape = x.shape, w.shape
        return hat * gain[:, None]

    @staticmethod
    def backward(ctx, dout):
        cols, flat, y, act, std, hat, gain = ctx.saved_tensors
        (n, c, h, wd), wshape = ctx.shape
        dgain = (dout * hat).sum(dim=(0, 2))
        dhat = dout * gain[:, None]
        dact = (dhat - dhat.mean(dim=(0, 2), keepdim=True) - hat * (dhat * hat).mean(dim=(0, 2), keepdim=True)) / std
        dy = dact * torch.where(y > 0, torch.ones_like(y), act + 1)
        db = dy.sum(dim=(0, 2))
        dflat = torch.einsum("nol,nkl->ok", dy, cols)
        dcols = flat.t() @ dy
        dx = torch.nn.functional.fold(dcols, (h, wd), 3, padding=1, stride=2)
        return dx, dflat.reshape(wshape), db, dgain

inputs = [torch.randn(2, 2, 5, 5), torch.randn(3, 2, 3, 3), torch.randn(3), torch.rand(3) + 0.5]
"""
TRIPLET = """
import numpy as np

def triplet(anchor, pos, neg, W, margin):
    fa, fp, fn = np.tanh(anchor @ W), np.tanh(pos @ W), np.tanh(neg @ W)
    dp = np.sqrt(((fa - fp) ** 2).sum(1) + 1e-6)
    dn = np.sqrt(((fa - fn) ** 2).sum(1) + 1e-6)
    z = dp - dn + margin
    loss = np.logaddexp(0, 5 * z) / 5
    return loss.mean()

def triplet_backward(g, anchor, pos, neg, W, margin):
    fa, fp, fn = np.tanh(anchor @ W), np.tanh(pos @ W), np.tanh(neg @ W)
    dp = np.sqrt(((fa - fp) ** 2).sum(1) + 1e-6)
    dn = np.sqrt(((fa - fn) ** 2).sum(1) + 1e-6)
    z = dp - dn + margin
    n = len(z)
    dz = g / n / (1 + np.exp(-5 * z))
    dmargin = dz.sum()
    gp = (dz / dp)[:, None] * (fa - fp)
    gn = (-dz / dn)[:, None] * (fa - fn)
    dfa = gp + gn
    dfp = -gp
    dfn = -gn
    dha = dfa * (1 - fa ** 2)
    dhp = dfp * (1 - fp ** 2)
    dhn = dfn * (1 - fn ** 2)
    dW = anchor.T @ dha + pos.T @ dhp + neg.T @ dhn
    return dha @ W.T, dhp @ W.T, dhn @ W.T, dW, dmargin

rng = np.random.default_rng(31)
inputs = [rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), np.array(0.4)]
"""
LINATT = """
class LinearAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        fq = torch.nn.functional.elu(q) + 1
        fk = torch.nn.functional.elu(k) + 1
        kv = torch.cumsum(fk[:, :, None] * v[:, None, :], dim=0)
        ks = torch.cumsum(fk, dim=0)
        num = (fq[:, :, None] * kv).sum(1)
        den = (fq * ks).sum(1, keepdim=True)
        out = num / den
        ctx.save_for_backward(q, k, v, fq, fk, kv, ks, num, den, out)
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, fq, fk, kv, ks, num, den, out = ctx.saved_tensors
        dnum = do / den
        dden = -(do * out).sum(1, keepdim=True) / den
        dfq = (kv * dnum[:, None, :]).sum(2) + dden * ks
        dkv = fq[:, :, None] * dnum[:, None, :]
        dks = dden * fq
        ekv = dkv.flip(0).cumsum(0).flip(0)
        eks = dks.flip(0).cumsum(0).flip(0)
        dfk = (ekv * v[:, None, :]).sum(2) + eks
        dv = (ekv * fk[:, :, None]).sum(1)
        dq = dfq * torch.where(q > 0, torch.ones_like(q), fq)
        dk = dfk * torch.where(k > 0, torch.ones_like(k), fk)
        return dq, dk, dv

inputs = [torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 4)]
"""
MDN = """
import numpy as np

def mdn(x, t, W, V, P):
    h = np.tanh(x @ W)
    mu = h @ V
    s = h @ P
    sig = np.log1p(np.exp(s)) + 0.05
    z = (t[:, None] - mu) / sig
    comp = -0.5 * z ** 2 - np.log(sig)
    m = comp.max(1, keepdims=True)
    lse = m[:, 0] + np.log(np.exp(comp - m).sum(1))
    return -lse.mean()

def mdn_backward(g, x, t, W, V, P):
    h = np.tanh(x @ W)
    mu = h @ V
    s = h @ P
    sig = np.log1p(np.exp(s)) + 0.05
    z = (t[:, None] - mu) / sig
    comp = -0.5 * z ** 2 - np.log(sig)
    resp = np.exp(comp - comp.max(1, keepdims=True))
    resp = resp / resp.sum(1, keepdims=True)
    n = len(t)
    dcomp = -g * resp / n
    dz = -dcomp * z
    dmu = -dz / sig
    dt = (dz / sig).sum(1)
    dsig = -dcomp / sig - dz * z / sig
    ds = dsig / (1 + np.exp(-s))
    dV = h.T @ dmu
    dP = h.T @ ds
    dh = dmu @ V.T + ds @ P.T
    dpre = dh * (1 - h ** 2)
    dW = x.T @ dpre
    dx = dpre @ W.T
    return dx, dt, dW, dV, dP

rng = np.random.default_rng(41)
inputs = [rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))]
"""

CONTRASTIVE = {
    "ntxent": (NUMPY, NTX, {
        "labels once": [("p + q - 2 * np.eye(n)", "p + q - np.eye(n)")],
        "columns forgotten": [("(p + q - 2 * np.eye(n)) / (2 * n)", "(p - np.eye(n)) / n")],
        "other side's unit": [("dua - ua * (dua * ua).sum", "dua - ub * (dua * ub).sum")],
        "norm forgotten": [("(dub * ub).sum(1, keepdims=True)) / nb", "(dub * ub).sum(1, keepdims=True))")],
        "tau of scaled dots": [("dtau = -(dsim * dots)", "dtau = -(dsim * sim)")],
        "b path of W": [("dW = a.T @ dza + b.T @ dzb", "dW = a.T @ dza")],
        "not transposed": [("dub = ddots.T @ ua", "dub = ddots @ ua")],
    }),
    "lora": (EITHER, LORA, {
        "scale lost": [("ddelta = scale * dw", "ddelta = dw")],
        "magnitude lost": [("dunit = dfull * mag", "dunit = dfull")],
        "rank of up": [("scale = ctx.alpha / down.shape[1]", "scale = ctx.alpha / down.shape[0]")],
        "unit over rows": [("(dunit * unit).sum(0, keepdim=True)", "(dunit * unit).sum(1, keepdim=True)")],
        "full for unit": [("dmag = (dfull * unit)", "dmag = (dfull * full)")],
        "norm squared": [("keepdim=True)) / norm", "keepdim=True)) / norm ** 2")],
    }),
    "codes": (EITHER, GUMBEL, {
        "straight path": [("dx = dlogits @ W.t() - dquant", "dx = dlogits @ W.t()")],
        "tau twice": [("dtau = -(dscaled * scaled).sum() / tau", "dtau = -(dscaled * scaled).sum() / tau ** 2")],
        "mean over rows": [("(quant - x) / x.numel()", "(quant - x) / n")],
        "prior as y": [("dlogits = dlogits + prior * (dprior - (dprior * prior)", "dlogits = dlogits + y * (dprior - (dprior * y)")],
        "overwritten": [("dlogits = dlogits + prior", "dlogits = prior")],
    }),
    "kalman": (NUMPY, KALMAN, {
        "gain path of v": [("dvp = dv * (1 - k) + dk / s", "dvp = dv * (1 - k)")],
        "half": [("ds = g * 0.5 * (1 / s", "ds = g * (1 / s")],
        "a's second path": [("da = da + dvp * 2 * a * v + dmp * m", "da = da + dvp * a * v + dmp * m")],
        "sign of innovation": [("dmp = dm - de", "dmp = dm + de")],
        "vp in k": [("- dk * vp / s ** 2", "- dk * vp / s")],
        "overwritten": [("dq = dq + dvp", "dq = dvp")],
    }),
    "convblock": (EITHER, CONVT, {
        "elu's slope": [("torch.where(y > 0, torch.ones_like(y), act + 1)", "torch.where(y > 0, torch.ones_like(y), act)")],
        "mean of positions": [("dhat - dhat.mean(dim=(0, 2), keepdim=True)", "dhat - dhat.mean(dim=2, keepdim=True)")],
        "bias of one": [("db = dy.sum(dim=(0, 2))", "db = dy.mean(dim=(0, 2))")],
        "act for hat": [("dgain = (dout * hat)", "dgain = (dout * act)")],
        "std lost": [("keepdim=True)) / std", "keepdim=True))")],
    }),
    "triplet": (NUMPY, TRIPLET, {
        "softplus scale": [("dz = g / n / (1 + np.exp(-5 * z))", "dz = g / n / (1 + np.exp(-z))")],
        "five times": [("dz = g / n / (1", "dz = 5 * g / n / (1")],
        "negative's sign": [("gn = (-dz / dn)", "gn = (dz / dn)")],
        "anchor once": [("dfa = gp + gn", "dfa = gp")],
        "dn for dp": [("gp = (dz / dp)", "gp = (dz / dn)")],
        "two: W and pos": [("+ neg.T @ dhn", ""), ("dfp = -gp", "dfp = gp")],
    }),
    "linear attention": (EITHER, LINATT, {
        "not from the end": [("eks = dks.flip(0).cumsum(0).flip(0)", "eks = dks.cumsum(0)")],
        "denominator's path": [("dfq = (kv * dnum[:, None, :]).sum(2) + dden * ks", "dfq = (kv * dnum[:, None, :]).sum(2)")],
        "num for out": [("-(do * out).sum(1, keepdim=True) / den", "-(do * num).sum(1, keepdim=True) / den")],
        "one key only": [("dfk = (ekv * v[:, None, :]).sum(2) + eks", "dfk = (ekv * v[:, None, :]).sum(2) + dks")],
        "elu's slope": [("torch.where(k > 0, torch.ones_like(k), fk)", "torch.where(k > 0, torch.ones_like(k), fk - 1)")],
    }),
    "mdn": (NUMPY, MDN, {
        "sigma's own": [("dsig = -dcomp / sig - dz * z / sig", "dsig = -dz * z / sig")],
        "softplus slope": [("ds = dsig / (1 + np.exp(-s))", "ds = dsig / (1 + np.exp(s))")],
        "sign of mu": [("dmu = -dz / sig", "dmu = dz / sig")],
        "sigma squared": [("dt = (dz / sig).sum(1)", "dt = (dz / sig ** 2).sum(1)")],
        "responsibilities": [("dcomp = -g * resp / n", "dcomp = -g * comp / n")],
        "P's path": [("dh = dmu @ V.T + ds @ P.T", "dh = dmu @ V.T + dsig @ P.T")],
    }),
}  # fmt: skip
