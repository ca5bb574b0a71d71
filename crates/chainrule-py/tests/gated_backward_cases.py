"""Backward passes of gated, recurrent and probabilistic models, and lines of theirs as people
get them wrong; see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY

GAT = """
import numpy as np

ADJ = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]], dtype=bool)

def gat(h, W, src, dst):
    z = h @ W
    left = z @ src
    right = z @ dst
    raw = left[:, None] + right[None, :]
    e = np.where(raw > 0, raw, 0.2 * raw)
    e = np.where(ADJ, e, -1e9)
    a = np.exp(e - e.max(1, keepdims=True))
    a = a / a.sum(1, keepdims=True)
    return np.tanh(a @ z)

def gat_backward(dout, h, W, src, dst):
    z = h @ W
    left = z @ src
    right = z @ dst
    raw = left[:, None] + right[None, :]
    e = np.where(raw > 0, raw, 0.2 * raw)
    e = np.where(ADJ, e, -1e9)
    a = np.exp(e - e.max(1, keepdims=True))
    a = a / a.sum(1, keepdims=True)
    out = np.tanh(a @ z)
    dagg = dout * (1 - out ** 2)
    da = dagg @ z.T
    dz = a.T @ dagg
    de = a * (da - (da * a).sum(1, keepdims=True))
    draw = de * np.where(raw > 0, 1.0, 0.2)
    dleft = draw.sum(1)
    dright = draw.sum(0)
    dsrc = z.T @ dleft
    ddst = z.T @ dright
    dz = dz + np.outer(dleft, src) + np.outer(dright, dst)
    dW = h.T @ dz
    dh = dz @ W.T
    return dh, dW, dsrc, ddst

rng = np.random.default_rng(3)
inputs = [rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=5)]
"""

GRU = """
class GRU3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, h0, Wz, Wr, Wn):
        h = h0
        kept = []
        for t in range(xs.shape[0]):
            xh = torch.cat([xs[t], h], dim=1)
            z = torch.sigmoid(xh @ Wz)
            r = torch.sigmoid(xh @ Wr)
            xr = torch.cat([xs[t], r * h], dim=1)
            n = torch.tanh(xr @ Wn)
            new = (1 - z) * h + z * n
            kept.append((h, xh, z, r, xr, n))
            h = new
        ctx.kept = kept
        ctx.save_for_backward(xs, Wz, Wr, Wn)
        return h

    @staticmethod
    def backward(ctx, dh):
        xs, Wz, Wr, Wn = ctx.saved_tensors
        d = xs.shape[2]
        dxs = torch.zeros_like(xs)
        dWz, dWr, dWn = torch.zeros_like(Wz), torch.zeros_like(Wr), torch.zeros_like(Wn)
        for t in range(xs.shape[0] - 1, -1, -1):
            h, xh, z, r, xr, n = ctx.kept[t]
            dn = dh * z * (1 - n * n)
            dz = dh * (n - h) * z * (1 - z)
            dWn += xr.t() @ dn
            dxr = dn @ Wn.t()
            drh = dxr[:, d:]
            dr = drh * h * r * (1 - r)
            dWz += xh.t() @ dz
            dWr += xh.t() @ dr
            dxh = dz @ Wz.t() + dr @ Wr.t()
            dxs[t] = dxh[:, :d] + dxr[:, :d]
            dh = dh * (1 - z) + drh * r + dxh[:, d:]
        return dxs, dh, dWz, dWr, dWn

