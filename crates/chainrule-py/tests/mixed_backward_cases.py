"""Backward passes of heads, samplers, scans and losses, and lines of theirs as people get them
wrong; see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY, pair
ALIBI = """
def slopes(heads):
    return [2.0 ** -(i + 1) for i in range(heads)]

class AlibiHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tokens, wqkv, wout):
        n, width = tokens.shape
        qkv = (tokens @ wqkv).reshape(n, 3, 2, 3)
        q, k, v = qkv[:, 0], qkv[:, 1], qkv[:, 2]
        dist = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        mixed, probs = [], []
        for h, m in enumerate(slopes(2)):
            score = q[:, h] @ k[:, h].T / 3 ** 0.5 + m * dist
            score = score.masked_fill(dist > 0, float("-inf"))
            prob = torch.softmax(score, 1)
            probs.append(prob)
            mixed.append(prob @ v[:, h])
        cat = torch.cat(mixed, 1)
        ctx.save_for_backward(tokens, wqkv, wout, cat, torch.stack(probs), q, k, v)
        return cat @ wout

    @staticmethod
    def backward(ctx, up):
        tokens, wqkv, wout, cat, probs, q, k, v = ctx.saved_tensors
        n = tokens.shape[0]
        g_wout = cat.T @ up
        g_cat = up @ wout.T
        gq, gk, gv = [], [], []
        for h in range(2):
            go = g_cat[:, 3 * h:3 * h + 3]
            gv.append(probs[h].T @ go)
            gp = go @ v[:, h].T
            gs = probs[h] * (gp - (gp * probs[h]).sum(1, keepdim=True))
            gs = gs / 3 ** 0.5
            gq.append(gs @ k[:, h])
            gk.append(gs.T @ q[:, h])
        g_qkv = torch.stack([torch.stack(gq, 1), torch.stack(gk, 1), torch.stack(gv, 1)], 1).reshape(n, 18)
        return g_qkv @ wqkv.T, tokens.T @ g_qkv, g_wout

inputs = [torch.randn(4, 5), torch.randn(5, 18), torch.randn(6, 5)]
"""
LAYERSCALE = """
def sub(x, wa, wb):
    u = x @ wa
    return u, torch.relu(u) ** 2 @ wb

def run(x, wa, wb, gamma):
    ms = (x * x).mean(-1, keepdim=True) + 1e-6
    xn = x * ms ** -0.5
    return x + gamma * sub(xn, wa, wb)[1]

def run_backward(bar, x, wa, wb, gamma):
    ms = (x * x).mean(-1, keepdim=True) + 1e-6
    r = ms ** -0.5
    xn = x * r
    u, f = sub(xn, wa, wb)
    gamma_bar, f_bar = (bar * f).sum(0), bar * gamma
    wb_bar = (torch.relu(u) ** 2).T @ f_bar
    act_bar = f_bar @ wb.T
    u_bar = act_bar * 2 * torch.relu(u)
    wa_bar = xn.T @ u_bar
    xn_bar = u_bar @ wa.T
    r_bar = (xn_bar * x).sum(-1, keepdim=True)
    ms_bar = r_bar * -0.5 * ms ** -1.5
    x_bar = bar + xn_bar * r + 2 * x * ms_bar / x.shape[-1]
    return x_bar, wa_bar, wb_bar, gamma_bar

inputs = [torch.randn(4, 3), torch.randn(3, 5), torch.randn(5, 3), torch.rand(3) + 0.2]
"""
BILINEAR = """
class Sample(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, pts):
        px, py = pts[:, 0], pts[:, 1]
        x0, y0 = px.floor().long(), py.floor().long()
        fx, fy = px - x0, py - y0
        a, b, c, d = img[y0, x0], img[y0, x0 + 1], img[y0 + 1, x0], img[y0 + 1, x0 + 1]
        out = a * (1 - fx) * (1 - fy) + b * fx * (1 - fy) + c * (1 - fx) * fy + d * fx * fy
        ctx.save_for_backward(img, x0, y0, fx, fy)
        return out

    @staticmethod
    def backward(ctx, g):
        img, x0, y0, fx, fy = ctx.saved_tensors
        a, b, c, d = img[y0, x0], img[y0, x0 + 1], img[y0 + 1, x0], img[y0 + 1, x0 + 1]
        dimg = torch.zeros_like(img)
        dimg.index_put_((y0, x0), g * (1 - fx) * (1 - fy), accumulate=True)
        dimg.index_put_((y0, x0 + 1), g * fx * (1 - fy), accumulate=True)
        dimg.index_put_((y0 + 1, x0), g * (1 - fx) * fy, accumulate=True)
        dimg.index_put_((y0 + 1, x0 + 1), g * fx * fy, accumulate=True)
        dpx = g * ((b - a) * (1 - fy) + (d - c) * fy)
        dpy = g * ((c - a) * (1 - fx) + (d - b) * fx)
        return dimg, torch.stack([dpx, dpy], 1)

