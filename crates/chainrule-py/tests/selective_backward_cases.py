"""Backward passes of scans, gates, codes and pictures in more pixels, and lines of theirs as people
get them wrong; see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY, pair

MAMBA = """
def scan(x, delta, a, b, c):
    h = torch.zeros(x.shape[1], a.shape[1]).to(x.dtype)
    ys = []
    for t in range(x.shape[0]):
        h = torch.exp(delta[t][:, None] * a) * h + (delta[t] * x[t])[:, None] * b[t][None, :]
        ys.append(h @ c[t])
    return torch.stack(ys)

def scan_backward(g, x, delta, a, b, c):
    h = torch.zeros(x.shape[1], a.shape[1]).to(x.dtype)
    hs = [h]
    for t in range(x.shape[0]):
        h = torch.exp(delta[t][:, None] * a) * h + (delta[t] * x[t])[:, None] * b[t][None, :]
        hs.append(h)
    dx, ddelta, da = torch.zeros_like(x), torch.zeros_like(delta), torch.zeros_like(a)
    db, dc = torch.zeros_like(b), torch.zeros_like(c)
    dh = torch.zeros_like(h)
    for t in reversed(range(x.shape[0])):
        dc[t] = g[t] @ hs[t + 1]
        dh = dh + g[t][:, None] * c[t][None, :]
        decay = torch.exp(delta[t][:, None] * a)
        ddecay = dh * hs[t]
        da += ddecay * decay * delta[t][:, None]
        dinp = dh @ b[t]
        db[t] = (delta[t] * x[t]) @ dh
        ddelta[t] = (ddecay * decay * a).sum(1) + dinp * x[t]
        dx[t] = dinp * delta[t]
        dh = dh * decay
    return dx, ddelta, da, db, dc

