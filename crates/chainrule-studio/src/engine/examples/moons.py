# Points of two moons, a hidden layer of 16 and two classes.
X, y = moons(100)
W1 = leaf(randn(2, 16))
b1 = leaf(zeros(16))
W2 = leaf(randn(16, 2) * 0.3)
b2 = leaf(zeros(2))
h = tanh(X @ W1 + b1)
logits = h @ W2 + b2
loss = cross_entropy(logits, y)
