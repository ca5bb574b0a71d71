"""The module: named parameters and buffers, a mode, a state."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError
from .._devices import dtype_of
from ..autograd import no_grad
from ._backward_hooks import watched
from ._state import Stateful

M = TypeVar("M", bound="Module")


class _ParameterMeta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (Tensor, UninitializedParameter)) and bool(getattr(x, "_is_parameter", False))

    def __call__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, Tensor):
            t = data.detach()
            # A leaf of its own: what is detached from it later stands for it.
            t._as_leaf(requires_grad)
        else:
            t = _c.tensor([] if data is None else data, None, requires_grad)
        t._is_parameter = True
        return t


if TYPE_CHECKING:

    class Parameter(Tensor):  # type: ignore[misc]
        """A leaf that modules count among their parameters."""

        def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter: ...

else:

    class Parameter(metaclass=_ParameterMeta):
        """A leaf that modules count among their parameters. It shares the memory of `data`, as in
        PyTorch.

        ```
        p = cr.nn.Parameter(cr.ones(2))
        assert isinstance(p, cr.nn.Parameter) and p.requires_grad
        ```
        """


def Buffer(data: Any = None, *, persistent: bool = True) -> Tensor:
    """A tensor that a module saves and does not train, when it is set as an attribute.

    ```
    m = cr.nn.Module()
    m.mean = cr.nn.Buffer(cr.zeros(2))
    assert list(m.state_dict()) == ["mean"] and not list(m.parameters())
    ```
    """
    t = data.detach().clone() if isinstance(data, Tensor) else _c.tensor([] if data is None else data)
    t._is_buffer = (persistent,)  # type: ignore[attr-defined]
    return t


class UninitializedParameter:
    """A parameter whose shape is not known yet; `materialize(shape)` gives the parameter."""

    grad = None
    requires_grad = True
    _is_parameter = True

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> Any:
        """A parameter of this shape, of which the values are still to be given."""
        return Parameter(_c._full(tuple(shape), 0.0, dtype or _c.get_default_dtype()))

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """The same: the parameter requires a gradient, once it is there."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a parameter without a shape has no {name}")
        raise ArgumentError(f"a parameter without a shape has no {name} yet: call the lazy module with an input first")


class HookHandle:
    """Takes a hook away again: `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: Any, hook: Any, first: bool = False) -> None:
        self._hooks = hooks
        hooks[self] = hook
        if first:
            hooks.move_to_end(self, last=False)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """The hook is called no more."""
        self._hooks.pop(self, None)


class _WithKeywords:
    """A hook that is told of the arguments by name, too."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self._hook = hook

    def __call__(self, *args: Any) -> Any:
        return self._hook(*args)


# The names of modules by their ids, while an export asks for them.
scopes: dict[int, str] = {}

# The last calls of modules that may hold several operations: the module's id, and the numbers on
# the tape before and behind the call. Ids, since a module lives as long as its user wants; and not
# a field of the module, which would look changed to compiled functions that read it.
calls: deque[tuple[int, int, int]] = deque(maxlen=8192)


# The callers of the hooks of all modules, before a module and behind it, if there are any.
EVERYWHERE: list[Any] = []


