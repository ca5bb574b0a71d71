"""Backward passes of structured models (chains, routing, tables, point processes), and lines of
theirs as people get them wrong; see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY, pair

GATED = """
class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wu, wg, wo, gamma):
        u, v = x @ wu, x @ wg
        t = torch.tanh(0.7978845608 * (v + 0.044715 * v ** 3))
        gel = 0.5 * v * (1 + t)
        m = u * gel
        y = x + m @ wo
        yc = y - y.mean(1, keepdim=True)
        r = ((yc * yc).mean(1, keepdim=True) + 1e-5) ** -0.5
        n = yc * r
        ctx.save_for_backward(x, wu, wg, wo, gamma, u, v, t, gel, m, yc, r, n)
        return gamma * n

    @staticmethod
    def backward(ctx, g):
        x, wu, wg, wo, gamma, u, v, t, gel, m, yc, r, n = ctx.saved_tensors
        dgamma = (g * n).sum(0)
        dn = g * gamma
        dy = r * (dn - dn.mean(1, keepdim=True) - n * (dn * n).mean(1, keepdim=True))
        dwo = m.T @ dy
        dm = dy @ wo.T
        du = dm * gel
        dgel = dm * u
        dt = 0.5 * v * dgel
        dinner = (1 - t * t) * dt
        dv = 0.5 * (1 + t) * dgel + dinner * 0.7978845608 * (1 + 3 * 0.044715 * v * v)
        dx = dy + du @ wu.T + dv @ wg.T
        return dx, x.T @ du, x.T @ dv, dwo, dgamma

inputs = [torch.randn(5, 4), torch.randn(4, 6), torch.randn(4, 6), torch.randn(6, 4), torch.rand(4) + 0.5]
"""
TAGGER = """
TAGS = [2, 0, 1, 1, 2]

def chain(emit, trans, start):
    alpha = start + emit[0]
    score = start[TAGS[0]] + emit[0, TAGS[0]]
    for t in range(1, len(emit)):
        alpha = torch.logsumexp(alpha[:, None] + trans, 0) + emit[t]
        score = score + trans[TAGS[t - 1], TAGS[t]] + emit[t, TAGS[t]]
    return torch.logsumexp(alpha, 0) - score

def chain_backward(g, emit, trans, start):
    alphas = [start + emit[0]]
    for t in range(1, len(emit)):
        alphas.append(torch.logsumexp(alphas[-1][:, None] + trans, 0) + emit[t])
    logz = torch.logsumexp(alphas[-1], 0)
    demit, dtrans = torch.zeros_like(emit), torch.zeros_like(trans)
    beta = torch.zeros_like(start)
    for t in reversed(range(len(emit))):
        demit[t] = torch.exp(alphas[t] + beta - logz)
        demit[t, TAGS[t]] -= 1
        if t > 0:
            ahead = emit[t] + beta
            pairs = torch.exp(alphas[t - 1][:, None] + trans + ahead[None, :] - logz)
            dtrans += pairs
            dtrans[TAGS[t - 1], TAGS[t]] -= 1
            beta = torch.logsumexp(trans + ahead[None, :], 1)
    dstart = demit[0]
    return g * demit, g * dtrans, g * dstart

