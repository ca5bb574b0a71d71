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
from ._errors import ArgumentError
from ._functions import stack
from ._making import zeros_like
from ._nest import put_back, taken


def _linked(x: Any) -> tuple[Any, list[Any], Callable[[Any], Any]]:
    """An argument, a tensor or a nest of them, with linked copies: gradients of outer levels still
    flow through them. With it the copies, and what puts a list of tensors into such a nest.
    """
    if isinstance(x, (Tensor, ComplexTensor)):
        made = x * 1.0 if x.requires_grad else x._apart()
        return made, [made], lambda found: found[0]
    tensors: list[Any] = []
    nest = taken(x, tensors)
    if not tensors:
        raise TypeError(f"a derivative is taken by a tensor or a nest of tensors, not by {type(x).__name__}")
    copies = [t * 1.0 if t.requires_grad else t._apart() for t in tensors]
    return put_back(nest, copies), copies, lambda found: put_back(nest, list(found))


def _leaves(args: Sequence[Any], at: Sequence[int]) -> tuple[list[Any], list[Any], Callable[[Any], list[Any]]]:
    """The arguments with linked copies at these places, all copies in a row, and what puts as many
    tensors into the nests of these places.
    """
    out, copies, homes = list(args), list[Any](), []
    for i in at:
        out[i], made, home = _linked(out[i])
        homes.append((len(copies), len(copies) + len(made), home))
        copies += made
    return out, copies, lambda found: [home(found[a:b]) for a, b, home in homes]


def _is_linked(args: Any) -> bool:
    tensors: list[Any] = []
    taken(list(args), tensors)
    return any(t.requires_grad for t in tensors)


def _pulled(ys: Sequence[Any], copies: Sequence[Any], ups: Sequence[Any] | None, create_graph: bool = True) -> tuple[Any, ...]:
    """The gradients by the copies; zeros where nothing depends on one."""
    flowing = [i for i, y in enumerate(ys) if y.requires_grad]
    if not flowing:
        return tuple(zeros_like(x) for x in copies)
    given = None if ups is None else [ups[i] for i in flowing]
    return autograd.grad([ys[i] for i in flowing], copies, given, create_graph=create_graph, materialize_grads=True)


def _kept(t: Any, copies: Sequence[Any], linked: bool) -> Any:
    """A result with its place on the tape where it depends on more than the copies: on a variable
    of an outer level, or on a parameter that the function captured.
    """
    if not _c.is_grad_enabled():
        return t.detach()
    return t if linked or _leads_beside(t, copies) else t.detach()


def _leads_beside(t: Any, copies: Sequence[Any]) -> bool:
    own = [x._data if isinstance(x, ComplexTensor) else x for x in copies]
    return _c._leads_beside(t._data if isinstance(t, ComplexTensor) else t, own)


