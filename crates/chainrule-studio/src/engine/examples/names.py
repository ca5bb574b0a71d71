# The names model in small steps: the loss of the first step of `train names`.
C, W1, b1, W2, b2, bngain, bnbias = names_parameters(200)
X, Y = names_batch(32)
n = 32
# A vector for each letter of the context, side by side, and the hidden layer.
emb = embedding(C, X)
embcat = emb.reshape(32, 30)
hprebn = embcat @ W1 + b1
# Batch norm.
bnmeani = 1.0 / n * hprebn.sum(0, keepdims=True)
bndiff = hprebn - bnmeani
bndiff2 = bndiff ** 2.0
bnvar = 1.0 / (n - 1) * bndiff2.sum(0, keepdims=True)
bnvar_inv = (bnvar + 1e-5) ** -0.5
bnraw = bndiff * bnvar_inv
hpreact = bngain * bnraw + bnbias
h = tanh(hpreact)
logits = h @ W2 + b2
# Cross-entropy; the maximum is taken out so that exp cannot overflow.
logit_maxes = logits.max(1, keepdims=True)
norm_logits = logits - logit_maxes
counts = exp(norm_logits)
counts_sum = counts.sum(1, keepdims=True)
counts_sum_inv = counts_sum ** -1.0
probs = counts * counts_sum_inv
logprobs = log(probs)
loss = -logprobs[arange(n), Y].mean()
