def _grad_norm(p, *gradients):
    """The norm of all gradients laid end to end."""
    sizes = [np.abs(g).astype(np.float64) for g in gradients]
    if math.isinf(p):
        return np.max([np.max(s, initial=0.0) for s in sizes])
    return np.sum([np.sum(s**p) for s in sizes]) ** (1 / p)


def _sgd(p, g, lr, step, velocity=None, *, momentum, dampening, weight_decay, nesterov):
    d = g + weight_decay * p
    if velocity is None:
        return p - lr * d, step + 1
    v = momentum * velocity + (1.0 if step == 0 else 1 - dampening) * d
    return p - lr * (d + momentum * v if nesterov else v), step + 1, v


def _adam(p, g, lr, step, m, v, most=None, *, betas, eps, weight_decay, keep=1.0):
    b1, b2 = betas
    t, d = int(step) + 1, g + weight_decay * p
    m, v = m + (1 - b1) * (d - m), b2 * v + (1 - b2) * d * d
    state = (m, v) if most is None else (m, v, np.maximum(most, v))
    root = np.sqrt(state[-1]) * (1 - b2**t) ** -0.5 + eps
    return p * keep - lr / (1 - b1**t) * m / root, step + 1, *state


def _adam_w(p, g, lr, step, *state, betas, eps, weight_decay):
    return _adam(p, g, lr, step, *state, betas=betas, eps=eps, weight_decay=0.0, keep=1 - lr * weight_decay)


def _rms_prop(p, g, lr, step, v, *state, alpha, eps, weight_decay, momentum, centered):
    d, state = g + weight_decay * p, list(state)
    v = alpha * v + (1 - alpha) * d * d
    size = v
    if centered:
        state[-1] = state[-1] + (1 - alpha) * (d - state[-1])
        size = np.maximum(v - state[-1] * state[-1], 0)
    d = d / (np.sqrt(size) + eps)
    if momentum:
        state[0] = d = momentum * state[0] + d
    return p - lr * d, step + 1, v, *state


def _adagrad(p, g, lr, step, total, *, lr_decay, weight_decay, eps):
    d = g + weight_decay * p
    total = total + d * d
    return p - lr / (1 + int(step) * lr_decay) * d / (np.sqrt(total) + eps), step + 1, total


def _lion(p, g, lr, step, m, *, betas, weight_decay):
    b1, b2 = betas
    direction = np.sign(b1 * m + (1 - b1) * g)
    return p * (1 - lr * weight_decay) - lr * direction, step + 1, b2 * m + (1 - b2) * g


def _muon(p, g, lr, step, b, *, momentum, nesterov, steps, weight_decay):
    b = momentum * b + g
    x = g + momentum * b if nesterov else b
    x = x * (1 / (math.sqrt(np.sum(x.astype(np.float64) ** 2)) + 1e-7))
    tall = p.shape[0] > p.shape[1]
    x = x.T if tall else x
    for _ in range(steps):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * (square @ square)) @ x
    x = x.T if tall else x
    size = lr * math.sqrt(max(1.0, p.shape[0] / max(p.shape[1], 1)))
    return p * (1 - lr * weight_decay) - size * x, step + 1, b


def _keras(p, g, base, step, *state, rule, lr, decay, momentum, nesterov, beta1, beta2, eps):
    t, rate = int(step) + 1, base * lr / (1 + decay * int(step))
    if rule == "Sgd":
        v = (momentum * state[0] if state else 0.0) - rate * g
        return p + (momentum * v - rate * g if nesterov else v), step + 1, *([v] if state else [])
    v = beta2 * state[-1] + (1 - beta2) * g * g
    if rule == "RmsProp":
        return p - rate * g / np.sqrt(v + eps), step + 1, v
    m = beta1 * state[0] + (1 - beta1) * g
    along = beta1 * m + (1 - beta1) * g if rule == "Nadam" else m
    size = rate * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    return p - size * along / (np.sqrt(v) + eps), step + 1, m, v