inputs = [torch.randn(4, 3), torch.rand(4, 3) + 0.2, -torch.rand(3, 2) - 0.3, torch.randn(4, 2), torch.randn(4, 2)]
"""
ROTARY = """
def angles(n, d):
    return torch.arange(n)[:, None] * (0.3 ** torch.arange(d // 2))[None, :]

def rotate(x, cos, sin):
    a, b = x[:, ::2], x[:, 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

class Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wq, wk, wv):
        n, d = x.shape[0], wq.shape[1]
        th = angles(n, d).to(x.dtype)
        cos, sin = torch.cos(th), torch.sin(th)
        q, k, v = rotate(x @ wq, cos, sin), rotate(x @ wk, cos, sin), x @ wv
        s = q @ k.T * d ** -0.5
        s = s + torch.full((n, n), float("-inf")).to(x.dtype).triu(1)
        p = torch.softmax(s, 1)
        ctx.save_for_backward(x, wq, wk, wv, q, k, v, p, cos, sin)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        x, wq, wk, wv, q, k, v, p, cos, sin = ctx.saved_tensors
        d = wq.shape[1]
        dv = p.T @ g
        dp = g @ v.T
        ds = p * (dp - (p * dp).sum(1, keepdim=True))
        ds = ds * d ** -0.5
        dq_rot = ds @ k
        dk_rot = ds.T @ q
        dq = rotate(dq_rot, cos, -sin)
        dk = rotate(dk_rot, cos, -sin)
        dx = dq @ wq.T + dk @ wk.T + dv @ wv.T
        return dx, x.T @ dq, x.T @ dk, x.T @ dv

inputs = [torch.randn(5, 6), torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 3)]
"""
GROUPNORM = """
class GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        n, c, t = x.shape
        xg = x.reshape(n, 2, c // 2, t)
        mu = xg.mean((2, 3), keepdim=True)
        var = ((xg - mu) ** 2).mean((2, 3), keepdim=True)
        rstd = 1 / torch.sqrt(var + 1e-5)
        xhat = ((xg - mu) * rstd).reshape(n, c, t)
        ctx.save_for_backward(xhat, rstd, gamma)
        return xhat * gamma[:, None] + beta[:, None]

    @staticmethod
    def backward(ctx, dy):
        xhat, rstd, gamma = ctx.saved_tensors
        n, c, t = dy.shape
        dgamma = (dy * xhat).sum((0, 2))
        dbeta = dy.sum((0, 2))
        dxhat = (dy * gamma[:, None]).reshape(n, 2, c // 2, t)
        xh = xhat.reshape(n, 2, c // 2, t)
        m1 = dxhat.mean((2, 3), keepdim=True)
        m2 = (dxhat * xh).mean((2, 3), keepdim=True)
        dx = rstd * (dxhat - m1 - xh * m2)
        return dx.reshape(n, c, t), dgamma, dbeta

inputs = [torch.randn(3, 4, 5), torch.rand(4) + 0.5, torch.randn(4)]
"""
BOXES = """
def box_loss(pred, target, weight):
    r = pred - target
    a = r.abs()
    hub = torch.where(a < 0.8, 0.5 * r * r, 0.8 * (a - 0.4))
    per = 0.7 * hub.sum(1) + 0.3 * a.mean(1)
    return (weight * per).sum() / weight.sum()

def box_loss_backward(g, pred, target, weight):
    r = pred - target
    a = r.abs()
    hub = torch.where(a < 0.8, 0.5 * r * r, 0.8 * (a - 0.4))
    per = 0.7 * hub.sum(1) + 0.3 * a.mean(1)
    total = weight.sum()
    dper = g * weight / total
    sign = torch.sign(r)
    dhub = 0.7 * dper[:, None]
    dr = dhub * torch.where(a < 0.8, r, 0.8 * sign)
    dr = dr + 0.3 * dper[:, None] * sign / r.shape[1]
    dweight = g * (per - (weight * per).sum() / total) / total
    return dr, -dr, dweight

inputs = [2 * torch.randn(6, 4), torch.randn(6, 4), torch.rand(6) + 0.2]
"""
KALMAN = """
def kalman(y, logq, logr, f):
    q, r = torch.exp(logq), torch.exp(logr)
    m, p = y[0] * 0, y[0] * 0 + 1
    nll = 0
    for t in range(len(y)):
        m, p = f * m, f * f * p + q
        s = p + r
        e = y[t] - m
        nll = nll + 0.5 * (torch.log(s) + e * e / s)
        k = p / s
        m, p = m + k * e, (1 - k) * p
    return nll

def kalman_backward(g, y, logq, logr, f):
    q, r = torch.exp(logq), torch.exp(logr)
    m, p = y[0] * 0, y[0] * 0 + 1
    tape = []
    for t in range(len(y)):
        m0, p0 = m, p
        m1, p1 = f * m, f * f * p + q
        s = p1 + r
        e = y[t] - m1
        k = p1 / s
        tape.append((m0, p0, p1, s, e, k))
        m, p = m1 + k * e, (1 - k) * p1
    dy = torch.zeros_like(y)
    dq = dr = df = dm = dp = 0 * m
    for t in reversed(range(len(y))):
        m0, p0, p1, s, e, k = tape[t]
        dm1 = dm
        dk = dm * e - dp * p1
        de = dm * k + g * e / s
        dp1 = dp * (1 - k) + dk / s
        ds = 0.5 * g * (1 / s - e * e / s ** 2) - dk * p1 / s ** 2
        dy[t] = de
        dm1 = dm1 - de
        dp1 = dp1 + ds
        dr = dr + ds
        dq = dq + dp1
        df = df + dm1 * m0 + 2 * f * p0 * dp1
        dm = f * dm1
        dp = f * f * dp1
    return dy, dq * q, dr * r, df

inputs = [torch.randn(5), torch.tensor(-0.4), torch.tensor(0.3), torch.tensor(0.8)]
"""
NTXENT = """
def nt_xent(z, tau):
    n = z.shape[0] // 2
    u = z / z.norm(dim=1, keepdim=True)
    s = u @ u.T / tau
    s = s.masked_fill(torch.eye(2 * n).bool(), float("-inf"))
    pos = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return (torch.logsumexp(s, 1) - s[torch.arange(2 * n), pos]).mean()

def nt_xent_backward(g, z, tau):
    n = z.shape[0] // 2
    norm = z.norm(dim=1, keepdim=True)
    u = z / norm
    cos = u @ u.T
    eye = torch.eye(2 * n).bool()
    s = (cos / tau).masked_fill(eye, float("-inf"))
    pos = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    ds = torch.softmax(s, 1)
    ds[torch.arange(2 * n), pos] -= 1
    ds = g * ds / (2 * n)
    dtau = -(ds * cos).sum() / tau ** 2
    dcos = ds / tau
    du = (dcos + dcos.T) @ u
    dz = (du - u * (u * du).sum(1, keepdim=True)) / norm
    return dz, dtau

inputs = [torch.randn(6, 4), torch.tensor(0.5)]
"""
VAE = """
NOISE = [[0.3, -1.2], [0.8, 0.1], [-0.5, 0.9], [1.4, -0.2]]

def vae(x, wm, wl, dec):
    noise = torch.tensor(NOISE).to(x.dtype)
    mu, logvar = x @ wm, x @ wl
    std = torch.exp(0.5 * logvar)
    z = mu + std * noise
    rec = torch.sigmoid(z @ dec)
    err = ((rec - x) ** 2).sum(1)
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1)
    return (err + 0.1 * kl).mean()

def vae_backward(g, x, wm, wl, dec):
    noise = torch.tensor(NOISE).to(x.dtype)
    mu, logvar = x @ wm, x @ wl
    std = torch.exp(0.5 * logvar)
    z = mu + std * noise
    rec = torch.sigmoid(z @ dec)
    n = x.shape[0]
    drec = 2 * (rec - x) * g / n
    dlogits = drec * rec * (1 - rec)
    ddec = z.T @ dlogits
    dz = dlogits @ dec.T
    dmu = dz + 0.1 * mu * g / n
    dstd = dz * noise
    dlogvar = 0.5 * std * dstd + 0.05 * (logvar.exp() - 1) * g / n
    dx = dmu @ wm.T + dlogvar @ wl.T - drec
    return dx, x.T @ dmu, x.T @ dlogvar, ddec

inputs = [torch.rand(4, 5), torch.randn(5, 2), 0.5 * torch.randn(5, 2), torch.randn(2, 5)]
"""
DILATED = """
class Dilated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        cols = torch.nn.functional.unfold(x, 3, dilation=2, padding=2)
        n, c, h, wd = x.shape
        y = w.reshape(w.shape[0], -1) @ cols + b[:, None]
        ctx.save_for_backward(cols, w, y)
        ctx.size = (h, wd)
        return torch.nn.functional.silu(y).reshape(n, -1, h, wd)

    @staticmethod
    def backward(ctx, g):
        cols, w, y = ctx.saved_tensors
        gy = g.reshape(y.shape)
        s = torch.sigmoid(y)
        dy = gy * (s + y * s * (1 - s))
        db = dy.sum((0, 2))
        dw = (dy @ cols.transpose(1, 2)).sum(0).reshape(w.shape)
        dcols = w.reshape(w.shape[0], -1).T @ dy
        dx = torch.nn.functional.fold(dcols, ctx.size, 3, dilation=2, padding=2)
        return dx, dw, db

inputs = [torch.randn(2, 2, 5, 4), torch.randn(3, 2, 3, 3), torch.randn(3)]
"""
LORA = """
class LowRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, a, b, m):
        rank, alpha = a.shape[1], 6.0
        h = x @ a
        v = w + alpha / rank * (a @ b)
        n = v.norm(dim=0, keepdim=True)
        ctx.save_for_backward(x, w, a, b, m, v, n)
        return x @ (m * v / n)

    @staticmethod
    def backward(ctx, g):
        x, w, a, b, m, v, n = ctx.saved_tensors
        scale = 6.0 / a.shape[1]
        u = v / n
        dx = g @ (m * u).T
        dweff = x.T @ g
        dm = (dweff * u).sum(0)
        du = dweff * m
        dv = (du - u * (u * du).sum(0, keepdim=True)) / n
        da = scale * dv @ b.T
        db = scale * a.T @ dv
        return dx, dv, da, db, dm

inputs = [torch.randn(5, 4), torch.randn(4, 3), torch.randn(4, 2), torch.randn(2, 3), torch.rand(3) + 0.5]
"""
TOPK = """
class TopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wg, experts):
        scores = x @ wg
        top, ix = scores.topk(2, dim=1)
        gate = torch.softmax(top, 1)
        outs = torch.einsum("nd,ndhk->nhk", x, experts[ix].permute(0, 2, 1, 3))
        act = torch.tanh(outs)
        ctx.save_for_backward(x, wg, experts, ix, gate, act)
        return (gate[:, :, None] * act).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, wg, experts, ix, gate, act = ctx.saved_tensors
        dgate = (act * g[:, None, :]).sum(2)
        dact = gate[:, :, None] * g[:, None, :]
        douts = dact * (1 - act * act)
        dtop = gate * (dgate - (gate * dgate).sum(1, keepdim=True))
        dscores = torch.zeros(x.shape[0], wg.shape[1]).to(x.dtype).scatter(1, ix, dtop)
        dwg = x.T @ dscores
        dx = dscores @ wg.T
        dx = dx + torch.einsum("nhk,nhdk->nd", douts, experts[ix])
        dexperts = torch.zeros_like(experts)
        for n in range(x.shape[0]):
            for j in range(2):
                dexperts[ix[n, j]] += torch.outer(x[n], douts[n, j])
        return dx, dwg, dexperts

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(4, 3, 2)]
"""
CODES = """
class Coded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, book, dec):
        pick = torch.tensor([0, 2, 1, 2, 3, 0])
        e = book[pick]
        q = e @ dec
        ctx.save_for_backward(book, dec, pick, e, q)
        return torch.relu(q)

    @staticmethod
    def backward(ctx, g):
        book, dec, pick, e, q = ctx.saved_tensors
        dq = g * (q > 0)
        ddec = e.T @ dq
        de = dq @ dec.T
        dbook = torch.zeros_like(book).index_add(0, pick, de)
        return dbook, ddec