inputs = [torch.randn(4, 5), torch.rand(6, 2) * 2 + 0.4]
"""
SMOOTHED = """
LABELS = torch.tensor([0, 3, 2, 2, 1])
EPS = 0.1

def smooth_ce(feats, W, bias):
    scores = feats @ W + bias
    k = scores.shape[1]
    hot = torch.zeros_like(scores)
    hot[range(5), LABELS] = 1
    q = (1 - EPS) * hot + EPS / k
    logp = scores - torch.logsumexp(scores, 1, keepdim=True)
    return -(q * logp).sum(1).mean()

def smooth_ce_backward(g, feats, W, bias):
    scores = feats @ W + bias
    k = scores.shape[1]
    hot = torch.zeros_like(scores)
    hot[range(5), LABELS] = 1
    q = (1 - EPS) * hot + EPS / k
    p = torch.softmax(scores, 1)
    err = (p - q) * g / len(feats)
    gW, gb = feats.T @ err, err.sum(0)
    gfeats = err @ W.T
    return gfeats, gW, gb

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(4)]
"""
LINATT = """
def phi(x):
    return torch.where(x > 0, x + 1, torch.exp(torch.clamp(x, max=0.0)))

def dphi(x):
    return torch.where(x > 0, torch.ones_like(x), torch.exp(torch.clamp(x, max=0.0)))

def linear_attention(q, k, v):
    fq, fk = phi(q), phi(k)
    S = torch.zeros(2, 3).to(q.dtype)
    z = torch.zeros(2).to(q.dtype)
    rows = []
    for i in range(len(q)):
        S = S + fk[i][:, None] * v[i][None]
        z = z + fk[i]
        rows.append((fq[i] @ S) / (fq[i] @ z))
    return torch.stack(rows)

def linear_attention_backward(G, q, k, v):
    fq, fk = phi(q), phi(k)
    S, z = torch.zeros(2, 3).to(q.dtype), torch.zeros(2).to(q.dtype)
    Ss, zs = [], []
    for i in range(len(q)):
        S, z = S + fk[i][:, None] * v[i][None], z + fk[i]
        Ss.append(S); zs.append(z)
    gq, gk, gv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    gS, gz = torch.zeros_like(S), torch.zeros_like(z)
    for i in reversed(range(len(q))):
        den = fq[i] @ zs[i]
        num = fq[i] @ Ss[i]
        gnum = G[i] / den
        gden = -(G[i] * num).sum() / den ** 2
        gq[i] = (Ss[i] @ gnum + gden * zs[i]) * dphi(q[i])
        gS += fq[i][:, None] * gnum[None]
        gz += gden * fq[i]
        gk[i] = (gS @ v[i] + gz) * dphi(k[i])
        gv[i] = fk[i] @ gS
    return gq, gk, gv

inputs = [torch.randn(4, 2), torch.randn(4, 2), torch.randn(4, 3)]
"""
SINKHORN = """
def plan(cost, a):
    K = torch.exp(-cost / 0.7)
    b = torch.full((4,), 0.25).to(cost.dtype)
    u = a / (K @ b)
    v = b / (K.T @ u)
    return (u[:, None] * K * v[None] * cost).sum()

