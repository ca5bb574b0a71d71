# Eight rows, five classes: softmax and cross-entropy in small steps.
logits = leaf(randn(8, 5))
y = randint(0, 5, [8])
logit_maxes = logits.max(1, keepdims=True)
norm_logits = logits - logit_maxes
counts = exp(norm_logits)
counts_sum = counts.sum(1, keepdims=True)
counts_sum_inv = counts_sum ** -1.0
probs = counts * counts_sum_inv
logprobs = log(probs)
picked = logprobs[arange(8), y]
loss = -picked.mean()