inputs = [torch.randn(4, 3), torch.randn(3, 5)]
"""
DECONV = """
import numpy as np
rng = np.random.default_rng(5)

def deconv(x, w, b):
    n, c, h, wd = x.shape
    k, f = w.shape[2], w.shape[1]
    out = np.zeros((n, f, (h - 1) * 2 + k, (wd - 1) * 2 + k))
    for i in range(h):
        for j in range(wd):
            out[:, :, i * 2:i * 2 + k, j * 2:j * 2 + k] += np.einsum("nc,cfkl->nfkl", x[:, :, i, j], w)
    out = out + b[None, :, None, None]
    return np.where(out > 0, out, 0.2 * out)

def deconv_backward(g, x, w, b):
    n, c, h, wd = x.shape
    k, f = w.shape[2], w.shape[1]
    out = np.zeros((n, f, (h - 1) * 2 + k, (wd - 1) * 2 + k))
    for i in range(h):
        for j in range(wd):
            out[:, :, i * 2:i * 2 + k, j * 2:j * 2 + k] += np.einsum("nc,cfkl->nfkl", x[:, :, i, j], w)
    out = out + b[None, :, None, None]
    dout = g * np.where(out > 0, 1.0, 0.2)
    db = dout.sum((0, 2, 3))
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(h):
        for j in range(wd):
            patch = dout[:, :, i * 2:i * 2 + k, j * 2:j * 2 + k]
            dx[:, :, i, j] = np.einsum("nfkl,cfkl->nc", patch, w)
            dw += np.einsum("nc,nfkl->cfkl", x[:, :, i, j], patch)
    return dx, dw, db

