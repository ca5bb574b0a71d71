def _arg(f, x, axes, keepdim):
    """The first position of an extreme element, over one axis or over all of them as one row."""
    if len(axes) == 1:
        return f(x, axis=axes[0], keepdims=keepdim)
    return f(np.reshape(x, -1)).reshape([1] * np.ndim(x) if keepdim else [])


def _max_axis(x, axis, keepdim):
    """The largest elements, and their first positions, with the axis kept."""
    at = np.argmax(x, axis=axis, keepdims=True)
    y = np.take_along_axis(x, at, axis)
    return (y if keepdim else y.squeeze(axis)), at


def _min_axis(x, axis, keepdim):
    """The smallest elements, and their first positions, with the axis kept."""
    at = np.argmin(x, axis=axis, keepdims=True)
    y = np.take_along_axis(x, at, axis)
    return (y if keepdim else y.squeeze(axis)), at


def _place(x, at, axis, count):
    """Elements at their positions along an axis, among zeros."""
    shape = list(x.shape)
    shape[axis] = count
    out = np.zeros(shape, x.dtype)
    np.put_along_axis(out, at, x, axis)
    return out


def _order(x, axis, descending):
    """The stable order of sorting; NaN is the largest."""
    x = np.asarray(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.flip(x, axis)
    return x.shape[axis] - 1 - np.flip(np.argsort(back, axis=axis, kind="stable"), axis)


def _sort(x, axis, descending, count):
    """The first `count` in order, or all, and their positions."""
    at = np.take(_order(x, axis, descending), range(x.shape[axis] if count is None else count), axis)
    return np.take_along_axis(x, at, axis), at


def _median(x, axis, keepdim):
    """The lower of the middle elements or the first NaN, and its position with the axis kept."""
    x = np.asarray(x)
    at = np.take(_order(x, axis, False), [(x.shape[axis] - 1) // 2], axis)
    nan = x != x
    at = np.where(nan.any(axis, keepdims=True), np.argmax(nan, axis, keepdims=True), at)
    y = np.take_along_axis(x, at, axis)
    return (y if keepdim else y.squeeze(axis)), at


def _logsumexp(x, axes, keepdim):
    if x.size == 0:
        return np.log(np.sum(np.exp(x), axis=axes, keepdims=keepdim))
    top = np.max(x, axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    y = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top
    return y if keepdim else y.squeeze(axes)


def _cumulate(f, x, axis, reverse, exclusive):
    """The running sum or product: `f` is np.add or np.multiply."""
    x = np.flip(x, axis) if reverse else x
    y = f.accumulate(x, axis=axis, dtype=x.dtype)
    if exclusive:
        first = np.full_like(np.take(y, range(min(1, y.shape[axis])), axis), f.identity)
        y = np.concatenate([first, np.take(y, range(max(y.shape[axis] - 1, 0)), axis)], axis)
    return np.flip(y, axis) if reverse else y


def _cumulative_extreme(x, axis, least):
    """The running maximum or minimum, and the last positions of it."""
    y = (np.minimum if least else np.maximum).accumulate(x, axis=axis)
    at = np.arange(x.shape[axis]).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    at = np.where((x == y) | (x != x), at, 0)
    return y, np.maximum.accumulate(at, axis=axis)


def _recurrence(a, b, axis, reverse, lagged):
    """y[i] = b[i] + c y[i - 1], where c is a[i], or a[i - 1] if lagged."""
    a, b, y = (np.moveaxis(t, axis, 0) for t in (a, b, np.array(b)))
    order = range(len(b))[::-1] if reverse else range(len(b))
    for before, i in zip(order, order[1:]):
        y[i] = b[i] + a[before if lagged else i] * y[before]
    return np.moveaxis(y, 0, axis)


def _var(x, axes, correction, keepdim):
    """The variance, and the mean with the axes kept."""
    n = math.prod(x.shape[a] for a in axes)
    mean = np.mean(x, axis=axes, keepdims=True)
    d = x - mean
    return np.sum(d * d, axis=axes, keepdims=keepdim) / np.asarray(n - correction, x.dtype), mean


def _std(x, axes, correction, keepdim):
    """The standard deviation, and the mean with the axes kept."""
    var, mean = _var(x, axes, correction, keepdim)
    return np.sqrt(var), mean


def _norm(x, p, axes, keepdim):
    size = np.abs(x)
    if math.isinf(p):
        return (np.max if p > 0 else np.min)(size, axis=axes, keepdims=keepdim)
    if p == 0:
        return np.sum(x != 0, axis=axes, keepdims=keepdim).astype(x.dtype)
    return np.sum(size**p, axis=axes, keepdims=keepdim) ** np.asarray(1 / p, x.dtype)


def _pad(x, amounts, value):
    """A negative amount cuts off."""
    cuts = tuple(np.s_[max(-a, 0) : n - max(-b, 0)] for n, (a, b) in zip(x.shape, amounts))
    x, amounts = x[cuts], [(max(a, 0), max(b, 0)) for a, b in amounts]
    return np.pad(x, amounts, constant_values=value)


def _remap(x, maps):
    """Each axis in `maps` by its list of positions."""
    for axis, at in maps.items():
        x = np.take(x, at, axis)
    return x


def _remap_grad(g, maps, shape):
    for axis, at in maps.items():
        out = np.zeros(g.shape[:axis] + (shape[axis],) + g.shape[axis + 1 :], g.dtype)
        np.add.at(out, (slice(None),) * axis + (at,), g)
        g = out
    return g


def _window_at(start, moves, shape):
    """The positions that a window sees: along each axis a start, and steps for the axes of the
    result.
    """
    at = [np.array(s).reshape([1] * len(shape)) for s in start]
    for of, along, by in moves:
        steps = np.arange(shape[of]) * by
        at[along] = at[along] + steps.reshape([-1 if a == of else 1 for a in range(len(shape))])
    return tuple(at)


def _window(x, start, moves, shape):
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    return np.broadcast_to(x[_window_at(start, moves, shape)], shape)


def _window_grad(g, start, moves, shape):
    """Each element added at the place where the window saw it."""
    out = np.zeros(shape, g.dtype)
    if g.size:
        np.add.at(out, _window_at(start, moves, g.shape), g)
    return out


def _unslice(shape, *parts):
    """Slices put back among zeros."""
    out = np.zeros(shape, parts[0][1].dtype)
    for at, g in parts:
        out[at] += g
    return out


def _elements(index, axis):
    """The places of elements that an index names along an axis."""
    grid = list(np.indices(index.shape, sparse=True))
    grid[axis] = index
    return tuple(grid)


def _gather_grad(g, index, axis, shape):
    out = np.zeros(shape, g.dtype)
    np.add.at(out, _elements(index, axis), g)
    return out


def _rows_grad(g, index, axis, shape):
    """Rows added at their positions along an axis, among zeros."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, (slice(None),) * axis + (index,), g)
    return out


def _embedding_grad(g, index, rows, padding):
    out = np.zeros((rows, g.shape[-1]), g.dtype)
    np.add.at(out, index, g)
    if padding is not None:
        out[padding] = 0
    return out


def _put(x, source, index, axis, rows, add):
    """The source in place of what `x` has, or added to it: in rows or at elements along an axis."""
    out = np.array(x)
    at = (slice(None),) * axis + (index,) if rows else _elements(index, axis)
    source = source if rows else source[tuple(slice(n) for n in index.shape)]
    if add:
        np.add.at(out, at, source)
    else:
        out[at] = source
    return out


def _staying(index, axis, shape):
    """Mask of indices that no later one equals: of rows, or of elements along an axis."""
    places = list(np.ndindex(index.shape))
    if index.ndim > 1:
        places = [(*at[:axis], int(index[at]), *at[axis + 1 :]) for at in places]
    else:
        places = [(int(index[at]),) for at in places]
    last = {place: k for k, place in enumerate(places)}
    return np.array([last[place] == k for k, place in enumerate(places)], bool).reshape(shape)


def _searchsorted(sequence, values, right):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side), np.int64)
    rows = zip(sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1]))
    found = [np.searchsorted(s, v, side) for s, v in rows]
    return np.array(found, np.int64).reshape(values.shape)


def _cofactors(a):
    """The gradient of the determinant, also where the matrix is singular."""
    n = a.shape[-1]
    out = np.zeros_like(a)
    for i, j in np.ndindex(n, n):
        minor = np.delete(np.delete(a, i, -2), j, -1)
        out[..., i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


def _det(a):
    """The determinant and its sign."""
    y = np.asarray(np.linalg.det(a))
    return y, np.sign(y)


def _qr(a):
    """Both factors, one above the other."""
    if a.size == 0:
        return np.zeros(a.shape[:-2] + (a.shape[-2] + a.shape[-1], a.shape[-1]), a.dtype)
    return np.concatenate(np.linalg.qr(a), -2)
