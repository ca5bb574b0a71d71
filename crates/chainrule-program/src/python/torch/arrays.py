def _take(x, at, dim):
    """The slices of an axis at positions of any shape."""
    return x[(slice(None),) * (dim % x.ndim) + (torch.as_tensor(at, dtype=torch.int64),)]


def _prod(x, dim, keepdim):
    """The product over several axes."""
    for d in sorted((d % max(x.ndim, 1) for d in dim), reverse=True):
        x = torch.prod(x, d, keepdim)
    return x


def _over(f, x, dim, keepdim):
    """A reduction over these axes; over none of them it is that of each element."""
    y = f(x if dim else x[..., None], dim=dim or -1, keepdim=keepdim)
    return y.squeeze(-1) if keepdim and not dim else y


def _positive(at, shape):
    """An index of numbers, None and slices (start, stop, step) with positive steps only, as PyTorch
    wants it, and the axes of the result that then run backwards.
    """
    out, back, axis, kept = [], [], 0, 0
    for a in at:
        if isinstance(a, tuple):
            seen = range(*slice(*a).indices(shape[axis]))
            if seen.step < 0:
                back.append(kept)
                seen = seen[::-1]
            a = slice(seen.start, seen.stop, seen.step) if seen else slice(0, 0)
        out.append(a)
        axis += a is not None
        kept += a is None or isinstance(a, slice)
    return tuple(out), back


def _cut(x, *at):
    """The part of `x` at an index whose steps may be negative."""
    at, back = _positive(at, x.shape)
    return torch.flip(x[at], back)


def _add_at(out, at, g):
    """Adds g to the elements of `out` at these positions, as often as they occur; leading axes may
    be whole.
    """
    at = at if isinstance(at, tuple) else (at,)
    lead = sum(isinstance(a, slice) for a in at)
    order = [*range(lead, out.ndim), *range(lead)]
    at = tuple(torch.as_tensor(a) for a in at[lead:])
    seen = out.permute(order)
    back = [*range(lead, g.ndim), *range(lead)]
    seen.index_put_(at, g.permute(back), accumulate=True)


def _arg(f, x, axes, keepdim):
    """The first position of an extreme element, over one axis or over all of them as one row."""
    if len(axes) == 1:
        return f(x, dim=axes[0], keepdim=keepdim)
    return f(x.reshape(-1), dim=0).reshape([1] * x.ndim if keepdim else [])


def _place(x, at, axis, count):
    """Elements at their positions along an axis, among zeros."""
    shape = list(x.shape)
    shape[axis] = count
    return torch.zeros(shape, dtype=x.dtype).scatter(axis, at, x)


def _order(x, axis, descending):
    """The stable order of sorting; NaN is the largest."""
    return torch.argsort(x, dim=axis, descending=descending, stable=True)


def _median(x, axis, keepdim):
    """The lower of the middle elements or the first NaN, and its position with the axis kept."""
    at = _take(_order(x, axis, False), [(x.shape[axis] - 1) // 2], axis)
    nan = x != x
    first = torch.argmax(nan.to(torch.int64), dim=axis, keepdim=True)
    at = torch.where(torch.any(nan, axis, keepdim=True), first, at)
    y = torch.take_along_dim(x, at, axis)
    return (y if keepdim else y.squeeze(axis)), at


def _logsumexp(x, axes, keepdim):
    return torch.logsumexp(x, axes, keepdim) if axes else x


def _cumulate(f, x, axis, reverse, exclusive):
    """The running sum or product: `f` is torch.add or torch.multiply."""
    run, start = (torch.cumsum, 0) if f is torch.add else (torch.cumprod, 1)
    x = torch.flip(x, [axis]) if reverse else x
    y = run(x, axis)
    if exclusive:
        first = torch.full_like(y.narrow(axis, 0, min(1, y.shape[axis])), start)
        y = torch.cat([first, y.narrow(axis, 0, max(y.shape[axis] - 1, 0))], axis)
    return torch.flip(y, [axis]) if reverse else y


def _cumulative_extreme(x, axis, least):
    """The running maximum or minimum, and the last positions of it."""
    return tuple((torch.cummin if least else torch.cummax)(x, axis))


def _recurrence(a, b, axis, reverse, lagged):
    """y[i] = b[i] + c y[i - 1], where c is a[i], or a[i - 1] if lagged."""
    a, b = (t.moveaxis(axis, 0) for t in (a, b))
    y = list(b)
    order = range(len(b))[::-1] if reverse else range(len(b))
    for before, i in zip(order, order[1:]):
        y[i] = b[i] + a[before if lagged else i] * y[before]
    return (torch.stack(y) if y else b).moveaxis(0, axis)


def _pad(x, amounts, value):
    """A negative amount cuts off."""
    flat = [n for pair in reversed(amounts) for n in pair]
    return torch.nn.functional.pad(x, flat, value=value) if flat else x


def _window_at(start, moves, shape):
    """The positions that a window sees: along each axis a start, and steps for the axes of the
    result.
    """
    at = [torch.tensor(s).reshape([1] * len(shape)) for s in start]
    for of, along, by in moves:
        steps = torch.arange(shape[of]) * by
        at[along] = at[along] + steps.reshape([-1 if a == of else 1 for a in range(len(shape))])
    return tuple(at)


def _window_grad(g, start, moves, shape):
    """Each element added at the place where the window saw it."""
    out = torch.zeros(shape, dtype=g.dtype)
    if g.numel():
        _add_at(out, tuple(torch.broadcast_to(a, g.shape) for a in _window_at(start, moves, g.shape)), g)
    return out


def _unslice(shape, *parts):
    """Slices put back among zeros."""
    out = torch.zeros(shape, dtype=parts[0][1].dtype)
    for at, g in parts:
        at, back = _positive(at, shape)
        out[at] += torch.flip(g, back)
    return out


def _elements(index, axis):
    """The places of elements that an index names along an axis."""
    n = index.ndim
    grid = [torch.arange(s).reshape([-1 if a == k else 1 for a in range(n)]) for k, s in enumerate(index.shape)]
    grid[axis] = index
    return tuple(torch.broadcast_to(a, index.shape) for a in grid)


def _put(x, source, index, axis, rows, add):
    """The source in place of what `x` has, or added to it: in rows or at elements along an axis."""
    out = x.clone()
    at = (slice(None),) * axis + (index,) if rows else _elements(index, axis)
    source = source if rows else source[tuple(slice(n) for n in index.shape)]
    if add:
        _add_at(out, at, source)
    else:
        out[at] = source
    return out


def _staying(index, axis, shape):
    """Mask of indices that no later one equals: of rows, or of elements along an axis."""
    place = index.reshape(-1)
    if index.ndim > 1:
        place = torch.stack([a.reshape(-1) for a in _elements(index, axis)], 1)
    equal = (place[:, None] == place).reshape(len(place), len(place), -1).all(-1)
    return ~torch.triu(equal, 1).any(1).reshape(shape)


def _searchsorted(sequence, values, right):
    return torch.searchsorted(sequence, values, right=right)


def _cofactors(a):
    """The gradient of the determinant, also where the matrix is singular."""
    n = a.shape[-1]
    out = torch.zeros_like(a)
    for i in range(n):
        for j in range(n):
            rows, cols = ([k for k in range(n) if k != out] for out in (i, j))
            minor = a[..., rows, :][..., cols]
            out[..., i, j] = (-1) ** (i + j) * torch.linalg.det(minor)
    return out


def _qr(a):
    """Both factors, one above the other."""
    return torch.cat(tuple(torch.linalg.qr(a)), -2)