inputs = [rng.standard_normal((2, 3, 2, 3)), rng.standard_normal((3, 2, 3, 3)), rng.standard_normal(2)]
"""
SHUFFLE = """
class Upscale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        n, c, h, wd = x.shape
        y = torch.einsum("nchw,oc->nohw", x, w)
        o = w.shape[0] // 4
        z = y.reshape(n, o, 2, 2, h, wd).permute(0, 1, 4, 2, 5, 3).reshape(n, o, 2 * h, 2 * wd)
        s = torch.tanh(z)
        ctx.save_for_backward(x, w, s)
        return s

    @staticmethod
    def backward(ctx, g):
        x, w, s = ctx.saved_tensors
        n, c, h, wd = x.shape
        o = w.shape[0] // 4
        dz = g * (1 - s ** 2)
        dy = dz.reshape(n, o, h, 2, wd, 2).permute(0, 1, 3, 5, 2, 4).reshape(n, 4 * o, h, wd)
        dx = torch.einsum("nohw,oc->nchw", dy, w)
        dw = torch.einsum("nohw,nchw->oc", dy, x)
        return dx, dw

inputs = [torch.randn(2, 3, 2, 2), torch.randn(4, 3)]
"""
COSEMB = """
SAME = [1, -1, -1, 1, -1, -1]

