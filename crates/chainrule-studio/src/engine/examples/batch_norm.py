# Six rows, four features, variance over n - 1.
x = leaf(randn(6, 4) * 2.0 + 1.0)
gain = leaf(1.0 + 0.1 * randn(1, 4))
bias = leaf(0.1 * randn(1, 4))
n = 6
mean = 1.0 / n * x.sum(0, keepdims=True)
diff = x - mean
diff2 = diff ** 2.0
var = 1.0 / (n - 1) * diff2.sum(0, keepdims=True)
var_inv = (var + 1e-5) ** -0.5
raw = diff * var_inv
y = gain * raw + bias
target = randn(6, 4)
loss = ((y - target) ** 2.0).sum()
