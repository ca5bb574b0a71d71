dpicked = full(picked.shape, -1.0 / 8)
dlogprobs = one_hot(y, 5) * dpicked[:, None]
dprobs = dlogprobs / probs
dcounts_sum_inv = (counts * dprobs).sum(1, keepdims=True)
dcounts_sum = -counts_sum ** -2.0 * dcounts_sum_inv
dcounts = counts_sum_inv * dprobs + ones_like(counts) * dcounts_sum
dnorm_logits = counts * dcounts
dlogit_maxes = -dnorm_logits.sum(1, keepdims=True)
dlogits = dnorm_logits + one_hot(logits.argmax(1), 5) * dlogit_maxes