inputs = [torch.randn(3, 2, 4), torch.randn(2, 5), torch.randn(9, 5) * 0.4, torch.randn(9, 5) * 0.4, torch.randn(9, 5) * 0.4]
"""
ROPE = """
class RopeAttention(torch.autograd.Function):
    @staticmethod
    def turn(v, cos, sin):
        half = v.shape[-1] // 2
        a, b = v[..., :half], v[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    @staticmethod
    def forward(ctx, q, k, v):
        T, D = q.shape[1], q.shape[2]
        pos = torch.arange(T, dtype=q.dtype)[:, None]
        freq = 10.0 ** (-torch.arange(D // 2, dtype=q.dtype) / 2)
        cos, sin = torch.cos(pos * freq), torch.sin(pos * freq)
        qr = RopeAttention.turn(q, cos, sin)
        kr = RopeAttention.turn(k, cos, sin)
        mask = torch.ones(T, T).tril().bool()
        s = qr @ kr.transpose(1, 2) / D ** 0.5
        p = torch.softmax(s.masked_fill(~mask, float("-inf")), dim=-1)
        ctx.save_for_backward(qr, kr, v, p, cos, sin)
        return p @ v

    @staticmethod
    def backward(ctx, do):
        qr, kr, v, p, cos, sin = ctx.saved_tensors
        scale = qr.shape[2] ** -0.5
        dv = p.transpose(1, 2) @ do
        dp = do @ v.transpose(1, 2)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True))
        dqr = ds @ kr * scale
        dkr = ds.transpose(1, 2) @ qr * scale
        dq = RopeAttention.turn(dqr, cos, -sin)
        dk = RopeAttention.turn(dkr, cos, -sin)
        return dq, dk, dv

inputs = [torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.randn(2, 3, 5)]
"""
VAE = """
import numpy as np

def elbo(x, We, Wm, Ws, Wd, noise):
    h = np.maximum(x @ We, 0)
    mu = h @ Wm
    logvar = h @ Ws
    std = np.exp(0.5 * logvar)
    z = mu + std * noise
    logits = z @ Wd
    bce = np.logaddexp(0, logits) - x * logits
    kl = -0.5 * (1 + logvar - mu ** 2 - np.exp(logvar))
    return (bce.sum() + kl.sum()) / x.shape[0]

def elbo_backward(g, x, We, Wm, Ws, Wd, noise):
    n = x.shape[0]
    pre = x @ We
    h = np.maximum(pre, 0)
    mu = h @ Wm
    logvar = h @ Ws
    std = np.exp(0.5 * logvar)
    z = mu + std * noise
    logits = z @ Wd
    dlogits = g * (1 / (1 + np.exp(-logits)) - x) / n
    dWd = z.T @ dlogits
    dz = dlogits @ Wd.T
    dmu = dz + g * mu / n
    dstd = dz * noise
    dlogvar = 0.5 * dstd * std + g * 0.5 * (np.exp(logvar) - 1) / n
    dnoise = dz * std
    dWm = h.T @ dmu
    dWs = h.T @ dlogvar
    dh = dmu @ Wm.T + dlogvar @ Ws.T
    dpre = dh * (pre > 0)
    dWe = x.T @ dpre
    dx = dpre @ We.T - g * logits / n
    return dx, dWe, dWm, dWs, dWd, dnoise

rng = np.random.default_rng(5)
inputs = [rng.uniform(size=(4, 6)), rng.normal(size=(6, 5)) * 0.5, rng.normal(size=(5, 2)) * 0.5, rng.normal(size=(5, 2)) * 0.5, rng.normal(size=(2, 6)), rng.normal(size=(4, 2))]
"""
DILATED = """
import numpy as np

DIL = 2

def block(x, w, bias, gain):
    T, K = x.shape[1], w.shape[1]
    padded = np.pad(x, ((0, 0), ((K - 1) * DIL, 0)))
    y = np.zeros_like(x)
    for k in range(K):
        y = y + w[:, k:k + 1] * padded[:, k * DIL:k * DIL + T]
    y = y + bias[:, None]
    rms = np.sqrt((y ** 2).mean(0) + 1e-5)
    normed = y / rms
    scaled = normed * gain[:, None]
    gate = 1 / (1 + np.exp(-scaled))
    return x + scaled * gate

def block_backward(dout, x, w, bias, gain):
    C, T, K = x.shape[0], x.shape[1], w.shape[1]
    padded = np.pad(x, ((0, 0), ((K - 1) * DIL, 0)))
    y = np.zeros_like(x)
    for k in range(K):
        y = y + w[:, k:k + 1] * padded[:, k * DIL:k * DIL + T]
    y = y + bias[:, None]
    rms = np.sqrt((y ** 2).mean(0) + 1e-5)
    normed = y / rms
    scaled = normed * gain[:, None]
    gate = 1 / (1 + np.exp(-scaled))
    dscaled = dout * (gate + scaled * gate * (1 - gate))
    dgain = (dscaled * normed).sum(1)
    dnormed = dscaled * gain[:, None]
    dy = (dnormed - normed * (dnormed * normed).mean(0)) / rms
    dbias = dy.sum(1)
    dw = np.zeros_like(w)
    dpadded = np.zeros_like(padded)
    for k in range(K):
        dw[:, k] = (dy * padded[:, k * DIL:k * DIL + T]).sum(1)
        dpadded[:, k * DIL:k * DIL + T] += w[:, k:k + 1] * dy
    dx = dout + dpadded[:, (K - 1) * DIL:]
    return dx, dw, dbias, dgain

rng = np.random.default_rng(7)
inputs = [rng.normal(size=(3, 7)), rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)]
"""
SQUEEZE = """
class SqueezeGroup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, down, up):
        B, C, H, W = x.shape
        xg = x.reshape(B, 2, -1)
        mean = xg.mean(dim=2, keepdim=True)
        var = ((xg - mean) ** 2).mean(dim=2, keepdim=True)
        inv = (var + 1e-5) ** -0.5
        xhat = ((xg - mean) * inv).reshape(x.shape)
        y = xhat * gamma[:, None, None] + beta[:, None, None]
        pooled = y.mean(dim=(2, 3))
        hidden = torch.relu(pooled @ down)
        gate = torch.sigmoid(hidden @ up)
        ctx.save_for_backward(xhat, inv, y, pooled, hidden, gate, gamma, down, up)
        return y * gate[:, :, None, None]

    @staticmethod
    def backward(ctx, dout):
        xhat, inv, y, pooled, hidden, gate, gamma, down, up = ctx.saved_tensors
        B, C, H, W = dout.shape
        dgate = (dout * y).sum(dim=(2, 3))
        dy = dout * gate[:, :, None, None]
        du = dgate * gate * (1 - gate)
        dup = hidden.t() @ du
        dhid = (du @ up.t()) * (hidden > 0)
        ddown = pooled.t() @ dhid
        dpooled = dhid @ down.t()
        dy = dy + dpooled[:, :, None, None] / (H * W)
        dgamma = (dy * xhat).sum(dim=(0, 2, 3))
        dbeta = dy.sum(dim=(0, 2, 3))
        dxhat = (dy * gamma[:, None, None]).reshape(B, 2, -1)
        xh = xhat.reshape(B, 2, -1)
        dx = inv * (dxhat - dxhat.mean(2, keepdim=True) - xh * (dxhat * xh).mean(2, keepdim=True))
        return dx.reshape(dout.shape), dgamma, dbeta, ddown, dup