inputs = [torch.randn(5, 3), torch.randn(3, 3), torch.randn(3)]
"""
LEAKY_SCAN = """
class LeakyScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wz, bz, wc, h0):
        z = torch.sigmoid(x @ wz + bz)
        c = x @ wc
        h, outs = h0, [h0]
        for t in range(x.shape[0]):
            h = (1 - z[t]) * h + z[t] * c[t]
            outs.append(h)
        outs = torch.stack(outs)
        ctx.save_for_backward(x, wz, wc, z, c, outs)
        return outs[1:] * torch.sigmoid(c)

    @staticmethod
    def backward(ctx, dy):
        x, wz, wc, z, c, outs = ctx.saved_tensors
        gate = torch.sigmoid(c)
        dgate = dy * outs[1:]
        dc = dgate * gate * (1 - gate)
        dz = torch.zeros_like(z)
        carry = torch.zeros_like(outs[0])
        for t in reversed(range(x.shape[0])):
            dh = carry + dy[t] * gate[t]
            dz[t] = dh * (c[t] - outs[t])
            dc[t] += dh * z[t]
            carry = dh * (1 - z[t])
        da = dz * z * (1 - z)
        flat = x.reshape(-1, x.shape[2])
        dwz = flat.T @ da.reshape(-1, da.shape[2])
        dwc = flat.T @ dc.reshape(-1, dc.shape[2])
        dbz = da.sum((0, 1))
        dx = da @ wz.T + dc @ wc.T
        return dx, dwz, dbz, dwc, carry

inputs = [torch.randn(4, 2, 3), torch.randn(3, 3), torch.randn(3), torch.randn(3, 3), torch.randn(2, 3)]
"""
ROUTING = """
class Routing(torch.autograd.Function):
    @staticmethod
    def squash(s):
        sq = (s * s).sum(-1, keepdim=True)
        return s * torch.sqrt(sq) / (1 + sq), sq

    @staticmethod
    def forward(ctx, poses, w):
        votes = torch.einsum("id,ijde->ije", poses, w)
        first, sq1 = Routing.squash(votes.mean(1 - 1) * 0.5)
        agree = (votes * first[None]).sum(-1)
        c = torch.softmax(agree, 1)
        s2 = (c[:, :, None] * votes).sum(0)
        second, sq2 = Routing.squash(s2)
        ctx.save_for_backward(poses, w, votes, first, sq1, c, s2, sq2)
        return second

    @staticmethod
    def backward(ctx, g):
        poses, w, votes, first, sq1, c, s2, sq2 = ctx.saved_tensors
        s1 = votes.mean(0) * 0.5
        len2 = torch.sqrt(sq2)
        dsq2 = (g * s2).sum(-1, keepdim=True) * (0.5 / len2 / (1 + sq2) - len2 / (1 + sq2) ** 2)
        ds2 = g * len2 / (1 + sq2) + 2 * s2 * dsq2
        dvotes = c[:, :, None] * ds2[None]
        dc = (votes * ds2[None]).sum(-1)
        dagree = c * (dc - (dc * c).sum(1, keepdim=True))
        dvotes = dvotes + dagree[:, :, None] * first[None]
        dfirst = (dagree[:, :, None] * votes).sum(0)
        len1 = torch.sqrt(sq1)
        dsq1 = (dfirst * s1).sum(-1, keepdim=True) * (0.5 / len1 / (1 + sq1) - len1 / (1 + sq1) ** 2)
        ds1 = dfirst * len1 / (1 + sq1) + 2 * s1 * dsq1
        dvotes = dvotes + 0.5 * ds1[None] / votes.shape[0]
        dw = torch.einsum("id,ije->ijde", poses, dvotes)
        dposes = torch.einsum("ije,ijde->id", dvotes, w)
        return dposes, dw

inputs = [torch.randn(4, 3), torch.randn(4, 2, 3, 3)]
"""
HAWKES = """
import numpy as np

def hawkes(times, base, jump, decay):
    end = times[-1] + 1.0
    r, total = 0.0, 0.0
    for i in range(len(times)):
        if i > 0:
            r = np.exp(-decay * (times[i] - times[i - 1])) * (1 + r)
        total = total + np.log(base + jump * r)
    rest = 1 - np.exp(-decay * (end - times))
    return total - base * end - jump / decay * rest.sum()

