# One value on both sides: its gradient has two parts.
x = leaf(3.0)
y = x + x
