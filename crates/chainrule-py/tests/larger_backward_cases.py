"""Backward passes of whole blocks, cells and losses, and lines of theirs as people get them wrong;
see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY

LSTM = """
import numpy as np
rng = np.random.default_rng(11)

def sig(a):
    return 1 / (1 + np.exp(-a))

def lstm(X, W, b, Wy):
    T, B, D = X.shape
    H = W.shape[1] // 4
    h, c = np.zeros((B, H)), np.zeros((B, H))
    loss = 0.0
    for t in range(T):
        a = np.concatenate([X[t], h], 1) @ W + b
        i, f, o, g = sig(a[:, :H]), sig(a[:, H:2 * H]), sig(a[:, 2 * H:3 * H]), np.tanh(a[:, 3 * H:])
        c = f * c + i * g
        h = o * np.tanh(c)
        loss = loss + 0.5 * ((h @ Wy) ** 2).mean()
    return loss

def lstm_backward(up, X, W, b, Wy):
    T, B, D = X.shape
    H = W.shape[1] // 4
    h, c = np.zeros((B, H)), np.zeros((B, H))
    cache = []
    for t in range(T):
        z = np.concatenate([X[t], h], 1)
        a = z @ W + b
        i, f, o, g = sig(a[:, :H]), sig(a[:, H:2 * H]), sig(a[:, 2 * H:3 * H]), np.tanh(a[:, 3 * H:])
        cprev = c
        c = f * c + i * g
        tc = np.tanh(c)
        h = o * tc
        cache.append((z, i, f, o, g, cprev, tc, h))
    dX, dW, db, dWy = np.zeros_like(X), np.zeros_like(W), np.zeros_like(b), np.zeros_like(Wy)
    dh, dc = np.zeros((B, H)), np.zeros((B, H))
    for t in reversed(range(T)):
        z, i, f, o, g, cprev, tc, h = cache[t]
        y = h @ Wy
        dy = up * y / y.size
        dWy += h.T @ dy
        dh = dh + dy @ Wy.T
        do = dh * tc
        dc = dc + dh * o * (1 - tc ** 2)
        di, dg, df = dc * g, dc * i, dc * cprev
        da = np.concatenate([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g ** 2)], 1)
        dW += z.T @ da
        db += da.sum(0)
        dz = da @ W.T
        dX[t] = dz[:, :D]
        dh = dz[:, D:]
        dc = dc * f
    return dX, dW, db, dWy

inputs = [rng.standard_normal((3, 2, 3)), 0.5 * rng.standard_normal((7, 16)), 0.1 * rng.standard_normal(16), rng.standard_normal((4, 2))]
"""
BLOCK = """
def ln(x, g, b):
    m = x.mean(-1, keepdim=True)
    v = ((x - m) ** 2).mean(-1, keepdim=True)
    h = (x - m) / torch.sqrt(v + 1e-5)
    return g * h + b, h, torch.sqrt(v + 1e-5)

def ln_back(dy, g, h, s):
    dh = dy * g
    return (dh - dh.mean(-1, keepdim=True) - h * (dh * h).mean(-1, keepdim=True)) / s

class Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g1, b1, wq, wk, wv, wo, g2, b2, w1, w2):
        u, h1, s1 = ln(x, g1, b1)
        q, k, v = u @ wq, u @ wk, u @ wv
        p = torch.softmax(q @ k.T * wq.shape[1] ** -0.5, -1)
        o = p @ v
        r = x + o @ wo
        w, h2, s2 = ln(r, g2, b2)
        f = w @ w1
        e = f * torch.sigmoid(1.702 * f)
        ctx.save_for_backward(g1, wq, wk, wv, wo, g2, w1, w2, u, h1, s1, q, k, v, p, o, w, h2, s2, f, e)
        return r + e @ w2

    @staticmethod
    def backward(ctx, dout):
        g1, wq, wk, wv, wo, g2, w1, w2, u, h1, s1, q, k, v, p, o, w, h2, s2, f, e = ctx.saved_tensors
        dw2 = e.T @ dout
        de = dout @ w2.T
        sg = torch.sigmoid(1.702 * f)
        df = de * (sg + 1.702 * f * sg * (1 - sg))
        dw1 = w.T @ df
        dw = df @ w1.T
        dg2 = (dw * h2).sum(0)
        db2 = dw.sum(0)
        dr = dout + ln_back(dw, g2, h2, s2)
        dwo = o.T @ dr
        do = dr @ wo.T
        dv = p.T @ do
        dp = do @ v.T
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        ds = ds * wq.shape[1] ** -0.5
        dq = ds @ k
        dk = ds.T @ q
        dwq, dwk, dwv = u.T @ dq, u.T @ dk, u.T @ dv
        du = dq @ wq.T + dk @ wk.T + dv @ wv.T
        dg1 = (du * h1).sum(0)
        db1 = du.sum(0)
        dx = dr + ln_back(du, g1, h1, s1)
        return dx, dg1, db1, dwq, dwk, dwv, dwo, dg2, db2, dw1, dw2