def _recast(p: Tensor, new: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Gives a parameter a value of another dtype, and its gradient what `fn` makes of it."""
    try:
        grad = p.grad
    except _c.GradientError:
        # A program has used it up. It stays unknown.
        return p._recast(new)
    with no_grad():
        new_grad = None if grad is None else fn(grad)
    p._recast(new)
    p.grad = new_grad


def _told(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The module's result; operations that are recorded or traced meanwhile belong to it."""
    name = scopes.get(id(module)) if scopes else None
    if name is not None:
        _c._enter_scope(name)
    before = _c._coming_number()
    try:
        out = module.forward(*args, **kwargs)
    finally:
        if name is not None:
            _c._leave_scope()
    behind = _c._coming_number()
    if behind > before:
        calls.append((id(module), before, behind))
    return out


class Module(Stateful):
    """Subclass it, set parameters and modules as attributes, and write `forward`."""

    training: bool

    # Whether the class is of a user: modules of this package without modules of their own are one
    # operation each, or few.
    _is_users = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._is_users = cls.__module__.split(".")[0] != "chainrule"

    def __init__(self) -> None:
        object.__setattr__(self, "training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, OrderedDict())
        object.__setattr__(self, "_not_saved", set())
        object.__setattr__(self, "_hooks", OrderedDict())
        object.__setattr__(self, "_pre_hooks", OrderedDict())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation of the module."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if EVERYWHERE:
            args = EVERYWHERE[0](self, args)
        if self._pre_hooks:
            for hook in self._pre_hooks.values():
                if type(hook) is _WithKeywords:
                    both = hook(self, args, kwargs)
                    args, kwargs = (args, kwargs) if both is None else both
                    continue
                new = hook(self, args)
                args = args if new is None else new if isinstance(new, tuple) else (new,)
        watch = watched(self) if "_backward_hooks" in self.__dict__ or "_backward_pre_hooks" in self.__dict__ else None
        args = args if watch is None else watch.entered(args)
        is_told = self._modules or self._is_users or scopes
        out = _told(self, args, kwargs) if is_told else self.forward(*args, **kwargs)
        if EVERYWHERE:
            out = EVERYWHERE[1](self, args, out)
        if self._hooks:
            for hook in self._hooks.values():
                new = hook(self, args, kwargs, out) if type(hook) is _WithKeywords else hook(self, args, out)
                out = out if new is None else new
        return out if watch is None else watch.left(out)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False) -> Any:
        """Calls `hook(module, inputs, output)` after each call, or with `with_kwargs`
        `hook(module, inputs, kwargs, output)`; what it returns replaces the output.
        """
        if always_call:
            raise ArgumentError("register_forward_hook: always_call=True is not there; catch the error where the module is called")
        return HookHandle(self._hooks, _WithKeywords(hook) if with_kwargs else hook, prepend)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> Any:
        """Calls `hook(module, inputs)` before each call, or with `with_kwargs`
        `hook(module, inputs, kwargs)`; what it returns replaces the inputs, and with `with_kwargs`
        both.
        """
        return HookHandle(self._pre_hooks, _WithKeywords(hook) if with_kwargs else hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the module's inputs
        are known; what it returns replaces `grad_input`.

        ```
        m, seen = cr.nn.Linear(2, 1), []
        h = m.register_full_backward_hook(lambda m, given, up: seen.append(up[0].item()))
        m(cr.ones(1, 2)).sum().backward()
        assert seen == [1.0]
        ```
        """
        return HookHandle(self.__dict__.setdefault("_backward_hooks", OrderedDict()), hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Calls `hook(module, grad_output)` before the gradients of the module's inputs; what it
        returns replaces `grad_output`.
        """
        return HookHandle(self.__dict__.setdefault("_backward_pre_hooks", OrderedDict()), hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """As `register_full_backward_hook`, which replaced it in PyTorch."""
        return self.register_full_backward_hook(hook)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() before setting {name}")
        is_parameter = isinstance(value, Tensor) and getattr(value, "_is_parameter", False)
        home = self._parameters if is_parameter else self._modules if isinstance(value, Module) else None
        if home is not None:
            for other in (self.__dict__, self._parameters, self._buffers, self._modules):
                if other is not home:
                    other.pop(name, None)
            home[name] = value
            return
        if "_is_buffer" in getattr(value, "__dict__", ()):
            self.__dict__.pop(name, None)
            self.register_buffer(name, value, value._is_buffer[0])
            return
        for kind, what in ((self._parameters, "parameter"), (self._modules, "module"), (self._buffers, "buffer")):
            if name in kind:
                if value is not None and not (kind is self._buffers and isinstance(value, Tensor)):
                    is_tensor = isinstance(value, Tensor) and kind is self._parameters
                    hint = "; wrap it in nn.Parameter, or write to its .data" if is_tensor else "; delete it first"
                    raise TypeError(f"{type(self).__name__}: '{name}' is a {what} and cannot become a {type(value).__name__}{hint}")
                kind[name] = value
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """A parameter, or a place for one."""
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """A tensor that is saved but not trained."""
        if tensor is not None and not tensor.requires_grad and tensor.is_leaf:
            tensor._as_buffer()
        self._buffers[name] = tensor
        if not persistent:
            self._not_saved.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """A module inside."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: '{name}' is a {type(module).__name__} and no module")
        self._modules[name] = module

    add_module = register_module

    # Contents

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This and all modules inside, with their names; each once, or with all of its names."""
        seen = set() if memo is None else memo
        if remove_duplicate:
            if self in seen:
                return
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This and all modules inside."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside."""
        return ((n, m) for n, m in self._modules.items() if m is not None)

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        return (m for _, m in self.named_children())

    def _named(self, kind: str, prefix: str, once: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for at, module in self.named_modules(None, prefix, once):
            for name, t in getattr(module, kind).items():
                if t is not None and not (once and id(t) in seen):
                    seen.add(id(t))
                    yield (f"{at}.{name}" if at else name), t

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their names."""
        if not recurse:
            return ((n, p) for n, p in self._parameters.items() if p is not None)
        return self._named("_parameters", prefix, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """The parameters, each once."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        return self._named("_buffers", prefix, True)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        return (b for _, b in self.named_buffers())

    def get_submodule(self, target: str) -> Module:
        """The module of this name."""
        module = self
        for part in target.split(".") if target else []:
            module = getattr(module, part)
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place of the one of this name."""
        at, _, name = target.rpartition(".")
        parent = self.get_submodule(at)
        if not name or (strict and name not in parent._modules):
            raise AttributeError(f"set_submodule: {type(parent).__name__} has no module '{name}'")
        parent._modules[name] = module

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of this name."""
        at, _, name = target.rpartition(".")
        return self.get_submodule(at)._parameters[name]  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of this name."""
        at, _, name = target.rpartition(".")
        return self.get_submodule(at)._buffers[name]  # type: ignore[no-any-return]

    def _get_name(self) -> str:
        return type(self).__name__

    def train(self: M, mode: bool = True) -> M:
        """Training mode on or off, for all modules inside too."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self: M) -> M:
        """Evaluation mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Freezes the parameters or thaws them."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients; with `set_to_none=False` they become zeros."""
        from ..optim import forget_gradient

        for p in self.parameters():
            forget_gradient(p, set_to_none)

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Calls `fn` on all modules inside and on this."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Another dtype for all parameters and buffers of floats."""
        dtype = dtype_of("to", args, kwargs)
        if dtype is None:
            return self
        if not dtype.is_floating_point:
            raise TypeError(f"to: a module has parameters of floats, not of {dtype.name}")
        for module in self.modules():
            for t in module._parameters.values():
                if t is not None and t.is_floating_point() and t.dtype != dtype:
                    _recast(t, t.detach()._to_dtype(dtype), lambda grad: grad._to_dtype(dtype))
            for name, t in module._buffers.items():
                if t is not None and t.is_floating_point() and t.dtype != dtype:
                    module.register_buffer(name, t.detach()._to_dtype(dtype), name not in module._not_saved)
        return self

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Gives parameters, their gradients and buffers what `fn` makes of them."""
        for child in self.children() if recurse else ():
            child._apply(fn)
        for p in self._parameters.values():
            if p is not None:
                with no_grad():
                    new = fn(p)
                if new is not p:
                    _recast(p, new.detach(), fn)
        for name, b in self._buffers.items():
            if b is not None and (new := fn(b)) is not b:
                self.register_buffer(name, new, name not in self._not_saved)
        return self

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """The same: parameters and buffers stay as they are, which is as good as any values."""
        dtype_of("to_empty", (), {"device": device})
        return self

    def type(self: M, dst_type: Any) -> M:
        """Another dtype, as `to`."""
        return self.to(dst_type)

    def share_memory(self: M) -> M:
        """The same: processes send tensors by their values."""
        return self

    def float(self: M) -> M:
        """float32 parameters."""
        return self.to(_c._dtype("float32"))

    def double(self: M) -> M:
        """float64 parameters."""
        return self.to(_c._dtype("float64"))

    def half(self: M) -> M:
        """float16 parameters."""
        return self.to(_c._dtype("float16"))

    def bfloat16(self: M) -> M:
        """bfloat16 parameters."""
        return self.to(_c._dtype("bfloat16"))

    def cpu(self: M) -> M:
        """There is no other device."""
        return self

    def cuda(self: M, device: Any = None) -> M:
        """An error: there is one device, the processor."""
        return self.to("cuda")

    def extra_repr(self) -> str:
        """The text in the brackets when the module is printed."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({n}): " + repr(m).replace("\n", "\n  ") for n, m in self._modules.items()]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        head = [self.extra_repr()] if self.extra_repr() else []
        return f"{type(self).__name__}(\n  " + "\n  ".join(head + lines) + "\n)"
