"""Backward passes of rarer kinds, and lines of theirs as people get them wrong; see
`backward_cases`.
"""

from backward_cases import EITHER, NUMPY, pair

BATCH_NORM_2D = """
class BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mu = x.mean((0, 2, 3), keepdim=True)
        xc = x - mu
        var = (xc * xc).mean((0, 2, 3), keepdim=True)
        istd = 1 / torch.sqrt(var + 1e-3)
        xhat = xc * istd
        ctx.save_for_backward(x, xc, istd, xhat, gamma)
        return gamma[:, None, None] * xhat + beta[:, None, None]

    @staticmethod
    def backward(ctx, dout):
        x, xc, istd, xhat, gamma = ctx.saved_tensors
        m = x.shape[0] * x.shape[2] * x.shape[3]
        dbeta = dout.sum((0, 2, 3))
        dgamma = (dout * xhat).sum((0, 2, 3))
        dxhat = dout * gamma[:, None, None]
        divar = (dxhat * xc).sum((0, 2, 3), keepdim=True)
        dxc = dxhat * istd
        dvar = -0.5 * divar * istd ** 3
        dxc = dxc + 2 / m * xc * dvar
        dmu = -dxc.sum((0, 2, 3), keepdim=True)
        dx = dxc + dmu / m
        return dx, dgamma, dbeta

inputs = [torch.randn(3, 2, 2, 3), torch.rand(2) + 0.5, torch.randn(2)]
"""
GROUPED_ATTENTION = """
def attend(x, wq, wk, wv):
    t = x.shape[0]
    q = (x @ wq).reshape(t, 4, 2)
    k = (x @ wk).reshape(t, 2, 2)
    v = (x @ wv).reshape(t, 2, 2)
    q = q.reshape(t, 2, 2, 2)
    s = torch.einsum("tgrd,sgd->grts", q, k) * 2 ** -0.5
    s = s + torch.full((t, t), -1e9).triu(1).to(s.dtype)
    p = torch.softmax(s, -1)
    return torch.einsum("grts,sgd->tgrd", p, v).reshape(t, 8)

def attend_backward(g, x, wq, wk, wv):
    t = x.shape[0]
    q = (x @ wq).reshape(t, 2, 2, 2)
    k = (x @ wk).reshape(t, 2, 2)
    v = (x @ wv).reshape(t, 2, 2)
    s = torch.einsum("tgrd,sgd->grts", q, k) * 2 ** -0.5
    s = s + torch.full((t, t), -1e9).triu(1).to(s.dtype)
    p = torch.softmax(s, -1)
    do = g.reshape(t, 2, 2, 2)
    dv = torch.einsum("grts,tgrd->sgd", p, do)
    dp = torch.einsum("tgrd,sgd->grts", do, v)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * 2 ** -0.5
    dq = torch.einsum("grts,sgd->tgrd", ds, k).reshape(t, 8)
    dk = torch.einsum("grts,tgrd->sgd", ds, q).reshape(t, 4)
    dv = dv.reshape(t, 4)
    dx = dq @ wq.T + dk @ wk.T + dv @ wv.T
    return dx, x.T @ dq, x.T @ dk, x.T @ dv

inputs = [torch.randn(4, 3), torch.randn(3, 8), torch.randn(3, 4), torch.randn(3, 4)]
"""
DROPPED_ATTENTION = """
KEEP = torch.tensor([[1.0, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 0]])

def dropped(q, k, v):
    keep = KEEP.to(q.dtype) / 0.75
    w = torch.softmax(q @ k.T / q.shape[1] ** 0.5, 1)
    return (w * keep) @ v

def dropped_backward(g, q, k, v):
    keep = KEEP.to(q.dtype) / 0.75
    w = torch.softmax(q @ k.T / q.shape[1] ** 0.5, 1)
    wd = w * keep
    dv = wd.T @ g
    dwd = g @ v.T
    dw = dwd * keep
    ds = w * (dw - (w * dw).sum(1, keepdim=True))
    ds = ds / q.shape[1] ** 0.5
    return ds @ k, ds.T @ q, dv

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 2)]
"""
PEEPHOLE = """
def run(x, w, u, peep):
    h = x.new_zeros(2, 3)
    c = x.new_zeros(2, 3)
    for t in range(len(x)):
        z = x[t] @ w + h @ u
        f = torch.sigmoid(z[:, :3] + peep[0] * c)
        i = 1 - f
        c = f * c + i * torch.tanh(z[:, 3:6])
        o = torch.sigmoid(z[:, 6:] + peep[1] * c)
        h = o * torch.tanh(c)
    return h

def run_backward(g, x, w, u, peep):
    hs, cs = [x.new_zeros(2, 3)], [x.new_zeros(2, 3)]
    fs, gs, os = [], [], []
    for t in range(len(x)):
        z = x[t] @ w + hs[t] @ u
        f = torch.sigmoid(z[:, :3] + peep[0] * cs[t])
        cand = torch.tanh(z[:, 3:6])
        cs.append(f * cs[t] + (1 - f) * cand)
        o = torch.sigmoid(z[:, 6:] + peep[1] * cs[t + 1])
        hs.append(o * torch.tanh(cs[t + 1]))
        fs.append(f)
        gs.append(cand)
        os.append(o)
    dx, dw, du, dpeep = torch.zeros_like(x), torch.zeros_like(w), torch.zeros_like(u), torch.zeros_like(peep)
    dh, dc = g, torch.zeros_like(g)
    for t in reversed(range(len(x))):
        tc = torch.tanh(cs[t + 1])
        do = dh * tc * os[t] * (1 - os[t])
        dpeep[1] += (do * cs[t + 1]).sum(0)
        dc = dc + dh * os[t] * (1 - tc ** 2) + do * peep[1]
        df = dc * (cs[t] - gs[t]) * fs[t] * (1 - fs[t])
        dg = dc * (1 - fs[t]) * (1 - gs[t] ** 2)
        dpeep[0] += (df * cs[t]).sum(0)
        dz = torch.cat([df, dg, do], 1)
        dw += x[t].T @ dz
        du += hs[t].T @ dz
        dx[t] = dz @ w.T
        dh = dz @ u.T
        dc = dc * fs[t] + df * peep[0]
    return dx, dw, du, dpeep

inputs = [torch.randn(3, 2, 2), torch.randn(2, 9), torch.randn(3, 9), torch.randn(2, 3)]
"""
IGNORED = """
Y = torch.tensor([2, 0, -1, 1, -1, 3])

def nll(x, w):
    keep = (Y >= 0).to(x.dtype)
    at = Y.clamp(min=0)
    z = x @ w
    lp = z - torch.logsumexp(z, 1, keepdim=True)
    picked = lp.gather(1, at[:, None])[:, 0]
    return -(picked * keep).sum() / keep.sum()

def nll_backward(g, x, w):
    keep = (Y >= 0).to(x.dtype)
    at = Y.clamp(min=0)
    z = x @ w
    p = torch.softmax(z, 1)
    hot = torch.zeros_like(p)
    hot[torch.arange(6), at] = 1.0
    dz = (p - hot) * keep[:, None]
    dz = g * dz / keep.sum()
    return dz @ w.T, x.T @ dz

inputs = [torch.randn(6, 3), torch.randn(3, 4)]
"""
MULTI_LABEL = """
def multi(x, w, b, pos):
    z = x @ w + b
    t = (x[:, :2] > 0).to(z.dtype)
    sp = torch.nn.functional.softplus
    return (pos * t * sp(-z) + (1 - t) * sp(z)).mean()

def multi_backward(g, x, w, b, pos):
    z = x @ w + b
    t = (x[:, :2] > 0).to(z.dtype)
    s = torch.sigmoid(z)
    sp = torch.nn.functional.softplus
    dz = (1 - t) * s - pos * t * (1 - s)
    dz = g * dz / z.numel()
    dpos = (g * t * sp(-z)).sum(0) / z.numel()
    return dz @ w.T, x.T @ dz, dz.sum(0), dpos

inputs = [torch.randn(5, 3), torch.randn(3, 2), torch.randn(2), torch.rand(2) + 1]
"""
DISTILLED = """
def distilled(x, w, teacher):
    tau = 2.5
    s = torch.log_softmax(x @ w / tau, 1)
    q = torch.softmax(teacher / tau, 1)
    return tau ** 2 * (q * (q.log() - s)).sum(1).mean()

def distilled_backward(g, x, w, teacher):
    tau = 2.5
    n = x.shape[0]
    s = torch.log_softmax(x @ w / tau, 1)
    p = s.exp()
    q = torch.softmax(teacher / tau, 1)
    dz = g * tau * (p - q) / n
    r = q.log() - s
    dq = g * tau ** 2 * (r + 1) / n
    dteacher = q * (dq - (dq * q).sum(1, keepdim=True)) / tau
    return dz @ w.T, x.T @ dz, dteacher

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(5, 4)]
"""
TIED = """
IDS = torch.tensor([1, 3, 3, 0])
NEXT = torch.tensor([3, 3, 0, 2])

def tied(emb, w, b):
    x = emb[IDS] * 3 ** 0.5
    h = torch.relu(x @ w + b)
    z = h @ emb.T
    return -torch.log_softmax(z, 1)[torch.arange(4), NEXT].mean()

def tied_backward(g, emb, w, b):
    x = emb[IDS] * 3 ** 0.5
    a = x @ w + b
    h = torch.relu(a)
    dz = torch.softmax(h @ emb.T, 1)
    dz[torch.arange(4), NEXT] -= 1
    dz = g * dz / 4
    demb = dz.T @ h
    dh = dz @ emb
    da = dh * (a > 0).to(dh.dtype)
    dw = x.T @ da
    dx = da @ w.T * 3 ** 0.5
    for i in range(4):
        demb[IDS[i]] += dx[i]
    return demb, dw, da.sum(0)

inputs = [torch.randn(5, 3), torch.randn(3, 3), torch.randn(3)]
"""
DILATED = """
def dilated(x, w):
    y = torch.zeros(x.shape[0] - 4, w.shape[2]).to(x.dtype)
    for k in range(3):
        y = y + x[2 * k:2 * k + len(y)] @ w[k]
    return torch.nn.functional.gelu(y)

def dilated_backward(g, x, w):
    n = x.shape[0] - 4
    y = torch.zeros(n, w.shape[2]).to(x.dtype)
    for k in range(3):
        y = y + x[2 * k:2 * k + n] @ w[k]
    phi = 0.5 * (1 + torch.erf(y / 2 ** 0.5))
    dy = g * (phi + y * torch.exp(-0.5 * y * y) / (2 * 3.141592653589793) ** 0.5)
    dx, dw = torch.zeros_like(x), torch.zeros_like(w)
    for k in range(3):
        dw[k] = x[2 * k:2 * k + n].T @ dy
        dx[2 * k:2 * k + n] += dy @ w[k].T
    return dx, dw

inputs = [torch.randn(8, 2), torch.randn(3, 2, 3)]
"""
UNIT_ROWS = """
def matched(a, b, scale):
    na = a.norm(dim=1, keepdim=True)
    nb = b.norm(dim=1, keepdim=True)
    u, v = a / na, b / nb
    return torch.exp(scale) * (u @ v.T)

def matched_backward(g, a, b, scale):
    na = a.norm(dim=1, keepdim=True)
    nb = b.norm(dim=1, keepdim=True)
    u, v = a / na, b / nb
    e = torch.exp(scale)
    dscale = (g * (u @ v.T)).sum() * e
    du = e * g @ v
    dv = e * g.T @ u
    da = du / na - a * (du * a).sum(1, keepdim=True) / na ** 3
    db = dv / nb - b * (dv * b).sum(1, keepdim=True) / nb ** 3
    return da, db, dscale

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.tensor(0.4)]
"""
SOLVE = """
def quadratic(a, b):
    s = a @ a.T + torch.eye(3).to(a.dtype)
    inv = torch.linalg.inv(s)
    x = inv @ b
    return (b * x).sum() + torch.logdet(s)

def quadratic_backward(g, a, b):
    s = a @ a.T + torch.eye(3).to(a.dtype)
    inv = torch.linalg.inv(s)
    x = inv @ b
    db = 2 * g * x
    ds = g * (inv - x @ x.T)
    da = (ds + ds.T) @ a
    return da, db

inputs = [torch.randn(3, 4), torch.randn(3, 2)]
"""
SMOOTHED = """
def smoothed(x, alpha, beta):
    a, b = torch.sigmoid(alpha), torch.sigmoid(beta)
    level, trend = x[0], x[1] - x[0]
    out = []
    for t in range(1, len(x)):
        old = level
        level = a * x[t] + (1 - a) * (level + trend)
        trend = b * (level - old) + (1 - b) * trend
        out.append(level + trend)
    return torch.stack(out)

def smoothed_backward(g, x, alpha, beta):
    a, b = torch.sigmoid(alpha), torch.sigmoid(beta)
    levels, trends = [x[0]], [x[1] - x[0]]
    for t in range(1, len(x)):
        levels.append(a * x[t] + (1 - a) * (levels[-1] + trends[-1]))
        trends.append(b * (levels[-1] - levels[-2]) + (1 - b) * trends[-1])
    dx = torch.zeros_like(x)
    da, db = torch.zeros_like(a), torch.zeros_like(b)
    dlevel, dtrend = torch.zeros_like(x[0]), torch.zeros_like(x[0])
    for t in reversed(range(1, len(x))):
        dlevel = dlevel + g[t - 1]
        dtrend = dtrend + g[t - 1]
        db = db + dtrend * (levels[t] - levels[t - 1] - trends[t - 1])
        dlevel = dlevel + b * dtrend
        dold = -b * dtrend
        dtrend = (1 - b) * dtrend
        da = da + dlevel * (x[t] - levels[t - 1] - trends[t - 1])
        dx[t] += a * dlevel
        dtrend = dtrend + (1 - a) * dlevel
        dlevel = (1 - a) * dlevel + dold
    dx[0] += dlevel - dtrend
    dx[1] += dtrend
    return dx, da * a * (1 - a), db * b * (1 - b)

inputs = [torch.randn(6), torch.tensor(0.3), torch.tensor(-0.4)]
"""
RADIAL = """
def radial(x, centres, gamma, w):
    d = ((x[:, None] - centres[None]) ** 2).sum(2)
    phi = torch.exp(-gamma * d)
    phi = phi / phi.sum(1, keepdim=True)
    return phi @ w

def radial_backward(g, x, centres, gamma, w):
    diff = x[:, None] - centres[None]
    d = (diff ** 2).sum(2)
    e = torch.exp(-gamma * d)
    total = e.sum(1, keepdim=True)
    phi = e / total
    dw = phi.T @ g
    dphi = g @ w.T
    de = (dphi - (dphi * phi).sum(1, keepdim=True)) / total
    du = de * e
    dgamma = -(du * d).sum(0)
    dd = -gamma * du
    dx = (2 * diff * dd[:, :, None]).sum(1)
    dcentres = -(2 * diff * dd[:, :, None]).sum(0)
    return dx, dcentres, dgamma, dw

inputs = [torch.randn(4, 2), torch.randn(3, 2), torch.rand(3) + 0.3, torch.randn(3, 2)]
"""
FOURIER = """
def waves(x, freq, w):
    z = 2 * 3.141592653589793 * x @ freq
    f = torch.cat([torch.sin(z), torch.cos(z)], 1)
    return f @ w / freq.shape[1] ** 0.5

def waves_backward(g, x, freq, w):
    z = 2 * 3.141592653589793 * x @ freq
    m = freq.shape[1]
    f = torch.cat([torch.sin(z), torch.cos(z)], 1)
    dw = f.T @ g / m ** 0.5
    df = g @ w.T / m ** 0.5
    dz = df[:, :m] * torch.cos(z) - df[:, m:] * torch.sin(z)
    dz = 2 * 3.141592653589793 * dz
    return dz @ freq.T, x.T @ dz, dw

inputs = [0.2 * torch.randn(4, 2), torch.randn(2, 3), torch.randn(6, 2)]
"""
POINTER = """
OPEN = torch.tensor([1, 1, 0, 1, 1])

def pointer(query, keys):
    s = keys @ query
    s = torch.where(OPEN > 0, s, torch.full_like(s, -1e9))
    p = torch.softmax(s / 2, 0)
    c = p @ keys
    return torch.tanh(c)

def pointer_backward(g, query, keys):
    s = keys @ query
    s = torch.where(OPEN > 0, s, torch.full_like(s, -1e9))
    p = torch.softmax(s / 2, 0)
    c = p @ keys
    dc = g * (1 - torch.tanh(c) ** 2)
    dp = keys @ dc
    dkeys = torch.outer(p, dc)
    ds = p * (dp - (p * dp).sum()) / 2
    dkeys = dkeys + torch.outer(ds, query)
    dquery = keys.T @ ds
    return dquery, dkeys

inputs = [torch.randn(3), torch.randn(5, 3)]
"""
QUANTILE = """
def pinball(x, w, b, y):
    z = x @ w + b
    q = torch.tensor([0.1, 0.5, 0.9]).to(z.dtype)
    e = y[:, None] - z
    return torch.where(e >= 0, q * e, (q - 1) * e).sum(1).mean()

def pinball_backward(g, x, w, b, y):
    z = x @ w + b
    n = x.shape[0]
    q = torch.tensor([0.1, 0.5, 0.9]).to(z.dtype)
    e = y[:, None] - z
    de = torch.where(e >= 0, q.expand(n, 3), (q - 1).expand(n, 3)) * g / n
    dz = -de
    dy = de.sum(1)
    return dz @ w.T, x.T @ dz, dz.sum(0), dy

inputs = [torch.randn(5, 2), torch.randn(2, 3), torch.randn(3), torch.randn(5)]
"""
NUMPY_SKIPGRAM = """
import numpy as np

CENTRE, CONTEXT, NOISE = np.array([0, 2, 2]), np.array([1, 3, 0]), np.array([[3, 4], [4, 4], [1, 3]])

def skipgram(u, v):
    good = (u[CENTRE] * v[CONTEXT]).sum(1)
    bad = (u[CENTRE][:, None] * v[NOISE]).sum(2)
    return np.logaddexp(0, -good).sum() + np.logaddexp(0, bad).sum()

def skipgram_backward(g, u, v):
    c = u[CENTRE]
    good = (c * v[CONTEXT]).sum(1)
    bad = (c[:, None] * v[NOISE]).sum(2)
    dgood = g * (1 / (1 + np.exp(-good)) - 1)
    dbad = g / (1 + np.exp(-bad))
    du, dv = np.zeros_like(u), np.zeros_like(v)
    dc = dgood[:, None] * v[CONTEXT] + (dbad[:, :, None] * v[NOISE]).sum(1)
    np.add.at(du, CENTRE, dc)
    np.add.at(dv, CONTEXT, dgood[:, None] * c)
    np.add.at(dv, NOISE, dbad[:, :, None] * c[:, None])
    return du, dv

inputs = [np.random.default_rng(0).standard_normal((3, 4)), np.random.default_rng(1).standard_normal((5, 4))]
"""
NUMPY_LSTM = """
import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

def cells(xs, wx, wh, b):
    h, c = np.zeros(3), np.zeros(3)
    for x in xs:
        i, f, o, a = np.split(x @ wx + h @ wh + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(a)
        h = sigmoid(o) * np.tanh(c)
    return (h ** 2).sum()

def cells_backward(g, xs, wx, wh, b):
    h, c = np.zeros(3), np.zeros(3)
    cache = []
    for x in xs:
        i, f, o, a = np.split(x @ wx + h @ wh + b, 4)
        i, f, o, a = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(a)
        c_new = f * c + i * a
        cache.append((x, h, c, i, f, o, a, c_new))
        h, c = o * np.tanh(c_new), c_new
    dxs, dwx, dwh, db = np.zeros_like(xs), np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b)
    dh, dc = 2 * g * h, np.zeros(3)
    for t in range(len(xs) - 1, -1, -1):
        x, h_prev, c_prev, i, f, o, a, c_new = cache[t]
        do = dh * np.tanh(c_new)
        dc = dc + dh * o * (1 - np.tanh(c_new) ** 2)
        di, df, da = dc * a, dc * c_prev, dc * i
        dz = np.concatenate([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), da * (1 - a ** 2)])
        dwx += np.outer(x, dz)
        dwh += np.outer(h_prev, dz)
        db += dz
        dxs[t] = wx @ dz
        dh = wh @ dz
        dc = dc * f
    return dxs, dwx, dwh, db

inputs = [np.random.default_rng(k).standard_normal(s) for k, s in enumerate([(4, 2), (2, 12), (3, 12), (12,)])]
"""
CROSS = """
class Cross(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mem, wq, wkv, wo):
        n, d = x.shape[0], wq.shape[1]
        q = x @ wq
        kv = mem @ wkv
        k, v = kv[:, :d], kv[:, d:]
        a = torch.softmax(q @ k.T / d ** 0.5, -1)
        o = a @ v
        y = x + o @ wo
        ctx.save_for_backward(x, mem, wq, wkv, wo, q, k, v, a, o)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, mem, wq, wkv, wo, q, k, v, a, o = ctx.saved_tensors
        d = wq.shape[1]
        do = dy @ wo.T
        dwo = o.T @ dy
        da = do @ v.T
        dv = a.T @ do
        ds = a * (da - (da * a).sum(-1, keepdim=True))
        ds = ds / d ** 0.5
        dq = ds @ k
        dk = ds.T @ q
        dkv = torch.cat([dk, dv], 1)
        dwq = x.T @ dq
        dwkv = mem.T @ dkv
        dx = dy + dq @ wq.T
        dmem = dkv @ wkv.T
        return dx, dmem, dwq, dwkv, dwo

inputs = [torch.randn(4, 3), torch.randn(5, 3), torch.randn(3, 2), torch.randn(3, 4), torch.randn(2, 3)]
"""
BILSTM = """
def gated(xs, w, u, b):
    T, H = xs.shape[0], u.shape[0]
    h = xs.new_zeros(xs.shape[1], H)
    total = 0.0
    for t in range(T):
        z = xs[t] @ w + h @ u + b
        f = torch.sigmoid(z[:, :H])
        n = torch.tanh(z[:, H:])
        h = f * h + (1 - f) * n
        total = total + (h * h).sum() / T
    return total

def gated_backward(g, xs, w, u, b):
    T, H = xs.shape[0], u.shape[0]
    h = xs.new_zeros(xs.shape[1], H)
    saved = []
    for t in range(T):
        z = xs[t] @ w + h @ u + b
        f = torch.sigmoid(z[:, :H])
        n = torch.tanh(z[:, H:])
        prev = h
        h = f * h + (1 - f) * n
        saved.append((prev, f, n, h))
    dxs = torch.zeros_like(xs)
    dw = torch.zeros_like(w)
    du = torch.zeros_like(u)
    db = torch.zeros_like(b)
    carry = torch.zeros_like(h)
    for t in reversed(range(T)):
        prev, f, n, h = saved[t]
        dh = carry + 2 * g * h / T
        df = dh * (prev - n)
        dn = dh * (1 - f)
        dzf = df * f * (1 - f)
        dzn = dn * (1 - n * n)
        dz = torch.cat([dzf, dzn], dim=1)
        dw += xs[t].T @ dz
        du += prev.T @ dz
        db += dz.sum(0)
        dxs[t] = dz @ w.T
        carry = dh * f + dz @ u.T
    return dxs, dw, du, db

inputs = [torch.randn(4, 2, 3), torch.randn(3, 6), torch.randn(3, 6), torch.randn(6)]
"""
IM2COL = """
class Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        N, C, H, W = x.shape
        O, _, K, _ = w.shape
        h, v = H - K + 1, W - K + 1
        cols = torch.stack([x[:, :, i:i + h, j:j + v] for i in range(K) for j in range(K)], 2)
        cols = cols.reshape(N, C * K * K, h * v)
        y = (w.reshape(O, -1) @ cols).reshape(N, O, h, v) + b[:, None, None]
        ctx.save_for_backward(cols, w)
        ctx.size = H, W
        return y

    @staticmethod
    def backward(ctx, dy):
        cols, w = ctx.saved_tensors
        H, W = ctx.size
        N, O, h, v = dy.shape
        _, C, K, _ = w.shape
        d = dy.reshape(N, O, h * v)
        db = dy.sum((0, 2, 3))
        dw = (d @ cols.transpose(1, 2)).sum(0).reshape(w.shape)
        dcols = w.reshape(O, -1).T @ d
        dcols = dcols.reshape(N, C, K * K, h, v)
        dx = dy.new_zeros(N, C, H, W)
        for i in range(K):
            for j in range(K):
                dx[:, :, i:i + h, j:j + v] += dcols[:, :, i * K + j]
        return dx, dw, db

inputs = [torch.randn(2, 2, 4, 5), torch.randn(3, 2, 2, 2), torch.randn(3)]
"""
NORMED_MLP = """
def block(x, gain, w1, w2):
    r = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    n = x * r * gain
    a = n @ w1
    s = torch.sigmoid(1.702 * a)
    return x + (a * s) @ w2

def block_backward(g, x, gain, w1, w2):
    d = x.shape[-1]
    r = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    xr = x * r
    n = xr * gain
    a = n @ w1
    s = torch.sigmoid(1.702 * a)
    h = a * s
    dw2 = h.T @ g
    dh = g @ w2.T
    da = dh * (s + 1.702 * a * s * (1 - s))
    dw1 = n.T @ da
    dn = da @ w1.T
    dgain = (dn * xr).sum(0)
    dxr = dn * gain
    dx = r * dxr - x * r ** 3 * (dxr * x).sum(-1, keepdim=True) / d
    dx = dx + g
    return dx, dgain, dw1, dw2

inputs = [torch.randn(5, 3), torch.rand(3) + 0.5, torch.randn(3, 4), torch.randn(4, 3)]
"""
HINGE = """
Y = torch.tensor([0, 2, 1, 1, 0])

def svm(x, w, b):
    s = x @ w + b
    right = s[torch.arange(5), Y][:, None]
    m = torch.relu(s - right + 1)
    m = m * (torch.arange(3)[None] != Y[:, None]).to(s.dtype)
    return m.sum() / 5 + 0.05 * (w * w).sum()

def svm_backward(g, x, w, b):
    s = x @ w + b
    right = s[torch.arange(5), Y][:, None]
    mask = (s - right + 1 > 0).to(s.dtype)
    mask[torch.arange(5), Y] = 0
    ds = mask / 5
    ds[torch.arange(5), Y] = -mask.sum(1) / 5
    dw = g * (x.T @ ds + 0.1 * w)
    db = g * ds.sum(0)
    dx = g * ds @ w.T
    return dx, dw, db

inputs = [torch.randn(5, 4), torch.randn(4, 3), torch.randn(3)]
"""
VQ = """
def mixture(x, mu, logs, logit):
    inv = torch.exp(-2 * logs)
    sq = ((x[:, None, :] - mu) ** 2 * inv).sum(-1)
    lp = torch.log_softmax(logit, 0) - 0.5 * sq - logs.sum(-1)
    return -torch.logsumexp(lp, 1).mean()

def mixture_backward(g, x, mu, logs, logit):
    n, k = x.shape[0], mu.shape[0]
    inv = torch.exp(-2 * logs)
    diff = x[:, None, :] - mu
    sq = (diff ** 2 * inv).sum(-1)
    lp = torch.log_softmax(logit, 0) - 0.5 * sq - logs.sum(-1)
    resp = torch.softmax(lp, 1)
    dlp = -g * resp / n
    dlogit = dlp.sum(0) - torch.softmax(logit, 0) * dlp.sum()
    dsq = -0.5 * dlp
    ddiff = 2 * dsq[:, :, None] * diff * inv
    dx = ddiff.sum(1)
    dmu = -ddiff.sum(0)
    dinv = (dsq[:, :, None] * diff ** 2).sum(0)
    dlogs = -2 * inv * dinv - dlp.sum(0)[:, None]
    return dx, dmu, dlogs, dlogit

inputs = [torch.randn(6, 2), torch.randn(3, 2), 0.3 * torch.randn(3, 2), torch.randn(3)]
"""
PREBLOCK = """
def ln(x, w):
    m = x.mean(-1, keepdim=True)
    c = x - m
    s = torch.sqrt((c * c).mean(-1, keepdim=True) + 1e-5)
    return c / s * w

def ln_bwd(g, x, w):
    m = x.mean(-1, keepdim=True)
    c = x - m
    s = torch.sqrt((c * c).mean(-1, keepdim=True) + 1e-5)
    h = c / s
    gh = g * w
    dw = (g * h).sum(0)
    dx = (gh - gh.mean(-1, keepdim=True) - h * (gh * h).mean(-1, keepdim=True)) / s
    return dx, dw

def layer(x, w, wq, wk, wv):
    y = ln(x, w)
    q, k, v = y @ wq, y @ wk, y @ wv
    p = torch.softmax(q @ k.T * 0.5, -1)
    return x + p @ v

def layer_backward(g, x, w, wq, wk, wv):
    y = ln(x, w)
    q, k, v = y @ wq, y @ wk, y @ wv
    p = torch.softmax(q @ k.T * 0.5, -1)
    dv = p.T @ g
    dp = g @ v.T
    ds = p * (dp - (p * dp).sum(-1, keepdim=True))
    dq = ds @ k * 0.5
    dk = ds.T @ q * 0.5
    dwq, dwk, dwv = y.T @ dq, y.T @ dk, y.T @ dv
    dy = dq @ wq.T + dk @ wk.T + dv @ wv.T
    dln, dw = ln_bwd(dy, x, w)
    return g + dln, dw, dwq, dwk, dwv

inputs = [torch.randn(4, 3), torch.rand(3) + 0.5, torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 3)]
"""
POOLING = """
OPEN = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])

class Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, u):
        h = torch.tanh(x @ w)
        e = h @ u
        e = e.masked_fill(OPEN == 0, -1e9)
        a = torch.softmax(e, 1)
        y = (a[..., None] * x).sum(1)
        ctx.save_for_backward(x, w, u, h, a)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, u, h, a = ctx.saved_tensors
        dx = a[..., None] * dy[:, None]
        da = (dy[:, None] * x).sum(-1)
        de = a * (da - (a * da).sum(1, keepdim=True))
        du = torch.einsum("bt,btk->k", de, h)
        dh = de[..., None] * u
        dz = dh * (1 - h ** 2)
        dw = torch.einsum("btd,btk->dk", x, dz)
        dx = dx + dz @ w.T
        return dx, dw, du

inputs = [torch.randn(2, 4, 3), torch.randn(3, 3), torch.randn(3)]
"""
GRUSTEP = """
def cell(x, h, p):
    r = torch.sigmoid(x @ p[0] + h @ p[1])
    z = torch.sigmoid(x @ p[2] + h @ p[3])
    n = torch.tanh(x @ p[4] + (r * h) @ p[5])
    return z * h + (1 - z) * n

def cell_backward(g, x, h, p):
    r = torch.sigmoid(x @ p[0] + h @ p[1])
    z = torch.sigmoid(x @ p[2] + h @ p[3])
    rh = r * h
    n = torch.tanh(x @ p[4] + rh @ p[5])
    dz = g * (h - n) * z * (1 - z)
    dn = g * (1 - z) * (1 - n ** 2)
    drh = dn @ p[5].T
    dr = drh * h * r * (1 - r)
    dh = g * z + drh * r + dr @ p[1].T + dz @ p[3].T
    dx = dr @ p[0].T + dz @ p[2].T + dn @ p[4].T
    dp = torch.stack([x.T @ dr, h.T @ dr, x.T @ dz, h.T @ dz, x.T @ dn, rh.T @ dn])
    return dx, dh, dp

inputs = [torch.randn(3, 4), torch.randn(3, 4), 0.5 * torch.randn(6, 4, 4)]
"""
MARGIN = """
Y = torch.tensor([1, -1, 1, -1, -1])

def embed_loss(a, b):
    na = (a * a).sum(1, keepdim=True).sqrt()
    nb = (b * b).sum(1, keepdim=True).sqrt()
    c = (a * b).sum(1, keepdim=True) / (na * nb)
    y = Y[:, None].to(a.dtype)
    loss = torch.where(y > 0, 1 - c, torch.relu(c - 0.1))
    return loss.sum() / 5

def embed_loss_backward(g, a, b):
    na = (a * a).sum(1, keepdim=True).sqrt()
    nb = (b * b).sum(1, keepdim=True).sqrt()
    c = (a * b).sum(1, keepdim=True) / (na * nb)
    y = Y[:, None].to(a.dtype)
    dc = torch.where(y > 0, -torch.ones_like(c), (c > 0.1).to(c.dtype)) * g / 5
    da = dc * (b / (na * nb) - c * a / na ** 2)
    db = dc * (a / (na * nb) - c * b / nb ** 2)
    return da, db

inputs = [torch.randn(5, 3), torch.randn(5, 3)]
"""
LOWRANK = """
class Lora(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, a, b, s):
        z = x @ a
        y = x @ w + s * (z @ b)
        m = torch.nn.functional.silu(y)
        ctx.save_for_backward(x, w, a, b, s, z, y)
        return m

    @staticmethod
    def backward(ctx, g):
        x, w, a, b, s, z, y = ctx.saved_tensors
        e = torch.sigmoid(y)
        dy = g * e * (1 + y * (1 - e))
        dw = x.T @ dy
        dzb = s * dy
        db = z.T @ dzb
        dz = dzb @ b.T
        da = x.T @ dz
        ds = (dy * (z @ b)).sum()
        dx = dy @ w.T + dz @ a.T
        return dx, dw, da, db, ds

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(3, 2), torch.randn(2, 4), torch.tensor(0.7)]
"""
RARER = {
    "batch norm of pictures": (EITHER, BATCH_NORM_2D, {
        "rows counted alone": [("m = x.shape[0] * x.shape[2] * x.shape[3]", "m = x.shape[0]")],
        "mean over the batch alone": [("dmu = -dxc.sum((0, 2, 3), keepdim=True)", "dmu = -dxc.sum(0, keepdim=True)")],
        "gain by the centred": [("dgamma = (dout * xhat)", "dgamma = (dout * xc)")],
        "gain forgotten": [("divar = (dxhat * xc)", "divar = (dout * xc)")],
        "unbiased": [("2 / m * xc * dvar", "2 / (m - 1) * xc * dvar")],
    }),
    "attention with shared keys": (EITHER, GROUPED_ATTENTION, {
        "weights' gradient by the scores": [('dv = torch.einsum("grts,tgrd->sgd", p, do)', 'dv = torch.einsum("grts,tgrd->sgd", s, do)')],
        "queries for keys": [('torch.einsum("grts,sgd->tgrd", ds, k)', 'torch.einsum("grts,sgd->tgrd", ds, v)')],
        "sum over the group's heads": [("(dp * p).sum(-1, keepdim=True)", "(dp * p).sum(1, keepdim=True)")],
        "keys' path forgotten": [("dq @ wq.T + dk @ wk.T + dv @ wv.T", "dq @ wq.T + dv @ wv.T")],
        "weights swapped": [("dk @ wk.T + dv @ wv.T", "dk @ wv.T + dv @ wk.T")],
    }),
    "attention with dropout": (EITHER, DROPPED_ATTENTION, {
        "dropped weights in the softmax": [("(dw - (w * dw).sum(1, keepdim=True))", "(dw - (wd * dw).sum(1, keepdim=True))")],
        "mask forgotten": [("dw = dwd * keep", "dw = dwd")],
        "values by all weights": [("dv = wd.T @ g", "dv = w.T @ g")],
        "scale squared": [("ds = ds / q.shape[1] ** 0.5", "ds = ds / q.shape[1]")],
    }),
    "cell with peepholes": (EITHER, PEEPHOLE, {
        "peephole of the new cell": [("dpeep[1] += (do * cs[t + 1]).sum(0)", "dpeep[1] += (do * cs[t]).sum(0)")],
        "path of the output's peephole": [(" + do * peep[1]\n", "\n")],
        "coupled gate forgotten": [("(cs[t] - gs[t]) * fs[t]", "cs[t] * fs[t]")],
        "peepholes swapped": [("dc = dc * fs[t] + df * peep[0]", "dc = dc * fs[t] + df * peep[1]")],
        "gradients in another order": [("torch.cat([df, dg, do], 1)", "torch.cat([dg, df, do], 1)")],
    }),
    "cross entropy with ignored rows": (EITHER, IGNORED, {
        "ignored rows kept": [("dz = (p - hot) * keep[:, None]", "dz = p - hot")],
        "all rows counted": [("dz = g * dz / keep.sum()", "dz = g * dz / len(Y)")],
        "one-hot before the mask": [("dz = (p - hot) * keep[:, None]", "dz = p - hot * keep[:, None]")],
        "added": [("dz = (p - hot)", "dz = (p + hot)")],
    }),
    "many labels": (EITHER, MULTI_LABEL, {
        "weight on both terms": [("dz = (1 - t) * s - pos * t * (1 - s)", "dz = pos * (1 - t) * s - pos * t * (1 - s)")],
        "weight forgotten": [("- pos * t * (1 - s)", "- t * (1 - s)")],
        "mean over the rows": [("dz = g * dz / z.numel()", "dz = g * dz / len(z)")],
        "weight's gradient by the other side": [("dpos = (g * t * sp(-z))", "dpos = (g * t * sp(z))")],
    }),
    "distillation": (EITHER, DISTILLED, {
        "temperature squared kept": [("dz = g * tau * (p - q) / n", "dz = g * tau ** 2 * (p - q) / n")],
        "the other's probabilities": [("dteacher = q * (dq", "dteacher = p * (dq")],
        "temperature forgotten": [("keepdim=True)) / tau", "keepdim=True))")],
        "softmax by the student": [("(dq * q).sum(1", "(dq * p).sum(1")],
    }),
    "tied embeddings": (EITHER, TIED, {
        "scale forgotten": [("dx = da @ w.T * 3 ** 0.5", "dx = da @ w.T")],
        "overwritten": [("demb[IDS[i]] += dx[i]", "demb[IDS[i]] = dx[i]")],
        "targets for inputs": [("demb[IDS[i]] += dx[i]", "demb[NEXT[i]] += dx[i]")],
        "mask of the gradient": [("(a > 0)", "(dh > 0)")],
        "embedding before the scale": [("dw = x.T @ da", "dw = emb[IDS].T @ da")],
    }),
    "dilated convolution": (EITHER, DILATED, {
        "dilation forgotten": [("dw[k] = x[2 * k:2 * k + n].T @ dy", "dw[k] = x[k:k + n].T @ dy")],
        "kernel's end first": [("dx[2 * k:2 * k + n] += dy @ w[k].T", "dx[2 * k:2 * k + n] += dy @ w[2 - k].T")],
        "half forgotten": [("torch.exp(-0.5 * y * y)", "torch.exp(-y * y)")],
        "density forgotten": [("dy = g * (phi + y * torch.exp(-0.5 * y * y) / (2 * 3.141592653589793) ** 0.5)", "dy = g * phi")],
        "root forgotten": [("/ (2 * 3.141592653589793) ** 0.5)", "/ (2 * 3.141592653589793))")],
    }),
    "matched unit rows": (EITHER, UNIT_ROWS, {
        "cube for square": [("a * (du * a).sum(1, keepdim=True) / na ** 3", "a * (du * a).sum(1, keepdim=True) / na ** 2")],
        "not turned": [("dv = e * g.T @ u", "dv = e * g @ u")],
        "scale's exponential forgotten": [("dscale = (g * (u @ v.T)).sum() * e", "dscale = (g * (u @ v.T)).sum()")],
        "other side's length": [("db = dv / nb -", "db = dv / na -")],
        "unit for the raw": [("- b * (dv * b)", "- v * (dv * b)")],
    }),
    "quadratic form and determinant": (EITHER, SOLVE, {
        "one half alone": [("da = (ds + ds.T) @ a", "da = ds @ a")],
        "factor forgotten": [("db = 2 * g * x", "db = g * x")],
        "sign of the solution": [("ds = g * (inv - x @ x.T)", "ds = g * (inv + x @ x.T)")],
        "right-hand side for the solution": [("ds = g * (inv - x @ x.T)", "ds = g * (inv - x @ b.T)")],
    }),
    "double smoothing": (EITHER, SMOOTHED, {
        "trend after the step": [("(levels[t] - levels[t - 1] - trends[t - 1])", "(levels[t] - levels[t - 1] - trends[t])")],
        "old level forgotten": [("dlevel = (1 - a) * dlevel + dold", "dlevel = (1 - a) * dlevel")],
        "trend's path forgotten": [("        dtrend = dtrend + (1 - a) * dlevel\n", "")],
        "first trend's sign": [("dx[0] += dlevel - dtrend", "dx[0] += dlevel + dtrend")],
        "slope of the logistic": [("da * a * (1 - a)", "da * alpha * (1 - alpha)")],
    }),
    "radial basis": (EITHER, RADIAL, {
        "normalisation forgotten": [("de = (dphi - (dphi * phi).sum(1, keepdim=True)) / total", "de = dphi / total")],
        "total forgotten": [("keepdim=True)) / total", "keepdim=True))")],
        "centres' sign": [("dcentres = -(2", "dcentres = (2")],
        "weights for exponentials": [("du = de * e", "du = de * phi")],
        "width forgotten": [("dd = -gamma * du", "dd = -du")],
        "distance for its square": [("dgamma = -(du * d).sum(0)", "dgamma = -(du * d.sqrt()).sum(0)")],
    }),
    "waves": (EITHER, FOURIER, {
        "sine for cosine": [("df[:, :m] * torch.cos(z)", "df[:, :m] * torch.sin(z)")],
        "sign of the sine": [("- df[:, m:] * torch.sin(z)", "+ df[:, m:] * torch.sin(z)")],
        "circle forgotten": [("    dz = 2 * 3.141592653589793 * dz\n", "")],
        "halves swapped": [("df[:, :m] * torch.cos(z) - df[:, m:]", "df[:, m:] * torch.cos(z) - df[:, :m]")],
    }),
    "pointer": (EITHER, POINTER, {
        "keys' second use": [("    dkeys = dkeys + torch.outer(ds, query)\n", "")],
        "query's outer product turned": [("dkeys = torch.outer(p, dc)", "dkeys = torch.outer(p, g)")],
        "temperature": [("(p * dp).sum()) / 2", "(p * dp).sum())")],
        "mean for sum": [("(p * dp).sum()", "(p * dp).mean()")],
    }),
    "quantiles": (EITHER, QUANTILE, {
        "level the other way": [("(q - 1).expand(n, 3)) * g", "(1 - q).expand(n, 3)) * g")],
        "target's sign": [("dy = de.sum(1)", "dy = dz.sum(1)")],
        "mean over all": [("* g / n", "* g / e.numel()")],
        "side": [("de = torch.where(e >= 0", "de = torch.where(e <= 0")],
    }),
    "skip-gram of arrays": (NUMPY, NUMPY_SKIPGRAM, {
        "repeats lost": [("np.add.at(du, CENTRE, dc)", "du[CENTRE] += dc")],
        "noise by its own rows": [("dbad[:, :, None] * c[:, None])", "dbad[:, :, None] * v[NOISE])")],
        "one not taken away": [("- 1)", ")")],
        "noise forgotten": [("dgood[:, None] * v[CONTEXT] + (dbad[:, :, None] * v[NOISE]).sum(1)", "dgood[:, None] * v[CONTEXT]")],
    }),
    "cells of arrays": (NUMPY, NUMPY_LSTM, {
        "forget gate not carried": [("        dc = dc * f\n", "")],
        "cell overwritten": [("dc = dc + dh * o", "dc = dh * o")],
        "gate by the new cell": [("df, da = dc * a, dc * c_prev, dc * i", "df, da = dc * a, dc * c_new, dc * i")],
        "tanh of the cell left out": [("do = dh * np.tanh(c_new)", "do = dh * c_new")],
        "two at once": [("da * (1 - a ** 2)", "da * (1 - a)"), ("np.outer(h_prev, dz)", "np.outer(h, dz)")],
    }),
    "cross attention": (EITHER, CROSS, {
        "residual forgotten": [("dx = dy + dq @ wq.T", "dx = dq @ wq.T")],
        "values first": [("torch.cat([dk, dv], 1)", "torch.cat([dv, dk], 1)")],
        "softmax of keys": [("(da * a).sum(-1, keepdim=True)", "(da * a).sum(0, keepdim=True)")],
    }),
    "gated recurrence": (EITHER, BILSTM, {
        "direct path": [("carry = dh * f + dz @ u.T", "carry = dz @ u.T")],
        "carry by the other": [("carry = dh * f + dz @ u.T", "carry = dh * (1 - f) + dz @ u.T")],
        "loss forgotten": [("dh = carry + 2 * g * h / T", "dh = carry + 2 * g * h")],
        "new for old": [("df = dh * (prev - n)", "df = dh * (h - n)")],
        "state": [("du += prev.T @ dz", "du += h.T @ dz")],
        "bias": [("db += dz.sum(0)", "db = dz.sum(0)")],
        "tanh": [("(1 - n * n)", "(1 - n)")],
    }),
    "columns": (EITHER, IM2COL, {
        "index": [("dcols[:, :, i * K + j]", "dcols[:, :, j * K + i]")],
        "assigned": [("dx[:, :, i:i + h, j:j + v] +=", "dx[:, :, i:i + h, j:j + v] =")],
        "mean": [(".sum(0).reshape(w.shape)", ".mean(0).reshape(w.shape)")],
        "bias": [("db = dy.sum((0, 2, 3))", "db = dy.sum((0, 2))[:, 0]")],
        "order": [("dcols.reshape(N, C, K * K, h, v)", "dcols.reshape(N, K * K, C, h, v).transpose(1, 2)")],
    }),
    "normed block": (EITHER, NORMED_MLP, {
        "constant": [("s + 1.702 * a * s * (1 - s)", "s + a * s * (1 - s)")],
        "not divided": [(".sum(-1, keepdim=True) / d", ".sum(-1, keepdim=True)")],
        "power": [("x * r ** 3", "x * r ** 2")],
        "gain": [("dgain = (dn * xr).sum(0)", "dgain = (dn * n).sum(0)")],
        "gain forgotten": [("dxr = dn * gain", "dxr = dn")],
        "skip": [("    dx = dx + g\n", "")],
        "two": [("dw2 = h.T @ g", "dw2 = a.T @ g"), ("x * r ** 3", "x * r ** 2")],
    }),
    "margins": (EITHER, HINGE, {
        "own class": [("ds[torch.arange(5), Y] = -mask.sum(1) / 5", "ds[torch.arange(5), Y] = -1.0 / 5")],
        "mean": [("ds = mask / 5", "ds = mask")],
        "penalty": [("0.1 * w", "0.05 * w")],
        "sign": [("= -mask.sum(1) / 5", "= mask.sum(1) / 5")],
        "penalty unscaled": [("dw = g * (x.T @ ds + 0.1 * w)", "dw = g * x.T @ ds + 0.1 * w")],
    }),
    "mixture": (EITHER, VQ, {
        "logit": [("dlogit = dlp.sum(0) - torch.softmax(logit, 0) * dlp.sum()", "dlogit = dlp.sum(0)")],
        "log det": [("dlogs = -2 * inv * dinv - dlp.sum(0)[:, None]", "dlogs = -2 * inv * dinv")],
        "exp": [("-2 * inv * dinv", "-2 * dinv")],
        "half": [("dsq = -0.5 * dlp", "dsq = -dlp")],
        "mu sign": [("dmu = -ddiff.sum(0)", "dmu = ddiff.sum(0)")],
        "inverse": [("* diff * inv", "* diff")],
    }),
    "attention layer": (EITHER, PREBLOCK, {
        "gain after": [("(gh * h).mean(-1", "(g * h).mean(-1")],
        "scale once": [("dk = ds.T @ q * 0.5", "dk = ds.T @ q")],
        "key path lost": [("dq @ wq.T + dk @ wk.T + dv @ wv.T", "dq @ wq.T + dv @ wv.T")],
        "x for y": [("dwq, dwk, dwv = y.T @ dq, y.T @ dk, y.T @ dv", "dwq, dwk, dwv = x.T @ dq, y.T @ dk, y.T @ dv")],
        "residual": [("return g + dln, dw", "return dln, dw")],
        "std squared": [("(gh * h).mean(-1, keepdim=True)) / s", "(gh * h).mean(-1, keepdim=True)) / s ** 2")],
        "mean term": [("(gh - gh.mean(-1, keepdim=True) - h", "(gh - h")],
        "two": [("dv = p.T @ g", "dv = p @ g"), ("dw = (g * h).sum(0)", "dw = (g * c).sum(0)")],
    }),
    "attentive pooling": (EITHER, POOLING, {
        "softmax": [("(a * da).sum(1, keepdim=True)", "da.mean(1, keepdim=True)")],
        "direct": [("dx = dx + dz @ w.T", "dx = dz @ w.T")],
        "slope": [("(1 - h ** 2)", "(1 - h)")],
        "slope of e": [("dz = dh * (1 - h ** 2)", "dz = dh")],
        "mask": [("de = a * (da - (a * da).sum(1, keepdim=True))", "de = (da - (a * da).sum(1, keepdim=True))")],
        "w": [('torch.einsum("btd,btk->dk", x, dz)', 'torch.einsum("btd,btk->kd", x, dz)')],
    }),
    "gated step": (EITHER, GRUSTEP, {
        "order of weights": [("x.T @ dz, h.T @ dz, x.T @ dn, rh.T @ dn", "x.T @ dz, h.T @ dz, x.T @ dn, h.T @ dn")],
        "reset": [("drh * r + dr", "drh + dr")],
        "candidate": [("(h - n) * z * (1 - z)", "(n - h) * z * (1 - z)")],
        "weights": [("dr @ p[1].T + dz @ p[3].T", "dr @ p[1].T + dz @ p[2].T")],
        "not transposed": [("drh = dn @ p[5].T", "drh = dn @ p[5]")],
        "gate": [("dr = drh * h * r * (1 - r)", "dr = drh * h * (1 - r)")],
        "direct": [("dh = g * z + drh", "dh = g * (1 - z) + drh")],
    }),
    "margin of angles": (EITHER, MARGIN, {
        "norm": [("- c * a / na ** 2", "- c * a / na")],
        "mean": [("* g / 5", "* g")],
        "other": [("da = dc * (b / (na * nb) - c * a / na ** 2)", "da = dc * (b / (na * nb) - c * b / na ** 2)")],
        "sides": [("torch.where(y > 0, -torch", "torch.where(y < 0, -torch")],
        "projection": [("db = dc * (a / (na * nb) - c * b / nb ** 2)", "db = dc * a / (na * nb)")],
    }),
    "low rank": (EITHER, LOWRANK, {
        "silu": [("e * (1 + y * (1 - e))", "e * (1 + (1 - e))")],
        "scale": [("dzb = s * dy", "dzb = dy")],
        "frozen": [("dx = dy @ w.T + dz @ a.T", "dx = dy @ w.T")],
        "ds": [("ds = (dy * (z @ b)).sum()", "ds = (g * (z @ b)).sum()")],
        "z": [("db = z.T @ dzb", "db = z.T @ dy")],
        "two": [("da = x.T @ dz", "da = x.T @ dy @ b.T"), ("dw = x.T @ dy", "dw = x.T @ g")],
    }),
}  # fmt: skip

