"""Parameters that are computed from others whenever they are read: a symmetric matrix of its upper
half, a weight of a length and a direction.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..._chainrule import Tensor
from ..._errors import ArgumentError
from ...autograd import no_grad
from ..container_layers import ModuleDict, ModuleList
from ..module import Module, Parameter

M = TypeVar("M", bound=Module)

_cached = 0
_values: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """A block in which each parametrized tensor is computed once, when it is read first."""
    global _cached
    _cached += 1
    try:
        yield
    finally:
        _cached -= 1
        if not _cached:
            _values.clear()


def _set_value(to: Tensor, value: Tensor) -> None:
    if to.shape == value.shape:
        with no_grad():
            to.copy_(value)
    else:
        to.data = value.detach().clone()


class ParametrizationList(ModuleList):
    """The modules that compute a tensor, one after the other, and what the first of them computes
    it from: `original`, or `original0`, `original1`, ... where its `right_inverse` gives several.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, (Tensor, tuple, list)) or not all(isinstance(t, Tensor) for t in new):
            raise ArgumentError(f"parametrize: right_inverse gives a tensor or several, not {type(new).__name__}")
        self.is_tensor, self.ntensors = isinstance(new, Tensor), 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            if new.dtype != original.dtype:
                raise ArgumentError(f"parametrize: right_inverse makes {new.dtype} of {original.dtype}; one tensor keeps its dtype")
            _set_value(original, new)
            self._keep("original", original)
        else:
            for i, t in enumerate(new):
                own = t.detach().clone()
                is_parameter = isinstance(original, Parameter)
                self._keep(f"original{i}", Parameter(own, original.requires_grad) if is_parameter else own.requires_grad_(original.requires_grad))
        if not unsafe:
            made = self()
            if not isinstance(made, Tensor):
                raise ArgumentError(f"parametrize: a parametrization gives a tensor, not {type(made).__name__}")
            _same("registering a parametrization", made, original)

    def _keep(self, name: str, t: Tensor) -> None:
        if isinstance(t, Parameter):
            self.register_parameter(name, t)
        else:
            self.register_buffer(name, t)

    def originals(self) -> list[Tensor]:
        """The tensors that the first module computes from."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Gives the originals the values of which `value` is computed."""
        new: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrize: {type(module).__name__} has no right_inverse, which an assignment needs")
                new = module.right_inverse(new)
            parts = [new] if isinstance(new, Tensor) else list(new)
            if isinstance(new, Tensor) != self.is_tensor or len(parts) != self.ntensors:
                raise ArgumentError(f"parametrize: right_inverse gave {len(parts)} tensors, and {self.ntensors} are kept")
            for to, part in zip(self.originals(), parts):
                if part.dtype != to.dtype:
                    raise ArgumentError(f"parametrize: right_inverse gave {part.dtype}, and the original is {to.dtype}")
                _set_value(to, part)

    def forward(self) -> Any:
        """The tensor as it is now."""
        modules = iter(self)
        x = next(modules)(*self.originals())
        for module in modules:
            x = module(x)
        return x


def _same(what: str, made: Tensor, before: Tensor) -> None:
    if made.dtype != before.dtype or made.shape != before.shape:
        raise ArgumentError(
            f"parametrize: {what} makes {made.dtype} of shape {tuple(made.shape)} of {before.dtype} of shape {tuple(before.shape)}; "
            "unsafe=True allows it"
        )


def _own_class(module: Module) -> None:
    """Gives the module a class of its own, in which tensors can be properties."""
    base = type(module)

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if is_parametrized(self, name):
            if isinstance(value, Parameter):
                raise KeyError(f"{base.__name__}: '{name}' is computed; assign a tensor, which right_inverse takes apart")
            if not isinstance(value, Tensor):
                raise TypeError(f"{base.__name__}: '{name}' is computed of tensors and cannot become a {type(value).__name__}")
            self.parametrizations[name].right_inverse(value)
        else:
            base.__setattr__(self, name, value)

    def deep_copy(self: Any, memo: dict[int, Any]) -> Any:
        new = self.__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        _own_class(new)
        type(new).__bases__ = (base,)
        for name in new.parametrizations:
            _property(new, name)
        return new

    def reduce(self: Any, protocol: Any) -> Any:
        raise RuntimeError(f"{base.__name__}: a module with parametrizations is saved by its state_dict()")

    parts = {"__setattr__": set_attribute, "__deepcopy__": deep_copy, "__reduce_ex__": reduce, "__module__": base.__module__}
    object.__setattr__(module, "__class__", type(f"Parametrized{base.__name__}", (base,), parts))


def _property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        if not _cached:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _values:
            _values[key] = self.parametrizations[name]()
        return _values[key]

    setattr(type(module), name, property(get))


def register_parametrization(module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> M:
    """From now on the module's tensor is `parametrization(original)`, computed when it is read;
    `original` is the parameter, at `module.parametrizations.<name>.original`. More parametrizations
    of one tensor come one after the other. A value can be assigned if there is a `right_inverse`.
    Unless `unsafe`, the shape and the dtype stay.

    ```
    class Symmetric(cr.nn.Module):
        def forward(self, X):
            return X.triu() + X.triu(1).T

    m = cr.nn.utils.parametrize.register_parametrization(cr.nn.Linear(3, 3), "weight", Symmetric())
    assert cr.equal(m.weight, m.weight.T) and "parametrizations.weight.original" in m.state_dict()
    ```
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        kept: ParametrizationList = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            made = parametrization(before)
            _same("the parametrization", made, before)
            if hasattr(parametrization, "right_inverse"):
                try:
                    back = parametrization.right_inverse(made)
                except NotImplementedError:
                    pass
                else:
                    if not isinstance(back, Tensor):
                        raise ArgumentError("parametrize: only the first parametrization's right_inverse may give several tensors")
                    _same("right_inverse", back, before)
        kept.append(parametrization)
        kept.unsafe = kept.unsafe or unsafe
        return module
    if module._parameters.get(tensor_name) is None and module._buffers.get(tensor_name) is None:
        raise ArgumentError(f"parametrize: {type(module).__name__} has no parameter or buffer '{tensor_name}'")
    made_list = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    _property(module, tensor_name)
    module.parametrizations[tensor_name] = made_list
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has parametrizations, or one of this tensor."""
    kept = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(kept, ModuleDict):
        return False
    return len(kept) > 0 if tensor_name is None else tensor_name in kept


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Makes the tensor a parameter or buffer again, with the value that it has, or with
    `leave_parametrized=False` with that of its original.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"parametrize: {type(module).__name__} has no parametrization of '{tensor_name}'")
    kept: ParametrizationList = module.parametrizations[tensor_name]
    if not leave_parametrized and not kept.is_tensor:
        raise ArgumentError("parametrize: leave_parametrized=False needs one original, and there are several")
    originals = kept.originals()
    wanted = any(t.requires_grad for t in originals)
    original: Tensor = originals[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if kept.is_tensor:
            _set_value(original, value)
        else:
            original = Parameter(value, wanted) if isinstance(original, Parameter) else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        object.__setattr__(module, "__class__", type(module).__bases__[0])
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations", "type_before_parametrizations",
]
