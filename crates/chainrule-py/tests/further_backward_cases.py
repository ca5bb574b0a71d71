"""Further backward passes and their mistakes, and right but unusual ones: see `backward_cases`."""

from backward_cases import EITHER, NUMPY, pair

ADDITIVE = """
class Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, q, wx, wq, v):
        pre = x @ wx + (q @ wq)[:, None]
        h = torch.tanh(pre)
        e = (h * v).sum(2)
        a = torch.softmax(e, 1)
        ctx.save_for_backward(x, q, wx, wq, v, h, a)
        return (a[:, :, None] * x).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, q, wx, wq, v, h, a = ctx.saved_tensors
        da = (g[:, None] * x).sum(2)
        de = a * (da - (a * da).sum(1, keepdim=True))
        dh = de[:, :, None] * v
        dv = (de[:, :, None] * h).sum((0, 1))
        dpre = dh * (1 - h * h)
        dq_in = dpre.sum(1)
        dwq = q.T @ dq_in
        dq = dq_in @ wq.T
        dwx = torch.einsum("ntd,nth->dh", x, dpre)
        dx = a[:, :, None] * g[:, None] + dpre @ wx.T
        return dx, dq, dwx, dwq, dv

inputs = [torch.randn(3, 4, 4), torch.randn(3, 4), torch.randn(4, 4), torch.randn(4, 4), torch.randn(4)]
"""
DICE = """
def dice(x, y):
    p = torch.sigmoid(x)
    both = (p * y).sum(1)
    total = p.sum(1) + y.sum(1)
    return (1 - (2 * both + 1) / (total + 1)).mean()

def dice_backward(g, x, y):
    p = torch.sigmoid(x)
    both = (p * y).sum(1, keepdim=True)
    total = p.sum(1, keepdim=True) + y.sum(1, keepdim=True)
    top, low = 2 * both + 1, total + 1
    rows = x.shape[0]
    dtop = -g / low / rows
    dlow = g * top / low ** 2 / rows
    dp = 2 * dtop * y + dlow
    dx = dp * p * (1 - p)
    dy = 2 * dtop * p + dlow
    return dx, dy

inputs = [torch.randn(4, 6), torch.rand(4, 6)]
"""
VAE = """
def elbo(x, we, wm, ws, wd):
    h = torch.tanh(x @ we)
    mu, logvar = h @ wm, h @ ws
    noise = torch.cos(torch.arange(12).reshape(4, 3).to(x.dtype))
    z = mu + noise * torch.exp(0.5 * logvar)
    r = z @ wd
    kl = 0.5 * (mu * mu + torch.exp(logvar) - 1 - logvar).sum(1)
    return (((r - x) ** 2).sum(1) + kl).mean()

def elbo_backward(g, x, we, wm, ws, wd):
    n = x.shape[0]
    h = torch.tanh(x @ we)
    mu, logvar = h @ wm, h @ ws
    noise = torch.cos(torch.arange(12).reshape(4, 3).to(x.dtype))
    std = torch.exp(0.5 * logvar)
    z = mu + noise * std
    r = z @ wd
    dr = 2 * (r - x) * g / n
    dwd = z.T @ dr
    dz = dr @ wd.T
    dmu = dz + mu * g / n
    dlogvar = 0.5 * dz * noise * std + 0.5 * (std * std - 1) * g / n
    dwm = h.T @ dmu
    dws = h.T @ dlogvar
    dh = dmu @ wm.T + dlogvar @ ws.T
    da = dh * (1 - h * h)
    dwe = x.T @ da
    dx = da @ we.T - dr
    return dx, dwe, dwm, dws, dwd

inputs = [torch.randn(4, 3), torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 3)]
"""
GRAPH = """
class Graph(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a, w1, w2):
        deg = a.sum(1, keepdim=True)
        p = a / deg
        h = p @ x @ w1
        r = torch.relu(h)
        y = p @ r @ w2
        ctx.save_for_backward(x, a, w1, w2, deg, p, h, r)
        return y

    @staticmethod
    def backward(ctx, g):
        x, a, w1, w2, deg, p, h, r = ctx.saved_tensors
        pr = p @ r
        dw2 = pr.T @ g
        dpr = g @ w2.T
        dr = p.T @ dpr
        dp = dpr @ r.T
        dh = dr * (h > 0).to(g.dtype)
        px = p @ x
        dw1 = px.T @ dh
        dpx = dh @ w1.T
        dx = p.T @ dpx
        dp = dp + dpx @ x.T
        ddeg = -(dp * p).sum(1, keepdim=True) / deg
        da = dp / deg + ddeg
        return dx, da, dw1, dw2

inputs = [torch.randn(4, 4), torch.rand(4, 4) + 0.2, torch.randn(4, 4), torch.randn(4, 4)]
"""
FORWARD_SUM = """
def crf(em, tr):
    alpha = em[0]
    for t in range(1, em.shape[0]):
        alpha = torch.logsumexp(alpha[:, None] + tr, 0) + em[t]
    return torch.logsumexp(alpha, 0)

def crf_backward(g, em, tr):
    alphas = [em[0]]
    for t in range(1, em.shape[0]):
        alphas.append(torch.logsumexp(alphas[-1][:, None] + tr, 0) + em[t])
    dem, dtr = torch.zeros_like(em), torch.zeros_like(tr)
    dalpha = g * torch.softmax(alphas[-1], 0)
    for t in reversed(range(1, em.shape[0])):
        dem[t] = dalpha
        p = torch.softmax(alphas[t - 1][:, None] + tr, 0)
        dscore = p * dalpha
        dtr += dscore
        dalpha = dscore.sum(1)
    dem[0] = dalpha
    return dem, dtr

inputs = [torch.randn(4, 3), torch.randn(3, 3)]
"""
BARLOW = """
def barlow(a, b):
    n, d = a.shape
    ca, cb = a - a.mean(0), b - b.mean(0)
    sa, sb = ((ca * ca).mean(0) + 1e-4).sqrt(), ((cb * cb).mean(0) + 1e-4).sqrt()
    za, zb = ca / sa, cb / sb
    c = za.T @ zb / n
    off = 1 - torch.eye(d).to(a.dtype)
    return ((1 - c.diagonal()) ** 2).sum() + 0.05 * ((c * off) ** 2).sum()

def barlow_backward(g, a, b):
    n, d = a.shape
    ca, cb = a - a.mean(0), b - b.mean(0)
    sa, sb = ((ca * ca).mean(0) + 1e-4).sqrt(), ((cb * cb).mean(0) + 1e-4).sqrt()
    za, zb = ca / sa, cb / sb
    c = za.T @ zb / n
    eye = torch.eye(d).to(a.dtype)
    dc = g * (2 * (c - 1) * eye + 0.1 * c * (1 - eye))
    dza = zb @ dc.T / n
    dzb = za @ dc / n
    dca = (dza - za * (dza * za).mean(0)) / sa
    dcb = (dzb - zb * (dzb * zb).mean(0)) / sb
    da = dca - dca.mean(0)
    db = dcb - dcb.mean(0)
    return da, db

inputs = [torch.randn(6, 3), torch.randn(6, 3)]
"""
FACTORS = """
def machine(x, w, v, b):
    s = x @ v
    s2 = (x * x) @ (v * v)
    return b + x @ w + 0.5 * (s * s - s2).sum(1)

def machine_backward(g, x, w, v, b):
    s = x @ v
    db = g.sum()
    dw = x.T @ g
    ds = g[:, None] * s
    ds2 = -0.5 * g[:, None] * torch.ones_like(s)
    dv = x.T @ ds + 2 * v * ((x * x).T @ ds2)
    dx = g[:, None] * w + ds @ v.T + 2 * x * (ds2 @ (v * v).T)
    return dx, dw, dv, db

inputs = [torch.randn(5, 4), torch.randn(4), torch.randn(4, 3), torch.tensor(0.3)]
"""
DELTA_RULE = """
class DeltaRule(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, beta):
        s = torch.zeros(k.shape[1], v.shape[1]).to(k.dtype)
        states, errors, out = [s], [], []
        for t in range(k.shape[0]):
            e = v[t] - k[t] @ s
            s = s + beta[t] * k[t][:, None] * e
            out.append(q[t] @ s)
            states.append(s)
            errors.append(e)
        ctx.save_for_backward(q, k, v, beta, torch.stack(states), torch.stack(errors))
        return torch.stack(out)

    @staticmethod
    def backward(ctx, g):
        q, k, v, beta, states, errors = ctx.saved_tensors
        dq, dk, dv, dbeta = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v), torch.zeros_like(beta)
        ds = torch.zeros_like(states[0])
        for t in reversed(range(k.shape[0])):
            dq[t] = states[t + 1] @ g[t]
            ds = ds + q[t][:, None] * g[t]
            dbeta[t] = (ds * k[t][:, None] * errors[t]).sum()
            de = beta[t] * (k[t] @ ds)
            dk[t] = beta[t] * (ds @ errors[t]) - states[t] @ de
            dv[t] = de
            ds = ds - k[t][:, None] * de
        return dq, dk, dv, dbeta

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3), torch.rand(4)]
"""
SPATIAL = """
class Instance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, slope):
        mean = x.mean((2, 3), keepdim=True)
        c = x - mean
        inv = 1 / ((c * c).mean((2, 3), keepdim=True) + 1e-3).sqrt()
        hat = c * inv
        z = hat * w[:, None, None] + b[:, None, None]
        ctx.save_for_backward(hat, inv, w, slope, z)
        return torch.where(z > 0, z, slope[:, None, None] * z)

    @staticmethod
    def backward(ctx, g):
        hat, inv, w, slope, z = ctx.saved_tensors
        on = (z > 0).to(g.dtype)
        dslope = (g * (1 - on) * z).sum((0, 2, 3))
        dz = g * (on + (1 - on) * slope[:, None, None])
        dw = (dz * hat).sum((0, 2, 3))
        db = dz.sum((0, 2, 3))
        dhat = dz * w[:, None, None]
        dx = inv * (dhat - dhat.mean((2, 3), keepdim=True) - hat * (dhat * hat).mean((2, 3), keepdim=True))
        return dx, dw, db, dslope

inputs = [torch.randn(2, 3, 3, 3), torch.rand(3) + 0.5, torch.randn(3), torch.rand(3)]
"""
NUMPY_RIDGE = """
import numpy as np

def ridge(w, b, x, y):
    r = x @ w + b - y
    p = np.sqrt(r ** 2 + 0.25)
    return p.mean() + 0.1 * (w ** 2).sum()

def ridge_backward(g, w, b, x, y):
    n = x.shape[0]
    r = x @ w + b - y
    p = np.sqrt(r ** 2 + 0.25)
    dr = g * r / p / n
    dw = x.T @ dr + 0.2 * g * w
    db = dr.sum()
    dx = np.outer(dr, w)
    dy = -dr
    return dw, db, dx, dy

r = np.random.default_rng(8)
inputs = [r.standard_normal(3), np.array(0.4), r.standard_normal((5, 3)), r.standard_normal(5)]
"""
TRANSPOSED = """
def upsampled(x, w, b):
    c, n = x.shape
    k = w.shape[2]
    y = torch.zeros(w.shape[1], 2 * (n - 1) + k).to(x.dtype)
    for i in range(n):
        y[:, 2 * i:2 * i + k] += torch.einsum("c,cok->ok", x[:, i], w)
    return y + b[:, None]

def upsampled_backward(g, x, w, b):
    k = w.shape[2]
    dx, dw = torch.zeros_like(x), torch.zeros_like(w)
    for i in range(x.shape[1]):
        window = g[:, 2 * i:2 * i + k]
        dx[:, i] = torch.einsum("ok,cok->c", window, w)
        dw += x[:, i][:, None, None] * window
    db = g.sum(1)
    return dx, dw, db

inputs = [torch.randn(3, 4), torch.randn(3, 3, 3), torch.randn(3)]
"""
PLAIN_SPRING = """
import math

def swing(x, v, k, c):
    for _ in range(3):
        a = -k * math.sin(x) - c * v
        v = v + 0.1 * a
        x = x + 0.1 * v
    return 0.5 * v * v + k * (1 - math.cos(x))

def swing_backward(g, x, v, k, c):
    xs, vs = [x], [v]
    for _ in range(3):
        a = -k * math.sin(xs[-1]) - c * vs[-1]
        vs.append(vs[-1] + 0.1 * a)
        xs.append(xs[-1] + 0.1 * vs[-1])
    dv = g * vs[3]
    dx = g * k * math.sin(xs[3])
    dk = g * (1 - math.cos(xs[3]))
    dc = 0.0
    for t in (2, 1, 0):
        dv = dv + 0.1 * dx
        da = 0.1 * dv
        dk = dk - da * math.sin(xs[t])
        dc = dc - da * vs[t]
        dx = dx - da * k * math.cos(xs[t])
        dv = dv - da * c
    return dx, dv, dk, dc

inputs = [0.8, -0.3, 1.7, 0.4]
"""

