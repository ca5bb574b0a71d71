def _softmax(x):
    if x.size == 0:
        return x
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def _softmax_grad(y, g):
    return y * (g - np.sum(y * g, -1, keepdims=True))


def _log_softmax(x):
    if x.size == 0:
        return x
    z = x - np.max(x, -1, keepdims=True)
    return z - np.log(np.sum(np.exp(z), -1, keepdims=True))


def _log_softmax_grad(y, g):
    return g - np.exp(y) * np.sum(g, -1, keepdims=True)


def _reduced(losses, reduction, divisor):
    return losses if reduction == "None" else np.asarray(np.sum(losses) / divisor, losses.dtype)


def _divisor(count, reduction, batch):
    """Divisor of the sum of the losses."""
    return {"Mean": count, "BatchMean": batch}.get(reduction, 1)


def _classes(targets, classes, dtype, ignored, weight, smoothing):
    """Target distribution of each row, and the weights of the targets that count."""
    kept = np.ones(targets.shape, bool) if ignored is None else targets != ignored
    hot = np.where(kept, targets, 0)[..., None] == np.arange(classes)
    hot = (hot & kept[..., None]).astype(dtype)
    weights = np.ones(classes, dtype) if weight is None else weight
    spread = kept[..., None] * weights * (smoothing / max(classes, 1))
    return (hot * weights * (1 - smoothing) + spread).astype(dtype), np.sum(hot * weights)


def _cross_entropy(x, targets, reduction, ignored, weight, batch, smoothing):
    """The loss, and the probabilities."""
    q, count = _classes(targets, x.shape[1], x.dtype, ignored, weight, smoothing)
    losses = -np.sum(np.where(q == 0, 0, q * _log_softmax(x)), -1)
    return _reduced(losses, reduction, _divisor(count, reduction, batch)), _softmax(x)


def _cross_entropy_grad(p, targets, g, reduction, ignored, weight, batch, smoothing):
    q, count = _classes(targets, p.shape[1], p.dtype, ignored, weight, smoothing)
    g = (g / np.asarray(_divisor(count, reduction, batch), p.dtype))[..., None]
    return np.where(np.any(q, -1, keepdims=True), g * (p * np.sum(q, -1, keepdims=True) - q), 0)


def _given(targets, weight, smoothing):
    q = targets * (1 - smoothing) + smoothing / max(targets.shape[1], 1)
    return q if weight is None else q * weight


def _soft_cross_entropy(x, targets, reduction, weight, batch, smoothing):
    """The loss, and the logarithms of the probabilities."""
    logp = _log_softmax(x)
    losses = -np.sum(logp * _given(targets, weight, smoothing), -1)
    return _reduced(losses, reduction, _divisor(len(x), reduction, batch)), logp


def _soft_cross_entropy_grad(logp, targets, g, reduction, weight, batch, smoothing, to_target):
    g = (g / np.asarray(_divisor(len(logp), reduction, batch), logp.dtype))[..., None]
    if to_target:
        return -g * logp * (1 - smoothing) * (1 if weight is None else weight)
    q = _given(targets, weight, smoothing)
    return g * (np.exp(logp) * np.sum(q, -1, keepdims=True) - q)


def _nll(x, targets, reduction, ignored, weight, batch):
    """Log-probabilities [n, classes, inner] and class numbers [n, inner]."""
    q, count = _classes(targets, x.shape[1], x.dtype, ignored, weight, 0.0)
    losses = -np.sum(np.where(q == 0, 0, q * np.moveaxis(x, 1, -1)), -1)
    return _reduced(losses, reduction, _divisor(count, reduction, batch))


def _nll_grad(targets, g, shape, dtype, reduction, ignored, weight, batch):
    q, count = _classes(targets, shape[1], dtype, ignored, weight, 0.0)
    g = (g / np.asarray(_divisor(count, reduction, batch), dtype))[..., None]
    return np.moveaxis(np.where(q == 0, 0, -q * g), -1, 1)


def _loss(losses, reduction):
    """The mean, the sum, the sum divided by the first size, or each loss."""
    batch = losses.shape[0] if losses.ndim else 1
    return _reduced(losses, reduction, np.float64(_divisor(losses.size, reduction, batch)))