def plan_backward(g, cost, a):
    K = torch.exp(-cost / 0.7)
    b = torch.full((4,), 0.25).to(cost.dtype)
    kb = K @ b
    u = a / kb
    ku = K.T @ u
    v = b / ku
    P = u[:, None] * K * v[None]
    dP = g * cost
    dcost = g * P
    du = (dP * K * v[None]).sum(1)
    dv = (dP * u[:, None] * K).sum(0)
    dK = dP * u[:, None] * v[None]
    dku = -dv * b / ku ** 2
    du = du + K @ dku
    dK = dK + u[:, None] * dku[None]
    da = du / kb
    dkb = -du * a / kb ** 2
    dK = dK + dkb[:, None] * b[None]
    dcost = dcost - dK * K / 0.7
    return dcost, da

inputs = [torch.rand(3, 4), torch.rand(3) + 0.2]
"""
ARC = """
MARGIN, SCALE = 0.3, 4.0
TARGET = torch.tensor([1, 0, 2, 1])

class Arc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, emb, centre):
        en = emb.norm(dim=1, keepdim=True)
        cn = centre.norm(dim=1, keepdim=True)
        e, c = emb / en, centre / cn
        cos = e @ c.T
        hot = torch.nn.functional.one_hot(TARGET, 3).to(emb.dtype)
        logits = SCALE * (cos - MARGIN * hot)
        p = torch.softmax(logits, 1)
        ctx.save_for_backward(e, c, en, cn, p, hot)
        return -(p.log() * hot).sum() / 4

    @staticmethod
    def backward(ctx, grad_output):
        e, c, en, cn, p, hot = ctx.saved_tensors
        grad_logits = (p - hot) / 4 * grad_output
        grad_cos = SCALE * grad_logits
        grad_e = grad_cos @ c
        grad_c = grad_cos.T @ e
        grad_emb = (grad_e - e * (e * grad_e).sum(1, keepdim=True)) / en
        grad_centre = (grad_c - c * (c * grad_c).sum(1, keepdim=True)) / cn
        return grad_emb, grad_centre

inputs = [torch.randn(4, 3), torch.randn(3, 3)]
"""
GPNLL = """
def nll(x, y, raw):
    amp, length, noise = torch.exp(raw[0]), torch.exp(raw[1]), torch.exp(raw[2])
    d2 = (x[:, None] - x[None]) ** 2
    k = amp * torch.exp(-0.5 * d2 / length ** 2) + noise * torch.eye(4).to(x.dtype)
    inv = torch.linalg.inv(k)
    return 0.5 * y @ inv @ y + 0.5 * torch.log(torch.linalg.det(k))

def nll_backward(g, x, y, raw):
    amp, length, noise = torch.exp(raw[0]), torch.exp(raw[1]), torch.exp(raw[2])
    d2 = (x[:, None] - x[None]) ** 2
    e = torch.exp(-0.5 * d2 / length ** 2)
    k = amp * e + noise * torch.eye(4).to(x.dtype)
    inv = torch.linalg.inv(k)
    alpha = inv @ y
    dk = 0.5 * g * (inv - alpha[:, None] * alpha[None])
    dy = g * alpha
    damp = (dk * e).sum()
    dnoise = dk.diagonal().sum()
    de = dk * amp
    dlength = (de * e * d2).sum() / length ** 3
    dd2 = de * e * -0.5 / length ** 2
    diff = x[:, None] - x[None]
    dx = (2 * dd2 * diff).sum(1) - (2 * dd2 * diff).sum(0)
    draw = torch.stack([damp * amp, dlength * length, dnoise * noise])
    return dx, dy, draw

inputs = [torch.randn(4), torch.randn(4), torch.randn(3) * 0.3]
"""
TIMEMIX = """
class Mix:
    def __init__(self):
        self.saved = {}

    def fwd(self, x, mu, wk, wv, wr):
        prev = torch.cat([torch.zeros_like(x[:1]), x[:-1]], 0)
        xm = x * mu + prev * (1 - mu)
        k, r = xm @ wk, torch.sigmoid(xm @ wr)
        kk = torch.relu(k) ** 2
        self.saved = {"x": x, "prev": prev, "xm": xm, "k": k, "kk": kk, "r": r}
        return r * (kk @ wv)

    def bwd(self, dy, x, mu, wk, wv, wr):
        s = self.saved
        val = s["kk"] @ wv
        dr, dval = dy * val, dy * s["r"]
        dwv = s["kk"].T @ dval
        dkk = dval @ wv.T
        dk = dkk * 2 * torch.relu(s["k"])
        dz = dr * s["r"] * (1 - s["r"])
        dwk, dwr = s["xm"].T @ dk, s["xm"].T @ dz
        dxm = dk @ wk.T + dz @ wr.T
        dmu = (dxm * (s["x"] - s["prev"])).sum(0)
        dx = dxm * mu
        dx[:-1] += (dxm * (1 - mu))[1:]
        return dx, dmu, dwk, dwv, dwr