FURTHER = {
    "additive attention": (EITHER, ADDITIVE, {
        "scores' slope from the output": [("de = a * (da - (a * da).sum(1, keepdim=True))", "de = a * (da - da.sum(1, keepdim=True))")],
        "query's rows averaged": [("dq_in = dpre.sum(1)", "dq_in = dpre.mean(1)")],
        "values' path forgotten": [("dx = a[:, :, None] * g[:, None] + dpre @ wx.T", "dx = dpre @ wx.T")],
        "before the tanh": [("dwx = torch.einsum(\"ntd,nth->dh\", x, dpre)", "dwx = torch.einsum(\"ntd,nth->dh\", x, dh)")],
        "weights of the query for those of the keys": [("dq = dq_in @ wq.T", "dq = dq_in @ wx.T")],
    }),
    "dice loss": (EITHER, DICE, {
        "denominator not squared": [("dlow = g * top / low ** 2 / rows", "dlow = g * top / low / rows")],
        "denominator a constant": [("dp = 2 * dtop * y + dlow", "dp = 2 * dtop * y")],
        "intersection counted once": [("dp = 2 * dtop * y + dlow", "dp = dtop * y + dlow")],
        "sigmoid's slope of the logits": [("dx = dp * p * (1 - p)", "dx = dp * x * (1 - x)")],
    }),
    "variational autoencoder": (EITHER, VAE, {
        "half of the exponent forgotten": [("0.5 * dz * noise * std", "dz * noise * std")],
        "noise forgotten": [("0.5 * dz * noise * std", "0.5 * dz * std")],
        "divergence of the deviation": [("0.5 * (std * std - 1) * g / n", "0.5 * (std - 1) * g / n")],
        "divergence of the mean left out": [("dmu = dz + mu * g / n", "dmu = dz")],
        "target's path forgotten": [("dx = da @ we.T - dr", "dx = da @ we.T")],
        "mean for the code": [("dwd = z.T @ dr", "dwd = mu.T @ dr")],
    }),
    "graph network": (EITHER, GRAPH, {
        "neighbours not turned": [("dx = p.T @ dpx", "dx = p @ dpx")],
        "features not passed on": [("dw1 = px.T @ dh", "dw1 = x.T @ dh")],
        "second use of the edges overwrites": [("dp = dp + dpx @ x.T", "dp = dpx @ x.T")],
        "degrees constant": [("da = dp / deg + ddeg", "da = dp / deg")],
        "rectifier of the passed on": [("dr * (h > 0)", "dr * (dr > 0)")],
    }),
    "forward sums of a chain": (EITHER, FORWARD_SUM, {
        "columns for rows": [("dalpha = dscore.sum(1)", "dalpha = dscore.sum(0)")],
        "next sums": [("p = torch.softmax(alphas[t - 1][:, None] + tr, 0)", "p = torch.softmax(alphas[t][:, None] + tr, 0)")],
        "normed over the next": [("p = torch.softmax(alphas[t - 1][:, None] + tr, 0)", "p = torch.softmax(alphas[t - 1][:, None] + tr, 1)")],
        "transitions overwritten": [("dtr += dscore", "dtr = dscore")],
    }),
    "barlow twins": (EITHER, BARLOW, {
        "not along itself": [("dca = (dza - za * (dza * za).mean(0)) / sa", "dca = (dza - (dza * za).mean(0)) / sa")],
        "correlation not turned": [("dza = zb @ dc.T / n", "dza = zb @ dc / n")],
        "other view's deviation": [("(dza * za).mean(0)) / sa", "(dza * za).mean(0)) / sb")],
        "square's factor": [("2 * (c - 1) * eye", "(c - 1) * eye")],
        "scale by the sum": [("dcb = (dzb - zb * (dzb * zb).mean(0)) / sb", "dcb = (dzb - zb * (dzb * zb).sum(0)) / sb")],
    }),
    "factorisation machine": (EITHER, FACTORS, {
        "square's rule forgotten": [("2 * v * ((x * x).T @ ds2)", "v * ((x * x).T @ ds2)")],
        "linear part forgotten": [("dx = g[:, None] * w + ds @ v.T", "dx = ds @ v.T")],
        "sign of the squares": [("ds2 = -0.5 * g[:, None]", "ds2 = 0.5 * g[:, None]")],
        "factors not squared": [("(ds2 @ (v * v).T)", "(ds2 @ v.T)")],
    }),
    "delta rule": (EITHER, DELTA_RULE, {
        "correction's path forgotten": [("            ds = ds - k[t][:, None] * de\n", "            ds = ds\n")],
        "state after the step": [("- states[t] @ de", "- states[t + 1] @ de")],
        "rate forgotten": [("de = beta[t] * (k[t] @ ds)", "de = k[t] @ ds")],
        "values for errors": [("(ds @ errors[t])", "(ds @ v[t])")],
        "output of the old state": [("dq[t] = states[t + 1] @ g[t]", "dq[t] = states[t] @ g[t]")],
    }),
    "instance norm and a learned slope": (EITHER, SPATIAL, {
        "slope over all elements": [("dslope = (g * (1 - on) * z)", "dslope = (g * z)")],
        "slope not applied": [("dz = g * (on + (1 - on) * slope[:, None, None])", "dz = g * on")],
        "normed over one side": [("(dhat * hat).mean((2, 3), keepdim=True))", "(dhat * hat).mean(3, keepdim=True))")],
        "gradient before the gain": [("dhat.mean((2, 3), keepdim=True) - hat", "dz.mean((2, 3), keepdim=True) - hat")],
    }),
    "ridge of arrays": (NUMPY, NUMPY_RIDGE, {
        "penalty halved": [("0.2 * g * w", "0.1 * g * w")],
        "root forgotten": [("dr = g * r / p / n", "dr = g * r / n")],
        "mean forgotten": [("dr = g * r / p / n", "dr = g * r / p")],
        "sign of the targets": [("dy = -dr", "dy = dr")],
    }),
    "transposed convolution": (EITHER, TRANSPOSED, {
        "stride forgotten": [("window = g[:, 2 * i:2 * i + k]", "window = g[:, i:i + k]")],
        "assigned": [("dw += x[:, i][:, None, None] * window", "dw = x[:, i][:, None, None] * window")],
        "kernel's ends swapped": [("torch.einsum(\"ok,cok->c\", window, w)", "torch.einsum(\"ok,ock->c\", window, w)")],
    }),
    "swing of floats": (NUMPY, PLAIN_SPRING, {
        "sine for cosine": [("da * k * math.cos(xs[t])", "da * k * math.sin(xs[t])")],
        "positions after the step": [("dk = dk - da * math.sin(xs[t])", "dk = dk - da * math.sin(xs[t + 1])")],
        "friction's path": [("        dv = dv - da * c\n", "        dv = dv - da\n")],
    }),
}  # fmt: skip

