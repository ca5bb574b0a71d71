# Four positions, vectors of three: each looks at itself and at those before it.
x = leaf(randn(4, 3))
Wq = leaf(randn(3, 3) * 0.6)
Wk = leaf(randn(3, 3) * 0.6)
Wv = leaf(randn(3, 3) * 0.6)
q = x @ Wq
k = x @ Wk
v = x @ Wv
scores = q @ k.T / sqrt(3)
later = 1.0 - tril(ones(4, 4))
masked = where(later, -1e9, scores)
weights = softmax(masked, axis=-1)
out = weights @ v
target = randn(4, 3)
loss = ((out - target) ** 2).mean()
