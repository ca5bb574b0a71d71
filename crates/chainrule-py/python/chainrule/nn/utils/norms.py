"""Weights in other coordinates: a length and a direction, or divided by their largest singular
value.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ... import _chainrule as _c
from ... import _making as _m
from ..._chainrule import Tensor
from ..._errors import ArgumentError, _NotInPrograms
from ...autograd import no_grad
from ..functional import normalize
from ..module import Module, Parameter

M = TypeVar("M", bound=Module)


def length_along(v: Tensor, dim: int | None) -> Tensor:
    """The length of `v` for each index along an axis, or of all its elements."""
    if dim is None:
        return v.norm()
    axis = dim % v.ndim
    return v.norm(2.0, [i for i in range(v.ndim) if i != axis], True) if v.ndim > 1 else v.abs()


class _Weight:
    """A weight that is computed before each call of its module."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Module) -> Tensor:
        """The weight as it is now."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        if _c._session_on():
            kind = type(module).__name__
            raise _NotInPrograms(f"compile: {kind} keeps its computed {self.name}, which a program would not: take nn.utils.parametrizations instead")
        object.__setattr__(module, self.name, self.compute(module))

    def install(self, module: Module) -> None:
        """Takes the weight's parameter away, and computes it from now on."""
        if any(isinstance(h, type(self)) and h.name == self.name for h in module._pre_hooks.values()):
            raise RuntimeError(f"{type(module).__name__}: '{self.name}' is computed in this way already")
        del module._parameters[self.name]
        module._pre_hooks[self] = self

    @classmethod
    def remove(cls, module: Module, name: str) -> None:
        """Makes the weight a parameter again, with the value that it has."""
        for key, hook in list(module._pre_hooks.items()):
            if isinstance(hook, cls) and hook.name == name:
                with no_grad():
                    value = hook.compute(module).detach()
                del module._pre_hooks[key]
                module.__dict__.pop(name, None)
                for part in hook.parts():
                    delattr(module, f"{name}_{part}")
                setattr(module, name, Parameter(value.clone()))
                return
        raise ArgumentError(f"{type(module).__name__}: '{name}' is not computed in this way")

    def parts(self) -> tuple[str, ...]:
        """The endings of the parameters and buffers that the weight is computed from."""
        raise NotImplementedError


class _Length(_Weight):
    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def length(self, v: Tensor) -> Tensor:
        return length_along(v, self.dim)

    def compute(self, module: Module) -> Tensor:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / self.length(v))  # type: ignore[no-any-return]

    def parts(self) -> tuple[str, ...]:
        return "g", "v"


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """The weight as `g * v / |v|`: a length `weight_g` for each index along `dim` (one for all with
    None) and a direction `weight_v`.

    ```
    m = cr.nn.utils.weight_norm(cr.nn.Linear(3, 2))
    assert m.weight_g.shape == (2, 1) and m(cr.ones(1, 3)).shape == (1, 2)
    ```
    """
    hook, weight = _Length(name, dim), getattr(module, name)
    hook.install(module)
    module.register_parameter(name + "_g", Parameter(hook.length(weight.detach()).clone()))
    module.register_parameter(name + "_v", Parameter(weight.detach().clone()))
    hook(module, ())
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undoes `weight_norm`: the weight is a parameter again."""
    _Length.remove(module, name)
    return module


class _Spectral(_Weight):
    def __init__(self, name: str, iterations: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.iterations, self.eps, self.dim = iterations, eps, dim

    def matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def compute(self, module: Module) -> Tensor:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.matrix(weight)
        if module.training:
            with no_grad():
                for _ in range(self.iterations):
                    v.copy_(normalize(matrix.detach().t().mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.detach().mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))  # type: ignore[no-any-return]

    def parts(self) -> tuple[str, ...]:
        return "orig", "u", "v"


def spectral_norm(module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> M:
    """The weight divided by its largest singular value, as power iterations find it: one more
    before each call in training.

    The parameter is `weight_orig`, and the singular vectors are the buffers `weight_u`, `weight_v`.
    """
    if n_power_iterations < 1:
        raise ArgumentError(f"spectral_norm: n_power_iterations is positive, got {n_power_iterations}")
    axis = int(getattr(module, "transposed", False)) if dim is None else dim
    hook, weight = _Spectral(name, n_power_iterations, eps, axis), getattr(module, name)
    hook.install(module)
    module.register_parameter(name + "_orig", Parameter(weight.detach().clone()))
    rows, columns = hook.matrix(weight.detach()).shape
    for part, n in (("u", rows), ("v", columns)):
        module.register_buffer(f"{name}_{part}", normalize(_m.randn(n, dtype=weight.dtype), dim=0, eps=eps))
    object.__setattr__(module, name, weight.detach())
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undoes `spectral_norm`: the weight is a parameter again."""
    was = module.training
    object.__setattr__(module, "training", False)
    try:
        _Spectral.remove(module, name)
    finally:
        object.__setattr__(module, "training", was)
    return module