def _loss_grad(slope, g, reduction):
    batch = slope.shape[0] if slope.ndim else 1
    divisor = _divisor(slope.size, reduction, batch)
    return slope * (g / np.asarray(divisor, slope.dtype))


def _bce(x, t):
    yes, no = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
    return (t - 1) * no - t * yes


def _bce_slope(x, t):
    return (x - t) / np.maximum((1 - x) * x, np.float32(1e-12).astype(x.dtype))


def _bce_with_logits(x, t):
    return x * np.where(x < 0, -t, 1 - t) + np.log1p(np.exp(-np.abs(x)))


def _hinge_embedding(x, t, margin):
    return np.where(t == 1, 0, np.maximum(margin - x, 0)) + np.where(t == -1, 0, x)


def _hinge_embedding_slope(x, t, margin):
    apart = np.where(t == 1, 0, np.where(margin - x > 0, -1, 0))
    return (apart + np.where(t == -1, 0, 1)).astype(x.dtype)


def _cosine_embedding(x, t, margin):
    return np.where(t == 1, 1 - x, np.where(t == -1, np.maximum(x - margin, 0), 0))


def _cosine_embedding_slope(x, t, margin):
    return np.where(t == 1, -1, np.where((t == -1) & (x > margin), 1, 0)).astype(x.dtype)


def _huber(x, t, delta):
    size = np.abs(x - t)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _smooth_l1(x, t, beta):
    size = np.abs(x - t)
    return np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _kl_div(x, t, log_target):
    if log_target:
        return np.exp(t) * (t - x)
    return np.where(t == 0, 0, t * np.log(t)) - t * x


def _kl_div_slope(x, t, log_target):
    return -np.exp(t) if log_target else -t


def _kl_div_target_slope(x, t, log_target):
    if log_target:
        return np.exp(t) * (t - x) + np.exp(t)
    return np.log(t) + ((t + t) / t - 1) - x


def _cosine(x, y, eps):
    """The cosine, the norms, and the norms but at least eps."""
    norms = [np.sqrt(np.sum(t * t, -1)) for t in (x, y)]
    cut = [np.where(n < eps, np.asarray(eps, x.dtype), n) for n in norms]
    return np.sum(x * y, -1) / cut[0] / cut[1], norms, cut


def _cosine_similarity(x, y, eps):
    return _cosine(x, y, eps)[0]


def _cosine_similarity_grad(x, y, g, eps):
    c, norms, cut = _cosine(x, y, eps)
    along = np.where(norms[0] == 0, 0, c / np.where(norms[0] == 0, 1, norms[0]) / cut[0])
    return y * (g / cut[0] / cut[1])[..., None] - x * (g * along)[..., None]


def _lstm_gates(sums):
    i, f, g, o = np.split(sums, 4, -1)
    return _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)


def _lstm_cell(sums, cell):
    """The output and the new cell side by side."""
    i, f, g, o = _lstm_gates(sums)
    new = f * cell + i * g
    return np.concatenate([o * np.tanh(new), new], -1)


def _lstm_cell_grad(sums, cell, grad):
    """The gradients of the sums, then those of the cell, in one row."""
    i, f, g, o = _lstm_gates(sums)
    t = np.tanh(f * cell + i * g)
    dh, dnew = np.split(grad, 2, -1)
    dc = dnew + dh * o * (1 - t * t)
    parts = [dc * g * i * (1 - i), dc * cell * f * (1 - f), dc * i * (1 - g * g), dh * t * o * (1 - o)]
    return np.concatenate([np.concatenate(parts, -1).ravel(), (dc * f).ravel()])


def _linear(x, weight, bias=None):
    y = x @ weight.T
    return y if bias is None else y + bias