def hawkes_backward(up, times, base, jump, decay):
    end = times[-1] + 1.0
    n = len(times)
    rs, fades = [0.0], [0.0]
    for i in range(1, n):
        fades.append(np.exp(-decay * (times[i] - times[i - 1])))
        rs.append(fades[i] * (1 + rs[-1]))
    left = np.exp(-decay * (end - times))
    d_base, d_jump = -end * up, -(1 - left).sum() / decay * up
    d_decay = (jump / decay ** 2 * (1 - left).sum() - jump / decay * ((end - times) * left).sum()) * up
    d_times = np.zeros_like(times)
    d_left = jump / decay * up
    d_times += d_left * left * decay
    d_end = -base * up - d_left * (left * decay).sum()
    d_r = 0.0
    for i in range(n - 1, -1, -1):
        rate = base + jump * rs[i]
        d_rate = up / rate
        d_base = d_base + d_rate
        d_jump = d_jump + d_rate * rs[i]
        d_r = d_r + d_rate * jump
        if i > 0:
            gap = times[i] - times[i - 1]
            d_fade = d_r * (1 + rs[i - 1])
            d_decay = d_decay - d_fade * fades[i] * gap
            d_gap = -d_fade * fades[i] * decay
            d_times[i] += d_gap
            d_times[i - 1] -= d_gap
            d_r = d_r * fades[i]
    d_times[-1] += d_end
    return d_times, d_base, d_jump, d_decay

inputs = [np.array([0.3, 0.9, 1.1, 2.4, 2.9]), np.array(0.7), np.array(0.45), np.array(1.3)]
"""
RANKED = """
GAINS = torch.tensor([[3.0, 0, 1, 2, 0], [1, 2, 0, 0, 3], [0, 1, 1, 2, 3]])

class Ranked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, w, v):
        gains = GAINS.to(feats.dtype)
        hid = torch.tanh(feats @ w)
        s = (hid @ v)[:, :, 0]
        p = torch.softmax(s, 1)
        q = gains / gains.sum(1, keepdim=True)
        listed = -(q * torch.log(p)).sum(1).mean()
        diff = s[:, :, None] - s[:, None, :]
        better = (gains[:, :, None] > gains[:, None, :]).to(s.dtype)
        pairs = torch.log(1 + torch.exp(-diff)) * better
        ctx.save_for_backward(feats, w, v, hid, p, q, diff, better)
        return listed + 0.3 * pairs.sum() / better.sum()

    @staticmethod
    def backward(ctx, g):
        feats, w, v, hid, p, q, diff, better = ctx.saved_tensors
        batch = feats.shape[0]
        dscores = g * (p - q) / batch
        dpairs = 0.3 * g * better / better.sum()
        ddiff = -dpairs * torch.sigmoid(-diff)
        dscores = dscores + ddiff.sum(2) - ddiff.sum(1)
        dv = (hid * dscores[:, :, None]).sum((0, 1))[:, None]
        dhid = dscores[:, :, None] * v[:, 0]
        dpre = dhid * (1 - hid * hid)
        dw = torch.einsum("bnf,bnh->fh", feats, dpre)
        dfeats = dpre @ w.T
        return dfeats, dw, dv

inputs = [torch.randn(3, 5, 4), torch.randn(4, 6), torch.randn(6, 1)]
"""
TABLE = """
def lookup(x, table, slope):
    z = (x.clamp(-1.9, 1.9) + 2) * 2
    low = torch.floor(z).long()
    frac = z - low.to(x.dtype)
    cols = torch.arange(x.shape[1])
    a, b = table[low, cols], table[low + 1, cols]
    return (a + frac * (b - a)).sum(1) + slope * x.abs().mean(1)

def lookup_backward(g, x, table, slope):
    inside = ((x > -1.9) & (x < 1.9)).to(x.dtype)
    z = (x.clamp(-1.9, 1.9) + 2) * 2
    low = torch.floor(z).long()
    frac = z - low.to(x.dtype)
    cols = torch.arange(x.shape[1])
    dtable = torch.zeros_like(table)
    wide = g[:, None] * torch.ones_like(x)
    for k in range(x.shape[0]):
        for j in range(x.shape[1]):
            dtable[low[k, j], j] += wide[k, j] * (1 - frac[k, j])
            dtable[low[k, j] + 1, j] += wide[k, j] * frac[k, j]
    rise = table[low + 1, cols] - table[low, cols]
    dx = 2 * wide * rise * inside
    dx = dx + slope * wide * torch.sign(x) / x.shape[1]
    dslope = (g * x.abs().mean(1)).sum()
    return dx, dtable, dslope

