"""Gradients of all parameters together."""

from __future__ import annotations

from collections.abc import Iterable

from ... import _functions as _f
from ... import _making as _m
from ..._chainrule import Tensor
from ...autograd import no_grad


def _all(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


@no_grad()
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The norm of all tensors together, as if they were one vector."""
    all_of = _all(tensors)
    if not all_of:
        return _m.zeros(())
    total = _f.stack([t.norm(float(norm_type)) for t in all_of]).norm(float(norm_type))
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(f"get_total_norm: the norm of order {norm_type} is {float(total)}")
    return total


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Scales the gradients down so that their norm is at most `max_norm`; gives the norm before."""
    with_grad = [p for p in _all(parameters) if p.grad is not None]
    if not with_grad:
        return _m.zeros(())
    total = get_total_norm([p.grad for p in with_grad], norm_type, error_if_nonfinite)
    scale = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
    for p in with_grad:
        p.grad.mul_(scale)
    return total


@no_grad()
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scales the gradients down as `clip_grad_norm_` does, by a norm that is known."""
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for p in _all(parameters):
        if p.grad is not None:
            p.grad.mul_(scale)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Cuts the elements of the gradients to [-clip_value, clip_value]."""
    for p in _all(parameters):
        if p.grad is not None:
            p.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector."""
    return _f.cat([p.reshape(-1) for p in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """The parts of a vector as the values of parameters, which have its memory from then on."""
    at = 0
    for p in parameters:
        p.data = vec[at : at + p.numel()].view(p.shape).data
        at += p.numel()
