"""Later backward passes as people write them: filters, trees, patches, classes of layers."""

from backward_cases import EITHER, NUMPY

KALMAN = """
def kalman_nll(zs, a, logq, logr, m0):
    q, r = torch.exp(logq), torch.exp(logr)
    m, p = m0, torch.ones_like(m0)
    nll = 0.0
    for t in range(zs.shape[0]):
        mp = a * m
        pp = a * a * p + q
        s = pp + r
        e = zs[t] - mp
        nll = nll + 0.5 * (torch.log(s) + e * e / s)
        k = pp / s
        m = mp + k * e
        p = (1 - k) * pp
    return nll

def kalman_nll_backward(gout, zs, a, logq, logr, m0):
    q, r = torch.exp(logq), torch.exp(logr)
    m, p = m0, torch.ones_like(m0)
    tape = []
    for t in range(zs.shape[0]):
        mp = a * m
        pp = a * a * p + q
        s = pp + r
        e = zs[t] - mp
        k = pp / s
        tape.append((m, p, mp, pp, s, e, k))
        m = mp + k * e
        p = (1 - k) * pp
    gz = torch.zeros_like(zs)
    ga = torch.zeros_like(a)
    gq = torch.zeros_like(a)
    gr = torch.zeros_like(a)
    gm = torch.zeros_like(m0)
    gp = torch.zeros_like(m0)
    for t in range(zs.shape[0] - 1, -1, -1):
        m, p, mp, pp, s, e, k = tape[t]
        gk = gm * e - gp * pp
        ge = gm * k + gout * e / s
        gmp = gm - ge
        gz[t] = ge
        gs = gout * 0.5 * (1 / s - e * e / (s * s)) - gk * pp / (s * s)
        gpp = gp * (1 - k) + gk / s + gs
        gr = gr + gs
        gq = gq + gpp
        ga = ga + gmp * m + gpp * 2 * a * p
        gm = gmp * a
        gp = gpp * a * a
    return gz, ga, gq * q, gr * r, gm

inputs = [torch.randn(5), torch.tensor(0.9), torch.tensor(-0.4), torch.tensor(0.2), torch.tensor(0.3)]
"""
PROTO = """
import numpy as np
rng = np.random.default_rng(5)
support_y = np.array([0, 0, 0, 1, 1, 2, 2, 2])
query_y = np.array([2, 0, 1, 1, 0])

def proto_loss(s, q, w, log_tau):
    es, eq = s @ w, q @ w
    protos = np.stack([es[support_y == k].mean(0) for k in range(3)])
    d = ((eq[:, None, :] - protos[None]) ** 2).sum(-1)
    logits = -d * np.exp(log_tau)
    m = logits.max(1, keepdims=True)
    logp = logits - m - np.log(np.exp(logits - m).sum(1, keepdims=True))
    return -logp[np.arange(5), query_y].mean()

def proto_loss_backward(g, s, q, w, log_tau):
    es, eq = s @ w, q @ w
    protos = np.stack([es[support_y == k].mean(0) for k in range(3)])
    diff = eq[:, None, :] - protos[None]
    d = (diff ** 2).sum(-1)
    tau = np.exp(log_tau)
    logits = -d * tau
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    dlogits = p.copy()
    dlogits[np.arange(5), query_y] -= 1
    dlogits *= g / 5
    dd = -dlogits * tau
    dlog_tau = (dlogits * logits).sum()
    ddiff = 2 * diff * dd[:, :, None]
    deq = ddiff.sum(1)
    dprotos = -ddiff.sum(0)
    des = np.zeros_like(es)
    for k in range(3):
        members = support_y == k
        des[members] = dprotos[k] / members.sum()
    ds = des @ w.T
    dq = deq @ w.T
    dw = s.T @ des + q.T @ deq
    return ds, dq, dw, dlog_tau

inputs = [rng.standard_normal((8, 4)), rng.standard_normal((5, 4)), 0.5 * rng.standard_normal((4, 3)), np.array(-0.7)]
"""
TREE = """
LEFT = [None, None, None, 0, 2]
RIGHT = [None, None, None, 1, 3]

def compose(l, r, W, b):
    return torch.tanh(torch.cat([l, r]) @ W + b)

def tree_rnn(leaves, W, b, score):
    nodes = [leaves[0], leaves[1], leaves[2]]
    for i in range(3, 5):
        nodes.append(compose(nodes[LEFT[i]], nodes[RIGHT[i]], W, b))
    return torch.stack([nodes[3] @ score, nodes[4] @ score])

def tree_rnn_backward(g, leaves, W, b, score):
    nodes = [leaves[0], leaves[1], leaves[2]]
    for i in range(3, 5):
        nodes.append(compose(nodes[LEFT[i]], nodes[RIGHT[i]], W, b))
    D = leaves.shape[1]
    gn = [torch.zeros_like(leaves[0]) for _ in range(5)]
    gW, gb, gscore = torch.zeros_like(W), torch.zeros_like(b), torch.zeros_like(score)
    for i in (4, 3):
        gn[i] = gn[i] + g[i - 3] * score
        gscore += g[i - 3] * nodes[i]
        gpre = gn[i] * (1 - nodes[i] ** 2)
        both = torch.cat([nodes[LEFT[i]], nodes[RIGHT[i]]])
        gW += torch.outer(both, gpre)
        gb += gpre
        gboth = W @ gpre
        gn[LEFT[i]] = gn[LEFT[i]] + gboth[:D]
        gn[RIGHT[i]] = gn[RIGHT[i]] + gboth[D:]
    return torch.stack(gn[:3]), gW, gb, gscore

inputs = [torch.randn(3, 4), torch.randn(8, 4), torch.randn(4), torch.randn(4)]
"""
VIT = """
class PatchPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, proj, pos, cls, head):
        B, H, W = img.shape
        patches = img.reshape(B, H // 2, 2, W // 2, 2).permute(0, 1, 3, 2, 4).reshape(B, -1, 4)
        tok = patches @ proj
        seq = torch.cat([cls.expand(B, 1, -1), tok], 1) + pos
        mu = seq.mean(-1, keepdim=True)
        var = seq.var(-1, unbiased=False, keepdim=True)
        xhat = (seq - mu) / torch.sqrt(var + 1e-5)
        pooled = xhat.mean(1)
        ctx.save_for_backward(patches, proj, head, xhat, var, pooled)
        ctx.shape = img.shape
        return pooled @ head

    @staticmethod
    def backward(ctx, gy):
        patches, proj, head, xhat, var, pooled = ctx.saved_tensors
        B, H, W = ctx.shape
        ghead = pooled.T @ gy
        gpooled = gy @ head.T
        gxhat = gpooled[:, None, :].expand_as(xhat) / xhat.shape[1]
        inv = 1 / torch.sqrt(var + 1e-5)
        gseq = inv * (gxhat - gxhat.mean(-1, keepdim=True) - xhat * (gxhat * xhat).mean(-1, keepdim=True))
        gpos = gseq.sum(0)
        gcls = gseq[:, 0].sum(0)
        gtok = gseq[:, 1:]
        gproj = torch.einsum("bnp,bnd->pd", patches, gtok)
        gpatches = gtok @ proj.T
        gimg = gpatches.reshape(B, H // 2, W // 2, 2, 2).permute(0, 1, 3, 2, 4).reshape(B, H, W)
        return gimg, gproj, gpos, gcls, ghead

inputs = [torch.randn(2, 4, 4), torch.randn(4, 6), torch.randn(5, 6), torch.randn(6), torch.randn(6, 3)]
"""
IM2COL = """
import numpy as np
rng = np.random.default_rng(3)

def im2col(x, k, stride, pad):
    n, c, h, w = x.shape
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh, ow = (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1
    cols = np.zeros((n, c, k, k, oh, ow), dtype=x.dtype)
    for i in range(k):
        for j in range(k):
            cols[:, :, i, j] = xp[:, :, i:i + stride * oh:stride, j:j + stride * ow:stride]
    return cols.transpose(0, 4, 5, 1, 2, 3).reshape(n * oh * ow, -1), oh, ow

def col2im(cols, shape, k, stride, pad, oh, ow):
    n, c, h, w = shape
    cols = cols.reshape(n, oh, ow, c, k, k).transpose(0, 3, 4, 5, 1, 2)
    xp = np.zeros((n, c, h + 2 * pad, w + 2 * pad))
    for i in range(k):
        for j in range(k):
            xp[:, :, i:i + stride * oh:stride, j:j + stride * ow:stride] += cols[:, :, i, j]
    return xp[:, :, pad:pad + h, pad:pad + w]

def conv_relu(x, w, b):
    cols, oh, ow = im2col(x, 3, 2, 1)
    z = cols @ w.reshape(len(w), -1).T + b
    a = np.maximum(z, 0)
    return a.reshape(len(x), oh, ow, len(w)).transpose(0, 3, 1, 2)

def conv_relu_backward(dout, x, w, b):
    cols, oh, ow = im2col(x, 3, 2, 1)
    wmat = w.reshape(len(w), -1)
    z = cols @ wmat.T + b
    da = dout.transpose(0, 2, 3, 1).reshape(-1, len(w))
    dz = da * (z > 0)
    db = dz.sum(axis=0)
    dw = (dz.T @ cols).reshape(w.shape)
    dcols = dz @ wmat
    dx = col2im(dcols, x.shape, 3, 2, 1, oh, ow)
    return dx, dw, db

inputs = [rng.standard_normal((2, 2, 5, 5)), rng.standard_normal((3, 2, 3, 3)), rng.standard_normal(3)]
"""
POOLNET = """
import numpy as np
rng = np.random.default_rng(8)
labels = np.array([1, 0, 2])

def pool_forward(x):
    n, c, h, w = x.shape
    win = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return win.max(-1), win.argmax(-1)

def smooth_ce(z):
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))

def poolnet(x, slope, w, b):
    act = np.where(x > 0, x, slope[:, None, None] * x)
    pooled, _ = pool_forward(act)
    logits = pooled.reshape(len(x), -1) @ w + b
    target = np.full((3, 3), 0.1 / 3)
    target[np.arange(3), labels] += 0.9
    return -(target * smooth_ce(logits)).sum(1).mean() + 0.01 * (w ** 2).sum()

def poolnet_backward(g, x, slope, w, b):
    act = np.where(x > 0, x, slope[:, None, None] * x)
    pooled, arg = pool_forward(act)
    flat = pooled.reshape(len(x), -1)
    logits = flat @ w + b
    target = np.full((3, 3), 0.1 / 3)
    target[np.arange(3), labels] += 0.9
    probs = np.exp(smooth_ce(logits))
    dlogits = g * (probs - target) / len(x)
    db = dlogits.sum(0)
    dw = flat.T @ dlogits + 0.02 * g * w
    dpooled = (dlogits @ w.T).reshape(pooled.shape)
    n, c, h, wd = x.shape
    dwin = np.zeros((n, c, h // 2, wd // 2, 4))
    np.put_along_axis(dwin, arg[..., None], dpooled[..., None], axis=-1)
    dact = dwin.reshape(n, c, h // 2, wd // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)
    dslope = np.where(x > 0, 0, dact * x).sum(axis=(0, 2, 3))
    dx = np.where(x > 0, dact, dact * slope[:, None, None])
    return dx, dslope, dw, db

inputs = [rng.standard_normal((3, 2, 4, 4)), np.array([0.25, -0.1]), rng.standard_normal((8, 3)), rng.standard_normal(3)]
"""
MEMNET = """
class MemoryHops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, keys, values, hop_w):
        u = query
        saved = []
        for _ in range(3):
            scores = torch.einsum("bd,md->bm", u, keys)
            attn = torch.softmax(scores, dim=1)
            read = attn @ values
            nxt = torch.tanh(u @ hop_w + read)
            saved.append((u, attn, nxt))
            u = nxt
        ctx.saved = saved
        ctx.save_for_backward(keys, values, hop_w)
        return u

    @staticmethod
    def backward(ctx, du):
        keys, values, hop_w = ctx.saved_tensors
        dkeys = torch.zeros_like(keys)
        dvalues = torch.zeros_like(values)
        dhop = torch.zeros_like(hop_w)
        for u, attn, nxt in reversed(ctx.saved):
            dpre = du * (1 - nxt ** 2)
            dhop += u.t() @ dpre
            dvalues += attn.t() @ dpre
            dattn = dpre @ values.t()
            dscores = attn * (dattn - (attn * dattn).sum(dim=1, keepdim=True))
            dkeys += torch.einsum("bm,bd->md", dscores, u)
            du = dpre @ hop_w.t() + dscores @ keys
        return du, dkeys, dvalues, dhop

inputs = [torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 4), torch.randn(4, 4)]
"""
ORDINAL = """
LEVEL = torch.tensor([0, 2, 1, 3, 1])

def ordinal(x, w, first, gaps):
    steps = torch.nn.functional.softplus(gaps)
    cuts = torch.cat([first, first + steps.cumsum(0)])
    f = x @ w
    cdf = torch.sigmoid(cuts[None] - f[:, None])
    upper = torch.cat([cdf, torch.ones_like(cdf[:, :1])], 1)
    lower = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], 1)
    p = (upper - lower)[torch.arange(5), LEVEL]
    return -torch.log(p).mean()

def ordinal_backward(g, x, w, first, gaps):
    steps = torch.nn.functional.softplus(gaps)
    cuts = torch.cat([first, first + steps.cumsum(0)])
    f = x @ w
    cdf = torch.sigmoid(cuts[None] - f[:, None])
    rows = torch.arange(5)
    upper = torch.cat([cdf, torch.ones_like(cdf[:, :1])], 1)
    lower = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], 1)
    p = (upper - lower)[rows, LEVEL]
    dp = -g / p / len(p)
    dcdf = torch.zeros_like(upper)
    dcdf[rows, LEVEL] += dp
    dlower = torch.zeros_like(lower)
    dlower[rows, LEVEL] -= dp
    dcdf = dcdf[:, :-1] + dlower[:, 1:]
    dz = dcdf * cdf * (1 - cdf)
    dcuts = dz.sum(0)
    df = -dz.sum(1)
    dfirst = dcuts.sum().reshape(1)
    dsteps = dcuts[1:].flip(0).cumsum(0).flip(0)
    dgaps = dsteps * torch.sigmoid(gaps)
    dx = torch.outer(df, w)
    dw = x.T @ df
    return dx, dw, dfirst, dgaps

inputs = [torch.randn(5, 3), torch.randn(3), torch.randn(1), torch.randn(2)]
"""
MODULAR = """
import numpy as np
rng = np.random.default_rng(4)
target = rng.standard_normal((6, 2))

class Linear:
    def __init__(self, W, b):
        self.W, self.b = W, b

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, g):
        self.dW = self.x.T @ g
        self.db = g.sum(axis=0)
        return g @ self.W.T

class BatchNorm:
    def __init__(self, gamma, beta):
        self.gamma, self.beta = gamma, beta

    def forward(self, x):
        self.mu = x.mean(axis=0)
        self.var = x.var(axis=0)
        self.inv = 1 / np.sqrt(self.var + 1e-5)
        self.xhat = (x - self.mu) * self.inv
        return self.gamma * self.xhat + self.beta

    def backward(self, g):
        n = len(g)
        self.dbeta = g.sum(axis=0)
        self.dgamma = (g * self.xhat).sum(axis=0)
        dxhat = g * self.gamma
        return self.inv / n * (n * dxhat - dxhat.sum(axis=0) - self.xhat * (dxhat * self.xhat).sum(axis=0))

class ELU:
    def forward(self, x):
        self.x = x
        self.y = np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)
        return self.y

    def backward(self, g):
        return np.where(self.x > 0, g, g * (self.y + 1))

def network(x, W1, b1, gamma, beta, W2, b2):
    layers = [Linear(W1, b1), BatchNorm(gamma, beta), ELU(), Linear(W2, b2)]
    h = x
    for layer in layers:
        h = layer.forward(h)
    reg = 0.5 * 0.1 * ((W1 ** 2).sum() + (W2 ** 2).sum())
    return ((h - target) ** 2).sum() / len(x) + reg

def network_backward(g, x, W1, b1, gamma, beta, W2, b2):
    lin1, bn, act, lin2 = Linear(W1, b1), BatchNorm(gamma, beta), ELU(), Linear(W2, b2)
    out = lin2.forward(act.forward(bn.forward(lin1.forward(x))))
    d = g * 2 * (out - target) / len(x)
    d = lin2.backward(d)
    d = act.backward(d)
    d = bn.backward(d)
    dx = lin1.backward(d)
    return dx, lin1.dW + 0.1 * g * W1, lin1.db, bn.dgamma, bn.dbeta, lin2.dW + 0.1 * g * W2, lin2.db

inputs = [rng.standard_normal((6, 3)), rng.standard_normal((3, 4)), rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal((4, 2)), rng.standard_normal(2)]
"""
MF = """
import numpy as np
rng = np.random.default_rng(14)
USER = np.array([0, 1, 2, 0, 1, 3, 3, 0])
ITEM = np.array([1, 0, 2, 2, 1, 0, 1, 0])
STARS = rng.standard_normal(8)

def factors(P, Q, bu, bi, mu):
    pred = mu + bu[USER] + bi[ITEM] + (P[USER] * Q[ITEM]).sum(1)
    err = pred - STARS
    huber = np.where(np.abs(err) < 1.0, 0.5 * err ** 2, np.abs(err) - 0.5)
    return huber.mean() + 0.05 * ((P ** 2).sum() + (Q ** 2).sum())

def factors_backward(g, P, Q, bu, bi, mu):
    pu, qi = P[USER], Q[ITEM]
    pred = mu + bu[USER] + bi[ITEM] + (pu * qi).sum(1)
    err = pred - STARS
    derr = g * np.clip(err, -1.0, 1.0) / len(err)
    dP, dQ = 0.1 * g * P, 0.1 * g * Q
    dbu, dbi = np.zeros_like(bu), np.zeros_like(bi)
    for n in range(len(USER)):
        u, i = USER[n], ITEM[n]
        dP[u] += derr[n] * qi[n]
        dQ[i] += derr[n] * pu[n]
        dbu[u] += derr[n]
        dbi[i] += derr[n]
    return dP, dQ, dbu, dbi, derr.sum()

inputs = [rng.standard_normal((4, 3)), rng.standard_normal((3, 3)), rng.standard_normal(4), rng.standard_normal(3), np.array(0.3)]
"""
LRN = """
class ResponseNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        B, C, L = x.shape
        sq = torch.nn.functional.pad(x ** 2, (0, 0, 1, 1))
        win = sq[:, :-2] + sq[:, 1:-1] + sq[:, 2:]
        den = 1 + alpha * win / 3
        out = x * den ** -0.75
        ctx.save_for_backward(x, alpha, win, den, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, alpha, win, den, out = ctx.saved_tensors
        dden = -0.75 * g * out / den
        dalpha = (dden * win / 3).sum()
        dwin = torch.nn.functional.pad(dden * alpha / 3, (0, 0, 1, 1))
        dsq = dwin[:, :-2] + dwin[:, 1:-1] + dwin[:, 2:]
        dx = g * den ** -0.75 + 2 * x * dsq
        return dx, dalpha

inputs = [torch.randn(2, 4, 3), torch.tensor(0.7)]
"""
DEEPER = {
    "filter of one state": (EITHER, KALMAN, {
        "gain path of s": [('gs = gout * 0.5 * (1 / s - e * e / (s * s)) - gk * pp / (s * s)', 'gs = gout * 0.5 * (1 / s - e * e / (s * s))')],
        "chain of the logs": [('return gz, ga, gq * q, gr * r, gm', 'return gz, ga, gq, gr * r, gm')],
    }),
    "prototypes of arrays": (NUMPY, PROTO, {
        "not divided by members": [('des[members] = dprotos[k] / members.sum()', 'des[members] = dprotos[k]')],
        "sign of protos": [('dprotos = -ddiff.sum(0)', 'dprotos = ddiff.sum(0)')],
        "two, mean and two": [('dlogits *= g / 5', 'dlogits *= g'), ('ddiff = 2 * diff * dd[:, :, None]', 'ddiff = diff * dd[:, :, None]')],
    }),
    "tree of cells": (EITHER, TREE, {
        "children swapped": [('gn[LEFT[i]] = gn[LEFT[i]] + gboth[:D]', 'gn[LEFT[i]] = gn[LEFT[i]] + gboth[D:]')],
        "child overwritten": [('gn[i] = gn[i] + g[i - 3] * score', 'gn[i] = g[i - 3] * score')],
    }),
    "patches": (EITHER, VIT, {
        "patches not undone": [('gimg = gpatches.reshape(B, H // 2, W // 2, 2, 2).permute(0, 1, 3, 2, 4).reshape(B, H, W)', 'gimg = gpatches.reshape(B, H, W)')],
        "mean of pool": [('/ xhat.shape[1]\n', '/ xhat.shape[2]\n')],
    }),
    "windows of arrays": (NUMPY, IM2COL, {
        "layout not undone": [('da = dout.transpose(0, 2, 3, 1).reshape(-1, len(w))', 'da = dout.reshape(-1, len(w))')],
        "col2im assigns": [('stride * ow:stride] += cols[:, :, i, j]', 'stride * ow:stride] = cols[:, :, i, j]')],
    }),
    "pooled net of arrays": (NUMPY, POOLNET, {
        "two, transposed back, prelu mask": [('.reshape(n, c, h // 2, wd // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)', '.reshape(x.shape)'), ('db = dlogits.sum(0)', 'db = dlogits.sum()')],
        "slope by pooled": [('dslope = np.where(x > 0, 0, dact * x)', 'dslope = np.where(x > 0, 0, dact * act)')],
    }),
    "memory in hops": (EITHER, MEMNET, {
        "not reversed": [('in reversed(ctx.saved):', 'in ctx.saved:')],
        "keys path of the query": [('du = dpre @ hop_w.t() + dscores @ keys', 'du = dpre @ hop_w.t()')],
    }),
    "ordered levels": (EITHER, ORDINAL, {
        "first cut only": [('dfirst = dcuts.sum().reshape(1)', 'dfirst = dcuts[:1]')],
        "cumsum forward": [('dsteps = dcuts[1:].flip(0).cumsum(0).flip(0)', 'dsteps = dcuts[1:].cumsum(0)')],
    }),
    "layers of arrays": (NUMPY, MODULAR, {
        "decay lost": [('lin1.dW + 0.1 * g * W1', 'lin1.dW')],
        "two, decay and bias": [('lin1.dW + 0.1 * g * W1', 'lin1.dW'), ('self.db = g.sum(axis=0)', 'self.db = g.mean(axis=0)')],
        "elu slope": [('g * (self.y + 1))', 'g * self.y)')],
    }),
    "factors of arrays": (NUMPY, MF, {
        "not clipped": [('derr = g * np.clip(err, -1.0, 1.0) / len(err)', 'derr = g * err / len(err)')],
        "own factors": [('dQ[i] += derr[n] * pu[n]', 'dQ[i] += derr[n] * qi[n]')],
    }),
    "response norm": (EITHER, LRN, {
        "window not spread": [('dsq = dwin[:, :-2] + dwin[:, 1:-1] + dwin[:, 2:]', 'dsq = dwin[:, 1:-1]')],
        "third forgotten": [('dalpha = (dden * win / 3).sum()', 'dalpha = (dden * win).sum()')],
    }),
}  # fmt: skip