inputs = [torch.randn(4, 4), torch.rand(4) + 0.5, torch.randn(4), *(torch.randn(4, 4) for _ in range(4)), torch.rand(4) + 0.5, torch.randn(4), torch.randn(4, 6), torch.randn(6, 4)]
"""
POLICY = """
ACT = [1, 0, 2, 1, 2]
OLD = [-1.0, -0.7, -1.3, -0.2, -2.0]
ADV = [0.8, -0.5, 1.2, -1.0, 0.3]

def ppo(logits, value, ret):
    rows = torch.arange(5)
    logp = torch.log_softmax(logits, 1)
    lp = logp[rows, torch.tensor(ACT)]
    ratio = torch.exp(lp - torch.tensor(OLD).to(logits.dtype))
    adv = torch.tensor(ADV).to(logits.dtype)
    clipped = ratio.clamp(0.8, 1.2)
    pol = -torch.minimum(ratio * adv, clipped * adv).mean()
    ent = -(logp.exp() * logp).sum(1).mean()
    return pol + 0.5 * ((value - ret) ** 2).mean() - 0.01 * ent

def ppo_backward(g, logits, value, ret):
    rows = torch.arange(5)
    n = logits.shape[0]
    act = torch.tensor(ACT)
    logp = torch.log_softmax(logits, 1)
    p = logp.exp()
    ratio = torch.exp(logp[rows, act] - torch.tensor(OLD).to(logits.dtype))
    adv = torch.tensor(ADV).to(logits.dtype)
    clipped = ratio.clamp(0.8, 1.2)
    free = (ratio * adv <= clipped * adv).to(p.dtype)
    inside = ((ratio > 0.8) & (ratio < 1.2)).to(p.dtype)
    dratio = -g / n * adv * torch.maximum(free, inside)
    dlp = dratio * ratio
    dlogp = torch.zeros_like(logp)
    dlogp[rows, act] = dlp
    dlogp = dlogp + 0.01 * g / n * p * (logp + 1)
    dlogits = dlogp - p * dlogp.sum(1, keepdim=True)
    dvalue = g * (value - ret) / n
    return dlogits, dvalue, -dvalue

inputs = [torch.randn(5, 3), torch.randn(5), torch.randn(5)]
"""
BNCONV = """
import numpy as np
rng = np.random.default_rng(2)

def conv1d(x, w):
    n, c, t = x.shape
    out = np.zeros((n, w.shape[0], t - 2))
    for k in range(3):
        out += np.einsum("nct,fc->nft", x[:, :, k:k + t - 2], w[:, :, k])
    return out

def net(x, w, gamma, beta):
    y = conv1d(x, w)
    mu = y.mean((0, 2), keepdims=True)
    var = y.var((0, 2), keepdims=True)
    xh = (y - mu) / np.sqrt(var + 1e-5)
    z = gamma[None, :, None] * xh + beta[None, :, None]
    a = np.maximum(z, 0)
    return a.max(2)

def net_backward(g, x, w, gamma, beta):
    y = conv1d(x, w)
    n, f, t = y.shape
    mu = y.mean((0, 2), keepdims=True)
    var = y.var((0, 2), keepdims=True)
    std = np.sqrt(var + 1e-5)
    xh = (y - mu) / std
    z = gamma[None, :, None] * xh + beta[None, :, None]
    a = np.maximum(z, 0)
    at = a.argmax(2)
    da = np.zeros_like(a)
    for i in range(n):
        for j in range(f):
            da[i, j, at[i, j]] = g[i, j]
    dz = da * (z > 0)
    dgamma = (dz * xh).sum((0, 2))
    dbeta = dz.sum((0, 2))
    dxh = dz * gamma[None, :, None]
    m = n * t
    dy = (dxh - dxh.sum((0, 2), keepdims=True) / m - xh * (dxh * xh).sum((0, 2), keepdims=True) / m) / std
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for k in range(3):
        dx[:, :, k:k + t] += np.einsum("nft,fc->nct", dy, w[:, :, k])
        dw[:, :, k] = np.einsum("nft,nct->fc", dy, x[:, :, k:k + t])
    return dx, dw, dgamma, dbeta

inputs = [rng.standard_normal((2, 3, 6)), rng.standard_normal((4, 3, 3)), rng.random(4) + 0.5, rng.standard_normal(4)]
"""
SPLINE = """
KNOTS = [-2.0, -1.0, 0.0, 1.0, 2.0]