inputs = [torch.randn(2, 4, 3, 2), torch.rand(4) + 0.5, torch.randn(4), torch.randn(4, 3), torch.randn(3, 4)]
"""
DUEL = """
ACT = torch.tensor([1, 0, 2, 1])
TAU = torch.tensor([0.1, 0.5, 0.9])

def duel(s, W, Wv, Wa, target):
    h = torch.tanh(s @ W)
    value = h @ Wv
    adv = (h @ Wa).reshape(4, 3, 3)
    q = value[:, None, :] + adv - adv.mean(1, keepdim=True)
    chosen = q[torch.arange(4), ACT]
    u = target - chosen
    small = u.abs() <= 1
    hub = torch.where(small, 0.5 * u * u, u.abs() - 0.5)
    weight = (TAU - (u < 0).to(u.dtype)).abs()
    return (weight * hub).sum(1).mean()

def duel_backward(g, s, W, Wv, Wa, target):
    h = torch.tanh(s @ W)
    value = h @ Wv
    adv = (h @ Wa).reshape(4, 3, 3)
    q = value[:, None, :] + adv - adv.mean(1, keepdim=True)
    chosen = q[torch.arange(4), ACT]
    u = target - chosen
    weight = (TAU - (u < 0).to(u.dtype)).abs()
    du = g / 4 * weight * u.clamp(-1, 1)
    dtarget = du
    dq = torch.zeros_like(q)
    dq[torch.arange(4), ACT] = -du
    dvalue = dq.sum(1)
    dadv = dq - dq.mean(1, keepdim=True)
    dadv = dadv.reshape(4, 9)
    dWv = h.T @ dvalue
    dWa = h.T @ dadv
    dh = dvalue @ Wv.T + dadv @ Wa.T
    dpre = dh * (1 - h ** 2)
    return dpre @ W.T, s.T @ dpre, dWv, dWa, dtarget

inputs = [torch.randn(4, 5), torch.randn(5, 6), torch.randn(6, 3), torch.randn(6, 9), torch.randn(4, 3) * 2]
"""
CRF = """
import numpy as np