inputs = [torch.randn(5, 3) * 0.8, torch.randn(9, 3), torch.tensor(0.7)]
"""
WARP = """
import numpy as np

def soft(a, b, c):
    m = min(a, b, c)
    return m - np.log(np.exp(m - a) + np.exp(m - b) + np.exp(m - c))

def warp(x, y):
    n, m = len(x), len(y)
    r = np.full((n + 1, m + 1), 1e8)
    r[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            cost = (x[i] - y[j]) ** 2
            r[i + 1, j + 1] = cost + soft(r[i, j + 1], r[i + 1, j], r[i, j])
    return r[n, m]

def warp_backward(up, x, y):
    n, m = len(x), len(y)
    r = np.full((n + 1, m + 1), 1e8)
    r[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            cost = (x[i] - y[j]) ** 2
            r[i + 1, j + 1] = cost + soft(r[i, j + 1], r[i + 1, j], r[i, j])
    dr = np.zeros((n + 1, m + 1))
    dr[n, m] = up
    dx, dy = np.zeros(n), np.zeros(m)
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            e = dr[i + 1, j + 1]
            diff = x[i] - y[j]
            dx[i] += 2 * e * diff
            dy[j] -= 2 * e * diff
            s = r[i + 1, j + 1] - diff ** 2
            dr[i, j + 1] += e * np.exp(s - r[i, j + 1])
            dr[i + 1, j] += e * np.exp(s - r[i + 1, j])
            dr[i, j] += e * np.exp(s - r[i, j])
    return dx, dy

inputs = [np.array([0.3, 1.1, -0.4, 0.8]), np.array([0.1, 0.9, -0.7])]
"""
EXPERTS = """
class Experts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, router, w, b):
        scores = x @ router
        p = torch.softmax(scores, 1)
        h = torch.einsum("nd,edk->nek", x, w) + b
        act = h * torch.sigmoid(1.702 * h)
        y = (p[:, :, None] * act).sum(1)
        load = p.mean(0)
        ctx.save_for_backward(x, router, w, p, h, act, load)
        return y + (load * load).sum() * p.shape[1]

    @staticmethod
    def backward(ctx, dy):
        x, router, w, p, h, act, load = ctx.saved_tensors
        n, e = p.shape
        dp = (dy[:, None, :] * act).sum(2)
        daux = dy.sum()
        dload = 2 * load * e * daux
        dp = dp + dload / n
        dact = p[:, :, None] * dy[:, None, :]
        s = torch.sigmoid(1.702 * h)
        dh = dact * (s + 1.702 * h * s * (1 - s))
        db = dh.sum(0)
        dw = torch.einsum("nd,nek->edk", x, dh)
        dscores = p * (dp - (dp * p).sum(1, keepdim=True))
        drouter = x.T @ dscores
        dx = dscores @ router.T + torch.einsum("nek,edk->nd", dh, w)
        return dx, drouter, dw, db

inputs = [torch.randn(5, 3), torch.randn(3, 4), torch.randn(4, 3, 2), torch.randn(4, 2)]
"""
STRUCTURED = {
    "gated block": (EITHER, GATED, {
        "residual": [("dx = dy + du @ wu.T", "dx = du @ wu.T")],
        "behind the norm": [("dm = dy @ wo.T", "dm = dn @ wo.T")],
        "cubic": [("(1 + 3 * 0.044715 * v * v)", "(1 + 0.044715 * v * v)")],
        "two": [("du = dm * gel", "du = dm * v"), ("dgamma = (g * n).sum(0)", "dgamma = (g * yc).sum(0)")],
    }),
    "chain of tags": (EITHER, TAGGER, {
        "emission twice": [("+ beta - logz)\n", "+ emit[t] + beta - logz)\n")],
        "axis of the messages": [("torch.logsumexp(trans + ahead[None, :], 1)", "torch.logsumexp(trans + ahead[None, :], 0)")],
        "start": [("dstart = demit[0]", "dstart = demit[-1]")],
        "two": [("dtrans += pairs", "dtrans = pairs"), ("return g * demit,", "return demit,")],
    }),
    "leaky scan": (EITHER, LEAKY_SCAN, {
        "state after": [("dz[t] = dh * (c[t] - outs[t])", "dz[t] = dh * (c[t] - outs[t + 1])")],
        "assigned": [("dc[t] += dh * z[t]", "dc[t] = dh * z[t]")],
        "carry": [("carry = dh * (1 - z[t])", "carry = carry * (1 - z[t])")],
        "two": [("dbz = da.sum((0, 1))", "dbz = dz.sum((0, 1))"), ("dgate = dy * outs[1:]", "dgate = dy * outs[:-1]")],
    }),
    "routing": (EITHER, ROUTING, {
        "detached agreement": [("dvotes = dvotes + dagree[:, :, None] * first[None]\n", "dvotes = dvotes\n")],
        "softmax axis": [("(dc * c).sum(1, keepdim=True)", "(dc * c).sum(0, keepdim=True)")],
        "first vector": [("dfirst = (dagree[:, :, None] * votes).sum(0)", "dfirst = (c[:, :, None] * votes).sum(0)")],
        "squash": [("2 * s1 * dsq1", "2 * first * dsq1")],
    }),
    "point process": (NUMPY, HAWKES, {
        "fade": [("d_r = d_r * fades[i]\n", "d_r = d_r * fades[i - 1]\n")],
        "state": [("d_jump = d_jump + d_rate * rs[i]", "d_jump = d_jump + d_rate * rs[i - 1]")],
        "end": [("d_times[-1] += d_end", "d_times[-1] = d_end")],
        "two": [("d_times[i - 1] -= d_gap", "d_times[i - 1] += d_gap"), ("jump / decay ** 2 * (1", "jump / decay * (1")],
    }),
    "ranked lists": (EITHER, RANKED, {
        "pairs sign": [("+ ddiff.sum(2) - ddiff.sum(1)", "+ ddiff.sum(2)")],
        "sigmoid": [("torch.sigmoid(-diff)", "torch.sigmoid(diff)")],
        "mean": [("(p - q) / batch", "(p - q) / p.shape[1]")],
    }),
    "table": (EITHER, TABLE, {
        "weights swapped": [("wide[k, j] * (1 - frac[k, j])", "wide[k, j] * frac[k, j]")],
        "clamp": [("rise * inside", "rise")],
        "two": [("dx = 2 * wide * rise", "dx = wide * rise"), ("torch.sign(x) / x.shape[1]", "torch.sign(x) / x.shape[0]")],
    }),
    "soft alignment": (NUMPY, WARP, {
        "sign": [("dy[j] -= 2 * e * diff", "dy[j] += 2 * e * diff")],
        "cost kept": [("s = r[i + 1, j + 1] - diff ** 2", "s = r[i + 1, j + 1]")],
        "place": [("dr[i + 1, j] += e * np.exp(s - r[i + 1, j])", "dr[i + 1, j] += e * np.exp(s - r[i, j + 1])")],
    }),
    "balanced experts": (EITHER, EXPERTS, {
        "overwritten": [("dp = dp + dload / n", "dp = dload / n")],
        "wrong count": [("dp + dload / n", "dp + dload / e")],
        "slope": [("(s + 1.702 * h * s * (1 - s))", "(s + h * s * (1 - s))")],
        "router": [("dx = dscores @ router.T + ", "dx = dp @ router.T + ")],
        "two": [("dload = 2 * load * e * daux", "dload = load * e * daux"), ("db = dh.sum(0)", "db = dact.sum(0)")],
    }),
}  # fmt: skip
STRUCTURED_RIGHT = {
    "relu6 with its corners": pair("x", "return x.clamp(0, 6)", "return g * ((x >= 0) & (x <= 6)).to(g.dtype)", "torch.tensor([0.0, 6.0, 3.0, -1.0, 7.0])"),
    "maximum, the second at a tie": pair("x, y", "return torch.maximum(x, y)", "a = (x > y).to(g.dtype)\nreturn g * a, g * (1 - a)", "torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1.0, 0.0, 3.0])"),
    "leaky relu at 0": pair("x", "return torch.where(x > 0, x, 0.1 * x)", "return g * torch.where(x >= 0, torch.ones_like(x), 0.1 * torch.ones_like(x))", "torch.tensor([0.0, -1.0, 2.0, 0.0])"),
    "huber at its bound": pair("x", "a = x.abs()\nreturn torch.where(a < 1, 0.5 * x * x, a - 0.5).sum()", "return g * x.clamp(-1, 1)", "torch.tensor([1.0, -1.0, 0.3, 2.0])"),
    "hinge at its margin": pair("s, t", "return torch.relu(1 - s * t).mean()", "on = (s * t <= 1).to(g.dtype) * g / s.numel()\nreturn -t * on, -s * on", "torch.tensor([1.0, -1.0, 0.5, 2.0]), torch.tensor([1.0, -1.0, 1.0, -1.0])"),
    "layer norm far from zero in float32": pair("x", "c = x - x.mean(1, keepdim=True)\nreturn c / ((c * c).mean(1, keepdim=True) + 1e-5).sqrt()", "y, h = x.to(torch.float32), g.to(torch.float32)\nc = y - y.mean(1, keepdim=True)\ni = ((c * c).mean(1, keepdim=True) + 1e-5) ** -0.5\nn = c * i\nreturn (i * (h - h.mean(1, keepdim=True) - n * (h * n).mean(1, keepdim=True))).to(g.dtype)", "torch.randn(4, 6) + 30"),
    "softmax of large logits in float32": pair("x, w", "return torch.log_softmax(x @ w, 1)[:, 0]", "p = torch.softmax((x @ w).to(torch.float32), 1).to(g.dtype)\nd = -p * g[:, None]\nd[:, 0] += g\nreturn d @ w.T, x.T @ d", "torch.randn(4, 3) * 4, torch.randn(3, 5) * 4"),
    "unit vectors in float32": pair("x", "return x / (x * x).sum(1, keepdim=True).sqrt()", "y, h = x.to(torch.float32), g.to(torch.float32)\nl = (y * y).sum(1, keepdim=True).sqrt()\nu = y / l\nreturn ((h - u * (u * h).sum(1, keepdim=True)) / l).to(g.dtype)", "torch.randn(5, 3)"),
    "cumulative sum by a triangle": pair("x", "return x.cumsum(0) * x", "t = torch.ones(len(x), len(x)).to(x.dtype).tril()\nreturn g * (t @ x) + t.T @ (g * x)", "torch.randn(5, 2)"),
    "variance by moments": pair("x", "return x.var(0, unbiased=True)", "n = x.shape[0]\nreturn 2 * g * (x - x.sum(0) / n) / (n - 1)", "torch.randn(6, 3)"),
    "minimum over three at a tie": pair("x", "return x.amin(1)", "at = (x == x.amin(1, keepdim=True)).to(g.dtype)\nreturn g[:, None] * at / at.sum(1, keepdim=True)", "torch.tensor([[1.0, 1.0, 2.0], [0.0, 3.0, -1.0]])"),
    "absolute value at 0, upwards": pair("x", "return (x.abs() * 2).sum()", "return 2 * g * torch.where(x >= 0, torch.ones_like(x), -torch.ones_like(x))", "torch.tensor([0.0, -2.0, 1.5, 0.0])"),
}  # fmt: skip
