# A neuron with two inputs.
x1 = leaf(2.0)
x2 = leaf(0.0)
w1 = leaf(-3.0)
w2 = leaf(1.0)
b = leaf(6.8813735870195432)
x1w1 = x1 * w1
x2w2 = x2 * w2
both = x1w1 + x2w2
n = both + b
o = tanh(n)