# Right ones at kinks, in float32 and in other forms.
ALSO_RIGHT = {
    "top two shared at a tie": pair("x", "return x.amax(0) + x.amin(0)", "a = (x == x.amax(0)).to(g.dtype)\nb = (x == x.amin(0)).to(g.dtype)\nreturn g * a / a.sum(0) + g * b / b.sum(0)", "torch.tensor([[1.0, 2.0], [1.0, 0.0], [0.0, 0.0]])"),
    "elu at 0": pair("x", "return torch.where(x > 0, x, 2 * (torch.exp(x.clamp(max=0)) - 1))", "return g * torch.where(x > 0, torch.ones_like(x), 2 * torch.exp(x.clamp(max=0)))", "torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, -3.0]])"),
    "hard sigmoid at its corners": pair("x", "return ((x + 3) / 6).clamp(0, 1)", "return g * ((x >= -3) & (x < 3)).to(g.dtype) / 6", "torch.tensor([-3.0, 0.0, 3.0, 4.0, -5.0])"),
    "soft threshold at its corner": pair("x", "return torch.sign(x) * torch.relu(x.abs() - 1)", "return g * (x.abs() >= 1).to(g.dtype)", "torch.tensor([1.0, -1.0, 0.0, 2.5, -0.3])"),
    "l1 loss where it is hit": pair("x, y", "return (x - y).abs().mean()", "s = torch.where(x >= y, torch.ones_like(x), -torch.ones_like(x)) * g / x.numel()\nreturn s, -s", "torch.tensor([1.0, 2.0, 0.5]), torch.tensor([1.0, 1.0, 2.0])"),
    "max pooling at ties, the first": pair("x", "return x.reshape(2, 2, 2).amax(2)", "r = x.reshape(2, 2, 2)\nfirst = (r[:, :, 0] >= r[:, :, 1]).to(g.dtype)\nreturn torch.stack([g * first, g * (1 - first)], 2).reshape(8)", "torch.tensor([1.0, 1.0, 0.0, 2.0, 3.0, 3.0, -1.0, -2.0])"),
    "softmax in float32": pair("x", "return torch.softmax(x, 1)", "p = torch.softmax(x.to(torch.float32), 1)\nh = g.to(torch.float32)\nreturn (p * (h - (p * h).sum(1, keepdim=True))).to(g.dtype)", "torch.randn(4, 5)"),
    "cross entropy in float32": pair("x, w", "return torch.nn.functional.cross_entropy(x @ w, torch.tensor([0, 2, 1]))", "y, u = x.to(torch.float32), w.to(torch.float32)\nd = torch.softmax(y @ u, 1)\nd[[0, 1, 2], [0, 2, 1]] -= 1\nd = d * g.to(torch.float32) / 3\nreturn (d @ u.T).to(g.dtype), (y.T @ d).to(g.dtype)", "torch.randn(3, 4), torch.randn(4, 3)"),
    "batch norm in float32": pair("x, w", "m = x.mean(0)\nreturn (x - m) / (x.var(0, unbiased=False) + 1e-5).sqrt() * w", "y, h = x.to(torch.float32), g.to(torch.float32)\ni = (y.var(0, unbiased=False) + 1e-5).rsqrt()\nz = (y - y.mean(0)) * i\nd = h * w.to(torch.float32)\nreturn (i * (d - d.mean(0) - z * (d * z).mean(0))).to(g.dtype), (h * z).sum(0).to(g.dtype)", "torch.randn(6, 3), torch.rand(3) + 0.5"),
    "geometric mean by logs": pair("x", "return x.prod(1) ** 0.25", "m = x.log().mean(1).exp()\nreturn (g * m / 4)[:, None] / x", "torch.rand(3, 4) + 0.5"),
    "entropy by its logits": pair("z", "p = torch.softmax(z, 1)\nreturn -(p * p.log()).sum(1)", "l = torch.log_softmax(z, 1)\np = l.exp()\nh = -(p * l).sum(1, keepdim=True)\nreturn -g[:, None] * p * (l + h)", "torch.randn(4, 3)"),
    "prefix products by suffix sums": pair("x", "return x.cumprod(0)", "y = x.cumprod(0)\nw = (g * y).flip(0).cumsum(0).flip(0)\nreturn w / x", "torch.rand(5, 2) + 0.5"),
}  # fmt: skip
