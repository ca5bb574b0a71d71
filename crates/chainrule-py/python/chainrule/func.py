"""Derivatives as functions: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`; a function over
the rows of its arguments; a module of other parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _chainrule as _c
from . import autograd
from ._chainrule import Tensor
from ._complex._base import refused
from ._complex._tensor import ComplexTensor
from ._functions import stack


def _leaves(args: tuple[Any, ...], at: Sequence[int]) -> list[Any]:
    """The arguments with linked copies at these places: gradients of outer levels still flow
    through them.
    """
    out = list(args)
    for i in at:
        x = out[i]
        out[i] = x * 1.0 if x.requires_grad else x._apart()
    return out


def grad_and_value(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func` and its value, which must be a single element.
    """
    at = [argnums] if isinstance(argnums, int) else list(argnums)

    def run(*args: Any) -> Any:
        with autograd.enable_grad():
            outer = any(isinstance(a, (Tensor, ComplexTensor)) and a.requires_grad for a in args)
            inner = _leaves(args, at)
            out = func(*inner)
            y, aux = out if has_aux else (out, None)
            if y.numel() != 1:
                raise ValueError(f"grad: shape {tuple(y.shape)}: the function must give a single element; use vjp or jacrev")
            grads = autograd.grad(y, [inner[i] for i in at], create_graph=True, materialize_grads=True)
        if not outer:
            grads, y = tuple(g.detach() for g in grads), y.detach()
        found = grads[0] if isinstance(argnums, int) else grads
        return (found, (y, aux)) if has_aux else (found, y)

    return run


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any) -> Any:
        found, rest = both(*args)
        return (found, rest[1]) if has_aux else found

    return run


def vjp(func: Callable[..., Any], *primals: Tensor) -> tuple[Tensor, Callable[[Tensor], tuple[Any, ...]]]:
    """The value of `func`, and a function from a cotangent to the gradients of all arguments."""
    with autograd.enable_grad():
        inner = _leaves(primals, range(len(primals)))
        y = func(*inner)

    def back(cotangent: Tensor) -> tuple[Any, ...]:
        return autograd.grad(y, inner, cotangent, materialize_grads=True)

    return y if any(x.requires_grad for x in primals) else y.detach(), back