def mix(x, mu, wk, wv, wr):
    return Mix().fwd(x, mu, wk, wv, wr)

def mix_backward(g, x, mu, wk, wv, wr):
    m = Mix()
    m.fwd(x, mu, wk, wv, wr)
    return m.bwd(g, x, mu, wk, wv, wr)

inputs = [torch.randn(4, 3), torch.rand(3), torch.randn(3, 5), torch.randn(5, 3), torch.randn(3, 3)]
"""
NPRANK = """
import numpy as np

def logistic(t):
    return 1.0 / (1.0 + np.exp(-t))

def bpr(users, items, bias):
    pos = (users * items[[0, 2, 1]]).sum(1) + bias[[0, 2, 1]]
    neg = (users * items[[3, 3, 0]]).sum(1) + bias[[3, 3, 0]]
    reg = 0.05 * ((users ** 2).sum() + (items ** 2).sum())
    return -np.log(logistic(pos - neg)).mean() + reg

def bpr_backward(g, users, items, bias):
    i, j = np.array([0, 2, 1]), np.array([3, 3, 0])
    margin = (users * (items[i] - items[j])).sum(1) + bias[i] - bias[j]
    coef = -(1 - logistic(margin)) / len(users) * g
    du = coef[:, None] * (items[i] - items[j]) + 0.1 * g * users
    di = 0.1 * g * items
    np.add.at(di, i, coef[:, None] * users)
    np.add.at(di, j, -coef[:, None] * users)
    db = np.zeros_like(bias)
    np.add.at(db, i, coef)
    np.add.at(db, j, -coef)
    return du, di, db

inputs = [np.random.default_rng(0).standard_normal((3, 2)), np.random.default_rng(1).standard_normal((4, 2)), np.random.default_rng(2).standard_normal(4)]
"""
NPEULER = """
import numpy as np

def field(h, A, c):
    return np.tanh(h @ A + c)

def ode(h0, A, c):
    h = h0
    for _ in range(3):
        mid = h + 0.05 * field(h, A, c)
        h = h + 0.1 * field(mid, A, c)
    return (h ** 2).sum() / 2

def ode_backward(g, h0, A, c):
    path, mids = [h0], []
    for _ in range(3):
        h = path[-1]
        mid = h + 0.05 * field(h, A, c)
        mids.append(mid)
        path.append(h + 0.1 * field(mid, A, c))
    adj = g * path[-1]
    gA, gc = np.zeros_like(A), np.zeros_like(c)
    for step in range(2, -1, -1):
        h, mid = path[step], mids[step]
        s2 = 0.1 * adj * (1 - field(mid, A, c) ** 2)
        gA += mid.T @ s2; gc += s2.sum(0)
        gmid = s2 @ A.T
        s1 = 0.05 * gmid * (1 - field(h, A, c) ** 2)
        gA += h.T @ s1
        gc += s1.sum(0)
        adj = adj + gmid + s1 @ A.T
    return adj, gA, gc