TAGS = np.array([0, 2, 1, 1])

def crf(emit, trans, start):
    alpha = start + emit[0]
    for t in range(1, len(emit)):
        alpha = np.logaddexp.reduce(alpha[:, None] + trans, axis=0) + emit[t]
    logz = np.logaddexp.reduce(alpha)
    score = start[TAGS[0]] + emit[np.arange(4), TAGS].sum() + trans[TAGS[:-1], TAGS[1:]].sum()
    return logz - score

def crf_backward(g, emit, trans, start):
    T, S = emit.shape
    alphas = [start + emit[0]]
    for t in range(1, T):
        alphas.append(np.logaddexp.reduce(alphas[-1][:, None] + trans, axis=0) + emit[t])
    logz = np.logaddexp.reduce(alphas[-1])
    demit = np.zeros_like(emit)
    dtrans = np.zeros_like(trans)
    dalpha = g * np.exp(alphas[-1] - logz)
    for t in range(T - 1, 0, -1):
        demit[t] += dalpha
        lse = alphas[t] - emit[t]
        w = np.exp(alphas[t - 1][:, None] + trans - lse)
        dtrans += w * dalpha
        dalpha = w @ dalpha
    demit[0] += dalpha
    dstart = dalpha.copy()
    demit[np.arange(T), TAGS] -= g
    np.add.at(dtrans, (TAGS[:-1], TAGS[1:]), -g)
    dstart[TAGS[0]] -= g
    return demit, dtrans, dstart

rng = np.random.default_rng(11)
inputs = [rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)]
"""
FOCAL = """
import numpy as np

Y = np.array([1, 3, 0, 2, 1])

def focal(x, W, b, temp):
    logits = (x @ W + b) / temp
    m = logits.max(1, keepdims=True)
    logp = logits - m - np.log(np.exp(logits - m).sum(1, keepdims=True))
    p = np.exp(logp)
    py = p[np.arange(5), Y]
    ly = logp[np.arange(5), Y]
    loss = -((1 - py) ** 2) * ly
    smooth = -logp.mean(1)
    return (0.9 * loss + 0.1 * smooth).mean()

def focal_backward(g, x, W, b, temp):
    lin = x @ W + b
    logits = lin / temp
    m = logits.max(1, keepdims=True)
    logp = logits - m - np.log(np.exp(logits - m).sum(1, keepdims=True))
    p = np.exp(logp)
    rows = np.arange(5)
    py = p[rows, Y]
    ly = logp[rows, Y]
    dloss = np.full(5, g / 5)
    dly = 0.9 * dloss * (2 * (1 - py) * py * ly - (1 - py) ** 2)
    dlogp = np.full_like(logp, -0.1 * g / 5 / logp.shape[1])
    dlogp[rows, Y] += dly
    dlogits = dlogp - p * dlogp.sum(1, keepdims=True)
    dlin = dlogits / temp
    dtemp = -(dlogits * lin).sum() / temp ** 2
    db = dlin.sum(0)
    dW = x.T @ dlin
    dx = dlin @ W.T
    return dx, dW, db, dtemp

rng = np.random.default_rng(13)
inputs = [rng.normal(size=(5, 3)), rng.normal(size=(3, 4)), rng.normal(size=4), np.array(1.7)]
"""
MOE = """
class Experts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate_w, w1, w2):
        score = x @ gate_w
        prob = torch.softmax(score, dim=-1)
        hidden = torch.einsum("nd,edh->neh", x, w1)
        act = hidden * torch.sigmoid(1.702 * hidden)
        out = torch.einsum("neh,ehd->ned", act, w2)
        ctx.save_for_backward(x, gate_w, w1, w2, prob, hidden, act, out)
        return (prob[:, :, None] * out).sum(1)

    @staticmethod
    def backward(ctx, dy):
        x, gate_w, w1, w2, prob, hidden, act, out = ctx.saved_tensors
        dprob = (dy[:, None, :] * out).sum(-1)
        dout = prob[:, :, None] * dy[:, None, :]
        dscore = prob * (dprob - (prob * dprob).sum(-1, keepdim=True))
        dgate = x.t() @ dscore
        dw2 = torch.einsum("neh,ned->ehd", act, dout)
        dact = torch.einsum("ned,ehd->neh", dout, w2)
        sig = torch.sigmoid(1.702 * hidden)
        dhidden = dact * (sig + 1.702 * hidden * sig * (1 - sig))
        dw1 = torch.einsum("nd,neh->edh", x, dhidden)
        dx = torch.einsum("neh,edh->nd", dhidden, w1) + dscore @ gate_w.t()
        return dx, dgate, dw1, dw2