def grad_and_value(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func` and its value, which must be a single element.
    An argument may be a nest of tensors, as a dictionary of parameters; so is its gradient then.
    """
    at = [argnums] if isinstance(argnums, int) else list(argnums)

    def run(*args: Any, **kwargs: Any) -> Any:
        with autograd.enable_grad():
            inner, copies, nests = _leaves(args, at)
            out = func(*inner, **kwargs)
            y, aux = out if has_aux else (out, None)
            if y.numel() != 1:
                raise ArgumentError(f"grad: shape {tuple(y.shape)}: the function must give a single element; use vjp or jacrev")
            grads = _pulled([y], copies, None)
        linked = _is_linked((*args, *kwargs.values()))
        y = _kept(y, copies, linked)
        found = nests([_kept(g, copies, linked) for g in grads])
        given = found[0] if isinstance(argnums, int) else tuple(found)
        return (given, (y, aux)) if has_aux else (given, y)

    return run


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        found, rest = both(*args, **kwargs)
        return (found, rest[1]) if has_aux else found

    return run


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func`, and a function from a cotangent to the gradients of all arguments; both
    may be nests of tensors.
    """
    with autograd.enable_grad():
        inner, copies, nests = _leaves(primals, range(len(primals)))
        y, aux = func(*inner) if has_aux else (func(*inner), None)
        ys: list[Any] = []
        nest = taken(y, ys)

    def back(cotangent: Any) -> tuple[Any, ...]:
        ups: list[Any] = []
        taken(cotangent, ups)
        if len(ups) != len(ys):
            raise ArgumentError(f"vjp: {len(ys)} results need as many cotangents, not {len(ups)}")
        linked = _is_linked((primals, cotangent))
        links = _c.is_grad_enabled() and (linked or is_beside)
        found = _pulled(ys, copies, ups, links)
        return tuple(nests([_kept(g, copies, linked) for g in found]))

    is_beside = any(_leads_beside(t, copies) for t in ys)
    linked = _is_linked(primals)
    given = put_back(nest, [_kept(t, copies, linked) for t in ys])
    return (given, back, aux) if has_aux else (given, back)


def jvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The value of `func` and its change along the tangents, in forward mode. Arguments may be
    nests of tensors.
    """
    xs, us = list[Any](), list[Any]()
    nest = taken(tuple(primals), xs)
    taken(tuple(tangents), us)
    if len(xs) != len(us):
        raise ArgumentError(f"jvp: {len(xs)} tensors and {len(us)} tangents; each needs its own")
    return _c._jvp(lambda *flat: func(*put_back(nest, list(flat))), xs, us)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func`, and a function from tangents to its change along them, in forward mode.
    Each call of it computes `func` again.

    ```
    y, along = cr.func.linearize(lambda x: x * x, cr.tensor(3.0))
    assert (y.item(), along(cr.tensor(1.0)).item()) == (9.0, 6.0)
    ```
    """

    def along(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1].detach()

    return func(*primals), along


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function as it is: values never change here, and writes make new ones."""
    return func


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor as it is: derivatives as functions do not wrap it."""
    return tensor


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Takes the running statistics of all batch norms away, so that they normalise by the batch
    alone; the module is given back.
    """
    from .nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def _unit_rows(shape: Any, dtype: Any) -> Any:
    from ._making import eye

    n = shape.numel()
    rows = eye(n, dtype=dtype)
    return (rows[i].reshape(shape) for i in range(n))


def jacrev(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that gives the Jacobian, by rows: one backward pass for each element of the
    result. By a nest of tensors it is a nest of Jacobians.
    """

    def run(*args: Any) -> Any:
        found, copies, nests = jacobians(*args)
        linked = _is_linked(args)
        return nests([_kept(j, copies, linked) for j in found])[0]

    def jacobians(*args: Any) -> Any:
        with autograd.enable_grad():
            inner, copies, nests = _leaves(args, [argnums])
            y = func(*inner)
            for z in (*copies, y):
                if isinstance(z, ComplexTensor):
                    raise refused("jacrev", z.dtype)
            if y.numel() == 0:
                return [(y.reshape(-1, 1) * x.flatten()).reshape((*y.shape, *x.shape)) for x in copies], copies, nests
            rows = [_pulled([y], copies, [u]) for u in _unit_rows(y.shape, y.dtype)]
            return [stack(list(column)).reshape((*y.shape, *x.shape)) for column, x in zip(zip(*rows), copies)], copies, nests

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
    """A function that gives all second derivatives, of each element of the result."""
    return jacrev(jacrev(func, argnums), argnums)


def hvp(func: Callable[..., Any], x: Tensor, v: Tensor) -> Tensor:
    """The Hessian times `v`, without the Hessian."""
    with autograd.enable_grad():
        x = x._apart()
        (g,) = _pulled([func(x)], [x], None)
        links = v.requires_grad or _leads_beside(g, [x])
        (made,) = _pulled([(g * v).sum()], [x], None, links)
    return _kept(made, [x], v.requires_grad)  # type: ignore[no-any-return]


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
    def run(*args: Any) -> Any:
        dims = (in_dims,) * len(args) if not isinstance(in_dims, (tuple, list)) else tuple(in_dims)
        if len(dims) != len(args):
            raise ArgumentError(f"vmap: {len(dims)} in_dims for {len(args)} arguments")
        nests: list[tuple[Any, list[Any], Any]] = []
        for arg, dim in zip(args, dims):
            tensors: list[Any] = []
            nests.append((taken(arg, tensors), tensors, dim))
        sizes = {int(t.shape[dim]) for _, tensors, dim in nests if dim is not None for t in tensors}
        if len(sizes) != 1:
            raise ArgumentError(f"vmap: the arguments have {sorted(sizes)} rows, and all need equally many" if sizes else "vmap: no argument has rows")
        rows: list[list[Any]] = []
        nest: Any = None
        for i in range(sizes.pop()):
            outs: list[Any] = []
            here = [put_back(n, tensors if dim is None else [t.select(dim, i) for t in tensors]) for n, tensors, dim in nests]
            nest = taken(func(*here), outs)
            rows.append(outs)
        if nest is None and not rows:
            raise ArgumentError("vmap: there are no rows, and nothing tells what the function would give")
        ways = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(rows[0])
        return put_back(nest, [stack(column, dim) for column, dim in zip(zip(*rows), ways)])

    return run


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one kind by name, each stacked along a first
    axis: for `vmap` over `functional_call`. The parameters are leaves of their own.

    ```
    params, _ = cr.func.stack_module_state([cr.nn.Linear(2, 1) for _ in range(3)])
    assert params["weight"].shape == (3, 1, 2) and params["weight"].requires_grad
    ```
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: there are no modules")
    if any(type(m) is not type(models[0]) or m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: the modules are of one class, and all in training or all in evaluation")

    def stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        out = {}
        for name, first in states[0].items():
            row = stack([state[name].detach() for state in states])
            out[name] = row.requires_grad_(first.requires_grad) if first.requires_grad else row
        return out

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


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
            raise ArgumentError(f"functional_call: {type(module).__name__} has no parameter or buffer '{name}'")
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
