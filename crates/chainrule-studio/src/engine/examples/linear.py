# Four rows of three features, two outputs.
x = leaf(randn(4, 3))
W = leaf(randn(3, 2))
b = leaf(randn(2))
z = x @ W
y = z + b
h = tanh(y)
loss = (h**2).mean()
