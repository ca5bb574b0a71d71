"""States of modules: what is saved of them by name, and how it is taken over."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import _chainrule as _c
from .._chainrule import Tensor
from ..autograd import no_grad
from ..io import of_torch

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """Names that a state lacked, and names that it had too many."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not (self.missing_keys or self.unexpected_keys):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StateError(ValueError, RuntimeError):
    """A state whose names or shapes are not those of the module."""


class Saved(OrderedDict[str, Any]):
    """Tensors by name, with the versions of the modules that they are from."""

    _metadata: Any


class Stateful:
    """The part of `Module` that saves and loads."""

    _version: int = 1
    _parameters: Any
    _buffers: Any
    _modules: Any
    _not_saved: set[str]

    def _hooked(self, kind: str) -> OrderedDict[Any, Any]:
        """The hooks of a kind, which few modules have."""
        return self.__dict__.get(kind) or OrderedDict()

    def _hook(self, kind: str, hook: Callable[..., Any]) -> Any:
        from .module import HookHandle

        return HookHandle(self.__dict__.setdefault(kind, OrderedDict()), hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls `hook(module, prefix, keep_vars)` before the module is saved."""
        return self._hook("_state_before", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after the module is saved, to
        change the state in place.
        """
        return self._hook("_state_after", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before the module takes its part of a state, to change that in
        place.

        ```
        m = cr.nn.Linear(1, 1)
        old = {"w": cr.ones(1, 1), "bias": cr.zeros(1)}
        m.register_load_state_dict_pre_hook(lambda m, s, *_: s.update(weight=s.pop("w")))
        m.load_state_dict(old)
        assert m.weight.item() == 1
        ```
        """
        return self._hook("_load_before", lambda *args: hook(self, *args))

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Any:
        """As `register_load_state_dict_pre_hook`, without the module unless `with_module`."""
        return self.register_load_state_dict_pre_hook(hook) if with_module else self._hook("_load_before", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls `hook(module, keys)` after the module took its part of a state; keys that the hook
        takes out of the lists count as found.
        """
        return self._hook("_load_after", hook)

    def get_extra_state(self) -> Any:
        """The part that a subclass saves besides tensors; `set_extra_state` reads it."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: define get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Takes over what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: define set_extra_state")

    def _own_state(self) -> dict[str, Tensor]:
        """The parameters and buffers of this module alone that are saved."""
        saved: dict[str, Tensor | None] = dict(self._parameters)
        saved.update({k: b for k, b in self._buffers.items() if k not in self._not_saved})
        return {k: t for k, t in saved.items() if t is not None}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts the state of this module alone into `destination`."""
        for name, t in self._own_state().items():
            destination[prefix + name] = t if keep_vars else t.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and buffers by name, as they are now; with `keep_vars` those themselves.

        The names begin with `prefix`; a `destination` is filled and returned.
        """
        given = dict(zip(("destination", "prefix", "keep_vars"), args))
        destination, prefix = given.get("destination", destination), given.get("prefix", prefix)
        keep_vars = given.get("keep_vars", keep_vars)
        if destination is None:
            destination = Saved()
            destination._metadata = OrderedDict()
        about = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = about
        for hook in self._hooked("_state_before").values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooked("_state_after").values():
            new = hook(self, destination, prefix, about)
            destination = destination if new is None else new
        return destination

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:
        """Takes the state of this module alone over from `state_dict`, and notes in the lists what
        does not fit.
        """
        for hook in self._hooked("_load_before").values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_state()
        for name, t in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys += [key] if strict else []
                continue
            value = _as_tensor(state_dict[key])
            if hasattr(t, "materialize"):
                t.materialize(value.shape)
                t = getattr(self, name)
            if t.ndim == 0 and tuple(value.shape) == (1,):
                value = value[0]
            if tuple(value.shape) != tuple(t.shape):
                error_msgs.append(f"size mismatch for {key}: shapes {tuple(t.shape)} here and {tuple(value.shape)} in the state")
            elif local_metadata.get("assign_to_params_buffers"):
                _assign(self, name, t, value)
            else:
                with no_grad():
                    t.copy_(value)
        more = prefix + EXTRA
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if more in state_dict:
                self.set_extra_state(state_dict[more])
            elif strict:
                missing_keys.append(more)
        elif strict and more in state_dict:
            unexpected_keys.append(more)
        if strict:
            unexpected_keys += [k for k in _of(prefix, state_dict) if k != more and not self._knows(k[len(prefix) :], own)]

    def _knows(self, name: str, own: dict[str, Tensor]) -> bool:
        first, _, rest = name.partition(".")
        return first in self._modules if rest else first in own

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Takes over values by name; those of PyTorch too. All that fits is taken. Then shapes that
        do not fit are an error, and with `strict` names too. With `assign` the tensors of the state
        become the parameters and buffers.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict: a state is a dictionary of tensors by name, not {type(state_dict).__name__}")
        about = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        keys, errors = _IncompatibleKeys([], []), list[str]()

        def load(module: Any, local: Any, prefix: str) -> None:
            told = dict((about or {}).get(prefix[:-1], {}))
            told.update({"assign_to_params_buffers": True} if assign else {})
            module._load_from_state_dict(local, prefix, told, True, keys.missing_keys, keys.unexpected_keys, errors)
            for name, child in module._modules.items():
                if child is not None:
                    at = f"{prefix}{name}."
                    load(child, {k: local[k] for k in _of(at, local)}, at)
            for hook in module._hooked("_load_after").values():
                hook(module, keys)

        with no_grad():
            load(self, state, "")
            if strict and (keys.missing_keys or keys.unexpected_keys):
                errors.insert(0, f"missing: {keys.missing_keys}; unexpected: {keys.unexpected_keys}")
            if errors:
                raise StateError(f"load_state_dict: {'; '.join(errors)}")
        return keys


def _of(prefix: str, state: Any) -> list[str]:
    return [k for k in state if k.startswith(prefix)]


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return of_torch(value) if hasattr(value, "detach") else _c.tensor(value)


def _assign(module: Any, name: str, old: Tensor, value: Tensor) -> None:
    """Makes a tensor of a state the parameter or buffer of this name."""
    from .module import Parameter

    if name not in module._parameters:
        module._buffers[name] = value
    elif isinstance(value, Parameter):
        module._parameters[name] = value
    else:
        module._parameters[name] = Parameter(value, old.requires_grad)
