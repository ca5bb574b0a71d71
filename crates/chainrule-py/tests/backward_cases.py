"""Backward passes as people write them, and their lines as people get them wrong.

A case is a right forward and backward, written for PyTorch; the same text is one of our own
tensors, whose names are the same, unless it is of NumPy. Each mistake is one line or two as
somebody would write them. Right but unusual ones are beside them: nothing may be said of these.
"""

ATTENTION = """
class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wq, wk, wv, wo):
        b, t, d = x.shape
        q, k, v = x @ wq, x @ wk, x @ wv
        q = q.reshape(b, t, 2, d // 2).permute(0, 2, 1, 3)
        k = k.reshape(b, t, 2, d // 2).permute(0, 2, 1, 3)
        v = v.reshape(b, t, 2, d // 2).permute(0, 2, 1, 3)
        scale = (d // 2) ** -0.5
        scores = q @ k.transpose(-2, -1) * scale
        mask = torch.ones(t, t).triu(1) > 0
        p = torch.softmax(scores.masked_fill(mask, float("-inf")), -1)
        o = (p @ v).permute(0, 2, 1, 3).reshape(b, t, d)
        ctx.save_for_backward(x, wq, wk, wv, wo, q, k, v, p, o)
        return o @ wo

    @staticmethod
    def backward(ctx, g):
        x, wq, wk, wv, wo, q, k, v, p, o = ctx.saved_tensors
        b, t, d = x.shape
        flat = g.reshape(b * t, d)
        dwo = o.reshape(b * t, d).T @ flat
        do = (g @ wo.T).reshape(b, t, 2, d // 2).permute(0, 2, 1, 3)
        dv = p.transpose(-2, -1) @ do
        dp = do @ v.transpose(-2, -1)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True))
        ds = ds * (d // 2) ** -0.5
        dq = ds @ k
        dk = ds.transpose(-2, -1) @ q
        dq = dq.permute(0, 2, 1, 3).reshape(b, t, d)
        dk = dk.permute(0, 2, 1, 3).reshape(b, t, d)
        dv = dv.permute(0, 2, 1, 3).reshape(b, t, d)
        flat_x = x.reshape(b * t, d)
        dwq = flat_x.T @ dq.reshape(b * t, d)
        dwk = flat_x.T @ dk.reshape(b * t, d)
        dwv = flat_x.T @ dv.reshape(b * t, d)
        dx = dq @ wq.T + dk @ wk.T + dv @ wv.T
        return dx, dwq, dwk, dwv, dwo

inputs = [torch.randn(2, 4, 4), torch.randn(4, 4), torch.randn(4, 4), torch.randn(4, 4), torch.randn(4, 4)]
"""
LINEAR_ATTENTION = """
def mixed(q, k, v, decay):
    state = q.new_zeros(k.shape[1], v.shape[1])
    out = []
    for t in range(len(q)):
        state = decay * state + k[t][:, None] * v[t][None]
        out.append(q[t] @ state)
    return torch.stack(out)

def mixed_backward(g, q, k, v, decay):
    states = [q.new_zeros(k.shape[1], v.shape[1])]
    for t in range(len(q)):
        states.append(decay * states[-1] + k[t][:, None] * v[t][None])
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    ddecay = torch.zeros_like(decay)
    dstate = torch.zeros_like(states[0])
    for t in reversed(range(len(q))):
        dq[t] = states[t + 1] @ g[t]
        dstate = dstate + q[t][:, None] * g[t][None]
        dk[t] = dstate @ v[t]
        dv[t] = dstate.T @ k[t]
        ddecay = ddecay + (dstate * states[t]).sum()
        dstate = decay * dstate
    return dq, dk, dv, ddecay

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3), torch.tensor(0.8)]
"""
CONV1D = """
class Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        n, c, size = x.shape
        o, _, k = w.shape
        pad = k // 2
        xp = torch.cat([x.new_zeros(n, c, pad), x, x.new_zeros(n, c, pad)], 2)
        y = x.new_zeros(n, o, size)
        for i in range(k):
            y = y + torch.einsum("nct,oc->not", xp[:, :, i:i + size], w[:, :, i])
        ctx.save_for_backward(xp, w)
        return y + b[:, None]

    @staticmethod
    def backward(ctx, g):
        xp, w = ctx.saved_tensors
        size, k = g.shape[2], w.shape[2]
        pad = k // 2
        dw, dxp = torch.zeros_like(w), torch.zeros_like(xp)
        for i in range(k):
            dw[:, :, i] = torch.einsum("not,nct->oc", g, xp[:, :, i:i + size])
            dxp[:, :, i:i + size] += torch.einsum("not,oc->nct", g, w[:, :, i])
        db = g.sum((0, 2))
        return dxp[:, :, pad:pad + size], dw, db

inputs = [torch.randn(2, 3, 5), torch.randn(3, 3, 3), torch.randn(3)]
"""
POOL = """
class Pooled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain):
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        top = blocks.amax((3, 5))
        mean = blocks.mean((3, 5))
        ctx.save_for_backward(x, gain, top, mean)
        return gain[:, None, None] * top + (1 - gain[:, None, None]) * mean

    @staticmethod
    def backward(ctx, g):
        x, gain, top, mean = ctx.saved_tensors
        n, c, h, w = x.shape
        a = gain[:, None, None]
        dtop = a * g
        dmean = (1 - a) * g
        up = top.repeat_interleave(2, 2).repeat_interleave(2, 3)
        is_top = (x == up).to(g.dtype)
        dx = is_top * dtop.repeat_interleave(2, 2).repeat_interleave(2, 3)
        dx = dx + dmean.repeat_interleave(2, 2).repeat_interleave(2, 3) / 4
        dgain = (g * (top - mean)).sum((0, 2, 3))
        return dx, dgain

inputs = [torch.randn(2, 3, 4, 4), torch.rand(3)]
"""
GRU = """
class Gru(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, h, w, u, b):
        n = h.shape[1]
        a, c = x @ w + b, h @ u
        r = torch.sigmoid(a[:, :n] + c[:, :n])
        z = torch.sigmoid(a[:, n:2 * n] + c[:, n:2 * n])
        cand = torch.tanh(a[:, 2 * n:] + r * c[:, 2 * n:])
        ctx.save_for_backward(x, h, w, u, r, z, cand, c)
        return (1 - z) * cand + z * h

    @staticmethod
    def backward(ctx, dy):
        x, h, w, u, r, z, cand, c = ctx.saved_tensors
        n = h.shape[1]
        dcand = dy * (1 - z)
        dz = dy * (h - cand)
        dh = dy * z
        dpre = dcand * (1 - cand ** 2)
        dr = dpre * c[:, 2 * n:]
        dar = dr * r * (1 - r)
        daz = dz * z * (1 - z)
        da = torch.cat([dar, daz, dpre], 1)
        dc = torch.cat([dar, daz, dpre * r], 1)
        dw = x.T @ da
        du = h.T @ dc
        dx = da @ w.T
        dh = dh + dc @ u.T
        return dx, dh, dw, du, da.sum(0)

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.randn(3, 9), torch.randn(3, 9), torch.randn(9)]
"""
LSTM = """
def lstm(x, w, u, b):
    n, h = x.shape[1], u.shape[0]
    hidden, cell = x.new_zeros(n, h), x.new_zeros(n, h)
    out = []
    for t in range(x.shape[0]):
        z = x[t] @ w + hidden @ u + b
        i, f, o = torch.sigmoid(z[:, :h]), torch.sigmoid(z[:, h:2 * h]), torch.sigmoid(z[:, 2 * h:3 * h])
        new = torch.tanh(z[:, 3 * h:])
        cell = f * cell + i * new
        hidden = o * torch.tanh(cell)
        out.append(hidden)
    return torch.stack(out)

def lstm_backward(g, x, w, u, b):
    n, h = x.shape[1], u.shape[0]
    hidden, cell = x.new_zeros(n, h), x.new_zeros(n, h)
    kept = []
    for t in range(x.shape[0]):
        z = x[t] @ w + hidden @ u + b
        i, f, o = torch.sigmoid(z[:, :h]), torch.sigmoid(z[:, h:2 * h]), torch.sigmoid(z[:, 2 * h:3 * h])
        new = torch.tanh(z[:, 3 * h:])
        before = cell
        cell = f * cell + i * new
        kept.append((hidden, before, cell, i, f, o, new))
        hidden = o * torch.tanh(cell)
    dw, du, db, dx = torch.zeros_like(w), torch.zeros_like(u), torch.zeros_like(b), torch.zeros_like(x)
    dhidden, dcell = x.new_zeros(n, h), x.new_zeros(n, h)
    for t in reversed(range(x.shape[0])):
        h_prev, c_prev, c, i, f, o, new = kept[t]
        dhidden = dhidden + g[t]
        tc = torch.tanh(c)
        do = dhidden * tc
        dcell = dcell + dhidden * o * (1 - tc ** 2)
        di = dcell * new
        df = dcell * c_prev
        dnew = dcell * i
        dz = torch.cat([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dnew * (1 - new ** 2)], 1)
        dw += x[t].T @ dz
        du += h_prev.T @ dz
        db += dz.sum(0)
        dx[t] = dz @ w.T
        dhidden = dz @ u.T
        dcell = dcell * f
    return dx, dw, du, db

inputs = [torch.randn(3, 2, 3), torch.randn(3, 12), torch.randn(3, 12), torch.randn(12)]
"""
SMOOTHED = """
TARGET = torch.tensor([1, 0, 3, 2, 1])
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 1.5])

def smoothed(x, temperature):
    z = x / temperature
    logp = z - torch.logsumexp(z, 1, keepdim=True)
    n, k = x.shape
    onehot = torch.nn.functional.one_hot(TARGET, k).to(x.dtype)
    q = 0.9 * onehot + 0.1 / k
    w = WEIGHT.to(x.dtype)[TARGET][:, None]
    return -(w * q * logp).sum() / w.sum()

def smoothed_backward(g, x, temperature):
    z = x / temperature
    p = torch.softmax(z, 1)
    n, k = x.shape
    onehot = torch.nn.functional.one_hot(TARGET, k).to(x.dtype)
    q = 0.9 * onehot + 0.1 / k
    w = WEIGHT.to(x.dtype)[TARGET][:, None]
    dz = g * w * (p - q) / w.sum()
    dx = dz / temperature
    dt = -(dz * x).sum() / temperature ** 2
    return dx, dt

inputs = [torch.randn(5, 4), torch.tensor(1.7)]
"""
FOCAL = """
def focal(x, y):
    p = torch.sigmoid(x)
    pt = y * p + (1 - y) * (1 - p)
    return (-(1 - pt) ** 2 * torch.log(pt)).mean()

def focal_backward(g, x, y):
    p = torch.sigmoid(x)
    pt = y * p + (1 - y) * (1 - p)
    dpt = 2 * (1 - pt) * torch.log(pt) - (1 - pt) ** 2 / pt
    dpt = g * dpt / x.numel()
    dp = dpt * (2 * y - 1)
    dx = dp * p * (1 - p)
    dy = dpt * (2 * p - 1)
    return dx, dy

inputs = [torch.randn(6, 2), torch.rand(6, 2)]
"""
CONTRAST = """
def contrast(a, b, temperature):
    an = (a * a).sum(1, keepdim=True).sqrt()
    bn = (b * b).sum(1, keepdim=True).sqrt()
    u, v = a / an, b / bn
    s = u @ v.T / temperature
    logp = s - torch.logsumexp(s, 1, keepdim=True)
    return -logp.diagonal().mean()

def contrast_backward(g, a, b, temperature):
    n = a.shape[0]
    an = (a * a).sum(1, keepdim=True).sqrt()
    bn = (b * b).sum(1, keepdim=True).sqrt()
    u, v = a / an, b / bn
    s = u @ v.T / temperature
    p = torch.softmax(s, 1)
    ds = g * (p - torch.eye(n).to(p.dtype)) / n
    dt = -(ds * s).sum() / temperature
    du = ds @ v / temperature
    dv = ds.T @ u / temperature
    da = (du - u * (u * du).sum(1, keepdim=True)) / an
    db = (dv - v * (v * dv).sum(1, keepdim=True)) / bn
    return da, db, dt

inputs = [torch.randn(4, 4), torch.randn(4, 4), torch.tensor(0.7)]
"""
KL = """
class Kl(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mu, logvar):
        var = logvar.exp()
        ctx.save_for_backward(mu, logvar, var)
        return 0.5 * (mu ** 2 + var - 1 - logvar).sum(1).mean()

    @staticmethod
    def backward(ctx, g):
        mu, logvar, var = ctx.saved_tensors
        n = mu.shape[0]
        dmu = g * mu / n
        dlogvar = 0.5 * g * (var - 1) / n
        return dmu, dlogvar

inputs = [torch.randn(5, 3), torch.randn(5, 3)]
"""
LAYER_NORM = """
class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mu = x.mean(-1, keepdim=True)
        xc = x - mu
        var = (xc ** 2).mean(-1, keepdim=True)
        rstd = 1 / (var + 1e-5).sqrt()
        xhat = xc * rstd
        ctx.save_for_backward(xc, xhat, gamma, rstd)
        return xhat * gamma + beta

    @staticmethod
    def backward(ctx, dout):
        xc, xhat, gamma, rstd = ctx.saved_tensors
        d = dout.shape[-1]
        dgamma = (dout * xhat).sum((0, 1))
        dbeta = dout.sum((0, 1))
        dxhat = dout * gamma
        m1 = dxhat.mean(-1, keepdim=True)
        m2 = (dxhat * xhat).mean(-1, keepdim=True)
        dx = (dxhat - m1 - xhat * m2) * rstd
        return dx, dgamma, dbeta

inputs = [torch.randn(2, 3, 4), torch.rand(4) + 0.5, torch.randn(4)]
"""
RMS_NORM = """
def rms(x, w):
    ms = (x * x).mean(-1, keepdim=True) + 1e-6
    return x * ms ** -0.5 * w

def rms_backward(g, x, w):
    ms = (x * x).mean(-1, keepdim=True) + 1e-6
    r = ms ** -0.5
    dw = (g * x * r).sum(0)
    gw = g * w
    dr = (gw * x).sum(-1, keepdim=True)
    dms = -0.5 * dr * ms ** -1.5
    dx = gw * r + 2 * x * dms / x.shape[-1]
    return dx, dw

inputs = [torch.randn(5, 4), torch.rand(4) + 0.5]
"""
GROUP_NORM = """
def grouped(x, w, b):
    n, c, t = x.shape
    xg = x.reshape(n, 2, c // 2, t)
    mean = xg.mean((2, 3), keepdim=True)
    var = ((xg - mean) ** 2).mean((2, 3), keepdim=True)
    hat = ((xg - mean) / (var + 1e-5).sqrt()).reshape(n, c, t)
    return hat * w[:, None] + b[:, None]

def grouped_backward(g, x, w, b):
    n, c, t = x.shape
    xg = x.reshape(n, 2, c // 2, t)
    mean = xg.mean((2, 3), keepdim=True)
    var = ((xg - mean) ** 2).mean((2, 3), keepdim=True)
    std = (var + 1e-5).sqrt()
    hat = (xg - mean) / std
    dw = (g * hat.reshape(n, c, t)).sum((0, 2))
    db = g.sum((0, 2))
    dhat = (g * w[:, None]).reshape(n, 2, c // 2, t)
    inner = dhat - dhat.mean((2, 3), keepdim=True) - hat * (dhat * hat).mean((2, 3), keepdim=True)
    dx = (inner / std).reshape(n, c, t)
    return dx, dw, db

inputs = [torch.randn(2, 4, 3), torch.rand(4) + 0.5, torch.randn(4)]
"""
SCAN = """
class Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a, h):
        hs = []
        for t in range(x.shape[0]):
            h = a[t] * h + (1 - a[t]) * x[t]
            hs.append(h)
        hs = torch.stack(hs)
        ctx.save_for_backward(x, a, hs)
        ctx.first = h - h
        return hs

    @staticmethod
    def backward(ctx, g):
        x, a, hs = ctx.saved_tensors
        dx, da = torch.zeros_like(x), torch.zeros_like(a)
        carry = torch.zeros_like(g[0])
        for t in reversed(range(x.shape[0])):
            carry = carry + g[t]
            before = hs[t - 1] if t > 0 else (hs[0] - (1 - a[0]) * x[0]) / a[0]
            da[t] = carry * (before - x[t])
            dx[t] = carry * (1 - a[t])
            carry = carry * a[t]
        return dx, da, carry

inputs = [torch.randn(4, 3), torch.rand(4, 3) * 0.5 + 0.3, torch.randn(3)]
"""
CUMULATIVE = """
def weighted(x, w):
    s = torch.cumsum(x, 1)
    return torch.cumsum(s * w, 0)

def weighted_backward(g, x, w):
    s = torch.cumsum(x, 1)
    dsw = g.flip(0).cumsum(0).flip(0)
    dw = (dsw * s).sum(0)
    ds = dsw * w
    dx = ds.flip(1).cumsum(1).flip(1)
    return dx, dw

inputs = [torch.randn(4, 4), torch.randn(4)]
"""
SWIGLU = """
class SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w1, w2, w3):
        a, b = x @ w1, x @ w2
        s = torch.sigmoid(a)
        h = a * s * b
        ctx.save_for_backward(x, w1, w2, w3, a, b, s, h)
        return h @ w3

    @staticmethod
    def backward(ctx, g):
        x, w1, w2, w3, a, b, s, h = ctx.saved_tensors
        dw3 = h.T @ g
        dh = g @ w3.T
        db = dh * a * s
        dsilu = dh * b
        da = dsilu * (s + a * s * (1 - s))
        dw1 = x.T @ da
        dw2 = x.T @ db
        dx = da @ w1.T + db @ w2.T
        return dx, dw1, dw2, dw3

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(3, 4), torch.randn(4, 3)]
"""
RESIDUAL = """
def block(x, w1, b1, w2, b2, scale):
    h = torch.relu(x @ w1 + b1)
    y = h @ w2 + b2
    return x + scale * y

def block_backward(g, x, w1, b1, w2, b2, scale):
    z = x @ w1 + b1
    h = torch.relu(z)
    y = h @ w2 + b2
    dscale = (g * y).sum(0)
    dy = g * scale
    dw2 = h.T @ dy
    db2 = dy.sum(0)
    dh = dy @ w2.T
    dz = dh * (z > 0).to(g.dtype)
    dw1 = x.T @ dz
    db1 = dz.sum(0)
    dx = g + dz @ w1.T
    return dx, dw1, db1, dw2, db2, dscale

inputs = [torch.randn(4, 3), torch.randn(3, 5), torch.randn(5), torch.randn(5, 3), torch.randn(3), torch.rand(3)]
"""
MIXTURE = """
def mixture(x, wg, experts):
    gate = torch.softmax(x @ wg, 1)
    each = torch.tanh(torch.einsum("ni,eio->neo", x, experts))
    return (gate[:, :, None] * each).sum(1)

def mixture_backward(g, x, wg, experts):
    gate = torch.softmax(x @ wg, 1)
    each = torch.tanh(torch.einsum("ni,eio->neo", x, experts))
    dgate = (g[:, None] * each).sum(2)
    deach = g[:, None] * gate[:, :, None]
    dpre = deach * (1 - each ** 2)
    dexperts = torch.einsum("ni,neo->eio", x, dpre)
    dlogits = gate * (dgate - (dgate * gate).sum(1, keepdim=True))
    dwg = x.T @ dlogits
    dx = dlogits @ wg.T + torch.einsum("neo,eio->ni", dpre, experts)
    return dx, dwg, dexperts

inputs = [torch.randn(4, 3), torch.randn(3, 3), torch.randn(3, 3, 3)]
"""
EMBEDDING = """
IDS = torch.tensor([[0, 2, 2], [1, 0, 3], [4, 4, 1], [2, 0, 0]])

def bag(table, pos, w):
    e = table[IDS] + pos
    pooled = torch.tanh(e).mean(1)
    return pooled @ w

def bag_backward(g, table, pos, w):
    e = table[IDS] + pos
    h = torch.tanh(e)
    pooled = h.mean(1)
    dw = pooled.T @ g
    dpooled = g @ w.T
    dh = dpooled[:, None] / IDS.shape[1]
    de = dh * (1 - h ** 2)
    dpos = de.sum(0)
    dtable = torch.zeros_like(table)
    dtable.index_put_((IDS,), de, accumulate=True)
    return dtable, dpos, dw

inputs = [torch.randn(5, 3), torch.randn(3, 3), torch.randn(3, 3)]
"""
DROPOUT = """
KEEP = torch.tensor([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]])

class Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        keep = KEEP.to(x.dtype)
        z = x * keep / 0.75
        y = torch.nn.functional.softplus(z @ w)
        ctx.save_for_backward(x, w, keep, z)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, keep, z = ctx.saved_tensors
        da = g * torch.sigmoid(z @ w)
        dw = z.T @ da
        dz = da @ w.T
        return dz * keep / 0.75, dw

inputs = [torch.randn(3, 4), torch.randn(4, 4)]
"""
NUMPY_NET = """
import numpy as np

def net(x, w1, b1, w2, b2):
    h = np.maximum(x @ w1 + b1, 0)
    z = h @ w2 + b2
    z = z - z.max(axis=1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(x)), [0, 1, 2, 1, 0]]).mean()

def net_backward(g, x, w1, b1, w2, b2):
    n = len(x)
    a = x @ w1 + b1
    h = np.maximum(a, 0)
    z = h @ w2 + b2
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    dz = p.copy()
    dz[np.arange(n), [0, 1, 2, 1, 0]] -= 1
    dz = g * dz / n
    dw2 = h.T @ dz
    db2 = dz.sum(axis=0)
    dh = dz @ w2.T
    da = dh * (a > 0)
    dw1 = x.T @ da
    db1 = da.sum(axis=0)
    dx = da @ w1.T
    return dx, dw1, db1, dw2, db2

r = np.random.default_rng(1)
inputs = [r.standard_normal(s) for s in ((5, 3), (3, 4), (4,), (4, 3), (3,))]
"""
NUMPY_RNN = """
import numpy as np

def rnn(xs, wx, wh, b):
    h = np.zeros((xs.shape[1], wh.shape[0]))
    total = 0.0
    for x in xs:
        h = np.tanh(x @ wx + h @ wh + b)
        total = total + (h ** 2).sum()
    return total / len(xs)

def rnn_backward(g, xs, wx, wh, b):
    hs = [np.zeros((xs.shape[1], wh.shape[0]))]
    for x in xs:
        hs.append(np.tanh(x @ wx + hs[-1] @ wh + b))
    dxs, dwx, dwh, db = np.zeros_like(xs), np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b)
    dnext = np.zeros_like(hs[0])
    for t in reversed(range(len(xs))):
        dh = 2 * hs[t + 1] * g / len(xs) + dnext
        da = dh * (1 - hs[t + 1] ** 2)
        dwx += xs[t].T @ da
        dwh += hs[t].T @ da
        db += da.sum(axis=0)
        dxs[t] = da @ wx.T
        dnext = da @ wh.T
    return dxs, dwx, dwh, db

r = np.random.default_rng(2)
inputs = [r.standard_normal(s) for s in ((4, 2, 3), (3, 3), (3, 3), (3,))]
"""
NUMPY_CONV = """
import numpy as np

def conv(x, w, b):
    h, v = x.shape[1] - w.shape[2] + 1, x.shape[2] - w.shape[3] + 1
    y = np.zeros((w.shape[0], h, v))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            y += np.tensordot(w[:, :, i, j], x[:, i:i + h, j:j + v], axes=1)
    return y + b[:, None, None]

def conv_backward(g, x, w, b):
    h, v = g.shape[1], g.shape[2]
    dw, dx = np.zeros_like(w), np.zeros_like(x)
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            dw[:, :, i, j] = np.einsum("ohv,chv->oc", g, x[:, i:i + h, j:j + v])
            dx[:, i:i + h, j:j + v] += np.einsum("oc,ohv->chv", w[:, :, i, j], g)
    db = g.sum(axis=(1, 2))
    return dx, dw, db

r = np.random.default_rng(3)
inputs = [r.standard_normal(s) for s in ((2, 4, 4), (3, 2, 2, 2), (3,))]
"""
PLAIN = """
import math

def neuron(x, w, b):
    s = b
    for xi, wi in zip(x, w):
        s = s + xi * wi
    return math.tanh(s)

def neuron_backward(g, x, w, b):
    s = b
    for xi, wi in zip(x, w):
        s = s + xi * wi
    y = math.tanh(s)
    ds = g * (1 - y * y)
    dx = [ds * wi for wi in w]
    dw = [ds * xi for xi in x]
    return dx, dw, ds

inputs = [[0.3, -0.7, 1.1], [0.5, 0.2, -0.4], 0.1]
"""
PLAIN_LOSS = """
import math

def loss(w, b):
    total = 0.0
    for x, y in ((0.5, 1.0), (-1.2, 0.0), (0.8, 1.0), (-0.3, 1.0)):
        p = 1 / (1 + math.exp(-(w * x + b)))
        total = total - y * math.log(p) - (1 - y) * math.log(1 - p)
    return total / 4

def loss_backward(g, w, b):
    dw, db = 0.0, 0.0
    for x, y in ((0.5, 1.0), (-1.2, 0.0), (0.8, 1.0), (-0.3, 1.0)):
        p = 1 / (1 + math.exp(-(w * x + b)))
        dz = g * (p - y) / 4
        dw = dw + dz * x
        db = db + dz
    return dw, db

inputs = [0.7, -0.2]
"""