# Right ones, in forms that no book has.
UNUSUAL = {
    "softplus by exponentials": pair("x", "return torch.nn.functional.softplus(x)", "e = torch.exp(-x.abs())\nreturn g * torch.where(x >= 0, 1 / (1 + e), e / (1 + e))", "3 * torch.randn(4, 3)"),
    "sigmoid by a tanh": pair("x", "return torch.sigmoid(x)", "t = torch.tanh(x / 2)\nreturn g * (1 - t * t) / 4", "torch.randn(4, 3)"),
    "product of three, each by the others": pair("a, b, c", "return a * b * c", "p = g * a * b * c\nreturn p / a, p / b, p / c", "torch.rand(4, 3) + 0.5, torch.rand(4, 3) + 0.5, torch.rand(4, 3) + 0.5"),
    "matrix product by outer products": pair("a, b", "return a @ b", "da, db = torch.zeros_like(a), torch.zeros_like(b)\nfor i in range(a.shape[1]):\n    da[:, i] = (g * b[i]).sum(1)\n    db[i] = (g * a[:, i:i + 1]).sum(0)\nreturn da, db", "torch.randn(3, 4), torch.randn(4, 2)"),
    "batch norm by its matrix": pair(
        "x", "m = x.mean(0)\nreturn (x - m) / ((x - m) ** 2).mean(0).sqrt()",
        "n = x.shape[0]\nc = x - x.mean(0)\ns = (c * c).mean(0).sqrt()\nh = c / s\nj = torch.eye(n).to(g.dtype)[:, :, None] - (1 + h[:, None] * h[None]) / n\nreturn torch.einsum(\"ijc,jc->ic\", j, g) / s", "torch.randn(5, 3)",
    ),
    "cross entropy by log softmax": pair("x", "return torch.nn.functional.cross_entropy(x, torch.tensor([0, 2, 1, 1]))", "lp = torch.log_softmax(x, 1)\nhot = torch.nn.functional.one_hot(torch.tensor([0, 2, 1, 1]), 3).to(g.dtype)\nreturn g * (lp.exp() - hot) / hot.sum()", "torch.randn(4, 3)"),
    "norm at its length": pair("x", "return (x * x).sum(1).sqrt()", "return g[:, None] * x * (x * x).sum(1, keepdim=True).rsqrt()", "torch.randn(4, 3)"),
    "mean by a product with ones": pair("x", "return x.mean(0)", "return torch.ones(x.shape[0], 1).to(g.dtype) @ g[None] / x.shape[0]", "torch.randn(5, 3)"),
    "variance by pairs": pair("x", "return x.var(0)", "n = x.shape[0]\nd = (x[:, None] - x[None]).sum(1) / n\nreturn 2 * g * d / (n - 1)", "torch.randn(5, 3)"),
    "leaky rectifier by sizes": pair("x", "return torch.where(x > 0, x, 0.1 * x)", "return g * (0.55 + 0.45 * torch.sign(x))", "torch.randn(4, 3)"),
    "masked mean": pair("x, m", "k = (m > 0).to(x.dtype)\nreturn (x * k).sum(1) / k.sum(1)", "k = (m > 0).to(x.dtype)\nreturn g[:, None] * k / k.sum(1, keepdim=True), torch.zeros_like(m)", "torch.randn(4, 5), torch.tensor([[1.0, 1, -1, 1, -1], [1, -1, -1, 1, 1], [1, 1, 1, 1, 1], [-1, -1, -1, -1, 1]])"),
    "triangular solve": pair("a, b", "l = a.tril() + 3 * torch.eye(3).to(a.dtype)\nreturn torch.linalg.inv(l) @ b", "l = a.tril() + 3 * torch.eye(3).to(a.dtype)\ni = torch.linalg.inv(l)\ndb = i.T @ g\nreturn (-db @ (i @ b).T).tril(), db", "torch.randn(3, 3), torch.randn(3, 2)"),
    "cosine by normed rows": pair(
        "a, b", "return (a * b).sum(1) / ((a * a).sum(1) * (b * b).sum(1)).sqrt()",
        "na, nb = (a * a).sum(1, keepdim=True).sqrt(), (b * b).sum(1, keepdim=True).sqrt()\nu, v = a / na, b / nb\nc = (u * v).sum(1, keepdim=True)\nreturn g[:, None] * (v - c * u) / na, g[:, None] * (u - c * v) / nb", "torch.randn(4, 3), torch.randn(4, 3)",
    ),
    "swish through its value": pair("x", "return x * torch.sigmoid(x)", "s = torch.sigmoid(x)\ny = x * s\nreturn g * (y + s * (1 - y))", "torch.randn(4, 3)"),
    "attention in blocks of keys": pair(
        "q, k, v", "return torch.softmax(q @ k.T, 1) @ v",
        "l = torch.logsumexp(q @ k.T, 1, keepdim=True)\no = torch.softmax(q @ k.T, 1) @ v\nd = (g * o).sum(1, keepdim=True)\ndq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)\nfor i in (0, 2):\n    p = (q @ k[i:i + 2].T - l).exp()\n    dv[i:i + 2] = p.T @ g\n    ds = p * (g @ v[i:i + 2].T - d)\n    dq = dq + ds @ k[i:i + 2]\n    dk[i:i + 2] = ds.T @ q\nreturn dq, dk, dv",
        "torch.randn(3, 4), torch.randn(4, 4), torch.randn(4, 4)",
    ),
    "row norm in float32": pair("x, w", "return x * (x * x).mean(1, keepdim=True).rsqrt() * w", "y, u, h = x.to(torch.float32), w.to(torch.float32), g.to(torch.float32)\nr = (y * y).mean(1, keepdim=True).rsqrt()\nd = h * u\nreturn (r * (d - y * r * r * (d * y).mean(1, keepdim=True))).to(g.dtype), (h * y * r).sum(0).to(g.dtype)", "torch.randn(4, 3), torch.randn(3)"),
    "sorted sums": pair("x", "return x.sort(1).values[:, -2:].sum(1)", "at = x.argsort(1)[:, -2:]\nreturn torch.zeros_like(x).scatter(1, at, g[:, None].expand(len(x), 2))", "torch.randn(4, 5)"),
    "square root at a floor": pair("x", "return (x * x).clamp(min=0.25).sqrt()", "return g * torch.where(x.abs() > 0.5, torch.sign(x), torch.zeros_like(x))", "torch.randn(4, 3)"),
    "a loss that is halved twice": pair("x, y", "return ((x - y) ** 2).sum() / 2", "d = (x - y) * g\nreturn d, -d", "torch.randn(4, 3), torch.randn(4, 3)"),
    "exponential family by its mean": pair("x, w", "z = x @ w\nreturn (torch.exp(z) - z).mean()", "m = torch.exp(x @ w)\nr = g * (m - 1) / len(m)\nreturn torch.outer(r, w), r @ x", "torch.randn(5, 3) * 0.5, torch.randn(3)"),
}  # fmt: skip