def jvp(func: Callable[..., Any], primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The value of `func` and its change along the tangents, in forward mode."""
    return _c._jvp(func, list(primals), list(tangents))


def _unit_rows(shape: Any, dtype: Any) -> Any:
    from ._making import eye

    n = shape.numel()
    rows = eye(n, dtype=dtype)
    return (rows[i].reshape(shape) for i in range(n))


def jacrev(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that gives the Jacobian, by rows: one backward pass for each element of the
    result.
    """

    def run(*args: Any) -> Tensor:
        found = jacobian(*args)
        return found if _c.is_grad_enabled() and any(isinstance(a, (Tensor, ComplexTensor)) and a.requires_grad for a in args) else found.detach()

    def jacobian(*args: Any) -> Tensor:
        with autograd.enable_grad():
            inner = _leaves(args, [argnums])
            y = func(*inner)
            x = inner[argnums]
            for z in (x, y):
                if isinstance(z, ComplexTensor):
                    raise refused("jacrev", z.dtype)
            if y.numel() == 0:
                empty: Tensor = (y.reshape(-1, 1) * x.flatten()).reshape((*y.shape, *x.shape))
                return empty
            rows = [autograd.grad(y, x, u, create_graph=True, materialize_grads=True)[0] for u in _unit_rows(y.shape, y.dtype)]
            return stack(rows).reshape((*y.shape, *x.shape))

    return run


def jacfwd(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that gives the Jacobian, by columns: one forward-mode pass for each element of the
    argument.
    """

    def run(*args: Any) -> Tensor:
        x = args[argnums]
        if isinstance(x, ComplexTensor):
            raise refused("jacfwd", x.dtype)

        def alone(t: Tensor) -> Any:
            return func(*args[:argnums], t, *args[argnums + 1 :])

        columns = [jvp(alone, [x], [u])[1] for u in _unit_rows(x.shape, x.dtype)]
        return stack(columns, -1).reshape((*columns[0].shape, *x.shape))

    return run


def hessian(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that gives all second derivatives."""
    return jacrev(grad(func, argnums), argnums)


def hvp(func: Callable[..., Any], x: Tensor, v: Tensor) -> Tensor:
    """The Hessian times `v`, without the Hessian."""
    with autograd.enable_grad():
        x = x._apart()
        (g,) = autograd.grad(func(x), x, create_graph=True, materialize_grads=True)
        return autograd.grad((g * v).sum(), x, materialize_grads=True)[0]  # type: ignore[no-any-return]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that calls `func` for each index along an axis of its arguments, and stacks the
    results.

    `in_dims` is the axis of all arguments, or a tuple of one for each; None for an argument that is
    the same for all. The calls are made one after the other, so random numbers differ among them.

    ```
    dots = cr.func.vmap(cr.dot)
    assert dots(cr.ones(3, 2), cr.ones(3, 2)).tolist() == [2, 2, 2]
    ```
    """
    from ._nest import put_back, taken

    def run(*args: Any) -> Any:
        dims = (in_dims,) * len(args) if not isinstance(in_dims, (tuple, list)) else tuple(in_dims)
        if len(dims) != len(args):
            raise ValueError(f"vmap: {len(dims)} in_dims for {len(args)} arguments")
        nests: list[tuple[Any, list[Any], Any]] = []
        for arg, dim in zip(args, dims):
            tensors: list[Any] = []
            nests.append((taken(arg, tensors), tensors, dim))
        sizes = {int(t.shape[dim]) for _, tensors, dim in nests if dim is not None for t in tensors}
        if len(sizes) != 1:
            raise ValueError(f"vmap: the arguments have {sorted(sizes)} rows, and all need equally many" if sizes else "vmap: no argument has rows")
        rows: list[list[Any]] = []
        nest: Any = None
        for i in range(sizes.pop()):
            outs: list[Any] = []
            here = [put_back(n, tensors if dim is None else [t.select(dim, i) for t in tensors]) for n, tensors, dim in nests]
            nest = taken(func(*here), outs)
            rows.append(outs)
        if nest is None and not rows:
            raise ValueError("vmap: there are no rows, and nothing tells what the function would give")
        ways = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(rows[0])
        return put_back(nest, [stack(column, dim) for column, dim in zip(zip(*rows), ways)])

    return run


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """The module's result with these parameters and buffers in place of its own, which stay as they
    are.

    ```
    m = cr.nn.Linear(2, 1)
    w = {name: cr.zeros_like(p) for name, p in m.named_parameters()}
    assert cr.func.functional_call(m, w, cr.ones(1, 2)).item() == 0
    ```
    """
    given: dict[str, Any] = {}
    many = isinstance(parameter_and_buffer_dicts, (tuple, list))
    for part in parameter_and_buffer_dicts if many else [parameter_and_buffer_dicts]:
        given.update(part)
    homes: list[tuple[dict[str, Any], str, Any]] = []
    new: dict[int, Any] = {}
    for name, value in given.items():
        at, _, leaf = name.rpartition(".")
        owner = module.get_submodule(at)
        home = next((h for h in (owner._parameters, owner._buffers) if leaf in h), None)
        if home is None:
            raise ValueError(f"functional_call: {type(module).__name__} has no parameter or buffer '{name}'")
        new[id(home[leaf])] = value
        homes.append((home, leaf, value))
    if tie_weights:
        for m in module.modules():
            for home in (m._parameters, m._buffers):
                homes += [(home, k, new[id(t)]) for k, t in home.items() if t is not None and id(t) in new]
    before = [(home, leaf, home[leaf]) for home, leaf, _ in homes]
    try:
        for home, leaf, value in homes:
            home[leaf] = value
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for home, leaf, value in reversed(before):
            home[leaf] = value