NUMPY = "numpy"
EITHER = "tensors"
# Kind of the arrays, the code, and each mistake: the lines as they are and as somebody writes them.
CASES = {
    "attention": (EITHER, ATTENTION, {
        "scale forgotten": [("        ds = ds * (d // 2) ** -0.5\n", "        ds = ds\n")],
        "scale of the whole width": [("ds = ds * (d // 2) ** -0.5", "ds = ds * d ** -0.5")],
        "softmax over queries": [("(p * dp).sum(-1, keepdim=True)", "(p * dp).sum(-2, keepdim=True)")],
        "dk not transposed": [("dk = ds.transpose(-2, -1) @ q", "dk = ds @ q")],
        "dk from k": [("dk = ds.transpose(-2, -1) @ q", "dk = ds.transpose(-2, -1) @ k")],
        "dv not transposed": [("dv = p.transpose(-2, -1) @ do", "dv = p @ do")],
        "heads merged without turning back": [("        dq = dq.permute(0, 2, 1, 3).reshape(b, t, d)\n", "        dq = dq.reshape(b, t, d)\n")],
        "value path forgotten": [("dx = dq @ wq.T + dk @ wk.T + dv @ wv.T", "dx = dq @ wq.T + dk @ wk.T")],
        "weights mixed up": [("dq @ wq.T + dk @ wk.T", "dq @ wk.T + dk @ wq.T")],
    }),
    "linear attention": (EITHER, LINEAR_ATTENTION, {
        "state one step early": [("dq[t] = states[t + 1] @ g[t]", "dq[t] = states[t] @ g[t]")],
        "decay not carried": [("        dstate = decay * dstate\n", "        dstate = dstate\n")],
        "decay from the new state": [("(dstate * states[t]).sum()", "(dstate * states[t + 1]).sum()")],
        "dv not transposed": [("dv[t] = dstate.T @ k[t]", "dv[t] = dstate @ k[t]")],
        "state's gradient overwritten": [("dstate = dstate + q[t]", "dstate = q[t]")],
    }),
    "convolution in one dimension": (EITHER, CONV1D, {
        "overwritten": [("dxp[:, :, i:i + size] +=", "dxp[:, :, i:i + size] =")],
        "kernel flipped": [("g, w[:, :, i])", "g, w[:, :, k - 1 - i])")],
        "bias over the batch alone": [("db = g.sum((0, 2))", "db = g.mean((0, 2))")],
        "padding not cut off": [("dxp[:, :, pad:pad + size]", "dxp[:, :, :size]")],
        "channels the other way": [('torch.einsum("not,oc->nct", g, w[:, :, i])', 'torch.einsum("not,co->nct", g, w[:, :, i])')],
    }),
    "pooling": (EITHER, POOL, {
        "mean not divided": [("repeat_interleave(2, 3) / 4", "repeat_interleave(2, 3)")],
        "divided by the side": [("repeat_interleave(2, 3) / 4", "repeat_interleave(2, 3) / 2")],
        "mask forgotten": [("dx = is_top * dtop", "dx = dtop")],
        "mean path with the gain": [("dmean = (1 - a) * g", "dmean = a * g")],
        "gain from the maximum alone": [("(g * (top - mean))", "(g * top)")],
    }),
    "gru": (EITHER, GRU, {
        "update gate the other way": [("dcand = dy * (1 - z)", "dcand = dy * z")],
        "sign of the update gate": [("dz = dy * (h - cand)", "dz = dy * (cand - h)")],
        "reset gate not applied": [("dc = torch.cat([dar, daz, dpre * r], 1)", "dc = torch.cat([dar, daz, dpre], 1)")],
        "gates swapped": [("da = torch.cat([dar, daz, dpre], 1)", "da = torch.cat([daz, dar, dpre], 1)")],
        "direct path forgotten": [("dh = dh + dc @ u.T", "dh = dc @ u.T")],
        "derivative of the wrong gate": [("dar = dr * r * (1 - r)", "dar = dr * z * (1 - z)")],
        "reset gate by the state": [("dr = dpre * c[:, 2 * n:]", "dr = dpre * h")],
    }),
    "lstm": (EITHER, LSTM, {
        "new cell for the old one": [("df = dcell * c_prev", "df = dcell * c")],
        "cell not carried": [("        dcell = dcell * f\n", "        dcell = dcell * i\n")],
        "cell's gradient overwritten": [("dcell = dcell + dhidden * o", "dcell = dhidden * o")],
        "tanh of the cell twice": [("dcell + dhidden * o * (1 - tc ** 2)", "dcell + dhidden * o * (1 - c ** 2)")],
        "next hidden state": [("du += h_prev.T @ dz", "du += (o * tc).T @ dz")],
        "candidate by the sigmoid's rule": [("dnew * (1 - new ** 2)", "dnew * new * (1 - new)")],
        "two gates": [("di = dcell * new", "di = dcell * i"), ("dnew = dcell * i", "dnew = dcell * new")],
    }),
    "smoothed cross entropy": (EITHER, SMOOTHED, {
        "smoothing forgotten": [("dz = g * w * (p - q)", "dz = g * w * (p - onehot)")],
        "mean over the rows": [("(p - q) / w.sum()", "(p - q) / n")],
        "class weights forgotten": [("dz = g * w * (p - q)", "dz = g * (p - q)")],
        "temperature not divided": [("dx = dz / temperature", "dx = dz")],
        "temperature's power": [("(dz * x).sum() / temperature ** 2", "(dz * x).sum() / temperature")],
    }),
    "focal loss": (EITHER, FOCAL, {
        "sign of a part": [("torch.log(pt) - (1 - pt) ** 2 / pt", "torch.log(pt) + (1 - pt) ** 2 / pt")],
        "power not lowered": [("dpt = 2 * (1 - pt) * torch.log(pt)", "dpt = 2 * (1 - pt) ** 2 * torch.log(pt)")],
        "factor forgotten": [("dpt = 2 * (1 - pt) * torch.log", "dpt = (1 - pt) * torch.log")],
        "one class alone": [("dp = dpt * (2 * y - 1)", "dp = dpt * y")],
        "mean over rows": [("dpt / x.numel()", "dpt / x.shape[0]")],
    }),
    "contrastive loss": (EITHER, CONTRAST, {
        "not projected": [("da = (du - u * (u * du).sum(1, keepdim=True)) / an", "da = du / an")],
        "length forgotten": [("(v * dv).sum(1, keepdim=True)) / bn", "(v * dv).sum(1, keepdim=True))")],
        "not transposed": [("dv = ds.T @ u / temperature", "dv = ds @ u / temperature")],
        "length of the other": [("(u * du).sum(1, keepdim=True)) / an", "(u * du).sum(1, keepdim=True)) / bn")],
        "temperature's sign": [("dt = -(ds * s).sum()", "dt = (ds * s).sum()")],
        "raw for normalised": [("da = (du - u * (u * du)", "da = (du - a * (u * du)")],
    }),
    "kl": (EITHER, KL, {
        "deviation for variance": [("0.5 * g * (var - 1) / n", "0.5 * g * (var - 1 / var) / n")],
        "half forgotten": [("dlogvar = 0.5 * g", "dlogvar = g")],
        "factor too many": [("dmu = g * mu / n", "dmu = 2 * g * mu / n")],
    }),
    "layer norm": (EITHER, LAYER_NORM, {
        "centred for normalised": [("dx = (dxhat - m1 - xhat * m2)", "dx = (dxhat - m1 - xc * m2)")],
        "sum for mean": [("m2 = (dxhat * xhat).mean(-1", "m2 = (dxhat * xhat).sum(-1")],
        "gamma forgotten": [("dxhat = dout * gamma", "dxhat = dout")],
        "mean of what comes in": [("m1 = dxhat.mean(-1", "m1 = dout.mean(-1")],
        "over the wrong axis": [("m1 = dxhat.mean(-1", "m1 = dxhat.mean(1")],
        "standard deviation not divided": [("xhat * m2) * rstd", "xhat * m2)")],
        "gamma's gradient from the centred": [("dgamma = (dout * xhat)", "dgamma = (dout * xc)")],
    }),
    "rms norm": (EITHER, RMS_NORM, {
        "power": [("dms = -0.5 * dr * ms ** -1.5", "dms = -0.5 * dr * ms ** -0.5")],
        "weight forgotten in one path": [("dr = (gw * x)", "dr = (g * x)")],
        "sum for mean": [("2 * x * dms / x.shape[-1]", "2 * x * dms")],
        "path through the mean forgotten": [("dx = gw * r + 2 * x * dms / x.shape[-1]", "dx = gw * r")],
        "rows counted": [("dms / x.shape[-1]", "dms / x.shape[0]")],
    }),
    "group norm": (EITHER, GROUP_NORM, {
        "over time alone": [("(dhat * hat).mean((2, 3)", "(dhat * hat).mean((3,)")],
        "weight after the norm": [("dhat = (g * w[:, None])", "dhat = (g)")],
        "not normalised": [("dw = (g * hat.reshape(n, c, t))", "dw = (g * x)")],
        "variance for deviation": [("dx = (inner / std)", "dx = (inner / var)")],
    }),
    "scan": (EITHER, SCAN, {
        "this state": [("before = hs[t - 1] if", "before = hs[t] if")],
        "not carried": [("carry = carry * a[t]", "carry = carry * (1 - a[t])")],
        "sign": [("da[t] = carry * (before - x[t])", "da[t] = carry * (x[t] - before)")],
        "decay for input": [("dx[t] = carry * (1 - a[t])", "dx[t] = carry * a[t]")],
        "overwritten": [("carry = carry + g[t]", "carry = g[t]")],
    }),
    "cumulative sums": (EITHER, CUMULATIVE, {
        "from the same end": [("dsw = g.flip(0).cumsum(0).flip(0)", "dsw = g.cumsum(0)")],
        "along the other axis": [("dx = ds.flip(1).cumsum(1).flip(1)", "dx = ds.flip(0).cumsum(0).flip(0)")],
        "input for its sum": [("dw = (dsw * s)", "dw = (dsw * x)")],
    }),
    "swiglu": (EITHER, SWIGLU, {
        "sigmoid's slope alone": [("(s + a * s * (1 - s))", "(a * s * (1 - s))")],
        "second term forgotten": [("(s + a * s * (1 - s))", "s")],
        "branches swapped": [("dx = da @ w1.T + db @ w2.T", "dx = da @ w2.T + db @ w1.T")],
        "gate not activated": [("db = dh * a * s", "db = dh * a")],
        "by the activated": [("dsilu = dh * b", "dsilu = dh * h")],
        "two at once": [("db = dh * a * s", "db = dh * s"), ("dw3 = h.T @ g", "dw3 = (a * b).T @ g")],
    }),
    "residual block": (EITHER, RESIDUAL, {
        "skip forgotten": [("dx = g + dz @ w1.T", "dx = dz @ w1.T")],
        "skip scaled": [("dx = g + dz @ w1.T", "dx = dy + dz @ w1.T")],
        "mask of the output": [("(z > 0)", "(dh > 0)")],
        "scale forgotten": [("dy = g * scale", "dy = g")],
        "gradient before the mask": [("dw1 = x.T @ dz", "dw1 = x.T @ dh")],
        "bias by the wrong stage": [("db2 = dy.sum(0)", "db2 = g.sum(0)")],
    }),
    "mixture of experts": (EITHER, MIXTURE, {
        "gate's softmax as a diagonal": [("dlogits = gate * (dgate - (dgate * gate).sum(1, keepdim=True))", "dlogits = gate * (1 - gate) * dgate")],
        "gate forgotten": [("deach = g[:, None] * gate[:, :, None]", "deach = g[:, None] * each")],
        "gating path forgotten": [("dx = dlogits @ wg.T + torch.einsum", "dx = torch.einsum")],
        "expert not transposed": [('"neo,eio->ni"', '"nei,eio->no"')],
    }),
    "embedding": (EITHER, EMBEDDING, {
        "assigned": [("dtable.index_put_((IDS,), de, accumulate=True)", "dtable[IDS] = de")],
        "mean not divided": [("dh = dpooled[:, None] / IDS.shape[1]", "dh = dpooled[:, None]")],
        "divided by the rows": [("/ IDS.shape[1]", "/ IDS.shape[0]")],
        "slope of the input": [("(1 - h ** 2)", "(1 - e ** 2)")],
        "positions averaged": [("dpos = de.sum(0)", "dpos = de.mean(0)")],
    }),
    "dropout": (EITHER, DROPOUT, {
        "not scaled": [("dz * keep / 0.75", "dz * keep")],
        "mask forgotten": [("dz * keep / 0.75", "dz / 0.75")],
        "input before the mask": [("dw = z.T @ da", "dw = x.T @ da")],
        "slope by the output": [("torch.sigmoid(z @ w)", "torch.sigmoid(x @ w)")],
    }),
    "net of arrays": (NUMPY, NUMPY_NET, {
        "mean forgotten": [("dz = g * dz / n", "dz = g * dz")],
        "mask of the activated gradient": [("da = dh * (a > 0)", "da = dh * (a < 0)")],
        "one added": [("[0, 1, 2, 1, 0]] -= 1", "[0, 1, 2, 1, 0]] += 1")],
        "bias by the mean": [("db2 = dz.sum(axis=0)", "db2 = dz.mean(axis=0)")],
        "weights before the mask": [("dw1 = x.T @ da", "dw1 = x.T @ dh")],
        "two at once": [("db1 = da.sum(axis=0)", "db1 = dh.sum(axis=0)"), ("dw2 = h.T @ dz", "dw2 = a.T @ dz")],
    }),
    "recurrence of arrays": (NUMPY, NUMPY_RNN, {
        "not carried": [("g / len(xs) + dnext", "g / len(xs)")],
        "state after the step": [("dwh += hs[t].T @ da", "dwh += hs[t + 1].T @ da")],
        "assigned": [("dwx += xs[t].T @ da", "dwx = xs[t].T @ da")],
        "wrong weights": [("dnext = da @ wh.T", "dnext = da @ wx.T")],
        "factor forgotten": [("dh = 2 * hs[t + 1]", "dh = hs[t + 1]")],
    }),
    "convolution of arrays": (NUMPY, NUMPY_CONV, {
        "overwritten": [("dx[:, i:i + h, j:j + v] +=", "dx[:, i:i + h, j:j + v] =")],
        "axes swapped": [("dw[:, :, i, j] = np", "dw[:, :, j, i] = np")],
        "window not moved": [('"ohv,chv->oc", g, x[:, i:i + h, j:j + v]', '"ohv,chv->oc", g, x[:, :h, :v]')],
        "bias not summed fully": [("db = g.sum(axis=(1, 2))", "db = g.mean(axis=(1, 2))")],
    }),
    "neuron of floats": (NUMPY, PLAIN, {
        "square forgotten": [("ds = g * (1 - y * y)", "ds = g * (1 - y)")],
        "input for the output": [("(1 - y * y)", "(1 - s * s)")],
        "weights for inputs": [("dw = [ds * xi for xi in x]", "dw = [ds * wi for wi in w]")],
    }),
    "loss of floats": (NUMPY, PLAIN_LOSS, {
        "mean forgotten": [("dz = g * (p - y) / 4", "dz = g * (p - y)")],
        "overwritten": [("dw = dw + dz * x", "dw = dz * x")],
        "sign": [("(p - y) / 4", "(y - p) / 4")],
        "slope twice": [("(p - y) / 4", "(p - y) * p * (1 - p) / 4")],
    }),
}