inputs = [np.random.default_rng(3).standard_normal((4, 3)), np.random.default_rng(4).standard_normal((3, 3)), np.random.default_rng(5).standard_normal(3)]
"""
MIXED = {
    "heads with slopes": (EITHER, ALIBI, {
        "scale": [("            gs = gs / 3 ** 0.5\n", "            gs = gs / 3\n")],
        "no T": [("gk.append(gs.T @ q[:, h])", "gk.append(gs @ q[:, h])")],
        "wrong head": [("go = g_cat[:, 3 * h:3 * h + 3]", "go = g_cat[:, 2 * h:2 * h + 3]")],
        "axis": [("(gp * probs[h]).sum(1, keepdim=True)", "(gp * probs[h]).sum(0, keepdim=True)")],
        "order": [("torch.stack(gq, 1), torch.stack(gk, 1), torch.stack(gv, 1)", "torch.stack(gk, 1), torch.stack(gq, 1), torch.stack(gv, 1)")],
        "stack axis": [("torch.stack(gv, 1)], 1).reshape(n, 18)", "torch.stack(gv, 1)], 2).reshape(n, 18)")],
        "v for k": [("gq.append(gs @ k[:, h])", "gq.append(gs @ v[:, h])")],
    }),
    "layerscale": (EITHER, LAYERSCALE, {
        "norm path": [("x_bar = bar + xn_bar * r + 2 * x * ms_bar / x.shape[-1]", "x_bar = bar + xn_bar * r")],
        "residual": [("x_bar = bar + xn_bar * r + 2", "x_bar = xn_bar * r + 2")],
        "square": [("u_bar = act_bar * 2 * torch.relu(u)", "u_bar = act_bar * 2 * u")],
        "gamma": [("f_bar = (bar * f).sum(0), bar * gamma", "f_bar = (bar * f).sum(0), bar")],
        "xn": [("wa_bar = xn.T @ u_bar", "wa_bar = x.T @ u_bar")],
        "r": [("r_bar = (xn_bar * x)", "r_bar = (xn_bar * xn)")],
        "power": [("-0.5 * ms ** -1.5", "-0.5 * ms ** -0.5")],
        "two": [("/ x.shape[-1]", "/ x.shape[0]"), ("wb_bar = (torch.relu(u) ** 2).T", "wb_bar = torch.relu(u).T")],
    }),
    "bilinear": (EITHER, BILINEAR, {
        "weights swapped": [("(y0, x0 + 1), g * fx * (1 - fy)", "(y0, x0 + 1), g * (1 - fx) * fy")],
        "overwritten": [("dimg.index_put_((y0, x0), g * (1 - fx) * (1 - fy), accumulate=True)", "dimg[y0, x0] = g * (1 - fx) * (1 - fy)")],
        "corner": [("dpx = g * ((b - a) * (1 - fy) + (d - c) * fy)", "dpx = g * ((b - a) * (1 - fy) + (d - b) * fy)")],
        "sign": [("dpy = g * ((c - a)", "dpy = g * ((a - c)")],
        "xy": [("torch.stack([dpx, dpy], 1)", "torch.stack([dpy, dpx], 1)")],
    }),
    "smoothed labels": (EITHER, SMOOTHED, {
        "not smoothed": [("err = (p - q) *", "err = (p - hot) *")],
        "mean over classes": [("g / len(feats)", "g / k")],
        "no T": [("gfeats = err @ W.T", "gfeats = (W @ err.T).reshape(5, 3)")],
        "eps": [("q = (1 - EPS) * hot + EPS / k\n    p =", "q = (1 - EPS) * hot + EPS / (k - 1)\n    p =")],
        "softmax axis": [("p = torch.softmax(scores, 1)", "p = torch.softmax(scores, 0)")],
    }),
    "attention by features": (EITHER, LINATT, {
        "denominator": [("gden = -(G[i] * num).sum() / den ** 2", "gden = -(G[i] * num).sum() / den")],
        "suffix": [("        gS += fq[i][:, None] * gnum[None]\n", "        gS = fq[i][:, None] * gnum[None]\n")],
        "z forgotten": [("gk[i] = (gS @ v[i] + gz) * dphi(k[i])", "gk[i] = gS @ v[i] * dphi(k[i])")],
        "slope": [("* dphi(q[i])", "* dphi(k[i])")],
        "prev state": [("gq[i] = (Ss[i] @ gnum", "gq[i] = (Ss[i - 1] @ gnum")],
        "no feature": [("gz += gden * fq[i]", "gz += gden * q[i]")],
    }),
    "sinkhorn": (EITHER, SINKHORN, {
        "direct": [("dcost = g * P", "dcost = 0 * P")],
        "axis": [("dv = (dP * u[:, None] * K).sum(0)", "dv = (dP * v[None] * K).sum(0)")],
        "second path": [("    du = du + K @ dku\n", "")],
        "temperature": [("dcost = dcost - dK * K / 0.7", "dcost = dcost - dK * K")],
        "square": [("dkb = -du * a / kb ** 2", "dkb = -du * a / kb")],
        "outer": [("dkb[:, None] * b[None]", "dkb[:, None] * v[None]")],
    }),
    "angular margin": (EITHER, ARC, {
        "scale": [("grad_cos = SCALE * grad_logits", "grad_cos = grad_logits")],
        "projection": [("grad_emb = (grad_e - e * (e * grad_e).sum(1, keepdim=True)) / en", "grad_emb = grad_e / en")],
        "other projection": [("c * (c * grad_c).sum(1, keepdim=True)", "c * (e * grad_e).sum(1, keepdim=True)[:3]")],
        "norm": [("(c * grad_c).sum(1, keepdim=True)) / cn", "(c * grad_c).sum(1, keepdim=True)) * cn")],
        "batch": [("(p - hot) / 4 *", "(p - hot) / 3 *")],
    }),
    "gaussian process": (EITHER, GPNLL, {
        "half": [("dk = 0.5 * g * (inv - alpha", "dk = 0.5 * g * (0.5 * inv - alpha")],
        "sign": [("(inv - alpha[:, None] * alpha[None])", "(inv + alpha[:, None] * alpha[None])")],
        "log": [("damp * amp, dlength * length, dnoise * noise", "damp, dlength * length, dnoise * noise")],
        "one side": [("dx = (2 * dd2 * diff).sum(1) - (2 * dd2 * diff).sum(0)", "dx = (2 * dd2 * diff).sum(1)")],
        "trace": [("dnoise = dk.diagonal().sum()", "dnoise = dk.sum()")],
        "cube": [(".sum() / length ** 3", ".sum() / length ** 2")],
    }),
    "time mix": (EITHER, TIMEMIX, {
        "shift": [("dx[:-1] += (dxm * (1 - mu))[1:]", "dx[1:] += (dxm * (1 - mu))[:-1]")],
        "gate": [("dval = dy * val, dy * s[\"r\"]", "dval = dy * val, dy")],
        "mu": [("(dxm * (s[\"x\"] - s[\"prev\"])).sum(0)", "(dxm * s[\"x\"]).sum(0)")],
        "r path": [("dxm = dk @ wk.T + dz @ wr.T", "dxm = dk @ wk.T + dr @ wr.T")],
        "relu": [("dk = dkk * 2 * torch.relu(s[\"k\"])", "dk = dkk * 2 * s[\"kk\"]")],
    }),
    "ranked pairs of arrays": (NUMPY, NPRANK, {
        "regulariser": [("di = 0.1 * g * items", "di = 0.05 * g * items")],
        "logistic": [("-(1 - logistic(margin)) /", "-logistic(margin) /")],
        "overwritten": [("np.add.at(di, j, -coef[:, None] * users)", "di[j] -= coef[:, None] * users")],
        "sign": [("np.add.at(db, j, -coef)", "np.add.at(db, j, coef)")],
        "mean": [("/ len(users) * g", "* g")],
    }),
    "midpoint steps of arrays": (NUMPY, NPEULER, {
        "half step": [("s1 = 0.05 * gmid", "s1 = 0.1 * gmid")],
        "carry": [("adj = adj + gmid + s1 @ A.T", "adj = gmid + s1 @ A.T")],
        "slope at": [("s2 = 0.1 * adj * (1 - field(mid, A, c) ** 2)", "s2 = 0.1 * adj * (1 - field(h, A, c) ** 2)")],
        "T": [("gmid = s2 @ A.T", "gmid = s2 @ A")],
        "state": [("gA += mid.T @ s2;", "gA += h.T @ s2;")],
    }),
}
MIXED_RIGHT = {
    "silu by recompute": pair("x", "return x * torch.sigmoid(x)", "s = torch.sigmoid(x)\nreturn g * torch.addcmul(s, x * s, 1 - s)", "torch.randn(4, 3)"),
    "softmax xent fused": pair("z", "return (torch.logsumexp(z, 1) - z[:, 0]).mean()", "d = torch.softmax(z, 1)\nd[:, 0] -= 1\nreturn d * (g / z.shape[0])", "torch.randn(4, 3)"),
    "ln via einsum": pair("x, w", "m = x.mean(1, keepdim=True)\nc = x - m\nr = (c.square().mean(1, keepdim=True) + 1e-5).rsqrt()\nreturn c * r * w", "n = x.shape[1]\nm = x.mean(1, keepdim=True)\nc = x - m\nr = (c.square().mean(1, keepdim=True) + 1e-5).rsqrt()\nh = c * r\nu = g * w\nP = torch.eye(n).to(x.dtype) - 1 / n\nreturn (u @ P - h * (u * h).mean(1, keepdim=True)) * r, (g * h).sum(0)", "torch.randn(5, 4), torch.randn(4)"),
    "matmul by loops": pair("a, b", "return a @ b", "da = torch.zeros_like(a)\ndb = torch.zeros_like(b)\nfor i in range(a.shape[0]):\n    da[i] = b @ g[i]\n    db += a[i][:, None] * g[i][None]\nreturn da, db", "torch.randn(4, 3), torch.randn(3, 2)"),
    "scaled then unscaled": pair("x, w", "return torch.tanh(x @ w)", "s = 1024.0\nd = s * g * (1 - torch.tanh(x @ w) ** 2)\nreturn (d @ w.T) / s, (x.T @ d) / s", "torch.randn(4, 3), torch.randn(3, 2)"),
    "negative twice": pair("x", "return torch.cos(x)", "return -(g * x.sin())", "torch.randn(4, 3)"),
    "clamped log": pair("p", "return -torch.log(p.clamp(min=1e-7)).mean()", "return -g / p.clamp(min=1e-7) * (p > 1e-7).to(p.dtype) / p.numel()", "torch.rand(4, 3) + 0.1"),
    "norm via outer": pair("x", "return x / x.norm()", "n = x.norm()\nu = x / n\nreturn (g - u * (u @ g)) / n", "torch.randn(5)"),
    "embedding by one hot loop": pair("w", "return w[torch.tensor([2, 0, 2])].tanh()", "d = torch.zeros_like(w)\nt = w.tanh()\nfor r, i in enumerate([2, 0, 2]):\n    d[i] += g[r] * (1 - t[i] ** 2)\nreturn d", "torch.randn(3, 4)"),
    "max by equality": pair("x", "return x.amax(1)", "return g[:, None] * (x == x.amax(1, keepdim=True)).to(x.dtype)", "torch.randn(4, 5)"),
    "l1 kink": pair("x, y", "return (x - y).abs().mean()", "s = torch.where(x >= y, 1.0, -1.0).to(x.dtype) / x.numel() * g\nreturn s, -s", "torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 4.0])"),
    "gru step f32": pair("x, h", "z = torch.sigmoid(x + h)\nreturn z * h + (1 - z) * torch.tanh(x)", "x, h, g2 = x.float(), h.float(), g.float()\nz = torch.sigmoid(x + h)\nt = torch.tanh(x)\ndz = g2 * (h - t) * z * (1 - z)\nreturn (dz + g2 * (1 - z) * (1 - t * t)).to(g.dtype), (dz + g2 * z).to(g.dtype)", "torch.randn(4, 3), torch.randn(4, 3)"),
    "var n-1 via sums": pair("x", "return x.var(0)", "n = x.shape[0]\nreturn g * (x * n - x.sum(0)) * 2 / (n * (n - 1))", "torch.randn(5, 3)"),
    "conv as products": pair("x, k", "return sum(x[:, i:i + 4] * k[i] for i in range(3))", "dx = torch.zeros_like(x)\ndk = torch.zeros_like(k)\nfor i in range(3):\n    dx[:, i:i + 4] += g * k[i]\n    dk[i] = (g * x[:, i:i + 4]).sum()\nreturn dx, dk", "torch.randn(2, 6), torch.randn(3)"),
    "logcumsum": pair("x", "return torch.cumsum(x.exp(), 1).log()", "e = x.exp()\nc = torch.cumsum(e, 1)\nr = (g / c).flip(1).cumsum(1).flip(1)\nreturn e * r", "torch.randn(3, 4)"),
}
