dlogprobs = one_hot(Y, 27) * (-1.0 / n)
dprobs = dlogprobs / probs
dcounts_sum_inv = (counts * dprobs).sum(1, keepdims=True)
dcounts_sum = -counts_sum ** -2.0 * dcounts_sum_inv
dcounts = counts_sum_inv * dprobs + ones_like(counts) * dcounts_sum
dnorm_logits = counts * dcounts
dlogit_maxes = -dnorm_logits.sum(1, keepdims=True)
dlogits = dnorm_logits + one_hot(logits.argmax(1), 27) * dlogit_maxes
dh = dlogits @ W2.T
dW2 = h.T @ dlogits
db2 = dlogits.sum(0)
dhpreact = (1.0 - h ** 2) * dh
dbngain = (bnraw * dhpreact).sum(0, keepdims=True)
dbnbias = dhpreact.sum(0, keepdims=True)
dbnraw = bngain * dhpreact
dbnvar_inv = (bndiff * dbnraw).sum(0, keepdims=True)
dbnvar = -0.5 * (bnvar + 1e-5) ** -1.5 * dbnvar_inv
dbndiff2 = 1.0 / (n - 1) * ones_like(bndiff2) * dbnvar
dbndiff = bnvar_inv * dbnraw + 2.0 * bndiff * dbndiff2
dbnmeani = -dbndiff.sum(0, keepdims=True)
dhprebn = dbndiff + 1.0 / n * ones_like(hprebn) * dbnmeani
dembcat = dhprebn @ W1.T
dW1 = embcat.T @ dhprebn
db1 = dhprebn.sum(0)
demb = dembcat.reshape(32, 3, 10)
dC = scatter_add([27, 10], X, demb)
