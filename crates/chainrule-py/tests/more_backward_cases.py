"""More backward passes and their mistakes: see `backward_cases`."""

SINKS = """
def sinks(q, k, v, bias):
    s = q @ k.T * 0.5 + bias
    m = s.amax(1, keepdim=True)
    e = torch.exp(s - m)
    z = e.sum(1, keepdim=True) + torch.exp(-m)
    p = e / z
    return p @ v

def sinks_backward(do, q, k, v, bias):
    s = q @ k.T * 0.5 + bias
    m = s.amax(1, keepdim=True)
    e = torch.exp(s - m)
    z = e.sum(1, keepdim=True) + torch.exp(-m)
    p = e / z
    dp = do @ v.T
    dv = p.T @ do
    delta = (dp * p).sum(1, keepdim=True)
    ds = p * (dp - delta)
    dbias = ds.sum(0)
    dq = 0.5 * ds @ k
    dk = 0.5 * ds.T @ q
    return dq, dk, dv, dbias

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 2), torch.randn(4)]
"""
ROTARY = """
class Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, freq):
        t = torch.arange(x.shape[0]).to(x.dtype)[:, None]
        angle = t * freq
        c, s = torch.cos(angle), torch.sin(angle)
        a, b = x[:, 0::2], x[:, 1::2]
        ctx.save_for_backward(a, b, c, s, t)
        return torch.cat([a * c - b * s, a * s + b * c], 1)

    @staticmethod
    def backward(ctx, g):
        a, b, c, s, t = ctx.saved_tensors
        n = g.shape[1] // 2
        g1, g2 = g[:, :n], g[:, n:]
        da = g1 * c + g2 * s
        db = g2 * c - g1 * s
        dc = g1 * a + g2 * b
        ds = g2 * a - g1 * b
        dangle = ds * c - dc * s
        dfreq = (dangle * t).sum(0)
        dx = torch.stack([da, db], 2).reshape(g.shape)
        return dx, dfreq

inputs = [torch.randn(5, 4), torch.rand(2)]
"""
DEPTHWISE = """
class Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        k = w.shape[1]
        n = x.shape[1] - k + 1
        cols = torch.stack([x[:, i:i + n] for i in range(k)], 2)
        z = torch.einsum("cnk,ck->cn", cols, w) + b[:, None]
        y = torch.relu(z)
        ctx.save_for_backward(x, w, cols, z)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, cols, z = ctx.saved_tensors
        k, n = w.shape[1], dy.shape[1]
        dz = dy * (z > 0).to(dy.dtype)
        dw = torch.einsum("cn,cnk->ck", dz, cols)
        db = dz.sum(1)
        dcols = dz[:, :, None] * w[:, None]
        dx = torch.zeros_like(x)
        for i in range(k):
            dx[:, i:i + n] += dcols[:, :, i]
        return dx, dw, db

inputs = [torch.randn(3, 7), torch.randn(3, 3), torch.randn(3)]
"""
STRIDED = """
def strided(x, w):
    k = w.shape[0]
    n = (x.shape[0] - k) // 2 + 1
    return torch.stack([(x[2 * i:2 * i + k] * w).sum() for i in range(n)])

def strided_backward(g, x, w):
    k = w.shape[0]
    dx, dw = torch.zeros_like(x), torch.zeros_like(w)
    for i in range(g.shape[0]):
        dx[2 * i:2 * i + k] += g[i] * w
        dw += g[i] * x[2 * i:2 * i + k]
    return dx, dw

inputs = [torch.randn(9), torch.randn(3)]
"""
HIGHWAY = """
def highway(x, steps, w, u):
    h = x
    for t in range(steps.shape[0]):
        c = torch.tanh(h @ w + steps[t])
        g = torch.sigmoid(h @ u)
        h = g * c + (1 - g) * h
    return h

def highway_backward(dh, x, steps, w, u):
    hs, cs, gs = [x], [], []
    for t in range(steps.shape[0]):
        cs.append(torch.tanh(hs[-1] @ w + steps[t]))
        gs.append(torch.sigmoid(hs[-1] @ u))
        hs.append(gs[-1] * cs[-1] + (1 - gs[-1]) * hs[-1])
    dw, du, dsteps = torch.zeros_like(w), torch.zeros_like(u), torch.zeros_like(steps)
    for t in reversed(range(steps.shape[0])):
        h, c, g = hs[t], cs[t], gs[t]
        dc = dh * g
        dg = dh * (c - h)
        dzc = dc * (1 - c ** 2)
        dzg = dg * g * (1 - g)
        dw += h.T @ dzc
        du += h.T @ dzg
        dsteps[t] = dzc
        dh = dh * (1 - g) + dzc @ w.T + dzg @ u.T
    return dh, dsteps, dw, du

inputs = [torch.randn(2, 3), torch.randn(3, 2, 3), torch.randn(3, 3), torch.randn(3, 3)]
"""
TRIPLET = """
class Triplet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, p, n):
        dp, dn = a - p, a - n
        lp, ln = (dp * dp).sum(1).sqrt(), (dn * dn).sum(1).sqrt()
        margin = lp - ln + 3.0
        ctx.save_for_backward(dp, dn, lp, ln, margin)
        return torch.relu(margin).mean()

    @staticmethod
    def backward(ctx, g):
        dp, dn, lp, ln, margin = ctx.saved_tensors
        rows = margin.shape[0]
        on = (margin > 0).to(margin.dtype) * g / rows
        up = on[:, None] * dp / lp[:, None]
        un = on[:, None] * dn / ln[:, None]
        return up - un, -up, un

inputs = [torch.randn(6, 3), torch.randn(6, 3), torch.randn(6, 3)]
"""
POISSON = """
def poisson(x, w, y):
    rate = torch.exp(x @ w)
    return (rate - y * torch.log(rate + 0.1)).mean()

def poisson_backward(g, x, w, y):
    rate = torch.exp(x @ w)
    n = rate.shape[0]
    drate = g * (1 - y / (rate + 0.1)) / n
    deta = drate * rate
    dw = x.T @ deta
    dx = deta[:, None] * w
    dy = -g * torch.log(rate + 0.1) / n
    return dx, dw, dy

inputs = [torch.randn(6, 3), torch.randn(3), torch.rand(6)]
"""
GAUSSIAN = """
def nll(mu, rho, y):
    sigma = torch.nn.functional.softplus(rho) + 0.01
    z = (y - mu) / sigma
    return (0.5 * z * z + torch.log(sigma)).sum(1).mean()

def nll_backward(g, mu, rho, y):
    n = mu.shape[0]
    sigma = torch.nn.functional.softplus(rho) + 0.01
    z = (y - mu) / sigma
    dz = g * z / n
    dmu = -dz / sigma
    dsigma = g / sigma / n - dz * z / sigma
    drho = dsigma * torch.sigmoid(rho)
    dy = dz / sigma
    return dmu, drho, dy

inputs = [torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 3)]
"""
BATCH_NORM = """
class BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mean = x.mean((0, 2), keepdim=True)
        xc = x - mean
        var = (xc * xc).mean((0, 2), keepdim=True)
        inv = (var + 1e-5) ** -0.5
        xhat = xc * inv
        ctx.save_for_backward(xhat, gamma, inv)
        return gamma[:, None] * xhat + beta[:, None]

    @staticmethod
    def backward(ctx, dy):
        xhat, gamma, inv = ctx.saved_tensors
        m = dy.shape[0] * dy.shape[2]
        dbeta = dy.sum((0, 2))
        dgamma = (dy * xhat).sum((0, 2))
        dxhat = dy * gamma[:, None]
        s1 = dxhat.sum((0, 2), keepdim=True)
        s2 = (dxhat * xhat).sum((0, 2), keepdim=True)
        dx = inv / m * (m * dxhat - s1 - xhat * s2)
        return dx, dgamma, dbeta

inputs = [torch.randn(3, 4, 2), torch.rand(4) + 0.5, torch.randn(4)]
"""
WEIGHT_NORM = """
def normed(x, v, g):
    n = (v * v).sum(0, keepdim=True).sqrt()
    w = g * v / n
    return torch.tanh(x @ w)

def normed_backward(dy, x, v, g):
    n = (v * v).sum(0, keepdim=True).sqrt()
    u = v / n
    w = g * u
    y = torch.tanh(x @ w)
    dz = dy * (1 - y * y)
    dx = dz @ w.T
    dw = x.T @ dz
    dg = (dw * u).sum(0)
    dv = g / n * (dw - u * (u * dw).sum(0, keepdim=True))
    return dx, dv, dg

inputs = [torch.randn(5, 3), torch.randn(3, 3), torch.rand(3) + 0.5]
"""
SSM = """
class Ssm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, delta, a, b, c):
        h = torch.zeros_like(a)
        hs, ys, decays = [h], [], []
        for t in range(x.shape[0]):
            decay = torch.exp(delta[t][:, None] * a)
            h = decay * h + delta[t][:, None] * b[t] * x[t][:, None]
            ys.append((h * c[t]).sum(1))
            hs.append(h)
            decays.append(decay)
        ctx.save_for_backward(x, delta, a, b, c, torch.stack(hs), torch.stack(decays))
        return torch.stack(ys)

    @staticmethod
    def backward(ctx, g):
        x, delta, a, b, c, hs, decays = ctx.saved_tensors
        dx, ddelta, da = torch.zeros_like(x), torch.zeros_like(delta), torch.zeros_like(a)
        db, dc = torch.zeros_like(b), torch.zeros_like(c)
        dh = torch.zeros_like(a)
        for t in reversed(range(x.shape[0])):
            dc[t] = (g[t][:, None] * hs[t + 1]).sum(0)
            dh = dh + g[t][:, None] * c[t]
            ddecay = dh * hs[t]
            dinput = (dh * b[t]).sum(1)
            dx[t] = dinput * delta[t]
            ddelta[t] = dinput * x[t] + (ddecay * decays[t] * a).sum(1)
            da = da + ddecay * decays[t] * delta[t][:, None]
            db[t] = (dh * (delta[t] * x[t])[:, None]).sum(0)
            dh = dh * decays[t]
        return dx, ddelta, da, db, dc

inputs = [torch.randn(3, 2), torch.rand(3, 2), -torch.rand(2, 3), torch.randn(3, 3), torch.randn(3, 3)]
"""
EXCITE = """
def excited(x, w1, w2):
    pooled = x.mean((2, 3))
    h = torch.relu(pooled @ w1)
    s = torch.sigmoid(h @ w2)
    return x * s[:, :, None, None]

def excited_backward(g, x, w1, w2):
    n, c, a, b = x.shape
    pooled = x.mean((2, 3))
    z = pooled @ w1
    h = torch.relu(z)
    s = torch.sigmoid(h @ w2)
    ds = (g * x).sum((2, 3))
    dlogit = ds * s * (1 - s)
    dw2 = h.T @ dlogit
    dh = dlogit @ w2.T
    dz = dh * (z > 0).to(g.dtype)
    dw1 = pooled.T @ dz
    dpooled = dz @ w1.T
    dx = g * s[:, :, None, None] + dpooled[:, :, None, None] / (a * b)
    return dx, dw1, dw2

inputs = [torch.randn(2, 4, 3, 2), torch.randn(4, 3), torch.randn(3, 4)]
"""
NUMPY_ADAPTER = """
import numpy as np

class Adapter:
    rank = 2
    alpha = 4.0

def adapted(x, w, a, b, bias):
    scale = Adapter.alpha / Adapter.rank
    z = x @ w + scale * (x @ a) @ b + bias
    return z * (1 / (1 + np.exp(-z)))

def adapted_backward(g, x, w, a, b, bias):
    scale = Adapter.alpha / Adapter.rank
    low = x @ a
    z = x @ w + scale * low @ b + bias
    s = 1 / (1 + np.exp(-z))
    dz = g * (s + z * s * (1 - s))
    dw = x.T @ dz
    db = scale * low.T @ dz
    dlow = scale * dz @ b.T
    da = x.T @ dlow
    dbias = dz.sum(axis=0)
    dx = dz @ w.T + dlow @ a.T
    return dx, dw, da, db, dbias

r = np.random.default_rng(5)
inputs = [r.standard_normal(s) for s in ((4, 3), (3, 3), (3, 2), (2, 3), (3,))]
"""
NUMPY_KMEANS = """
import numpy as np

def assigned(x, centres, beta):
    d = ((x[:, None] - centres[None]) ** 2).sum(axis=2)
    e = np.exp(-beta * d)
    q = e / e.sum(axis=1, keepdims=True)
    return (q * d).sum() / len(x)

def assigned_backward(g, x, centres, beta):
    n = len(x)
    diff = x[:, None] - centres[None]
    d = (diff ** 2).sum(axis=2)
    e = np.exp(-beta * d)
    q = e / e.sum(axis=1, keepdims=True)
    dq = g * d / n
    dl = q * (dq - (q * dq).sum(axis=1, keepdims=True))
    dd = g * q / n - beta * dl
    dbeta = -(dl * d).sum()
    ddiff = 2 * dd[:, :, None] * diff
    dx = ddiff.sum(axis=1)
    dcentres = -ddiff.sum(axis=0)
    return dx, dcentres, dbeta

r = np.random.default_rng(6)
inputs = [r.standard_normal((5, 3)), r.standard_normal((4, 3)), np.array(0.7)]
"""
PLAIN_NET = """
import math

def net(x, w, v):
    h = [math.tanh(sum(a * b for a, b in zip(x, row))) for row in (w[:2], w[2:])]
    return v[0] * h[0] + v[1] * h[1]

def net_backward(g, x, w, v):
    h = [math.tanh(sum(a * b for a, b in zip(x, row))) for row in (w[:2], w[2:])]
    dv = [g * h[0], g * h[1]]
    dz0 = g * v[0] * (1 - h[0] ** 2)
    dz1 = g * v[1] * (1 - h[1] ** 2)
    dw = [dz0 * x[0], dz0 * x[1], dz1 * x[0], dz1 * x[1]]
    dx = [dz0 * w[0] + dz1 * w[2], dz0 * w[1] + dz1 * w[3]]
    return dx, dw, dv

inputs = [[0.4, -0.9], [0.3, 0.8, -0.5, 1.2], [0.7, -1.1]]
"""

