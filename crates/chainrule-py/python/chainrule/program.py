"""Compiled functions: a whole step of training as a program that one can read and that runs without Python."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, overload

from . import _chainrule as _c
from ._chainrule import Tensor
from ._captured import name_captured
from ._places import without_places
from .optim import LIVE


class _Traced(NamedTuple):
    """A program, what its function returns (None, "one" tensor or a type of sequence), and the arguments that get gradients."""

    program: _c.Program
    kind: Any
    graded: list[int]


class Compiled:
    """A function that is traced on its first call, and again for other shapes or dtypes.

    Whatever else it depends on is taken as it is at the trace: numbers, the mode of a model. Parameters, buffers, the state and the
    learning rate of optimizers are read anew on each run, and changed as the function changes them. Results are the tensors that it returns; no
    gradient flows on from them. An argument that requires gradients does so in the function too, and a `backward` there adds to its `grad`.
    """

    def __init__(self, function: Callable[..., Any], simplify: bool = True, fuse: bool = True) -> None:
        self._function = function
        self._passes = simplify, fuse
        self._programs: dict[Any, _Traced] = {}
        self._last: _c.Program | None = None
        self._told: set[_c.Program] = set()
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "compiled")

    def _names(self, n: int) -> list[str]:
        try:
            names = [p.name for p in inspect.signature(self._function).parameters.values() if p.kind in (0, 1)]
        except (TypeError, ValueError):
            names = []
        return (names + [f"x{i}" for i in range(len(names), n)])[:n]

    def _program(self, args: tuple[Tensor, ...]) -> _Traced:
        key = self._key(args)
        found = self._programs.get(key)
        if found is None:
            shape: list[Any] = []

            def flat(*inputs: Tensor) -> list[Tensor]:
                leaves = [x.detach().requires_grad_() if a.requires_grad else x for x, a in zip(inputs, args)]
                out = self._function(*leaves)
                results = [] if out is None else [out] if isinstance(out, Tensor) else list(out)
                grads = [(i, x.grad) for i, (x, a) in enumerate(zip(leaves, args)) if a.requires_grad]
                shape[:] = [out, [i for i, grad in grads if grad is not None]]
                return results + [grad for _, grad in grads if grad is not None]

            name_captured(self._function)
            program = _c.Program(flat, self._names(len(args)), list(args), *self._passes)
            out, graded = shape
            found = self._programs[key] = _Traced(program, None if out is None else "one" if isinstance(out, Tensor) else type(out), graded)
        self._last = found.program
        for i in found.graded:
            if not args[i].is_leaf:
                why = "is the result of other ops, and no gradient flows on to them from here; take the gradient with autograd.grad in the function and return it"
                raise _c.GradientError(f"compile: argument {i} gets a gradient in the function, but it {why}")
        return found

    @staticmethod
    def _results(traced: _Traced, args: tuple[Tensor, ...], out: list[Tensor]) -> Any:
        if traced.graded:
            out, grads = out[: -len(traced.graded)], out[-len(traced.graded) :]
            for i, grad in zip(traced.graded, grads):
                before = args[i].grad
                args[i].grad = grad if before is None else before + grad
        return None if traced.kind is None else out[0] if traced.kind == "one" else tuple(out)

    @staticmethod
    def _key(args: tuple[Any, ...]) -> Any:
        for i, a in enumerate(args):
            if not isinstance(a, Tensor):
                raise TypeError(f"compile: argument {i} is {type(a).__name__}; a program takes tensors only: capture other values, or make them tensors")
        return tuple((a._dims, a.dtype.name, a.requires_grad) for a in args)

    def __call__(self, *args: Tensor) -> Any:
        traced = self._program(args)
        for optimizer in LIVE:
            optimizer._tell_rates()
        out = traced.program.run(list(args))
        self._tell(traced)
        return self._results(traced, args, out)

    def run_many(self, *args: Tensor) -> Any:
        """Many runs in one call: each argument has one more axis in front, a row for each run, and so have the results."""
        traced = self._program(tuple(a.detach()[0].requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args))
        for optimizer in LIVE:
            optimizer._tell_rates()
        out = traced.program.run_many(list(args))
        self._tell(traced)
        return self._results(traced, args, out)

    def _tell(self, traced: _Traced) -> None:
        """Warns, after the first run of a program, of what was left out of it."""
        if traced.program in self._told:
            return
        self._told.add(traced.program)
        for why in traced.program.warnings():
            warnings.warn(f"compile: {why}", RuntimeWarning, stacklevel=3)

    def trace(self, *args: Tensor) -> Compiled:
        """Makes the program for these arguments without running it."""
        self._program(args)
        return self

    @property
    def listing(self) -> str:
        """The program of the last call, one line for each instruction."""
        if self._last is None:
            raise ValueError("listing: nothing was traced yet; call the function, or trace(...), first")
        return without_places(self._last.listing)

    def to_python(self) -> str:
        """The program of the last call as a NumPy script that runs on its own."""
        if self._last is None:
            raise ValueError("to_python: nothing was traced yet; call the function, or trace(...), first")
        return without_places(self._last.to_python())

    def lines(self) -> list[Any]:
        """The instructions as rows: name, op, parameters, inputs, shape, dtype, phase, rule."""
        if self._last is None:
            raise ValueError("lines: nothing was traced yet; call the function, or trace(...), first")
        return self._last.lines()


@overload
def compile(f: Callable[..., Any], *, simplify: bool = True, fuse: bool = True) -> Compiled: ...
@overload
def compile(f: None = None, *, simplify: bool = True, fuse: bool = True) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(f: Callable[..., Any] | None = None, *, simplify: bool = True, fuse: bool = True) -> Any:
    """The function as a program: see `Compiled`. Also a decorator, with or without brackets.

    The program is simplified by algebra and its chains of ops are fused. Without both the results are those of the eager mode, bit for bit.
    """
    return Compiled(f, simplify, fuse) if f is not None else lambda f: Compiled(f, simplify, fuse)
