"""Containers of modules and of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .._chainrule import Tensor
from .module import Module, Parameter

L = TypeVar("L", bound="_Listed")


class _Listed(Module):
    """Modules whose names are their places."""

    def _is(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for i, module in enumerate(modules):
            self.register_module(str(i), module)

    def _name(self, i: int) -> str:
        names = list(self._modules)
        if not -len(names) <= i < len(names):
            raise IndexError(f"{type(self).__name__}: there is no module {i} among {len(names)}")
        return names[i]  # type: ignore[no-any-return]

    def __setitem__(self, i: int, module: Module) -> None:
        self.register_module(self._name(i), module)

    def __delitem__(self, i: int | slice) -> None:
        kept = list(self._modules.values())
        if isinstance(i, int):
            self._name(i)
        del kept[i]
        self._is(kept)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self: L, module: Module) -> L:
        """One more at the end."""
        self.register_module(str(len(self._modules)), module)
        return self

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Adds modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: L, index: int, module: Module) -> L:
        """One more before the place `index`."""
        kept = list(self._modules.values())
        kept.insert(index, module)
        self._is(kept)
        return self

    def pop(self, key: int) -> Any:
        """Takes one out."""
        module = self._modules[self._name(key)]
        del self[key]
        return module

    def __iadd__(self: L, other: Iterable[Module]) -> L:
        return self.extend(other)


class Sequential(_Listed):
    """Modules one after the other.

    ```
    net = cr.nn.Sequential(cr.nn.Linear(4, 3), cr.nn.Tanh())
    net.append(cr.nn.Linear(3, 2))
    assert net(cr.ones(5, 4)).shape == (5, 2) and len(net[:2]) == 2
    ```
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else ((str(i), m) for i, m in enumerate(args))
        for name, module in named:
            self.register_module(name, module)

    def forward(self, input: Any) -> Any:
        """The result of the last."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return Sequential(dict(list(self._modules.items())[i]))
        return self._modules[self._name(i)]

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)


class ModuleList(_Listed):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        for module in modules or ():
            self.append(module)

    def __getitem__(self, i: int | slice) -> Any:
        return ModuleList(list(self._modules.values())[i]) if isinstance(i, slice) else self._modules[self._name(i)]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        # Neighbours that are alike stand in one line.
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        lines = [f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for a, b, text in runs]
        return "ModuleList(" + "".join("\n  " + line.replace("\n", "\n  ") for line in lines) + ("\n)" if lines else ")")


class _Named(Module):
    """Modules or parameters by name."""

    def _held(self) -> dict[str, Any]:
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        return self._held()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def __delitem__(self, name: str) -> None:
        del self._held()[name]

    def __contains__(self, name: str) -> bool:
        return name in self._held()

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def keys(self) -> Any:
        """The names."""
        return self._held().keys()

    def values(self) -> Any:
        """All of them, without names."""
        return self._held().values()

    def items(self) -> Any:
        """Names, each with its own."""
        return self._held().items()

    def update(self, named: Any) -> None:
        """Takes over, by name, those of a mapping or of a list of pairs."""
        for name, value in named.items() if hasattr(named, "items") else named:
            self[name] = value

    def pop(self, key: str) -> Any:
        """Takes one out."""
        return self._held().pop(key)

    def clear(self) -> None:
        """Takes all out."""
        self._held().clear()


class ModuleDict(_Named):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def _held(self) -> dict[str, Any]:
        return self._modules  # type: ignore[no-any-return]

    def __setitem__(self, name: str, module: Module) -> None:
        self.register_module(name, module)


def _as_parameter(value: Any) -> Any:
    return value if getattr(value, "_is_parameter", False) else Parameter(value)


class ParameterList(Module):
    """A list of parameters; other tensors become such."""

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _name(self, i: int) -> str:
        n = len(self._parameters)
        if not -n <= i < n:
            raise IndexError(f"ParameterList: there is no parameter {i} among {n}")
        return str(i % n)

    def __getitem__(self, i: int | slice) -> Any:
        return ParameterList(list(self._parameters.values())[i]) if isinstance(i, slice) else self._parameters[self._name(i)]

    def __setitem__(self, i: int, value: Tensor) -> None:
        self.register_parameter(self._name(i), _as_parameter(value))

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def append(self, value: Tensor) -> ParameterList:
        """One more at the end."""
        self.register_parameter(str(len(self._parameters)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Tensor]) -> ParameterList:
        return self.extend(values)


class ParameterDict(_Named):
    """Parameters by name; other tensors become such."""

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def _held(self) -> dict[str, Any]:
        return self._parameters  # type: ignore[no-any-return]

    def __setitem__(self, name: str, value: Tensor) -> None:
        self.register_parameter(name, _as_parameter(value))

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of this name, or the default."""
        return self._parameters.get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of this name, which is the default where there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> ParameterDict:
        """Another one with the same parameters."""
        return ParameterDict(self._parameters)


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
