def _softmax(x):
    return torch.softmax(x, -1)


def _log_softmax(x):
    return torch.log_softmax(x, -1)


def _bce_slope(x, t):
    return (x - t) / torch.clamp((1 - x) * x, min=9.999999960041972e-13)


def _loss(losses, reduction):
    """The mean, the sum, the sum divided by the first size, or each loss."""
    batch = losses.shape[0] if losses.ndim else 1
    return _reduced(losses, reduction, _divisor(losses.numel(), reduction, batch))


def _bf16(x):
    return x.to(torch.bfloat16).to(torch.float32)


def _linear(x, weight, bias=None):
    return torch.nn.functional.linear(x, weight, bias)


def _affine(x, learned, gain, bias, shape):
    """gain * x + bias, of which those that there are follow in `learned`, in a shape that
    broadcasts.
    """
    learned = [t.reshape(shape) for t in learned]
    x = x * learned[0] if gain else x
    return x + learned[-1] if bias else x


def _philox(counters, seed):
    """Philox 4x32-10 (Salmon and others, 2011): four words for each counter of four words. Products
    wrap in 64 bits, and the masks leave their halves.
    """
    word, c = 0xFFFFFFFF, list(counters)
    low, high = seed & word, seed >> 32 & word
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32 & word) ^ c[1] ^ low, b & word, (a >> 32 & word) ^ c[3] ^ high, a & word]
        low, high = low + 0x9E3779B9 & word, high + 0xBB67AE85 & word
    return torch.stack(c, -1)


def _keep(shape, p, seed, dtype):
    """The factors of the weights of attention: 0 with probability p, else 1 / (1 - p)."""
    t, s = shape[-2:]
    pairs, blocks = math.prod(shape[:-2]), -(-s // 4)
    pair, row, block = torch.meshgrid(torch.arange(pairs), torch.arange(t), torch.arange(blocks), indexing="ij")
    words = _philox([block, row, pair & 0xFFFFFFFF, pair >> 32], seed)
    words = words.reshape(pairs, t, blocks * 4)[..., :s].reshape(shape)
    return (words >= int(p * 2**32)).to(dtype) * (1 / (1 - p) if p < 1 else 0)


def _attention_weights(q, k, mask, causal, scale, dropout):
    """The weights, and the factors of the dropout."""
    scores = q @ torch.swapaxes(k, -1, -2) * scale
    seen = torch.ones(scores.shape, dtype=torch.bool)
    if causal:
        seen = torch.tril(seen)
    if mask is not None and mask.dtype == torch.bool:
        seen = seen & mask
    elif mask is not None:
        scores, seen = scores + mask, seen & (mask != -math.inf)
    alive = torch.any(seen, -1, keepdim=True)
    e = torch.softmax(torch.where(alive, torch.where(seen, scores, -math.inf), 0), -1)
    keep = 1 if dropout is None else _keep(scores.shape, *dropout, scores.dtype)
    return torch.where(seen, e, 0), keep


def _patches(x, kernel, stride, padding, dilation, output):
    """The image, padded to what the windows reach, and for each place of the kernel the slice that
    it sees.
    """
    need = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(output, stride, kernel, dilation)]
    size = [max(n, p + m) for n, p, m in zip(need, padding, x.shape[2:])]
    full = torch.zeros((*x.shape[:2], *size), dtype=x.dtype)
    whole = slice(None)
    inner = (whole, whole, *(slice(p, p + m) for p, m in zip(padding, x.shape[2:])))
    full[inner] = x

    def at(i, j):
        rows = slice(i * dilation[0], i * dilation[0] + (output[0] - 1) * stride[0] + 1, stride[0])
        cols = slice(j * dilation[1], j * dilation[1] + (output[1] - 1) * stride[1] + 1, stride[1])
        return whole, whole, rows, cols

    places = [(i, j, at(i, j)) for i in range(kernel[0]) for j in range(kernel[1])]
    return full, inner, places


def _grad_norm(p, *gradients):
    """The norm of all gradients laid end to end."""
    every = torch.cat([g.reshape(-1).to(torch.float64) for g in gradients])
    return torch.linalg.vector_norm(every, p) if every.numel() else torch.zeros((), dtype=torch.float64)