ACTIVATION = """
def mish(x, w):
    z = x @ w
    return z * torch.tanh(torch.nn.functional.softplus(z))

def mish_backward(g, x, w):
    z = x @ w
    t = torch.tanh(torch.nn.functional.softplus(z))
    dz = g * (t + z * (1 - t * t) * torch.sigmoid(z))
    return dz @ w.T, x.T @ dz

inputs = [torch.randn(4, 3), torch.randn(3, 3)]
"""
SNAKE = """
def snake(x, a):
    return x + torch.sin(a * x) ** 2 / a

def snake_backward(g, x, a):
    dx = g * (1 + 2 * torch.sin(a * x) * torch.cos(a * x))
    da = (g * (2 * x * torch.sin(a * x) * torch.cos(a * x) / a - torch.sin(a * x) ** 2 / a ** 2)).sum(0)
    return dx, da

inputs = [torch.randn(4, 3), torch.rand(3) + 0.5]
"""

NUMPY = "numpy"
EITHER = "tensors"
MORE = {
    "attention with a sink": (EITHER, SINKS, {
        "row sums of the wrong product": [("delta = (dp * p)", "delta = (dp * e)")],
        "not normalised": [("ds = p * (dp - delta)", "ds = e * (dp - delta)")],
        "scale in one": [("dk = 0.5 * ds.T @ q", "dk = ds.T @ q")],
        "bias over the keys": [("dbias = ds.sum(0)", "dbias = ds.sum(1)")],
        "sum forgotten": [("delta = (dp * p).sum(1, keepdim=True)", "delta = dp * p")],
    }),
    "rotary": (EITHER, ROTARY, {
        "turned as the forward": [("da = g1 * c + g2 * s", "da = g1 * c - g2 * s")],
        "halves for pairs": [("dx = torch.stack([da, db], 2).reshape(g.shape)", "dx = torch.cat([da, db], 1)")],
        "sine and cosine": [("dangle = ds * c - dc * s", "dangle = ds * s - dc * c")],
        "position forgotten": [("dfreq = (dangle * t).sum(0)", "dfreq = dangle.sum(0)")],
        "parts swapped": [("torch.stack([da, db], 2)", "torch.stack([db, da], 2)")],
    }),
    "depthwise convolution": (EITHER, DEPTHWISE, {
        "overwritten": [("dx[:, i:i + n] +=", "dx[:, i:i + n] =")],
        "mask by the gradient": [("(z > 0)", "(dy > 0)")],
        "mask forgotten in the bias": [("db = dz.sum(1)", "db = dy.sum(1)")],
        "window from the end": [("+= dcols[:, :, i]", "+= dcols[:, :, k - 1 - i]")],
    }),
    "strided convolution": (EITHER, STRIDED, {
        "stride forgotten": [("dx[2 * i:2 * i + k] +=", "dx[i:i + k] +=")],
        "stride forgotten for the weights": [("dw += g[i] * x[2 * i:2 * i + k]", "dw += g[i] * x[i:i + k]")],
        "overwritten": [("dx[2 * i:2 * i + k] +=", "dx[2 * i:2 * i + k] =")],
    }),
    "highway": (EITHER, HIGHWAY, {
        "carry forgotten": [("dh = dh * (1 - g) + dzc", "dh = dzc")],
        "carry by the gate": [("dh = dh * (1 - g) +", "dh = dh * g +")],
        "gate without the state": [("dg = dh * (c - h)", "dg = dh * c")],
        "next state": [("du += h.T @ dzg", "du += hs[t + 1].T @ dzg")],
        "weights swapped": [("dzc @ w.T + dzg @ u.T", "dzc @ u.T + dzg @ w.T")],
    }),
    "triplet loss": (EITHER, TRIPLET, {
        "length not divided": [("up = on[:, None] * dp / lp[:, None]", "up = on[:, None] * dp")],
        "other length": [("dn / ln[:, None]", "dn / lp[:, None]")],
        "sign of the negative": [("return up - un, -up, un", "return up - un, -up, -un")],
        "mean forgotten": [("* g / rows", "* g")],
        "anchor by the positive alone": [("return up - un, -up", "return up, -up")],
    }),
    "poisson": (EITHER, POISSON, {
        "epsilon forgotten": [("drate = g * (1 - y / (rate + 0.1))", "drate = g * (1 - y / rate)")],
        "slope of the exponential": [("deta = drate * rate", "deta = drate")],
        "sum for mean": [("torch.log(rate + 0.1) / n", "torch.log(rate + 0.1)")],
        "input for weights": [("dx = deta[:, None] * w", "dx = deta[:, None] * x")],
    }),
    "gaussian likelihood": (EITHER, GAUSSIAN, {
        "sign of the mean": [("dmu = -dz / sigma", "dmu = dz / sigma")],
        "square of sigma": [("dmu = -dz / sigma", "dmu = -dz / sigma ** 2")],
        "softplus by its value": [("torch.sigmoid(rho)", "torch.sigmoid(sigma)")],
        "log's part forgotten": [("dsigma = g / sigma / n - dz * z / sigma", "dsigma = -dz * z / sigma")],
        "half kept": [("dz = g * z / n", "dz = 0.5 * g * z / n")],
    }),
    "batch norm over time": (EITHER, BATCH_NORM, {
        "rows counted alone": [("m = dy.shape[0] * dy.shape[2]", "m = dy.shape[0]")],
        "sum before gamma": [("s1 = dxhat.sum", "s1 = dy.sum")],
        "projection forgotten": [("(m * dxhat - s1 - xhat * s2)", "(m * dxhat - s1)")],
        "mean where the sum is": [("s2 = (dxhat * xhat).sum(", "s2 = (dxhat * xhat).mean(")],
        "count too many": [("inv / m * (m * dxhat - s1", "inv / m * (dxhat - s1")],
    }),
    "weight norm": (EITHER, WEIGHT_NORM, {
        "not projected": [("(dw - u * (u * dw).sum(0, keepdim=True))", "dw")],
        "gain forgotten": [("dv = g / n * (dw", "dv = 1 / n * (dw")],
        "by the raw": [("dg = (dw * u)", "dg = (dw * v)")],
        "axis": [("u * (u * dw).sum(0, keepdim=True)", "u * (u * dw).sum(1, keepdim=True)")],
        "gradient before the tanh": [("dw = x.T @ dz", "dw = x.T @ dy")],
    }),
    "selective scan": (EITHER, SSM, {
        "state before": [("dc[t] = (g[t][:, None] * hs[t + 1])", "dc[t] = (g[t][:, None] * hs[t])")],
        "not carried": [("            dh = dh * decays[t]\n", "            dh = dh * decays[t - 1]\n")],
        "delta through the decay forgotten": [("dinput * x[t] + (ddecay * decays[t] * a).sum(1)", "dinput * x[t]")],
        "decay's slope": [("da = da + ddecay * decays[t] * delta", "da = da + ddecay * delta")],
        "overwritten": [("dh = dh + g[t][:, None] * c[t]", "dh = g[t][:, None] * c[t]")],
    }),
    "squeeze and excite": (EITHER, EXCITE, {
        "mean not divided": [("dpooled[:, :, None, None] / (a * b)", "dpooled[:, :, None, None]")],
        "gate path forgotten": [("dx = g * s[:, :, None, None] + dpooled[:, :, None, None] / (a * b)", "dx = g * s[:, :, None, None]")],
        "mean for sum": [("ds = (g * x).sum((2, 3))", "ds = (g * x).mean((2, 3))")],
        "slope of a tanh": [("dlogit = ds * s * (1 - s)", "dlogit = ds * (1 - s ** 2)")],
        "one side counted": [("/ (a * b)", "/ a")],
    }),
    "mish": (EITHER, ACTIVATION, {
        "slope of a silu": [("dz = g * (t + z * (1 - t * t) * torch.sigmoid(z))", "dz = g * (torch.sigmoid(z) * (1 + z * (1 - torch.sigmoid(z))))")],
        "inner slope forgotten": [("(t + z * (1 - t * t) * torch.sigmoid(z))", "(t + z * (1 - t * t))")],
        "slope of the tanh alone": [("(t + z * (1 - t * t) * torch.sigmoid(z))", "(1 - t * t)")],
    }),
    "snake": (EITHER, SNAKE, {
        "inner factor": [("dx = g * (1 + 2 * torch.sin(a * x) * torch.cos(a * x))", "dx = g * (1 + torch.sin(2 * x))")],
        "square forgotten": [("dx = g * (1 + 2 * torch.sin(a * x) * torch.cos(a * x))", "dx = g * (1 + torch.cos(a * x))")],
        "quotient's second term": [(" - torch.sin(a * x) ** 2 / a ** 2)", ")")],
    }),
    "adapter of arrays": (NUMPY, NUMPY_ADAPTER, {
        "scale forgotten": [("db = scale * low.T @ dz", "db = low.T @ dz")],
        "frozen path forgotten": [("dx = dz @ w.T + dlow @ a.T", "dx = dlow @ a.T")],
        "silu without its slope": [("(s + z * s * (1 - s))", "s")],
        "scale twice": [("da = x.T @ dlow", "da = scale * x.T @ dlow")],
    }),
    "soft assignment of arrays": (NUMPY, NUMPY_KMEANS, {
        "direct path forgotten": [("dd = g * q / n - beta * dl", "dd = -beta * dl")],
        "sign of the centres": [("dcentres = -ddiff.sum(axis=0)", "dcentres = ddiff.sum(axis=0)")],
        "factor forgotten": [("ddiff = 2 * dd", "ddiff = dd")],
        "softmax as a diagonal": [("dl = q * (dq - (q * dq).sum(axis=1, keepdims=True))", "dl = q * (1 - q) * dq")],
    }),
    "net of floats": (NUMPY, PLAIN_NET, {
        "other hidden unit": [("dz1 = g * v[1] * (1 - h[1] ** 2)", "dz1 = g * v[1] * (1 - h[0] ** 2)")],
        "other weight": [("dz0 = g * v[0] *", "dz0 = g * v[1] *")],
        "inputs swapped": [("dw = [dz0 * x[0], dz0 * x[1],", "dw = [dz0 * x[1], dz0 * x[0],")],
    }),
}  # fmt: skip
