# Two blocks over sequences of eight symbols.
symbols, width, length, rows = 11, 16, 8, 4

def attention_layer(x, Wq, Wk, Wv, Wo):
    q = (x @ Wq).reshape(rows, length, 2, 8).transpose(1, 2)
    k = (x @ Wk).reshape(rows, length, 2, 8).transpose(1, 2)
    v = (x @ Wv).reshape(rows, length, 2, 8).transpose(1, 2)
    scores = q @ k.transpose(2, 3) / sqrt(8)
    masked = where(1.0 - tril(ones(length, length)), -1e9, scores)
    weights = softmax(masked, axis=-1)
    mixed = (weights @ v).transpose(1, 2).reshape(rows, length, width)
    return mixed @ Wo

def feed_forward(x, W1, b1, W2, b2):
    hidden = gelu(x @ W1 + b1)
    return hidden @ W2 + b2

def block(x):
    gain1 = leaf(ones(width))
    bias1 = leaf(zeros(width))
    Wq = leaf(randn(width, width) * 0.2)
    Wk = leaf(randn(width, width) * 0.2)
    Wv = leaf(randn(width, width) * 0.2)
    Wo = leaf(randn(width, width) * 0.2)
    x = x + attention_layer(layer_norm(x, gain1, bias1), Wq, Wk, Wv, Wo)
    gain2 = leaf(ones(width))
    bias2 = leaf(zeros(width))
    W1 = leaf(randn(width, 4 * width) * 0.2)
    b1 = leaf(zeros(4 * width))
    W2 = leaf(randn(4 * width, width) * 0.1)
    b2 = leaf(zeros(width))
    return x + feed_forward(layer_norm(x, gain2, bias2), W1, b1, W2, b2)

tokens = randint(0, symbols, [rows, length])
targets = randint(0, symbols, [rows, length])
table = leaf(randn(symbols, width) * 0.3)
places = leaf(randn(length, width) * 0.3)
x = embedding(table, tokens) + places
for i in range(2):
    x = block(x)
head = leaf(randn(width, symbols) * 0.2)
logits = x @ head
loss = cross_entropy(logits.reshape(rows * length, symbols), targets.reshape(rows * length))