def cos_loss(a, b):
    y = torch.tensor(SAME)
    c = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
    return torch.where(y > 0, 1 - c, torch.relu(c - 0.1)).mean()

def cos_loss_backward(g, a, b):
    y = torch.tensor(SAME)
    na, nb = a.norm(dim=1), b.norm(dim=1)
    dot = (a * b).sum(1)
    c = dot / (na * nb)
    dc = torch.where(y > 0, -torch.ones_like(c), (c > 0.1).to(c.dtype)) * g / len(y)
    da = dc[:, None] * (b / (na * nb)[:, None] - a * (c / na ** 2)[:, None])
    db = dc[:, None] * (a / (na * nb)[:, None] - b * (c / nb ** 2)[:, None])
    return da, db

inputs = [torch.randn(6, 3), torch.randn(6, 3)]
"""
TRIPLET = """
import numpy as np
rng = np.random.default_rng(8)

def triplet(x, w, margin):
    e = x @ w
    a, p, n = e[0::3], e[1::3], e[2::3]
    dp = np.sqrt(((a - p) ** 2).sum(1) + 1e-8)
    dn = np.sqrt(((a - n) ** 2).sum(1) + 1e-8)
    return np.maximum(dp - dn + margin, 0).mean()

def triplet_backward(g, x, w, margin):
    e = x @ w
    a, p, n = e[0::3], e[1::3], e[2::3]
    dp = np.sqrt(((a - p) ** 2).sum(1) + 1e-8)
    dn = np.sqrt(((a - n) ** 2).sum(1) + 1e-8)
    on = g * (dp - dn + margin > 0) / len(a)
    up = (on / dp)[:, None] * (a - p)
    un = (on / dn)[:, None] * (a - n)
    de = np.zeros_like(e)
    de[0::3] = up - un
    de[1::3] = -up
    de[2::3] = un
    dmargin = on.sum()
    return de @ w.T, x.T @ de, dmargin