inputs = [torch.randn(4, 3), torch.randn(3, 2), torch.randn(2, 3, 5), torch.randn(2, 5, 3)]
"""

GATED = {
    "gat": (NUMPY, GAT, {
        "leaky slope one": [("draw = de * np.where(raw > 0, 1.0, 0.2)", "draw = de")],
        "axes of left and right swapped": [("dleft = draw.sum(1)", "dleft = draw.sum(0)"), ("dright = draw.sum(0)", "dright = draw.sum(1)")],
        "dz a not transposed": [("dz = a.T @ dagg", "dz = a @ dagg")],
        "softmax over columns": [("(da * a).sum(1, keepdims=True)", "(da * a).sum(0, keepdims=True)")],
        "dst path lost": [("dz = dz + np.outer(dleft, src) + np.outer(dright, dst)", "dz = dz + np.outer(dleft, src)")],
        "src for dst": [("np.outer(dright, dst)", "np.outer(dright, src)")],
    }),
    "gru": (EITHER, GRU, {
        "n for h in dz": [("dz = dh * (n - h) * z * (1 - z)", "dz = dh * n * z * (1 - z)")],
        "gate of n swapped": [("dn = dh * z * (1 - n * n)", "dn = dh * (1 - z) * (1 - n * n)")],
        "reset path lost": [("dh = dh * (1 - z) + drh * r + dxh[:, d:]", "dh = dh * (1 - z) + drh + dxh[:, d:]")],
        "xh for xr": [("dWn += xr.t() @ dn", "dWn += xh.t() @ dn")],
        "dWr overwritten": [("dWr += xh.t() @ dr", "dWr = xh.t() @ dr")],
        "x part of candidate lost": [("dxs[t] = dxh[:, :d] + dxr[:, :d]", "dxs[t] = dxh[:, :d]")],
    }),
    "rope": (EITHER, ROPE, {
        "turned the same way": [("dq = RopeAttention.turn(dqr, cos, -sin)", "dq = RopeAttention.turn(dqr, cos, sin)")],
        "key not turned back": [("dk = RopeAttention.turn(dkr, cos, -sin)", "dk = dkr")],
        "scale lost": [("dkr = ds.transpose(1, 2) @ qr * scale", "dkr = ds.transpose(1, 2) @ qr")],
        "scale squared": [("scale = qr.shape[2] ** -0.5", "scale = qr.shape[2] ** -1.0")],
        "ds not transposed": [("dkr = ds.transpose(1, 2) @ qr * scale", "dkr = ds @ qr * scale")],
    }),
    "vae": (NUMPY, VAE, {
        "half lost": [("dlogvar = 0.5 * dstd * std", "dlogvar = dstd * std")],
        "kl of mu lost": [("dmu = dz + g * mu / n", "dmu = dz")],
        "kl not averaged": [("g * 0.5 * (np.exp(logvar) - 1) / n", "g * 0.5 * (np.exp(logvar) - 1)")],
        "target path of x lost": [("dx = dpre @ We.T - g * logits / n", "dx = dpre @ We.T")],
        "mask of h's gradient": [("dpre = dh * (pre > 0)", "dpre = dh")],
        "std for noise": [("dstd = dz * noise", "dstd = dz * std")],
        "two: mu and Wd": [("dmu = dz + g * mu / n", "dmu = dz + g * mu"), ("dWd = z.T @ dlogits", "dWd = mu.T @ dlogits")],
    }),
    "dilated": (NUMPY, DILATED, {
        "silu as sigmoid": [("dout * (gate + scaled * gate * (1 - gate))", "dout * gate")],
        "mean over time": [("(dnormed * normed).mean(0)", "(dnormed * normed).mean(1, keepdims=True)")],
        "residual lost": [("dx = dout + dpadded[:, (K - 1) * DIL:]", "dx = dpadded[:, (K - 1) * DIL:]")],
        "pad cut at the other end": [("dx = dout + dpadded[:, (K - 1) * DIL:]", "dx = dout + dpadded[:, :T]")],
        "taps reversed": [("dw[:, k] = (dy * padded", "dw[:, K - 1 - k] = (dy * padded")],
        "gain forgotten": [("dnormed = dscaled * gain[:, None]", "dnormed = dscaled")],
        "dilation forgotten": [("dpadded[:, k * DIL:k * DIL + T] +=", "dpadded[:, k:k + T] +=")],
    }),
    "squeeze": (EITHER, SQUEEZE, {
        "pool not divided": [("dpooled[:, :, None, None] / (H * W)", "dpooled[:, :, None, None]")],
        "gamma after": [("dxhat = (dy * gamma[:, None, None]).reshape(B, 2, -1)", "dxhat = dy.reshape(B, 2, -1)")],
        "dgate with xhat": [("dgate = (dout * y).sum(dim=(2, 3))", "dgate = (dout * xhat).sum(dim=(2, 3))")],
        "beta of dout": [("dbeta = dy.sum(dim=(0, 2, 3))", "dbeta = dout.sum(dim=(0, 2, 3))")],
        "sigmoid's slope": [("du = dgate * gate * (1 - gate)", "du = dgate * gate")],
        "mean path lost": [("dxhat - dxhat.mean(2, keepdim=True) - xh", "dxhat - xh")],
    }),
    "duel": (EITHER, DUEL, {
        "sign": [("dq[torch.arange(4), ACT] = -du", "dq[torch.arange(4), ACT] = du")],
        "mean of advantages": [("dadv = dq - dq.mean(1, keepdim=True)", "dadv = dq")],
        "clamp lost": [("weight * u.clamp(-1, 1)", "weight * u")],
        "twice the mean": [("du = g / 4 * weight", "du = g / 12 * weight")],
        "mean over quantiles": [("dq - dq.mean(1, keepdim=True)", "dq - dq.mean(2, keepdim=True)")],
        "value's share": [("dvalue = dq.sum(1)", "dvalue = dq.mean(1)")],
    }),
    "crf": (NUMPY, CRF, {
        "transposed": [("dalpha = w @ dalpha", "dalpha = w.T @ dalpha")],
        "pairs counted once": [("np.add.at(dtrans, (TAGS[:-1], TAGS[1:]), -g)", "dtrans[TAGS[1:], TAGS[:-1]] -= g")],
        "emission twice": [("lse = alphas[t] - emit[t]", "lse = alphas[t]")],
        "first emission lost": [("demit[0] += dalpha", "demit[0] += 0 * dalpha")],
        "start's label": [("dstart[TAGS[0]] -= g", "dstart[TAGS[-1]] -= g")],
        "overwritten": [("dtrans += w * dalpha", "dtrans = w * dalpha")],
    }),
    "focal": (NUMPY, FOCAL, {
        "power's factor": [("2 * (1 - py) * py * ly", "(1 - py) * py * ly")],
        "temp once": [("/ temp ** 2", "/ temp")],
        "logits for lin": [("dtemp = -(dlogits * lin)", "dtemp = -(dlogits * logits)")],
        "softmax's path": [("dlogits = dlogp - p * dlogp.sum(1, keepdims=True)", "dlogits = dlogp - p * dlogp")],
        "py lost": [("2 * (1 - py) * py * ly", "2 * (1 - py) * ly")],
        "smoothing not divided": [("-0.1 * g / 5 / logp.shape[1]", "-0.1 * g / 5")],
        "temperature not applied": [("dlin = dlogits / temp", "dlin = dlogits")],
    }),
    "experts": (EITHER, MOE, {
        "gate's path of x": [("w1) + dscore @ gate_w.t()", "w1)")],
        "quick gelu": [("dact * (sig + 1.702 * hidden * sig * (1 - sig))", "dact * (sig + hidden * sig * (1 - sig))")],
        "softmax": [("dscore = prob * (dprob - (prob * dprob).sum(-1, keepdim=True))", "dscore = prob * (1 - prob) * dprob")],
        "hidden for act": [('dw2 = torch.einsum("neh,ned->ehd", act, dout)', 'dw2 = torch.einsum("neh,ned->ehd", hidden, dout)')],
        "prob lost": [("dout = prob[:, :, None] * dy[:, None, :]", "dout = dy[:, None, :].expand_as(out)")],
    }),
}  # fmt: skip