def _bf16(x):
    """The nearest numbers of bfloat16, in float32; of two the even one."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.int64)
    near = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
    return np.where(np.isnan(x), x, near.astype(np.uint32).view(np.float32))


def _linear_bf16(x, weight, bias=None):
    return _linear(_bf16(x), _bf16(weight), bias)


def _linear_grad_bf16(g, x, weight, wants):
    """As _linear_grad of rounded arrays; the sum of the gradients takes them whole."""
    rows, near = math.prod(x.shape[:-1]), _bf16(g)
    flat, x2 = near.reshape(rows, weight.shape[0]), _bf16(x).reshape(rows, weight.shape[1])
    made = (
        lambda: (flat @ _bf16(weight)).reshape(x.shape),
        lambda: flat.T @ x2,
        lambda: np.sum(g.reshape(rows, weight.shape[0]), 0),
    )
    found = tuple(f() for f, wanted in zip(made, wants) if wanted)
    return found if len(found) > 1 else found[0]


def _linear_grad(g, x, weight, wants):
    """The gradients of input, weight and bias, as wanted."""
    rows = math.prod(x.shape[:-1])
    flat, x2 = g.reshape(rows, weight.shape[0]), x.reshape(rows, weight.shape[1])
    made = (lambda: (flat @ weight).reshape(x.shape), lambda: flat.T @ x2, lambda: np.sum(flat, 0))
    found = tuple(f() for f, wanted in zip(made, wants) if wanted)
    return found if len(found) > 1 else found[0]


def _affine(x, learned, gain, bias, shape):
    """gain * x + bias, of which those that there are follow in `learned`, in a shape that
    broadcasts.
    """
    learned = [np.reshape(t, shape) for t in learned]
    x = x * learned[0] if gain else x
    return x + learned[-1] if bias else x


def _batch_norm(x, *learned, eps, correction, gain, bias):
    """Batch norm of [n, features]; with the normalised input, 1 / sqrt(var + eps), mean and
    variance."""
    mean = np.mean(x, 0)
    d = x - mean
    var = np.sum(d * d, 0) / np.asarray(len(x) - correction, x.dtype)
    inv = 1 / np.sqrt(var + eps)
    return _affine(d * inv, learned, gain, bias, -1), d * inv, inv, mean, var


def _batch_norm_grad(g, h, inv, gain=None, *, correction):
    """The gradients of input, gain and bias; h is the normalised input."""
    n, dgain, dbias = len(g), np.sum(g * h, 0), np.sum(g, 0)
    scale = inv if gain is None else inv * gain
    dx = scale * (g - dbias / np.asarray(n, g.dtype) - h * dgain / np.asarray(n - correction, g.dtype))
    return dx, dgain, dbias


def _rows(x, over):
    """[samples, groups, channels of a group, elements of a channel]; the last two are normalised.
    """
    kind, n = over
    if kind == "Last":
        lead = x.shape[: x.ndim - n]
        return x.reshape(math.prod(lead), 1, math.prod(x.shape[x.ndim - n :]), 1)
    return x.reshape(x.shape[0], n, x.shape[1] // max(n, 1), math.prod(x.shape[2:]))


def _row_norm(x, *learned, norm, over, eps, gain, bias):
    """Layer, group, instance or root-mean-square normalisation; with centre and 1 / sqrt(var + eps)
    of each row.
    """
    r = _rows(x, over)
    centre = np.mean(r, (2, 3), keepdims=True) if norm == "Layer" else np.zeros(r.shape[:2] + (1, 1), r.dtype)
    d = r - centre
    inv = 1 / np.sqrt(np.mean(d * d, (2, 3), keepdims=True) + eps)
    y = _affine(d * inv, learned, gain, bias, r.shape[1:3] + (1,)).reshape(x.shape)
    return y, np.stack([centre.ravel(), inv.ravel(), np.zeros_like(inv).ravel()], -1)


def _row_norm_grad(g, x, kept, gain=None, *, norm, over, wants):
    """The gradient of the input, and those of gain and bias as wanted."""
    r, gr = _rows(x, over), _rows(g, over)
    centre, inv = (kept[:, i].reshape(r.shape[:2] + (1, 1)) for i in (0, 1))
    h = (r - centre) * inv
    up = gr if gain is None else gr * gain.reshape(r.shape[1:3] + (1,))
    dx = up - h * np.mean(up * h, (2, 3), keepdims=True)
    if norm == "Layer":
        dx = dx - np.mean(up, (2, 3), keepdims=True)
    learned = x.shape[x.ndim - over[1] :] if over[0] == "Last" else x.shape[1:2]
    sums = [np.sum(t, (0, 3)).reshape(learned) for t, wanted in ((gr * h, wants[0]), (gr, wants[1])) if wanted]
    dx = (dx * inv).reshape(x.shape)
    return (dx, *sums) if sums else dx


def _philox(counters, seed):
    """Philox 4x32-10 (Salmon and others, 2011): four words for each counter of four words."""
    c = [np.asarray(w, np.uint64) for w in counters]
    low, high = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)
    word, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> half) ^ c[1] ^ low, b & word, (a >> half) ^ c[3] ^ high, a & word]
        low, high = (low + np.uint64(0x9E3779B9)) & word, (high + np.uint64(0xBB67AE85)) & word
    return np.stack(c, -1)


def _keep(shape, p, seed, dtype):
    """The factors of the weights of attention: 0 with probability p, else 1 / (1 - p)."""
    t, s = shape[-2:]
    pairs, blocks = math.prod(shape[:-2]), -(-s // 4)
    pair, row, block = np.meshgrid(np.arange(pairs), np.arange(t), np.arange(blocks), indexing="ij")
    words = _philox([block, row, pair & 0xFFFFFFFF, pair >> 32], seed)
    words = words.reshape(pairs, t, blocks * 4)[..., :s].reshape(shape)
    return np.where(words >= int(p * 2**32), 1 / (1 - p) if p < 1 else 0, 0).astype(dtype)


def _attention_weights(q, k, mask, causal, scale, dropout):
    """The weights, and the factors of the dropout."""
    scores = q @ np.swapaxes(k, -1, -2) * scale
    seen = np.ones(scores.shape, bool)
    if causal:
        seen = seen & (np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None])
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        scores, seen = scores + mask, seen & (mask != -np.inf)
    if scores.size == 0:
        return scores, 1
    alive = np.any(seen, -1, keepdims=True)
    e = _softmax(np.where(alive, np.where(seen, scores, -np.inf), 0))
    keep = 1 if dropout is None else _keep(scores.shape, *dropout, scores.dtype)
    return np.where(seen, e, 0), keep


def _attention(q, k, v, mask=None, *, causal, scale, dropout):
    """softmax(scale * q k^T + mask) v, and two numbers for each row, which this script does not
    need.
    """
    w, keep = _attention_weights(q, k, mask, causal, scale, dropout)
    return (w * keep) @ v, np.zeros(q.shape[:-1] + (2,), q.dtype)


def _attention_grad(g, y, logs, q, k, v, mask=None, *, causal, scale, dropout):
    """The gradients of queries, keys and values."""
    w, keep = _attention_weights(q, k, mask, causal, scale, dropout)
    dw = g @ np.swapaxes(v, -1, -2) * keep
    ds = w * (dw - np.sum(g * y, -1, keepdims=True)) * scale
    return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(w * keep, -1, -2) @ g


def _attention_bf16(q, k, v, mask=None, *, causal, scale, dropout):
    """As _attention, with the operands of both products rounded: the weights before they are
    divided by the sum of their row, of which the largest is 1.
    """
    w, keep = _attention_weights(_bf16(q), _bf16(k), mask, causal, scale, dropout)
    if w.size == 0:
        return w @ v, np.zeros(q.shape[:-1] + (2,), q.dtype)
    most = np.max(w, -1, keepdims=True)
    most = np.where(most == 0, 1, most)
    return _bf16(w / most * keep) @ _bf16(v) * most, np.zeros(q.shape[:-1] + (2,), q.dtype)


def _attention_grad_bf16(g, y, logs, q, k, v, mask=None, *, causal, scale, dropout):
    """As _attention_grad, with the operands of all products rounded."""
    q, k, near = _bf16(q), _bf16(k), _bf16(g)
    w, keep = _attention_weights(q, k, mask, causal, scale, dropout)
    dw = near @ np.swapaxes(_bf16(v), -1, -2) * keep
    ds = _bf16(w * (dw - np.sum(g * y, -1, keepdims=True)))
    return scale * (ds @ k), scale * (np.swapaxes(ds, -1, -2) @ q), np.swapaxes(_bf16(w * keep), -1, -2) @ near


def _patches(x, kernel, stride, padding, dilation, output):
    """The image, padded to what the windows reach, and for each place of the kernel the slice that
    it sees.
    """
    need = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(output, stride, kernel, dilation)]
    full = np.zeros(x.shape[:2] + tuple(max(n, p + m) for n, p, m in zip(need, padding, x.shape[2:])), x.dtype)
    inner = np.s_[:, :, padding[0] : padding[0] + x.shape[2], padding[1] : padding[1] + x.shape[3]]
    full[inner] = x

    def at(i, j):
        rows = slice(i * dilation[0], i * dilation[0] + (output[0] - 1) * stride[0] + 1, stride[0])
        cols = slice(j * dilation[1], j * dilation[1] + (output[1] - 1) * stride[1] + 1, stride[1])
        return np.s_[:, :, rows, cols]

    places = [(i, j, at(i, j)) for i in range(kernel[0]) for j in range(kernel[1])]
    return full, inner, places


def _groups(x, axis, groups):
    return x.reshape(x.shape[:axis] + (groups, x.shape[axis] // groups) + x.shape[axis + 1 :])


def _conv2d(x, weight, bias=None, *, groups, input, output, kernel, stride, padding, dilation):
    full, _, places = _patches(x, kernel, stride, padding, dilation, output)
    w, y = _groups(weight, 0, groups), 0
    for i, j, at in places:
        y = y + np.einsum("ngchw,goc->ngohw", _groups(full[at], 1, groups), w[..., i, j])
    y = y.reshape(len(x), len(weight), *output)
    return y if bias is None else y + bias[:, None, None]


def _conv2d_weight_grad(x, g, *, groups, input, output, kernel, stride, padding, dilation):
    full, _, places = _patches(x, kernel, stride, padding, dilation, output)
    g = _groups(g, 1, groups)
    out = np.zeros((groups, g.shape[2], x.shape[1] // groups) + tuple(kernel), x.dtype)
    for i, j, at in places:
        out[..., i, j] = np.einsum("ngchw,ngohw->goc", _groups(full[at], 1, groups), g)
    return out.reshape(-1, *out.shape[2:])


def _conv_transpose2d(g, weight, *, groups, input, output, kernel, stride, padding, dilation):
    x = np.zeros((len(g), groups * weight.shape[1]) + tuple(input), g.dtype)
    full, inner, places = _patches(x, kernel, stride, padding, dilation, output)
    w, g = _groups(weight, 0, groups), _groups(g, 1, groups)
    for i, j, at in places:
        full[at] += np.einsum("ngohw,goc->ngchw", g, w[..., i, j]).reshape(full[at].shape)
    return full[inner]


def _max_pool(x, rows, row_step, cols, col_step):
    """The largest of each window, and where it stands, counted through the image. A window is a
    first position and a count.
    """
    y = np.zeros(x.shape[:2] + (len(rows), len(cols)), x.dtype)
    at = np.zeros(y.shape, np.int64)
    for i, (top, height) in enumerate(rows):
        for j, (left, width) in enumerate(cols):
            r, c = top + row_step * np.arange(height), left + col_step * np.arange(width)
            seen = x[:, :, r[:, None], c].reshape(*x.shape[:2], height * width)
            k = np.argmax(seen, -1)
            y[:, :, i, j] = np.take_along_axis(seen, k[..., None], -1)[..., 0]
            at[:, :, i, j] = r[k // width] * x.shape[3] + c[k % width]
    return y, at


def _taps(size, starts, entries, dtype):
    """A matrix from the list of weights of each row."""
    out = np.zeros((len(starts) - 1, size), dtype)
    for i, (first, last) in enumerate(zip(starts, starts[1:])):
        for at, weight in entries[first:last]:
            out[i, at] += weight
    return out


def _resample(x, rows, cols):
    return _taps(*rows, x.dtype) @ x @ _taps(*cols, x.dtype).T
