"""Derivatives of a function at given inputs, a tensor or a tuple of tensors: `jacobian`, `hessian`,
and their products with vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._functions import stack
from . import enable_grad, grad


def _linked(inputs: Any) -> tuple[tuple[Tensor, ...], bool]:
    """The inputs as variables of their own, through which outer gradients still flow, and whether
    they came in a tuple.
    """
    several = isinstance(inputs, (tuple, list))
    made = tuple(x.view_as(x) if x.requires_grad else x._apart() for x in (inputs if several else (inputs,)))
    return made, several


def _outputs(name: str, func: Callable[..., Any], inputs: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], bool]:
    out = func(*inputs)
    several = isinstance(out, (tuple, list))
    outs = tuple(out) if several else (out,)
    for y in outs:
        if not isinstance(y, Tensor):
            raise TypeError(f"{name}: the function gives a tensor or a tuple of tensors, not {type(y).__name__}")
    return outs, several


def _vectors(name: str, v: Any, beside: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    if v is None:
        if len(beside) == 1 and beside[0].numel() == 1:
            return (_c._full(tuple(beside[0].shape), 1.0, beside[0].dtype),)
        raise RuntimeError(f"{name}: v may be left out only where it has a single element")
    given = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    if len(given) != len(beside) or any(a.shape != b.shape for a, b in zip(given, beside)):
        shapes = ", ".join(str(tuple(b.shape)) for b in beside)
        raise RuntimeError(f"{name}: v has the shapes {', '.join(str(tuple(a.shape)) for a in given)}, and {shapes} are needed")
    return given


def _gradients(name: str, ys: Any, xs: Any, ups: Any, strict: bool) -> tuple[Tensor, ...]:
    """The gradients on the tape; zeros where nothing depends on an input, or with `strict` an
    error.
    """
    flowing = [(y, u) for y, u in zip(ys, ups) if y.requires_grad]
    if not flowing:
        found: tuple[Any, ...] = (None,) * len(xs)
    else:
        found = grad([y for y, _ in flowing], xs, [u for _, u in flowing], create_graph=True, allow_unused=True)
    if strict and any(g is None for g in found):
        raise RuntimeError(f"{name}: the outputs do not depend on input {found.index(None)}, and strict=True was given")
    return tuple(x.detach() * 0 if g is None else g for g, x in zip(found, xs))


def _given(values: tuple[Any, ...], several: bool, create_graph: bool) -> Any:
    out = values if create_graph else tuple(v.detach() for v in values)
    return out if several else out[0]


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
) -> Any:
    """All derivatives of the outputs by the inputs: of shape `output.shape + input.shape`; a tuple
    for a tuple of inputs, and a tuple of those for a tuple of outputs. One backward pass for each
    element of the outputs, whatever `vectorize` and `strategy` say.

    ```
    J = cr.autograd.functional.jacobian(lambda x: x * x, cr.tensor([1.0, 3.0]))
    assert J.tolist() == [[2.0, 0.0], [0.0, 6.0]]
    ```
    """
    with enable_grad():
        xs, several = _linked(inputs)
        ys, outs = _outputs("jacobian", func, xs)
        rows: list[tuple[Tensor, ...]] = []
        for y in ys:
            units = _c._full((y.numel(), y.numel()), 0.0, y.dtype).fill_diagonal_(1.0) if y.numel() else None
            found = [_gradients("jacobian", [y], xs, [u.reshape(y.shape)], strict) for u in (units if units is not None else ())]
            sizes = [(*y.shape, *x.shape) for x in xs]
            none = [_c._full(size, 0.0, x.dtype) for size, x in zip(sizes, xs)]
            rows.append(tuple(stack(list(part)).reshape(size) for part, size in zip(zip(*found), sizes)) if found else tuple(none))
    made = tuple(_given(row, several, create_graph) for row in rows)
    return made if outs else made[0]


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """All second derivatives of a function with a single element: of shape
    `input.shape + input.shape`, a tuple of tuples for a tuple of inputs.
    """
    several = isinstance(inputs, (tuple, list))

    def slope(*xs: Tensor) -> Any:
        ys, _ = _outputs("hessian", func, xs)
        if len(ys) != 1 or ys[0].numel() != 1:
            raise RuntimeError(f"hessian: shape {tuple(ys[0].shape)}: the function gives a single element")
        return _gradients("hessian", [ys[0].reshape(())], xs, [_c._full((), 1.0, ys[0].dtype)], strict)

    found = jacobian(slope, tuple(inputs) if several else (inputs,), create_graph, strict)
    return found if several else found[0][0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and `v` times the Jacobian: the gradients of the inputs."""
    with enable_grad():
        xs, several = _linked(inputs)
        ys, outs = _outputs("vjp", func, xs)
        found = _gradients("vjp", ys, xs, _vectors("vjp", v, ys), strict)
    return _given(ys, outs, create_graph), _given(found, several, create_graph)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times `v`: their change along `v`."""
    with enable_grad():
        xs, _ = _linked(inputs)
        ups = _vectors("jvp", v, xs)
        ys, outs = _outputs("jvp", func, xs)
        # The gradient by `u` of what is linear in it.
        us = tuple((y.detach() * 0).requires_grad_() for y in ys)
        slopes = _gradients("jvp", ys, xs, us, strict)
        found = _gradients("jvp", slopes, us, ups, False)
    return _given(ys, outs, create_graph), _given(found, outs, create_graph)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value, and `v` times the Hessian of a function with a single element."""
    with enable_grad():
        xs, several = _linked(inputs)
        ups = _vectors("vhp", v, xs)
        ys, outs = _outputs("vhp", func, xs)
        if outs or ys[0].numel() != 1:
            raise RuntimeError(f"vhp: shape {tuple(ys[0].shape)}: the function gives a single element")
        slopes = _gradients("vhp", ys, xs, [_c._full(tuple(ys[0].shape), 1.0, ys[0].dtype)], strict)
        found = _gradients("vhp", slopes, xs, ups, False)
    return _given(ys, False, create_graph), _given(found, several, create_graph)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value, and the Hessian times `v`, which is `vhp`: the Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
