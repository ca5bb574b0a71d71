"""Backward passes of rotations, mixtures, pools and gates, and lines of theirs as people get them
wrong; see `backward_cases`.
"""

from backward_cases import EITHER, NUMPY
QUAT = """
def turn(pts, quat):
    n = quat.norm()
    w, x, y, z = quat / n
    rot = torch.stack([
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])])
    return pts @ rot.T

def turn_backward(out_bar, pts, quat):
    n = quat.norm()
    u = quat / n
    w, x, y, z = u
    rot = torch.stack([
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])])
    pts_bar = out_bar @ rot
    R = out_bar.T @ pts
    dw = 2 * (x * (R[2, 1] - R[1, 2]) + y * (R[0, 2] - R[2, 0]) + z * (R[1, 0] - R[0, 1]))
    dx = 2 * (y * (R[0, 1] + R[1, 0]) + z * (R[0, 2] + R[2, 0]) + w * (R[2, 1] - R[1, 2])) - 4 * x * (R[1, 1] + R[2, 2])
    dy = 2 * (x * (R[0, 1] + R[1, 0]) + z * (R[1, 2] + R[2, 1]) + w * (R[0, 2] - R[2, 0])) - 4 * y * (R[0, 0] + R[2, 2])
    dz = 2 * (x * (R[0, 2] + R[2, 0]) + y * (R[1, 2] + R[2, 1]) + w * (R[1, 0] - R[0, 1])) - 4 * z * (R[0, 0] + R[1, 1])
    du = torch.stack([dw, dx, dy, dz])
    return pts_bar, (du - u * (u @ du)) / n

inputs = [torch.randn(5, 3), torch.randn(4)]
"""
POINCARE = """
def dist(a, b):
    sa, sb = 1 - (a * a).sum(1), 1 - (b * b).sum(1)
    sq = ((a - b) ** 2).sum(1)
    t = 1 + 2 * sq / (sa * sb)
    return torch.log(t + torch.sqrt(t * t - 1))

def dist_backward(grad, a, b):
    sa, sb = 1 - (a * a).sum(1), 1 - (b * b).sum(1)
    d = a - b
    sq = (d ** 2).sum(1)
    t = 1 + 2 * sq / (sa * sb)
    dt = grad / torch.sqrt(t * t - 1)
    dsq = 2 * dt / (sa * sb)
    dsa = -2 * dt * sq / (sa ** 2 * sb)
    dsb = -2 * dt * sq / (sa * sb ** 2)
    shared = 2 * dsq[:, None] * d
    return shared - 2 * dsa[:, None] * a, -shared - 2 * dsb[:, None] * b

inputs = [torch.rand(4, 3) * 0.5, -torch.rand(4, 3) * 0.5]
"""
LOGDET = """
class Decorrelate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, proj):
        y = feats @ proj
        mu = y.mean(0)
        yc = y - mu
        cov = yc.T @ yc / (len(y) - 1) + 0.1 * torch.eye(3).to(y.dtype)
        inv = torch.linalg.inv(cov)
        ctx.save_for_backward(feats, proj, yc, inv)
        return torch.log(torch.linalg.det(cov)) - torch.log(cov.diagonal()).sum()

    @staticmethod
    def backward(ctx, gl):
        feats, proj, yc, inv = ctx.saved_tensors
        n = len(yc)
        cov = yc.T @ yc / (n - 1) + 0.1 * torch.eye(3).to(yc.dtype)
        gcov = gl * (inv - torch.diag(1 / cov.diagonal()))
        gyc = yc @ (gcov + gcov.T) / (n - 1)
        gy = gyc - gyc.mean(0)
        return gy @ proj.T, feats.T @ gy

inputs = [torch.randn(6, 4), torch.randn(4, 3)]
"""
CONVPOOL = """
def windows(s, k):
    return torch.stack([s[i:i + k] for i in range(len(s) - k + 1)])

def peak(sig, ker, off):
    feat = torch.relu(windows(sig, 3) @ ker + off)
    out = []
    for j in range(0, 6, 2):
        out.append(feat[j:j + 2].amax(0))
    return torch.stack(out)

def peak_backward(gout, sig, ker, off):
    win = windows(sig, 3)
    pre = win @ ker + off
    feat = torch.relu(pre)
    gfeat = torch.zeros_like(feat)
    for j in range(0, 6, 2):
        blk = feat[j:j + 2]
        first = (blk[0] >= blk[1]).to(feat.dtype)
        gfeat[j] += gout[j // 2] * first
        gfeat[j + 1] += gout[j // 2] * (1 - first)
    gpre = gfeat * (pre > 0).to(pre.dtype)
    gker, goff = win.T @ gpre, gpre.sum(0)
    gwin = gpre @ ker.T
    gsig = torch.zeros_like(sig)
    for i in range(6):
        gsig[i:i + 3] += gwin[i]
    return gsig, gker, goff

inputs = [torch.randn(8), torch.randn(3, 4), torch.randn(4) + 1.0]
"""
GRUSEQ = """
class ResetAfter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, seq, wi, wh, bi, bh):
        state = seq.new_zeros(seq.shape[1], 3)
        tape = []
        for x in seq:
            gi, gh = x @ wi + bi, state @ wh + bh
            rst = torch.sigmoid(gi[:, :3] + gh[:, :3])
            upd = torch.sigmoid(gi[:, 3:6] + gh[:, 3:6])
            cand = torch.tanh(gi[:, 6:] + rst * gh[:, 6:])
            tape.append((x, state, rst, upd, cand, gh[:, 6:]))
            state = (1 - upd) * cand + upd * state
        ctx.tape = tape
        ctx.save_for_backward(wi, wh)
        return state

    @staticmethod
    def backward(ctx, lam):
        wi, wh = ctx.saved_tensors
        gwi, gwh = torch.zeros_like(wi), torch.zeros_like(wh)
        gbi, gbh, gseq = wi.new_zeros(9), wi.new_zeros(9), []
        for x, prev, rst, upd, cand, hn in reversed(ctx.tape):
            lc = lam * (1 - upd) * (1 - cand ** 2)
            lu = lam * (prev - cand) * upd * (1 - upd)
            lr = lc * hn * rst * (1 - rst)
            di = torch.cat([lr, lu, lc], 1)
            dh = torch.cat([lr, lu, lc * rst], 1)
            gwi += x.T @ di; gbi += di.sum(0)
            gwh += prev.T @ dh; gbh += dh.sum(0)
            gseq.insert(0, di @ wi.T)
            lam = lam * upd + dh @ wh.T
        return torch.stack(gseq), gwi, gwh, gbi, gbh

inputs = [torch.randn(3, 2, 2), torch.randn(2, 9), torch.randn(3, 9), torch.randn(9), torch.randn(9)]
"""
ENTROPY = """
NOISE = torch.tensor([[0.3, -0.2, 0.9, 0.1], [1.2, 0.4, -0.5, 0.0], [0.1, 0.2, 0.3, -0.7]])

def relaxed(theta, codes):
    tau = 0.8
    soft = torch.softmax((theta + NOISE.to(theta.dtype)) / tau, -1)
    mixed = soft @ codes
    pi = torch.softmax(theta, -1)
    entropy = -(pi * pi.log()).sum(-1)
    return (mixed ** 2).sum() - 0.3 * entropy.mean()

def relaxed_backward(g, theta, codes):
    tau = 0.8
    soft = torch.softmax((theta + NOISE.to(theta.dtype)) / tau, -1)
    mixed = soft @ codes
    pi = torch.softmax(theta, -1)
    entropy = -(pi * pi.log()).sum(-1)
    dmixed = 2 * g * mixed
    dcodes = soft.T @ dmixed
    dsoft = dmixed @ codes.T
    dtheta = soft * (dsoft - (soft * dsoft).sum(-1, keepdim=True)) / tau
    dent = -0.3 * g / theta.shape[0]
    dtheta += dent * -pi * (pi.log() + entropy[:, None])
    return dtheta, dcodes

inputs = [torch.randn(3, 4), torch.randn(4, 2)]
"""
CLIP = """
def norm_rows(m):
    return m / (m ** 2).sum(1, keepdim=True) ** 0.5

def clip_loss(im, tx, log_t):
    sim = norm_rows(im) @ norm_rows(tx).T * log_t.exp()
    rows = torch.logsumexp(sim, 1) - sim.diagonal()
    cols = torch.logsumexp(sim, 0) - sim.diagonal()
    return (rows + cols).mean() / 2

def unnorm(up, m):
    length = (m ** 2).sum(1, keepdim=True) ** 0.5
    hat = m / length
    return (up - hat * (hat * up).sum(1, keepdim=True)) / length

def clip_loss_backward(g, im, tx, log_t):
    ih, th = norm_rows(im), norm_rows(tx)
    cos = ih @ th.T
    scale = log_t.exp()
    sim = scale * cos
    eye = torch.eye(4).to(im.dtype)
    dsim = (torch.softmax(sim, 1) - eye + torch.softmax(sim, 0) - eye) * g / (2 * len(im))
    dlog_t = (dsim * sim).sum()
    dih, dth = scale * dsim @ th, scale * dsim.T @ ih
    return unnorm(dih, im), unnorm(dth, tx), dlog_t

inputs = [torch.randn(4, 3), torch.randn(4, 3), torch.tensor(0.7)]
"""
TVERSKY = """
def tversky(raw, truth):
    p = torch.sigmoid(raw)
    tp = (p * truth).sum(0); fp = (p * (1 - truth)).sum(0); fn = ((1 - p) * truth).sum(0)
    score = (tp + 1) / (tp + 0.3 * fp + 0.7 * fn + 1)
    return ((1 - score) ** 0.75).sum()

def tversky_backward(g, raw, truth):
    p = torch.sigmoid(raw)
    tp = (p * truth).sum(0); fp = (p * (1 - truth)).sum(0); fn = ((1 - p) * truth).sum(0)
    den = tp + 0.3 * fp + 0.7 * fn + 1
    score = (tp + 1) / den
    dscore = -0.75 * g * (1 - score) ** -0.25
    dtp = dscore * (den - (tp + 1)) / den ** 2
    dfp = -0.3 * dscore * (tp + 1) / den ** 2
    dfn = -0.7 * dscore * (tp + 1) / den ** 2
    dp = dtp * truth + dfp * (1 - truth) - dfn * truth
    dtruth = dtp * p - dfp * p + dfn * (1 - p)
    return dp * p * (1 - p), dtruth

inputs = [torch.randn(5, 3), torch.rand(5, 3)]
"""
NPMDN = """
import numpy as np

def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def mdn(x, W, V, y):
    h = np.tanh(x @ W)
    o = h @ V
    pi, mu, ls = softmax(o[:, :2]), o[:, 2:4], o[:, 4:]
    z = (y[:, None] - mu) / np.exp(ls)
    dens = pi * np.exp(-0.5 * z ** 2 - ls)
    return -np.log(dens.sum(axis=1)).mean()

def mdn_backward(g, x, W, V, y):
    h = np.tanh(x @ W)
    o = h @ V
    pi, mu, ls = softmax(o[:, :2]), o[:, 2:4], o[:, 4:]
    z = (y[:, None] - mu) / np.exp(ls)
    dens = pi * np.exp(-0.5 * z ** 2 - ls)
    post = dens / dens.sum(axis=1, keepdims=True)
    k = g / len(x)
    d_pi = (pi - post) * k
    d_mu = -post * z / np.exp(ls) * k
    d_ls = post * (1 - z ** 2) * k
    d_o = np.concatenate([d_pi, d_mu, d_ls], axis=1)
    d_y = (post * z / np.exp(ls)).sum(axis=1) * k
    d_V = h.T @ d_o
    d_h = (d_o @ V.T) * (1 - h ** 2)
    return d_h @ W.T, x.T @ d_h, d_V, d_y

inputs = [np.random.default_rng(k).standard_normal(s) for k, s in enumerate([(4, 3), (3, 5), (5, 6), (4,)])]
"""
NPFILTER = """
import numpy as np

def filtered(z, m0, gain, drift):
    m, loss = m0, 0.0
    for t in range(len(z)):
        pred = drift * m
        err = z[t] - pred
        m = pred + gain * err
        loss = loss + 0.5 * (err ** 2).sum()
    return loss

def filtered_backward(up, z, m0, gain, drift):
    ms, errs = [m0], []
    for t in range(len(z)):
        pred = drift * ms[-1]
        errs.append(z[t] - pred)
        ms.append(pred + gain * errs[-1])
    dz = np.zeros_like(z)
    dgain, ddrift = np.zeros_like(gain), np.zeros_like(drift)
    dm = np.zeros_like(m0)
    for t in reversed(range(len(z))):
        derr = up * errs[t] + gain * dm
        dgain += errs[t] * dm
        dpred = dm - derr
        dz[t] = derr
        ddrift += dpred * ms[t]
        dm = dpred * drift
    return dz, dm, dgain, ddrift

inputs = [np.random.randn(5, 3), np.random.randn(3), 0.3 + 0.1 * np.random.rand(3), 0.8 + 0.1 * np.random.rand(3)]
"""
NPLAPLACE = """
import numpy as np

def spread(x, adj, w):
    deg = adj.sum(1)
    lap = np.diag(deg) - adj
    h = x @ w
    return np.maximum(h - 0.1 * lap @ h, 0.0)

def spread_backward(dout, x, adj, w):
    deg = adj.sum(1)
    lap = np.diag(deg) - adj
    h = x @ w
    pre = h - 0.1 * lap @ h
    dpre = dout * (pre > 0)
    dh = dpre - 0.1 * lap.T @ dpre
    dlap = -0.1 * dpre @ h.T
    ddeg = np.diag(dlap)
    dadj = ddeg[:, None] - dlap
    dx = dh @ w.T
    dw = x.T @ dh
    return dx, dadj, dw

inputs = [np.random.randn(5, 3), np.random.rand(5, 5), np.random.randn(3, 4)]
"""
LATER = {
    "quaternion": (EITHER, QUAT, {
        "not transposed": [("pts_bar = out_bar @ rot\n", "pts_bar = out_bar @ rot.T\n")],
        "R transposed": [("R = out_bar.T @ pts", "R = pts.T @ out_bar")],
        "sign": [("z * (R[1, 0] - R[0, 1]))\n    dx", "z * (R[0, 1] - R[1, 0]))\n    dx")],
        "normalisation": [("(du - u * (u @ du)) / n", "du / n")],
        "raw for unit": [("(du - u * (u @ du)) / n", "(du - quat * (quat @ du)) / n")],
        "diagonal": [("- 4 * y * (R[0, 0] + R[2, 2])", "- 4 * y * (R[0, 0] + R[1, 1])")],
    }),
    "poincare": (EITHER, POINCARE, {
        "2 forgotten": [("dsq = 2 * dt /", "dsq = dt /")],
        "power": [("dsa = -2 * dt * sq / (sa ** 2 * sb)", "dsa = -2 * dt * sq / (sa * sb)")],
        "sign": [("return shared - 2 * dsa[:, None] * a, -shared", "return shared - 2 * dsa[:, None] * a, shared")],
        "acosh": [("grad / torch.sqrt(t * t - 1)", "grad / torch.sqrt(1 - t * t + 2 * t)")],
        "wrong point": [("- 2 * dsb[:, None] * b", "- 2 * dsb[:, None] * a")],
    }),
    "decorrelation": (EITHER, LOGDET, {
        "diagonal": [("gl * (inv - torch.diag(1 / cov.diagonal()))", "gl * inv")],
        "twice": [("yc @ (gcov + gcov.T)", "yc @ gcov")],
        "n": [("gcov.T) / (n - 1)", "gcov.T) / n")],
    }),
    "conv and pool": (EITHER, CONVPOOL, {
        "all": [("gfeat[j + 1] += gout[j // 2] * (1 - first)", "gfeat[j + 1] += gout[j // 2] * first")],
        "index": [("gfeat[j] += gout[j // 2] * first", "gfeat[j] += gout[j // 3] * first")],
        "gate": [("(pre > 0).to(pre.dtype)", "(feat > 0.5).to(pre.dtype)")],
        "overwritten": [("gsig[i:i + 3] += gwin[i]", "gsig[i:i + 3] = gwin[i]")],
        "offset": [("gsig[i:i + 3] += gwin[i]", "gsig[i:i + 3] += gwin[i].flip(0)")],
        "bias": [("gpre.sum(0)\n", "gfeat.sum(0)\n")],
    }),
    "reset after": (EITHER, GRUSEQ, {
        "reset": [("torch.cat([lr, lu, lc * rst], 1)", "torch.cat([lr, lu, lc], 1)")],
        "update sign": [("lam * (prev - cand)", "lam * (cand - prev)")],
        "hn": [("lr = lc * hn * rst", "lr = lc * prev * rst")],
        "carry": [("lam = lam * upd + dh @ wh.T", "lam = dh @ wh.T")],
        "bias": [("gbh += dh.sum(0)", "gbh += di.sum(0)")],
        "order": [("gseq.insert(0, di @ wi.T)", "gseq.append(di @ wi.T)")],
        "two": [("(1 - cand ** 2)", "(1 - cand)"), ("gwh += prev.T @ dh", "gwh += prev.T @ di")],
    }),
    "relaxed codes": (EITHER, ENTROPY, {
        "tau": [("keepdim=True)) / tau", "keepdim=True))")],
        "entropy sign": [("dent = -0.3 * g", "dent = 0.3 * g")],
        "entropy": [("(pi.log() + entropy[:, None])", "(pi.log() + 1)")],
        "mean": [("/ theta.shape[0]", "/ theta.shape[1]")],
        "overwritten": [("dtheta += dent", "dtheta = dent")],
        "pi": [("dcodes = soft.T @ dmixed", "dcodes = pi.T @ dmixed")],
    }),
    "contrast of pairs": (EITHER, CLIP, {
        "half": [("/ (2 * len(im))", "/ len(im)")],
        "temperature": [("dlog_t = (dsim * sim).sum()", "dlog_t = (dsim * cos).sum()")],
        "transposed": [("scale * dsim.T @ ih", "scale * dsim @ ih")],
        "scale": [("dih, dth = scale * dsim @ th,", "dih, dth = dsim @ th,")],
        "helper": [("(up - hat * (hat * up).sum(1, keepdim=True)) / length", "(up - hat * (hat * up).sum(1, keepdim=True))")],
        "one side": [("(torch.softmax(sim, 1) - eye + torch.softmax(sim, 0) - eye)", "(2 * torch.softmax(sim, 1) - 2 * eye)")],
        "helper 2": [("hat * (hat * up).sum(1", "m * (hat * up).sum(1")],
    }),
    "overlap with weights": (EITHER, TVERSKY, {
        "sign fn": [("- dfn * truth\n", "+ dfn * truth\n")],
        "quotient": [("(den - (tp + 1)) / den ** 2", "1 / den")],
        "slope": [("return dp * p * (1 - p), dtruth", "return dp * p, dtruth")],
        "weights": [("dfp = -0.3 * dscore", "dfp = -0.7 * dscore")],
        "power": [("(1 - score) ** -0.25", "(1 - score) ** 0.25")],
    }),
    "mixture of arrays": (NUMPY, NPMDN, {
        "sigma": [("d_mu = -post * z / np.exp(ls) * k", "d_mu = -post * z * k")],
        "prior": [("d_pi = (pi - post) * k", "d_pi = (post - pi) * k")],
        "log": [("(1 - z ** 2)", "(1 - z)")],
        "order": [("[d_pi, d_mu, d_ls]", "[d_pi, d_ls, d_mu]")],
        "tanh": [("d_h = (d_o @ V.T) * (1 - h ** 2)", "d_h = d_o @ V.T")],
        "y": [("d_y = (post * z / np.exp(ls)).sum(axis=1) * k", "d_y = (post * z / np.exp(ls)).sum(axis=1)")],
    }),
    "filter of arrays": (NUMPY, NPFILTER, {
        "loss path": [("derr = up * errs[t] + gain * dm", "derr = gain * dm")],
        "later state": [("ddrift += dpred * ms[t]", "ddrift += dpred * ms[t + 1]")],
        "error path": [("dpred = dm - derr", "dpred = dm + derr")],
        "two": [("dgain += errs[t] * dm", "dgain = errs[t] * dm"), ("dm = dpred * drift", "dm = dpred * gain")],
    }),
    "laplacian of arrays": (NUMPY, NPLAPLACE, {
        "transposed": [("0.1 * lap.T @ dpre", "0.1 * lap @ dpre")],
        "degree": [("dadj = ddeg[:, None] - dlap", "dadj = -dlap")],
        "degree axis": [("dadj = ddeg[:, None] - dlap", "dadj = ddeg[None, :] - dlap")],
        "two": [("(pre > 0)", "(h > 0)"), ("dlap = -0.1 * dpre @ h.T", "dlap = 0.1 * dpre @ h.T")],
    }),
}