def features(x):
    k = torch.tensor(KNOTS).to(x.dtype)
    return torch.exp(-((x[:, :, None] - k) / 0.7) ** 2)

def kan(x, coef, skip):
    phi = features(x)
    return torch.einsum("nik,iko->no", phi, coef) + (x * torch.sigmoid(x)) @ skip

def kan_backward(g, x, coef, skip):
    k = torch.tensor(KNOTS).to(x.dtype)
    phi = features(x)
    s = torch.sigmoid(x)
    dcoef = torch.einsum("no,nik->iko", g, phi)
    dphi = torch.einsum("no,iko->nik", g, coef)
    dskip = (x * s).T @ g
    dact = g @ skip.T
    dx = dact * (s + x * s * (1 - s))
    dx = dx + (dphi * phi * -2 * (x[:, :, None] - k) / 0.49).sum(2)
    return dx, dcoef, dskip

inputs = [torch.randn(4, 3), torch.randn(3, 5, 2), torch.randn(3, 2)]
"""
LARGER = {
    "lstm of arrays": (NUMPY, LSTM, {
        "forget gate by new cell": [("di, dg, df = dc * g, dc * i, dc * cprev", "di, dg, df = dc * g, dc * i, dc * tc")],
        "cell not carried through f": [("        dc = dc * f\n", "        dc = dc * i\n")],
        "output of the step before": [("dWy += h.T @ dy", "dWy = h.T @ dy")],
        "cell's gradient replaced": [("dc = dc + dh * o * (1 - tc ** 2)", "dc = dh * o * (1 - tc ** 2)")],
    }),
    "transformer block": (EITHER, BLOCK, {
        "gain of the other norm": [("dg1 = (du * h1).sum(0)", "dg1 = (du * u).sum(0)")],
        "residual lost": [("dr = dout + ln_back(dw, g2, h2, s2)", "dr = ln_back(dw, g2, h2, s2)")],
        "second residual from out": [("dx = dr + ln_back(du, g1, h1, s1)", "dx = dout + ln_back(du, g1, h1, s1)")],
        "helper: gain forgotten": [("dh = dy * g\n", "dh = dy\n")],
        "two: 1.702 and value": [("df = de * (sg + 1.702 * f * sg * (1 - sg))", "df = de * (sg + f * sg * (1 - sg))"), ("dv = p.T @ do", "dv = p @ do")],
        "keys and queries": [("dq = ds @ k", "dq = ds.T @ k")],
    }),
    "clipped policy": (EITHER, POLICY, {
        "ratio forgotten": [("dlp = dratio * ratio", "dlp = dratio")],
        "clip mask forgotten": [("dratio = -g / n * adv * torch.maximum(free, inside)", "dratio = -g / n * adv")],
        "entropy's sign": [("dlogp = dlogp + 0.01 * g / n * p * (logp + 1)", "dlogp = dlogp - 0.01 * g / n * p * (logp + 1)")],
        "log softmax": [("dlogits = dlogp - p * dlogp.sum(1, keepdim=True)", "dlogits = p * (dlogp - (p * dlogp).sum(1, keepdim=True))")],
    }),
    "convolution, norm and maximum": (NUMPY, BNCONV, {
        "count without time": [("m = n * t\n", "m = n\n")],
        "input window": [("dw[:, :, k] = np.einsum(\"nft,nct->fc\", dy, x[:, :, k:k + t])", "dw[:, :, k] = np.einsum(\"nft,nct->fc\", dy, x[:, :, :t])")],
        "windows overwritten": [("dx[:, :, k:k + t] += np.einsum", "dx[:, :, k:k + t] = np.einsum")],
        "gain before": [("dgamma = (dz * xh).sum((0, 2))", "dgamma = (dz * y).sum((0, 2))")],
        "relu forgotten": [("dz = da * (z > 0)", "dz = da")],
        "deviation squared": [("(dxh * xh).sum((0, 2), keepdims=True) / m) / std", "(dxh * xh).sum((0, 2), keepdims=True) / m) / var")],
    }),
    "splines": (EITHER, SPLINE, {
        "width not squared": [("(x[:, :, None] - k) / 0.49).sum(2)", "(x[:, :, None] - k) / 0.7).sum(2)")],
        "two forgotten": [("dphi * phi * -2 * (x", "dphi * phi * -1 * (x")],
        "axes of the coefficients": [("dcoef = torch.einsum(\"no,nik->iko\", g, phi)", "dcoef = torch.einsum(\"no,nik->iko\", g, phi) / x.shape[0]")],
        "two: silu and skip": [("dact * (s + x * s * (1 - s))", "dact * (s + s * (1 - s))"), ("dskip = (x * s).T @ g", "dskip = x.T @ g")],
        "features for their slopes": [("dx = dx + (dphi * phi * -2", "dx = dx + (dphi * -2")],
    }),
}
