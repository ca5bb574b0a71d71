def _each(f, x):
    """math.erf or math.erfc of every element."""
    return {math.erf: jax.scipy.special.erf, math.erfc: jax.scipy.special.erfc}[f](x)


def _erfinv(y):
    return jax.scipy.special.erfinv(y)


def _integers(key, low, high, shape=()):
    return jax.random.randint(key, shape, low, high, jnp.int64)


def _take(x, at, axis):
    """The slices of an axis at positions of any shape."""
    return jnp.take(x, jnp.asarray(at, jnp.int64), axis)


def _place(x, at, axis, count):
    """Elements at their positions along an axis, among zeros."""
    shape = list(x.shape)
    shape[axis] = count
    return jnp.zeros(shape, x.dtype).at[_elements(at, axis)].set(x)


def _order(x, axis, descending):
    """The stable order of sorting; NaN is the largest."""
    if not descending:
        return jnp.argsort(x, axis=axis, stable=True)
    back = jnp.flip(x, axis)
    return x.shape[axis] - 1 - jnp.flip(jnp.argsort(back, axis=axis, stable=True), axis)


def _cumulate(f, x, axis, reverse, exclusive):
    """The running sum or product: `f` is jnp.add or jnp.multiply."""
    run, start = (jnp.cumsum, 0) if f is jnp.add else (jnp.cumprod, 1)
    x = jnp.flip(x, axis) if reverse else x
    y = run(x, axis=axis)
    if exclusive:
        first = jnp.full_like(jax.lax.slice_in_dim(y, 0, min(1, y.shape[axis]), axis=axis), start)
        rest = jax.lax.slice_in_dim(y, 0, max(y.shape[axis] - 1, 0), axis=axis)
        y = jnp.concatenate([first, rest], axis)
    return jnp.flip(y, axis) if reverse else y


def _cumulative_extreme(x, axis, least):
    """The running maximum or minimum, and the last positions of it."""
    y = (jax.lax.cummin if least else jax.lax.cummax)(x, axis)
    nan = jax.lax.cummax((x != x).astype(jnp.int64), axis) == 1
    y = jnp.where(nan, jnp.nan, y).astype(x.dtype)
    at = jnp.arange(x.shape[axis]).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    at = jnp.where((x == y) | (x != x), at, 0)
    return y, jax.lax.cummax(at, axis)


def _recurrence(a, b, axis, reverse, lagged):
    """y[i] = b[i] + c y[i - 1], where c is a[i], or a[i - 1] if lagged."""
    a, b = (jnp.moveaxis(t, axis, 0) for t in (a, b))
    y = list(b)
    order = range(len(b))[::-1] if reverse else range(len(b))
    for before, i in zip(order, order[1:]):
        y[i] = b[i] + a[before if lagged else i] * y[before]
    return jnp.moveaxis(jnp.stack(y) if y else b, 0, axis)


def _staying(index, axis, shape):
    """Mask of indices that no later one equals: of rows, or of elements along an axis."""
    place = index.reshape(-1, 1)
    if index.ndim > 1:
        places = [jnp.broadcast_to(a, index.shape).reshape(-1) for a in _elements(index, axis)]
        place = jnp.stack(places, 1)
    equal = jnp.all(place[:, None] == place, -1)
    return ~jnp.any(jnp.triu(equal, 1), 1).reshape(shape)


def _searchsorted(sequence, values, right):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return jnp.searchsorted(sequence, values, side).astype(jnp.int64)
    rows = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    found = [jnp.searchsorted(s, v, side) for s, v in zip(*rows)]
    return jnp.asarray(found, jnp.int64).reshape(values.shape)


def _cofactors(a):
    """The gradient of the determinant, also where the matrix is singular."""
    n = a.shape[-1]
    out = jnp.zeros_like(a)
    for i in range(n):
        for j in range(n):
            minor = jnp.delete(jnp.delete(a, i, -2), j, -1)
            out = out.at[..., i, j].set((-1) ** (i + j) * jnp.linalg.det(minor))
    return out


def _elements(index, axis):
    """The places of elements that an index names along an axis."""
    grid = jnp.indices(index.shape, sparse=True)
    return (*grid[:axis], index, *grid[axis + 1 :])


def _remap_grad(g, maps, shape):
    for axis, at in maps.items():
        out = jnp.zeros(g.shape[:axis] + (shape[axis],) + g.shape[axis + 1 :], g.dtype)
        g = out.at[(slice(None),) * axis + (jnp.asarray(at, jnp.int64),)].add(g)
    return g


def _window_at(start, moves, shape):
    """The positions that a window sees: along each axis a start, and steps for the axes of the
    result.
    """
    at = {axis: jnp.full([1] * len(shape), s) for axis, s in enumerate(start)}
    for of, along, by in moves:
        steps = jnp.arange(shape[of]) * by
        at |= {along: at[along] + steps.reshape([-1 if a == of else 1 for a in range(len(shape))])}
    return tuple(at.values())
