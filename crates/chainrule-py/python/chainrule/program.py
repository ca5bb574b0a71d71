"""Compiled functions: a whole step of training as a program that one can read and that runs without
Python.
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import _chainrule as _c
from ._chainrule import Tensor
from ._complex._tensor import ComplexTensor
from ._captured import name_captured
from ._errors import ArgumentError, _NotInPrograms, _Raised, raised_by_the_function, read_by_the_package
from ._guards import Guards
from ._nest import Place, key_of, put_back, taken
from ._observers import ACTIVE
from ._making import ones_like
from ._refilled import Containers, refill
from ._target import tracing_for
from .autograd import grad
from .nn.module import Module
from .optim.optimizer import LIVE, give_again


# The number of programs that are tried before the arguments are looked at in Python.
RECENT = 4
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


class _Traced(NamedTuple):
    """A program, and what belongs to it."""

    program: _c.Program
    # A nest with places for the results, and for what was there before and is returned: `given`.
    shape: Any
    # Results that are views of others: of which, and how they are taken.
    views: list[tuple[int, _c.ViewPath]]
    # Arguments that get gradients, and those that are written.
    graded: list[int]
    written: list[int]
    given: list[Any]
    guards: Guards
    conditions: _c.Conditions
    # Why the function is run as it is, if it is.
    eager: str | None
    # Whether the one result of the program is that of the function, and there is no more to do.
    lone: bool
    # The optimizers that it steps.
    steps: list[Any]
    # Lists and dictionaries among the arguments that get new contents.
    refilled: list[Any]

    def holds(self) -> bool:
        """Whether the program still does what its function would."""
        return self.guards.changed() is None and self.conditions.hold()


class _Bound(dict[str, Any]):
    """Compiled methods of one object; a copy of the object begins without."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Bound:
        return _Bound()

    def __reduce__(self) -> Any:
        return _Bound, ()