PAIR = """
def f({names}):
    {forward}

def f_backward(g, {names}):
    {backward}

inputs = [{inputs}]
"""


def pair(names, forward, backward, inputs):
    return PAIR.format(names=names, forward=forward.replace("\n", "\n    "), backward=backward.replace("\n", "\n    "), inputs=inputs)


# Right, and not as the formula stands in a book: kinks, lower precision, recomputation, other
# forms.
RIGHT = {
    "softmax by its jacobian": pair("x", "return torch.softmax(x, 1)", 'p = torch.softmax(x, 1)\nj = torch.einsum("ni,ij->nij", p, torch.eye(3).to(p.dtype)) - p[:, :, None] * p[:, None]\nreturn (j @ g[:, :, None])[:, :, 0]', "torch.randn(4, 3)"),
    "attention with the row sums of the output": pair(
        "q, k, v", "return torch.softmax(q @ k.T / 2, 1) @ v",
        "p = torch.softmax(q @ k.T / 2, 1)\no = p @ v\nds = p * (g @ v.T - (g * o).sum(1, keepdim=True)) / 2\nreturn ds @ k, ds.T @ q, p.T @ g", "torch.randn(4, 4), torch.randn(4, 4), torch.randn(4, 4)",
    ),
    "layer norm through sums": pair(
        "x", "m = x.mean(1, keepdim=True)\nreturn (x - m) / ((x - m) ** 2).mean(1, keepdim=True).sqrt()",
        "n = x.shape[1]\nc = x - x.sum(1, keepdim=True) / n\nv = (c * c).sum(1, keepdim=True) / n\nreturn (n * g * v - g.sum(1, keepdim=True) * v - c * (g * c).sum(1, keepdim=True)) / (n * v ** 1.5)", "torch.randn(5, 4)",
    ),
    "tanh in exponentials": pair("x", "return torch.tanh(x)", "return 4 * g / (x.exp() + (-x).exp()) ** 2", "torch.randn(4, 3)"),
    "tanh in float32": pair("x", "return torch.tanh(x)", "y = torch.tanh(x.to(torch.float32))\nreturn (g.to(torch.float32) * (1 - y * y)).to(g.dtype)", "torch.randn(4, 3)"),
    "product in float32": pair("a, b", "return a @ b", "a, b, h = a.to(torch.float32), b.to(torch.float32), g.to(torch.float32)\nreturn (h @ b.T).to(g.dtype), (a.T @ h).to(g.dtype)", "torch.randn(4, 3), torch.randn(3, 5)"),
    "norm in float32": pair(
        "x", "return x / (x * x).sum(1, keepdim=True).sqrt()",
        "y = x.to(torch.float32)\nn = (y * y).sum(1, keepdim=True).sqrt()\nu = y / n\nh = g.to(torch.float32)\nreturn ((h - u * (u * h).sum(1, keepdim=True)) / n).to(g.dtype)", "torch.randn(4, 3)",
    ),
    "relu at 0 with slope 1": pair("x", "return torch.relu(x)", "return g * (x >= 0).to(g.dtype)", "torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, -3.0]])"),
    "relu at 0 with a half": pair("x", "return torch.relu(x)", "return g * ((x > 0).to(g.dtype) + 0.5 * (x == 0).to(g.dtype))", "torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, -3.0]])"),
    "abs at 0": pair("x", "return x.abs()", "return torch.where(x >= 0, g, -g)", "torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, -3.0]])"),
    "clamp at its bounds": pair("x", "return x.clamp(-1, 1)", "return g * ((x > -1) & (x < 1)).to(g.dtype)", "torch.tensor([[1.0, 0.5, -1.0], [2.0, -0.3, -3.0]])"),
    "largest, shared": pair("x", "return x.amax(1)", "m = (x == x.amax(1, keepdim=True)).to(g.dtype)\nreturn g[:, None] * m / m.sum(1, keepdim=True)", "torch.tensor([[1.0, 1.0, 0.0], [2.0, 3.0, 3.0]])"),
    "largest of two": pair("a, b", "return torch.maximum(a, b)", "return g * (a >= b).to(g.dtype), g * (a < b).to(g.dtype)", "torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])"),
    "hinge at its corner": pair("x, w", "return torch.relu(1 - x * w).sum()", "m = (x * w <= 1).to(g.dtype)\nreturn -g * m * w, -g * m * x", "torch.tensor([1.0, 2.0, -1.0]), torch.tensor([1.0, 0.5, 1.0])"),
    "huber by a clamp": pair("x", "return torch.where(x.abs() < 1.5, 0.5 * x * x, 1.5 * (x.abs() - 0.75)).mean()", "return g * x.clamp(-1.5, 1.5) / x.numel()", "2 * torch.randn(4, 3)"),
    "logsumexp": pair("x", "return torch.logsumexp(x, 1)", "return g[:, None] * (x - torch.logsumexp(x, 1, keepdim=True)).exp()", "torch.randn(4, 3)"),
    "cumulative sum by a triangle": pair("x", "return x.cumsum(1)", "n = x.shape[1]\nreturn g @ torch.ones(n, n).tril().to(g.dtype)", "torch.randn(3, 5)"),
    "rows picked by a product": pair("w", "return w[torch.tensor([1, 0, 1, 2])]", "return torch.nn.functional.one_hot(torch.tensor([1, 0, 1, 2]), 3).to(g.dtype).T @ g", "torch.randn(3, 4)"),
    "a gradient that is zero": pair("x, b", "z = x + b\nreturn z - z.mean(0, keepdim=True)", "d = g - g.mean(0, keepdim=True)\nreturn d, torch.zeros_like(b)", "torch.randn(5, 3), torch.randn(3)"),
    "path of the maximum left out": pair(
        "x", "e = (x - x.amax(1, keepdim=True)).exp()\nreturn (e / e.sum(1, keepdim=True)).log()[:, 0].mean()",
        "e = (x - x.amax(1, keepdim=True)).exp()\np = e / e.sum(1, keepdim=True)\nd = -p\nd[:, 0] += 1\nreturn g * d / len(x)", "torch.randn(4, 3)",
    ),
    "steps of a recurrence at once": pair(
        "x, a", "h = torch.zeros_like(x[0])\nfor t in range(len(x)):\n    h = a * h + x[t]\nreturn h",
        "n = len(x)\npowers = torch.stack([a ** (n - 1 - t) for t in range(n)])\nda = sum((n - 1 - t) * a ** max(n - 2 - t, 0) * x[t] for t in range(n - 1))\nreturn g[None] * powers, g * da", "torch.randn(4, 3), torch.rand(3) + 0.3",
    ),
    "written in place": pair("x, w", "return torch.sigmoid(x) * w", "s = torch.sigmoid(x)\ndw = (g * s).sum(0)\ns *= 1 - s\ns *= g\ns *= w\nreturn s, dw", "torch.randn(4, 3), torch.randn(3)"),
    "log of a product": pair("x", "return x.prod(1)", "return g[:, None] * x.log().sum(1, keepdim=True).exp() / x", "torch.rand(4, 3) + 0.5"),
    "inputs of very different sizes": pair("x, w", "return torch.tanh(x @ w) * 1e-6", "d = 1e-6 * g * (1 - torch.tanh(x @ w) ** 2)\nreturn d @ w.T, x.T @ d", "1e3 * torch.randn(4, 3), 1e-3 * torch.randn(3, 4)"),
}  # fmt: skip