inputs = [rng.standard_normal((12, 4)), rng.standard_normal((4, 3)), np.array(1.5)]
"""
SELECTIVE = {
    "selective scan": (EITHER, MAMBA, {
        "decay without delta": [("da += ddecay * decay * delta[t][:, None]", "da += ddecay * decay")],
        "state after for before": [("ddecay = dh * hs[t]", "ddecay = dh * hs[t + 1]")],
    }),
    "rotary": (EITHER, ROTARY, {
        "keys turned forward": [("dk = rotate(dk_rot, cos, -sin)", "dk = rotate(dk_rot, cos, sin)")],
        "scale forgotten, value untransposed path": [("ds = ds * d ** -0.5", "ds = ds * d ** 0.5")],
    }),
    "group norm": (EITHER, GROUPNORM, {
        "means over space alone": [("m1 = dxhat.mean((2, 3), keepdim=True)", "m1 = dxhat.mean(3, keepdim=True)")],
        "gain before normal": [("m2 = (dxhat * xh).mean((2, 3), keepdim=True)", "m2 = (dxhat * xh).sum((2, 3), keepdim=True)")],
    }),
    "boxes": (EITHER, BOXES, {
        "bound of huber": [("dr = dhub * torch.where(a < 0.8, r, 0.8 * sign)", "dr = dhub * torch.where(a < 0.8, r, sign)")],
        "weights of all not differentiated": [("dweight = g * (per - (weight * per).sum() / total) / total", "dweight = g * per / total")],
    }),
    "kalman": (EITHER, KALMAN, {
        "gain's divisor": [("dp1 = dp * (1 - k) + dk / s", "dp1 = dp * (1 - k) + dk")],
        "noise of the state without s": [("dq = dq + dp1", "dq = dq + ds")],
    }),
    "nt-xent": (EITHER, NTXENT, {
        "one side of the products": [("du = (dcos + dcos.T) @ u", "du = dcos @ u")],
        "temperature by scaled": [("dtau = -(ds * cos).sum() / tau ** 2", "dtau = -(ds * cos).sum() / tau")],
    }),
    "vae": (EITHER, VAE, {
        "half of log variance": [("dlogvar = 0.5 * std * dstd + 0.05 * (logvar.exp() - 1) * g / n", "dlogvar = std * dstd + 0.05 * (logvar.exp() - 1) * g / n")],
        "input's own path": [("dx = dmu @ wm.T + dlogvar @ wl.T - drec", "dx = dmu @ wm.T + dlogvar @ wl.T")],
    }),
    "dilated": (EITHER, DILATED, {
        "silu without product": [("dy = gy * (s + y * s * (1 - s))", "dy = gy * s * (1 - s)")],
        "padding": [("dx = torch.nn.functional.fold(dcols, ctx.size, 3, dilation=2, padding=2)", "dx = torch.nn.functional.fold(dcols, ctx.size, 3, dilation=1, padding=1)")],
    }),
    "low rank": (EITHER, LORA, {
        "scale forgotten": [("db = scale * a.T @ dv", "db = a.T @ dv")],
        "magnitude from v": [("dm = (dweff * u).sum(0)", "dm = (dweff * v).sum(0)")],
    }),
    "top-k gate": (EITHER, TOPK, {
        "gate's softmax": [("dtop = gate * (dgate - (gate * dgate).sum(1, keepdim=True))", "dtop = gate * dgate")],
        "experts assigned": [("dexperts[ix[n, j]] += torch.outer(x[n], douts[n, j])", "dexperts[ix[n, j]] = torch.outer(x[n], douts[n, j])")],
    }),
    "code book": (EITHER, CODES, {
        "codes of another array": [("de = dq @ dec.T", "de = q @ dec.T")],
        "mask of the output": [("ddec = e.T @ dq", "ddec = e.T @ g")],
    }),
    "deconvolution": (NUMPY, DECONV, {
        "stride one": [("patch = dout[:, :, i * 2:i * 2 + k, j * 2:j * 2 + k]", "patch = dout[:, :, i:i + k, j:j + k]")],
        "slope of the leak": [("dout = g * np.where(out > 0, 1.0, 0.2)", "dout = g * np.where(out > 0, 1.0, 0.0)")],
    }),
    "upscale": (EITHER, SHUFFLE, {
        "rows and columns": [("dy = dz.reshape(n, o, h, 2, wd, 2).permute(0, 1, 3, 5, 2, 4).reshape(n, 4 * o, h, wd)", "dy = dz.reshape(n, o, h, 2, wd, 2).permute(0, 1, 5, 3, 2, 4).reshape(n, 4 * o, h, wd)")],
        "two: slope and weights": [("dz = g * (1 - s ** 2)", "dz = g * (1 - s)"), ("dw = torch.einsum(\"nohw,nchw->oc\", dy, x)", "dw = torch.einsum(\"nohw,nchw->oc\", dy, x) / n")],
    }),
    "cosine pairs": (EITHER, COSEMB, {
        "norm of the other": [("db = dc[:, None] * (a / (na * nb)[:, None] - b * (c / nb ** 2)[:, None])", "db = dc[:, None] * (a / (na * nb)[:, None] - b * (c / na ** 2)[:, None])")],
        "margin at zero": [("(c > 0.1).to(c.dtype)", "(c > 0.0).to(c.dtype)")],
    }),
    "triplets": (NUMPY, TRIPLET, {
        "anchor's second part": [("de[0::3] = up - un", "de[0::3] = up")],
        "squared distance": [("un = (on / dn)[:, None] * (a - n)", "un = on[:, None] * (a - n)")],
    }),
}
SELECTIVE_RIGHT = {
    "group norm of one group by var_mean": pair("x", "v, m = torch.var_mean(x, (1, 2), correction=0, keepdim=True)\nreturn (x - m) * (v + 1e-5) ** -0.5", "v, m = torch.var_mean(x, (1, 2), correction=0, keepdim=True)\nr = (v + 1e-5) ** -0.5\nh = (x - m) * r\nreturn r * (g - g.mean((1, 2), keepdim=True) - h * (h * g).mean((1, 2), keepdim=True))", "torch.randn(3, 4, 5)"),
    "rotation of pairs": pair("x, t", "a, b = x[:, ::2], x[:, 1::2]\nreturn torch.cat([a * t.cos() - b * t.sin(), a * t.sin() + b * t.cos()], 1)", "n = x.shape[1] // 2\np, q = g[:, :n], g[:, n:]\na, b = x[:, ::2], x[:, 1::2]\nc, s = t.cos(), t.sin()\nd = torch.empty_like(x)\nd[:, ::2] = p * c + q * s\nd[:, 1::2] = q * c - p * s\ndt = (p * (-a * s - b * c) + q * (a * c - b * s)).sum()\nreturn d, dt", "torch.randn(3, 4), torch.tensor(0.7)"),
    "pixel shuffle": pair("x", "return torch.pixel_shuffle(x, 2)", "return torch.pixel_unshuffle(g, 2)", "torch.randn(2, 4, 3, 2)"),
    "weight norm": pair("v, s", "return s * v / v.norm(dim=1, keepdim=True)", "n = v.norm(dim=1, keepdim=True)\nu = v / n\nds = (g * u).sum(1, keepdim=True)\nreturn (g - ds * u) * s / n, ds", "torch.randn(4, 3), torch.rand(4, 1) + 0.5"),
    "straight through by hand": pair("x", "return x + (torch.round(x) - x).detach()", "return g", "3 * torch.randn(4, 3)"),
    "low rank in float32": pair("x, a, b", "return x @ a @ b * 0.5", "x2, a2, b2, g2 = (t.to(torch.float32) for t in (x, a, b, g))\nh = g2 @ b2.T * 0.5\nreturn (h @ a2.T).to(x.dtype), (x2.T @ h).to(x.dtype), ((x2 @ a2).T @ g2 * 0.5).to(x.dtype)", "torch.randn(5, 4), torch.randn(4, 2), torch.randn(2, 3)"),
    "hinge of triplets, upwards": pair("a, b", "return torch.relu(a - b).sum()", "m = (a >= b).to(g.dtype)\nreturn g * m, -g * m", "torch.randn(6), torch.randn(6)"),
    "median": pair("x", "return x.median(1).values", "i = x.argsort(1)[:, (x.shape[1] - 1) // 2]\nd = torch.zeros_like(x)\nd[torch.arange(len(x)), i] = g\nreturn d", "torch.randn(4, 5)"),
    "sorted": pair("x", "return x.sort(1).values", "return torch.zeros_like(x).scatter(1, x.argsort(1), g)", "torch.randn(4, 5)"),
    "kl of gaussians": pair("m, l", "return 0.5 * (l.exp() + m * m - 1 - l).sum(1)", "return g[:, None] * m, 0.5 * g[:, None] * torch.expm1(l)", "torch.randn(4, 3), torch.randn(4, 3)"),
    "transposed convolution by convolution": pair("x, w", "return torch.nn.functional.conv_transpose1d(x, w, stride=2)", "F = torch.nn.functional\ndx = F.conv1d(g, w, stride=2)\ndw = torch.stack([torch.einsum('nil,nol->io', x, g[:, :, k:k + 2 * x.shape[2] - 1:2]) for k in range(3)], 2)\nreturn dx, dw", "torch.randn(2, 3, 4), torch.randn(3, 2, 3)"),
    "elementwise product of prefix": pair("x", "return torch.cumprod(x, 1)", "y = torch.cumprod(x, 1)\nr = (g * y).flip(1).cumsum(1).flip(1)\nreturn r / x", "torch.rand(3, 4) + 0.5"),
}