class Compiled:
    """A function that is traced on its first call, and again for other shapes, dtypes, numbers,
    flags and modes.

    A call has the effects of the function itself: arguments and tensors from outside are written,
    gradients are added up, running statistics, optimizers and generators go on. An effect that a
    program cannot repeat is an error before it runs: numbers of Python that the function changes,
    tensors that it keeps in a list or an attribute. If a gradient is to flow on from the results,
    the function is run as it is.

    Arguments and results are tensors, numbers, None and other values in any nest of tuples, lists
    and dictionaries; arrays of NumPy become tensors. A module may be given: its parameters and
    methods are found here too.
    """

    def __init__(
        self, function: Callable[..., Any], simplify: bool = True, fuse: bool = True, device: str | None = None, precision: str | None = None, compare_first: bool = True
    ) -> None:
        self._function = function
        if device is not None and _c._device(str(device)) is None:
            device = None
        if device is not None:
            _fetch_before_forks()
        if precision is not None and device is None:
            raise ArgumentError(f"precision={precision!r} is for products on a device; add device=, or use cr.autocast on the processor")
        self._passes = simplify, fuse, None if device is None else str(device), precision, compare_first
        self._programs: dict[Any, list[_Traced]] = {}
        self._last: _Traced | None = None
        # Those that ran last, whose arguments the native side compares.
        self._recent: list[_Traced] = []
        self._told: set[_c.Program] = set()
        # Arguments for which there is no program, with the reason; that of the last call.
        self._plain: dict[Any, str] = {}
        self._why: str | None = None
        self._signature: inspect.Signature | None
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__wrapped__ = function
        # Calls the function in a trace, where somebody wants more results of it.
        self._traced_by: Callable[..., Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not isinstance(self._function, Module):
            raise AttributeError(f"a compiled function has no attribute '{name}'")
        return getattr(self._function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: bound to its object."""
        if instance is None:
            return self
        kept = instance.__dict__.setdefault("_compiled_methods", _Bound())
        if self.__name__ not in kept:
            kept[self.__name__] = Compiled(functools.partial(self._function, instance), *self._passes)
        return kept[self.__name__]

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(copy.deepcopy(self._function, memo), *self._passes)

    def __reduce__(self) -> Any:
        return Compiled, (self._function, *self._passes)

    def _names(self, args: tuple[Any, ...], kwargs: dict[str, Any], n: int) -> list[str]:
        names: list[str] = []
        given: list[tuple[str, Any]] = list(kwargs.items())
        if self._signature is not None:
            try:
                given = list(self._signature.bind(*args, **kwargs).arguments.items())
            except TypeError:
                given = [(f"x{i}", a) for i, a in enumerate(args)] + given
        for name, value in given:
            found: list[Any] = []
            taken(value, found)
            names += [name] if len(found) == 1 else [f"{name}_{i}" for i in range(len(found))]
        return (names + [f"x{i}" for i in range(len(names), n)])[:n]

    def _program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Traced, list[Tensor]]:
        tensors: list[Any] = []
        nest = taken((args, kwargs), tensors)
        first: dict[int, int] = {}
        same = tuple(first.setdefault(id(t), i) for i, t in enumerate(tensors))
        metas = tuple((t._dims, t.dtype.name, t.requires_grad, t.is_leaf) for t in tensors)
        key = (key_of(nest), metas, same, _c.is_grad_enabled(), _c._is_autocast(), _c.get_default_dtype().name)
        refused = self._tell_rates()
        kept = self._programs.setdefault(key, [])
        found = next((t for t in kept if t.holds()), None)
        if found is None:
            if key in self._plain:
                raise _NotInPrograms(self._plain[key])
            kept[:] = [t for t in kept if t.guards.changed() is None and t.conditions.may_hold()][-7:]
            try:
                found = self._trace(args, kwargs, nest, tensors, same)
            except _NotInPrograms as why:
                if not isinstance(why, _Raised):
                    self._plain[key] = str(why)
                raise
            kept.append(found)
        for optimizer in found.steps:
            if id(optimizer) in refused:
                raise refused[id(optimizer)]
        self._last = found
        self._recent = [found, *(t for t in self._recent if t is not found)][:RECENT]
        return found, tensors

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any], nest: Any, tensors: list[Tensor], same: tuple[int, ...]) -> _Traced:
        name_captured(self._function)
        guards = Guards(self._function, [x for x in (*args, *kwargs.values()) if not isinstance(x, (Tensor, ComplexTensor))])
        info: dict[str, Any] = {}
        rounds = _c._is_autocast()

        def flat(*inputs: Tensor) -> list[Tensor]:
            leaves = [x._apart() if a.requires_grad else x for x, a in zip(inputs, tensors)]
            leaves = [leaves[i] for i in same]
            before = [x._writes for x in leaves]
            call_args, call_kwargs = put_back(nest, leaves)
            containers = Containers((call_args, call_kwargs))
            _c._uses_begin()
            try:
                out = (self._traced_by or self._function)(*call_args, **call_kwargs)
            finally:
                read = _c._uses_end()
            info["switches"] = _c._is_autocast() != rounds
            if _c._session_twins():
                raise _NotInPrograms("compile: two parameters have one memory, and a program has a place for each: run as it is")
            changed = containers.changed()
            info["refilled"] = [path for path, _ in changed]
            if changed:
                out = out, [new for _, new in changed]
            info.update(_seen(out, leaves, read))
            results: list[Tensor] = info.pop("results")
            graded = [(i, x.grad) for i, (x, a) in enumerate(zip(leaves, tensors)) if a.requires_grad and same[i] == i]
            graded = [(i, g) for i, g in graded if g is not None]
            written = [i for i, (x, n) in enumerate(zip(leaves, before)) if x._writes != n and same[i] == i]
            info["graded"], info["written"] = [i for i, _ in graded], written
            return results + [g for _, g in graded] + [leaves[i].detach() for i in written]

        drawn = guards.drawn()
        program: _c.Program | None = None
        try:
            program, met = _traced(flat, self._names(args, kwargs, len(tensors)), tensors, self._passes)
        except _NotInPrograms:
            # It is run as it is, unless that would be the second time that it changes something.
            if guards.drawn() == drawn and guards.changed() is None:
                raise
        except Exception as error:
            # The trace took all writes back; what Python's objects hold it cannot.
            can_run = guards.drawn() == drawn and guards.changed() is None
            if can_run and read_by_the_package(error, _OWN):
                raise _NotInPrograms(f"compile: {error}") from error
            if not can_run or not raised_by_the_function(error, _OWN):
                raise
            raise _Raised(f"compile: the function raised {type(error).__name__}") from error
        if guards.drawn() != drawn:
            raise _c.GradientError(
                "compile: the function draws random numbers from Python or NumPy, which a program would not draw again: use chainrule's, or pass them as arguments"
            )
        if info.get("switches"):
            raise _c.GradientError(
                "compile: the function switches autocast for what comes after it, which a program would not do in later runs: use `with cr.autocast(...):`"
            )
        changed = guards.changed()
        if program is None or changed is not None:
            raise _c.GradientError(
                f"compile: the function changes `{changed}`, which a program would not do in later runs: keep it in a tensor, or change it outside"
            )
        if met.left() and not met.has_custom():
            gc.collect()
        if met.left() and not met.has_custom():
            raise _c.GradientError(
                "compile: the function keeps a tensor that it made, in a list or an attribute; in later runs a program would not make it anew: "
                "return it, or write it into a tensor that is there (buffer.copy_(x))"
            )
        eager = info["eager"]
        if any(not tensors[i].is_leaf for i in info["graded"]):
            eager = eager or "a gradient flows on to what an argument was computed from"
        given, written = info["given"], info["written"]
        lone = info["shape"].__class__ is Place and not (given or written or info["graded"] or info["views"])
        steps = met.stepped()
        conditions = _c.Conditions(program, met, steps, (args, kwargs), same, written)
        return _Traced(program, info["shape"], info["views"], info["graded"], written, given, guards, conditions, eager, lone, steps, info["refilled"])

    @staticmethod
    def _results(traced: _Traced, args: list[Tensor], out: list[Tensor]) -> Any:
        n = len(out) - len(traced.written)
        for i, value in zip(traced.written, out[n:]):
            args[i].detach()._assign(value)
        m = n - len(traced.graded)
        for i, grad in zip(traced.graded, out[m:n]):
            before = args[i].grad
            if before is None:
                args[i].grad = grad
            else:
                before.add_(grad)
        views = [path.of(out[i]) for i, path in traced.views]
        return put_back(traced.shape, [*out[:m], *(args[g] if isinstance(g, int) else g for g in traced.given), *views])

    def _tell_rates(self) -> dict[int, Exception]:
        """The optimizers that cannot step with what they were given, with the reason."""
        refused: dict[int, Exception] = {}
        for optimizer in list(LIVE):
            try:
                optimizer._tell_rates()
            except Exception as why:
                refused[id(optimizer)] = why
        return refused

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE and not _c._session_on():
            return ACTIVE[-1].around(self, args, kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        for traced in self._recent:
            watched = traced.guards.watched
            if watched is None:
                continue
            if traced.lone and traced.eager is None:
                out = traced.conditions.run(watched, args, kwargs)
                if out is not None:
                    self._last = traced
                    return out[0]
                continue
            tensors = traced.conditions.tensors(watched, args, kwargs)
            if tensors is not None:
                self._last = traced
                return self._run(traced, tensors, args, kwargs)
        if _c._session_on():
            return self._function(*args, **kwargs)
        try:
            traced, tensors = self._program(args, kwargs)
            if traced.eager is None and traced.conditions.are_apart(tensors):
                return self._run(traced, tensors, args, kwargs)
        except _NotInPrograms as why:
            self._last, self._why = None, str(why)
        finally:
            give_again()
        return self._function(*args, **kwargs)

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Traced, list[Tensor]]:
        """The program for these arguments, of those that ran last if it is one."""
        for traced in self._recent:
            watched = traced.guards.watched
            tensors = None if watched is None else traced.conditions.tensors(watched, args, kwargs)
            if tensors is not None:
                self._last = traced
                return traced, tensors
        return self._program(args, kwargs)

    def _run(self, traced: _Traced, tensors: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if traced.eager is not None:
            return self._function(*args, **kwargs)
        traced.conditions.begin()
        out = traced.program.run(tensors)
        self._tell(traced)
        found = self._results(traced, tensors, out)
        if traced.refilled:
            found, contents = found
            refill((args, kwargs), traced.refilled, contents)
        return found

    def run_many(self, *args: Tensor) -> Any:
        """Many runs in one call: each argument has one more axis in front, a row for each run, and
        so have the results.
        """
        for i, a in enumerate(args):
            if not isinstance(a, Tensor):
                raise TypeError(f"run_many: argument {i} is {type(a).__name__}; all arguments are tensors with a row for each run")
        rows = tuple(a.detach()[0]._apart() if a.requires_grad else a.detach()[0] for a in args)
        try:
            traced, _ = self._program(rows, {})
        except _NotInPrograms:
            return self._row_by_row(args)
        if traced.eager is not None or traced.written or traced.given or traced.views or traced.refilled:
            why = traced.eager or "it writes to its arguments, or returns what was there before, or views of one memory"
            raise ArgumentError(f"run_many: the function cannot run as a program alone: {why}; call it for each row")
        if not traced.program.is_steady() or not traced.conditions.are_apart(list(args)):
            return self._row_by_row(args)
        traced.conditions.begin()
        out = traced.program.run_many(list(args))
        self._tell(traced)
        return self._results(traced, list(args), out)

    def run_steps(self, batches: Iterable[Any]) -> list[Any]:
        """One call for each batch, in order: the list of their results, which are those of single
        calls to the bit.

        A batch is the tuple or list of a call's arguments, or its one argument. Steps that one
        program can do are done without Python between them, and a device does many in one launch
        where it can: the learning rate, flags and all else that Python sets is the same for all of
        them. A warning names the first step with a result of one number that is not finite.

        ```
        w = cr.tensor([0.0], requires_grad=True)
        sgd = cr.optim.SGD([w], lr=0.25)

        @cr.compile
        def step(x):
            sgd.zero_grad()
            loss = (w - x).square().sum()
            loss.backward()
            sgd.step()
            return loss.detach()

        losses = step.run_steps(cr.ones(4, 1))
        assert [x.item() for x in losses] == [1.0, 0.25, 0.0625, 0.015625]
        ```
        """
        calls = [tuple(b) if isinstance(b, (tuple, list)) else (b,) for b in batches]
        results: list[Any] = []
        while len(results) < len(calls):
            rest = calls[len(results) :]
            results += self._alike(rest) or [self(*rest[0])]
        found: list[list[Tensor]] = []
        for result in results:
            found.append([])
            taken(result, found[-1])
        bad = _c._first_not_finite([[t for t in all_of if isinstance(t, Tensor)] for all_of in found])
        if bad is not None:
            step, i, number = bad
            warnings.warn(f"run_steps: result {i} of step {step} is {number}, the first that is not finite in {len(calls)} steps counted from 0", RuntimeWarning, stacklevel=2)
        return results

    def _alike(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        """The results of the first of these calls, as many as one program does alone; none where a
        call has to be made as it is.
        """
        if ACTIVE or _c._session_on():
            return []
        for traced in self._recent:
            watched, conditions = traced.guards.watched, traced.conditions
            if watched is None or traced.eager is not None or traced.written or traced.refilled or not traced.program.is_steady():
                continue
            some: list[list[Tensor]] = []
            for call in calls:
                tensors = conditions.tensors(watched, call, {})
                if tensors is None:
                    break
                some.append(tensors)
            if some:
                self._last = traced
                conditions.begin()
                out = traced.program.run_steps(some)
                self._tell(traced)
                return [self._results(traced, tensors, results) for tensors, results in zip(some, out)]
        return []

    def _row_by_row(self, args: tuple[Tensor, ...]) -> Any:
        from ._functions import stack

        all_of: list[list[Any]] = []
        nest: Any = None
        for i in range(len(args[0])):
            found: list[Any] = []
            nest = taken(self(*(a[i] for a in args)), found)
            all_of.append(found)
        return put_back(nest, [stack(rows) for rows in zip(*all_of)])

    def _tell(self, traced: _Traced) -> None:
        """Warns, after the first run of a program, of what was left out of it."""
        if traced.program in self._told:
            return
        self._told.add(traced.program)
        for why in traced.program.warnings():
            warnings.warn(f"compile: {why}", RuntimeWarning, stacklevel=3)

    def trace(self, *args: Any, **kwargs: Any) -> Compiled:
        """Makes the program for these arguments without running it."""
        self._program(args, kwargs)
        return self

    @property
    def eager(self) -> str | None:
        """Why the last call ran the function as it is, if it did."""
        return self._why if self._last is None else self._last.eager

    @property
    def listing(self) -> str:
        """The program of the last call, one line for each instruction."""
        if self._last is None:
            raise ArgumentError("listing: nothing was traced yet; call the function, or trace(...), first")
        return self._last.program.listing

    def to_json(self) -> str:
        """The program of the last arguments as JSON text; the book has its fields."""
        if self._last is None:
            raise ValueError("to_json: nothing was traced yet; call the function, or trace(...), first")
        return self._last.program.to_json()

    def to_python(self, library: str = "numpy") -> str:
        """The program of the last call as a script that runs on its own, for "numpy", "torch" or
        "jax".
        """
        if self._last is None:
            raise ArgumentError("to_python: nothing was traced yet; call the function, or trace(...), first")
        return self._last.program.to_python(library)

    def to_cuda(self) -> str:
        """The program of the last call as kernels of CUDA C, for which no GPU is needed."""
        if self._last is None:
            raise ArgumentError("to_cuda: nothing was traced yet; call the function, or trace(...), first")
        return self._last.program.to_cuda()

    def to_wgsl(self) -> str:
        """The program of the last call as kernels of WebGPU."""
        if self._last is None:
            raise ArgumentError("to_wgsl: nothing was traced yet; call the function, or trace(...), first")
        return self._last.program.to_wgsl()

    def lines(self) -> list[Any]:
        """The instructions as rows: name, op, parameters, inputs, shape, dtype, phase, rule."""
        if self._last is None:
            raise ArgumentError("lines: nothing was traced yet; call the function, or trace(...), first")
        return self._last.program.lines()


def _traced(flat: Callable[..., Any], names: list[str], tensors: list[Tensor], passes: tuple[bool, bool, str | None, str | None, bool]) -> tuple[_c.Program, Any]:
    """The program, and what its function met of the world outside. Traced again where that had to
    become the program's state.
    """
    for attempt in range(8):
        _c._session_begin()
        try:
            with tracing_for(passes[2]):
                program = _c.Program(flat, names, tensors, *passes)
        except Exception:
            if not _c._session_end()[1] or attempt == 7:
                raise
            continue
        met, again = _c._session_end()
        if not again:
            return program, met
    raise _c.GradientError("compile: the function writes to other tensors from outside each time that it is traced: pass them as arguments")


def _flows_on(t: Tensor, read: list[Tensor]) -> bool:
    """Whether a gradient may flow on from a result to one of the tensors that were read. None does
    where a backward pass of the function used the graph up.
    """
    if not t.requires_grad:
        return False
    if not _c._session_walked():
        return True
    leaves = [x for x in read if x.requires_grad and x.is_leaf]
    try:
        found = grad(t, leaves, ones_like(t), retain_graph=True, allow_unused=True) if leaves else ()
    except _c.GradientError:
        return False
    return any(g is not None for g in found)


def _seen(out: Any, leaves: list[Tensor], read: list[Tensor]) -> dict[str, Any]:
    """The results of a traced function: tensors that it made, and those that were there before,
    with a nest that has places for both. `read` are the tensors with gradients that it read.
    """
    found: list[Tensor] = []
    nest = taken(out, found)
    eager: str | None = None
    made: list[Tensor] = []
    given: list[Any] = []
    order: list[tuple[bool, int]] = []
    for t in found:
        at = next((i for i, x in enumerate(leaves) if x is t), None)
        if at is not None or not t._is_new():
            order.append((False, len(given)))
            given.append(t if at is None else at)
            continue
        if t._shows_other(leaves):
            eager = "a result is a view of an argument, or of a tensor from outside"
        if _flows_on(t, read):
            eager = "a gradient may flow on from its results"
        same = next((i for i, x in enumerate(made) if x is t), len(made))
        order.append((True, same))
        if same == len(made):
            made.append(t)
    results, views, sources = _apart(made)
    # Results, then what was given, then views.
    places = [sources[i] if is_made else Place(len(results) + i) for is_made, i in order]
    places = [p if isinstance(p, Place) else Place(len(results) + len(given) + p) for p in places]
    return {"results": results, "given": given, "views": views, "shape": put_back(nest, places), "eager": eager}


def _apart(made: list[Tensor]) -> tuple[list[Tensor], list[tuple[int, _c.ViewPath]], list[Any]]:
    """Tensors that share no memory; views that are taken from them again; and for each of these its
    place, or its number among the views.
    """
    shown = [t._shown() for t in made]
    ids = [id(root) for root, _ in shown]
    results: list[Tensor] = []
    views: list[tuple[int, _c.ViewPath]] = []
    bases: dict[int, int] = {}
    sources: list[Any] = []
    for t, (root, path) in zip(made, shown):
        if path is None or ids.count(id(root)) == 1:
            bases.setdefault(id(root), len(results))
            sources.append(Place(bases[id(root)]))
            if bases[id(root)] == len(results):
                results.append(t)
        else:
            sources.append(None)
    for i, (root, path) in enumerate(shown):
        if sources[i] is None and path is not None:
            if id(root) not in bases:
                bases[id(root)] = len(results)
                results.append(root)
            sources[i] = len(views)
            views.append((bases[id(root)], path))
    return results, views, sources


@functools.cache
def _fetch_before_forks() -> None:
    """A process that is forked reads what devices have as it was then; the device stays with the
    process that opened it.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_c._devices_fetch)
