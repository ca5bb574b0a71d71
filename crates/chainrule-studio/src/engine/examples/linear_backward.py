dh = 2 * h / h.size
dy = (1 - h**2) * dh
dz = dy
db = dy.sum(0)
dW = x.T @ dz
dx = dz @ W.T
