"""Weights that are zero by a mask: `module.weight` is `weight_orig * weight_mask`, computed before
each call of the module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _chainrule as _c
from ..._chainrule import Tensor
from ..._errors import ArgumentError
from ..._functions import cat
from ...autograd import no_grad
from ..module import Module, Parameter


class _Mask:
    """The hook that computes a pruned weight."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, module._buffers[self.name + "_mask"].to(dtype=module._parameters[self.name + "_orig"].dtype) * module._parameters[self.name + "_orig"])


def _count(amount: float, n: int) -> int:
    """The number of weights to prune: a share of them, or so many."""
    if isinstance(amount, bool) or amount < 0 or (isinstance(amount, float) and amount > 1) or amount > n:
        raise ArgumentError(f"prune: amount is a share from 0 to 1 or a number up to {n}, got {amount}")
    return round(amount * n) if isinstance(amount, float) else int(amount)


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes a weight by a mask of 0 and 1, beside the masks that it has."""
    if name + "_orig" not in module._parameters:
        weight = module._parameters.pop(name)
        module.register_parameter(name + "_orig", weight)
        module.register_buffer(name + "_mask", mask.detach().to(dtype=weight.dtype).clone())
        module.register_forward_pre_hook(_Mask(name))
    else:
        with no_grad():
            module._buffers[name + "_mask"].mul_(mask.to(dtype=module._buffers[name + "_mask"].dtype))
    _Mask(name)(module, ())
    return module


def _present(module: Any, name: str) -> tuple[Tensor, Tensor]:
    """The weight before it was pruned, and its mask."""
    if name + "_orig" in module._parameters:
        return module._parameters[name + "_orig"].detach(), module._buffers[name + "_mask"].detach()
    weight = module._parameters[name].detach()
    return weight, _c._full(weight._dims, 1.0, weight.dtype)


def _smallest(scores: Tensor, mask: Tensor, amount: float) -> Tensor:
    """The mask without those of smallest score among the ones that are left."""
    left = mask.reshape(-1).nonzero()[:, 0]
    n = _count(amount, left.numel())
    out = mask.reshape(-1).clone()
    if n:
        at = scores.reshape(-1)[left].topk(n, largest=False).indices
        out[left[at]] = 0.0
    return out.reshape(mask.shape)


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes the weights that are smallest, or of smallest score.

    ```
    m = cr.nn.utils.prune.l1_unstructured(cr.nn.Linear(4, 2), "weight", amount=0.5)
    assert (m.weight == 0).sum().item() == 4 and "weight_orig" in dict(m.named_parameters())
    ```
    """
    weight, mask = _present(module, name)
    return custom_from_mask(module, name, _smallest(weight.abs() if importance_scores is None else importance_scores, mask, amount))


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes weights at random."""
    _, mask = _present(module, name)
    return custom_from_mask(module, name, _smallest(_c._rand(mask._dims, mask.dtype, None), mask, amount))


def ln_structured(module: Any, name: str, amount: float, n: float, dim: int, importance_scores: Tensor | None = None) -> Any:
    """Prunes whole slices along an axis, those of smallest `n`-norm."""
    weight, mask = _present(module, name)
    scores = (weight if importance_scores is None else importance_scores) * mask
    others = [i for i in range(weight.ndim) if i != dim % weight.ndim]
    keep = _smallest(scores.norm(n, others), (mask.sum(others) > 0).to(dtype=mask.dtype), amount)
    return custom_from_mask(module, name, keep.reshape([-1 if i == dim % weight.ndim else 1 for i in range(weight.ndim)]).expand(mask.shape))


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes whole slices along an axis, at random."""
    weight, _ = _present(module, name)
    shape = [weight.shape[dim] if i == dim % weight.ndim else 1 for i in range(weight.ndim)]
    return ln_structured(module, name, amount, 1, dim, _c._rand(shape, weight.dtype, None).expand(weight.shape))


def identity(module: Any, name: str) -> Any:
    """The form of a pruned weight, of which nothing is pruned."""
    weight, _ = _present(module, name)
    return custom_from_mask(module, name, _c._full(weight._dims, 1.0, weight.dtype))


L1Unstructured, RandomUnstructured = l1_unstructured, random_unstructured


def global_unstructured(parameters: Iterable[tuple[Any, str]], pruning_method: Any, importance_scores: Any = None, *, amount: float) -> None:
    """Prunes the smallest, or random, ones of all these weights together."""
    pairs = list(parameters)
    found = [_present(module, name) for module, name in pairs]
    if pruning_method is l1_unstructured:
        scores = [weight.abs() if importance_scores is None else importance_scores.get(pair, weight) for pair, (weight, _) in zip(pairs, found)]
    elif pruning_method is random_unstructured:
        scores = [_c._rand(mask._dims, mask.dtype, None) for _, mask in found]
    else:
        raise ArgumentError("global_unstructured: the method is L1Unstructured or RandomUnstructured")
    keep = _smallest(cat([s.reshape(-1) for s in scores]), cat([mask.reshape(-1) for _, mask in found]), amount)
    at = 0
    for (module, name), (_, mask) in zip(pairs, found):
        custom_from_mask(module, name, keep[at : at + mask.numel()].reshape(mask.shape))
        at += mask.numel()


def _hook_of(module: Module, name: str | None = None) -> Any:
    return next((k for k, h in module._pre_hooks.items() if isinstance(h, _Mask) and name in (None, h.name)), None)


def remove(module: Any, name: str) -> Any:
    """Makes the pruned weight a parameter as it is."""
    key = _hook_of(module, name)
    if key is None:
        raise ArgumentError(f"prune.remove: '{name}' is not pruned")
    del module._pre_hooks[key]
    weight, mask = module._parameters.pop(name + "_orig"), module._buffers.pop(name + "_mask")
    with no_grad():
        weight.mul_(mask.to(dtype=weight.dtype))
    module.__dict__.pop(name, None)
    module._parameters[name] = weight if isinstance(weight, Parameter) else Parameter(weight)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a weight in the module is pruned."""
    return any(_hook_of(m) is not None for m in module.modules())


__all__ = [
    "L1Unstructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]
