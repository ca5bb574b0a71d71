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
    return jnp.stack(c, -1)


def _bf16(x):
    """Rounded for good: XLA may leave out a pair of conversions."""
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


def _grad_norm(p, *gradients):
    """The norm of all gradients laid end to end."""
    every = jnp.concatenate([jnp.abs(g).ravel().astype(jnp.float64) for g in gradients])
    if math.isinf(p):
        return jnp.max(every, initial=0.0)
    return jnp.sum(every**p) ** (1 / p)


def _sgd(p, g, lr, step, velocity=None, *, momentum, dampening, weight_decay, nesterov):
    d = g + weight_decay * p
    if velocity is None:
        return p - lr * d, step + 1
    v = momentum * velocity + jnp.where(step == 0, 1.0, 1 - dampening).astype(p.dtype) * d
    return p - lr * (d + momentum * v if nesterov else v), step + 1, v


def _adam(p, g, lr, step, m, v, most=None, *, betas, eps, weight_decay, keep=1.0):
    b1, b2 = betas
    t, d = step + 1, g + weight_decay * p
    m, v = m + (1 - b1) * (d - m), b2 * v + (1 - b2) * d * d
    state = (m, v) if most is None else (m, v, jnp.maximum(most, v))
    root = jnp.sqrt(state[-1]) * ((1 - b2**t) ** -0.5).astype(p.dtype) + eps
    return p * keep - lr / (1 - b1**t).astype(p.dtype) * m / root, step + 1, *state


def _adagrad(p, g, lr, step, total, *, lr_decay, weight_decay, eps):
    d = g + weight_decay * p
    total = total + d * d
    rate = lr / (1 + step * lr_decay).astype(p.dtype)
    return p - rate * d / (jnp.sqrt(total) + eps), step + 1, total


def _muon(p, g, lr, step, b, *, momentum, nesterov, steps, weight_decay):
    b = momentum * b + g
    x = g + momentum * b if nesterov else b
    norm = jnp.sqrt(jnp.sum(x.astype(jnp.float64) ** 2))
    x = x * (1 / (norm + 1e-7)).astype(p.dtype)
    tall = p.shape[0] > p.shape[1]
    x = x.T if tall else x
    for _ in range(steps):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * (square @ square)) @ x
    x = x.T if tall else x
    size = lr * math.sqrt(max(1.0, p.shape[0] / max(p.shape[1], 1)))
    return p * (1 - lr * weight_decay) - size * x, step + 1, b


def _keras(p, g, base, step, *state, rule, lr, decay, momentum, nesterov, beta1, beta2, eps):
    t, rate = step + 1, base * lr / (1 + decay * step).astype(p.dtype)
    if rule == "Sgd":
        v = (momentum * state[0] if state else 0.0) - rate * g
        return p + (momentum * v - rate * g if nesterov else v), step + 1, *([v] if state else [])
    v = beta2 * state[-1] + (1 - beta2) * g * g
    if rule == "RmsProp":
        return p - rate * g / jnp.sqrt(v + eps), step + 1, v
    m = beta1 * state[0] + (1 - beta1) * g
    along = beta1 * m + (1 - beta1) * g if rule == "Nadam" else m
    size = rate * (jnp.sqrt(1 - beta2**t) / (1 - beta1**t)).astype(p.dtype)
    return p - size * along / (jnp.sqrt(v) + eps), step + 1, m, v


def _rms_prop(p, g, lr, step, v, *state, alpha, eps, weight_decay, momentum, centered):
    d = g + weight_decay * p
    v = alpha * v + (1 - alpha) * d * d
    size = v
    if centered:
        mean = state[-1] + (1 - alpha) * (d - state[-1])
        size = jnp.maximum(v - mean * mean, 0)
        state = (*state[:-1], mean)
    d = d / (jnp.sqrt(size) + eps)
    if momentum:
        d = momentum * state[0] + d
        state = (d, *state[1:])
    return p - lr * d, step + 1, v, *state
