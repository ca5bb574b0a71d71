"""Gradients: switching the tape, derivatives of outputs, functions with a reverse rule of their
own.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._complex._tensor import ComplexTensor, gradients as _of_complex

F = TypeVar("F", bound=Callable[..., Any])


class _Switch:
    """A mode for the length of a block, or of a function that this decorates."""

    def __init__(self) -> None:
        self._before: list[bool] = []

    def _switch(self) -> bool:
        raise NotImplementedError

    def _back(self, before: bool) -> None:
        _c._set_grad_enabled(before)

    def __enter__(self) -> Any:
        self._before.append(self._switch())
        return self

    def __exit__(self, *_: object) -> None:
        self._back(self._before.pop())

    def _again(self) -> Any:
        """The same mode for another block."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return _generator(self, function)  # type: ignore[no-any-return]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def _generator(mode: _Switch, function: Callable[..., Any]) -> Any:
    """A generator whose own code runs in the mode, and the caller's between two values does not."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with mode._again():
            inner = function(*args, **kwargs)
        resume = functools.partial(next, inner)
        while True:
            try:
                with mode._again():
                    value = resume()
            except StopIteration as end:
                return end.value
            try:
                sent = yield value
            except GeneratorExit:
                with mode._again():
                    inner.close()
                raise
            except BaseException as error:
                resume = functools.partial(inner.throw, error)
            else:
                resume = functools.partial(inner.send, sent)

    return wrapped


class no_grad(_Switch):
    """Nothing is recorded: a block (`with no_grad():`) or a decorator (`@no_grad()`)."""

    def __new__(cls, function: Any = None) -> Any:
        new = super().__new__(cls)
        if function is None:
            return new
        new.__init__()  # type: ignore[misc]
        return new(function)  # @no_grad without brackets

    def __init__(self, function: Any = None) -> None:
        super().__init__()

    def _switch(self) -> bool:
        return _c._set_grad_enabled(False)


class _Inference(threading.local):
    """Whether a block of `inference_mode` runs, and whether one ever did."""

    is_on = False
    was_on = False


INFERENCE = _Inference()


class inference_mode(_Switch):
    """Nothing is recorded, also where `enable_grad` asks for it: a block or a decorator. With
    `mode=False` recording is on.
    """

    def __new__(cls, mode: Any = True) -> Any:
        new = super().__new__(cls)
        if isinstance(mode, bool):
            return new
        new.__init__()  # type: ignore[misc]
        return new(mode)  # @inference_mode without brackets

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode
        self._outer: list[bool] = []

    def _again(self) -> Any:
        return inference_mode(self._mode)

    def _switch(self) -> bool:
        self._outer.append(INFERENCE.is_on)
        INFERENCE.is_on = self._mode
        INFERENCE.was_on = INFERENCE.was_on or self._mode
        return _c._set_grad_enabled(not self._mode)

    def _back(self, before: bool) -> None:
        INFERENCE.is_on = self._outer.pop()
        super()._back(before)


class enable_grad(_Switch):
    """Recording is on, also inside `no_grad`."""

    def _switch(self) -> bool:
        return _c._set_grad_enabled(not INFERENCE.is_on)


class set_grad_enabled(_Switch):
    """Recording as `mode` says: at once, and for the length of a block."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._mode = mode
        self._first = _c._set_grad_enabled(mode and not INFERENCE.is_on)

    def _again(self) -> Any:
        return set_grad_enabled(self._mode)

    def _switch(self) -> bool:
        _c._set_grad_enabled(self._mode and not INFERENCE.is_on)
        return self._first

    def __call__(self, function: F) -> F:
        # The mode is that of the function alone.
        _c._set_grad_enabled(self._first)
        return super().__call__(function)


class record_all(_Switch):
    """Every intermediate keeps its value and, after backward, its gradient."""

    def _switch(self) -> bool:
        return _c._set_record_all(True)

    def _back(self, before: bool) -> None:
        _c._set_record_all(before)


def _many(x: Any) -> list[Any]:
    return [x] if x is None or isinstance(x, (Tensor, ComplexTensor)) else list(x)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` for each of `inputs`, without touching any `.grad`."""
    if not only_inputs:
        raise ArgumentError("grad: only_inputs=False is not there; take backward")
    ys, xs = _many(outputs), _many(inputs)
    ups = _many(grad_outputs) if grad_outputs is not None else [None] * len(ys)
    if is_grads_batched:
        return _rows_of_gradients(ys, xs, ups, create_graph, allow_unused, materialize_grads)
    if len(ups) != len(ys):
        raise ArgumentError(f"grad: {len(ys)} outputs need as many grad_outputs, not {len(ups)}")
    try:
        found = _c._grad(ys, xs, ups, create_graph)
    except TypeError:
        found = _of_complex(ys, xs, ups, create_graph)
    if materialize_grads:
        from .._making import zeros_like

        return tuple(zeros_like(x) if g is None else g for g, x in zip(found, xs))
    if not allow_unused and any(g is None for g in found):
        missing = [i for i, g in enumerate(found) if g is None]
        raise _c.GradientError(f"grad: the outputs do not depend on inputs {missing}; allow_unused=True gives None for them")
    return tuple(found)


def _rows_of_gradients(ys: list[Any], xs: list[Any], ups: list[Any], create_graph: bool, allow_unused: bool | None, materialize: bool) -> tuple[Any, ...]:
    """The gradients for each row of the upstream ones, in a row again."""
    from .._functions import stack

    counts = {len(up) for up in ups if up is not None}
    if len(counts) != 1:
        raise ArgumentError("grad: with is_grads_batched=True each of grad_outputs has equally many rows")
    rows = [grad(ys, xs, [None if up is None else up[i] for up in ups], None, create_graph, True, allow_unused, False, materialize) for i in range(counts.pop())]
    return tuple(None if column[0] is None else stack(list(column)) for column in zip(*rows))


def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, grad_variables: Any = None, inputs: Any = None
) -> None:
    """Adds the gradients of the sum of `tensors` to those of the leaves, or of `inputs` alone."""
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    ys = _many(tensors)
    ups = _many(grad_tensors) if grad_tensors is not None else [None] * len(ys)
    for i, (y, up) in enumerate(zip(ys, ups, strict=True)):
        y.backward(up, retain_graph or create_graph or i + 1 < len(ys), create_graph, inputs)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool = False, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """The function's value; its intermediates are not kept, and backward computes them again.

    Gradients reach the arguments and all that the function uses beside them, as a module's
    parameters. Random numbers are drawn a second time as at the first. The function gives a tensor,
    or several of one dtype in a tuple or a list.
    """
    from .._functions import cat

    if _c._session_on() or not _c.is_grad_enabled():
        return function(*args, **kwargs)
    state, rounds = _c._rng_state(), _c._is_autocast()
    writes = [a._writes for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    _c._uses_begin()
    try:
        with no_grad():
            out = function(*args, **kwargs)
    finally:
        after = _c._uses_end()
    given = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor) and a.requires_grad]
    used = given + [t for t in after if not any(t._is_same(a) for a in given)]
    outs = [out] if isinstance(out, Tensor) else list(out)
    if not used or len({t.dtype for t in outs}) != 1 or not outs[0].is_floating_point():
        if not used:
            return out
        raise TypeError("checkpoint: the function gives one tensor of floats, or several of one dtype")
    shapes = [t.shape for t in outs]
    row = outs[0] if isinstance(out, Tensor) else cat([t.reshape(-1) for t in outs])

    def reverse(cotangent: Tensor, *_: Tensor) -> list[Any]:
        if writes != [a._writes for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]:
            raise _c.GradientError("checkpoint: an argument was written since, and the function would be computed again of other values")
        create, now = _c.is_grad_enabled(), _c._rng_state()
        if preserve_rng_state:
            _c._set_rng_state(state)
        rounds_now = _c._set_autocast(rounds)
        try:
            with enable_grad():
                again = function(*args, **kwargs)
                again = again if isinstance(again, Tensor) else cat([t.reshape(-1) for t in again])
                return _c._grad([again], used, [cotangent], create)
        finally:
            _c._set_autocast(rounds_now)
            _c._set_rng_state(now)

    made = _c._apply_custom("checkpoint", lambda *_: row, reverse, used)
    if isinstance(out, Tensor):
        return made
    parts, at = [], 0
    for shape in shapes:
        n = 1
        for size in shape:
            n *= size
        parts.append(made[at : at + n].reshape(shape))
        at += n
    return type(out)(parts)


from .._legacy import Variable as Variable  # noqa: E402
from .._custom import Context as Context  # noqa: E402
from .._custom import Function as Function  # noqa: E402
from .._custom import once_differentiable as once_differentiable  # noqa: E402
from .._errors import ArgumentError


class GradcheckError(RuntimeError):
    """A gradient that differs from the slope of the function."""


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` for the inputs that require one agree with its slopes; where
    not an error, or False with `raise_exception=False`.

    It is `check.gradcheck`, whose bounds are narrower than `atol` and `rtol` and come from rounding
    in float64; the settings of PyTorch's function are taken and need not be given.
    """
    return _checked("gradcheck", func, inputs, 1, raise_exception)


def gradgradcheck(func: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, **settings: Any) -> bool:
    """As `gradcheck`, for the gradients of gradients."""
    return _checked("gradgradcheck", func, inputs, 2, raise_exception)


def _checked(name: str, func: Callable[..., Any], inputs: Any, order: int, raises: bool) -> bool:
    from .. import check

    given = _many(inputs)
    at = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    if not at:
        raise ArgumentError(f"{name}: no input requires a gradient")

    def of_these(*xs: Tensor) -> Any:
        args = list(given)
        for i, x in zip(at, xs):
            args[i] = x
        return func(*args)

    report = check.gradcheck(of_these, [given[i] for i in at], order=order)
    if not report.passed and raises:
        raise GradcheckError(str(report))
    return report.passed


class detect_anomaly(_Switch):
    """A block in which a backward pass whose gradient is NaN is an error that names the op and the
    line that called it. The search costs time; `loss.first_non_finite()` tells more.

    ```
    w = cr.zeros(1, requires_grad=True)
    try:
        with cr.autograd.detect_anomaly():
            ((w * 0).sqrt() * 0).sum().backward()
    except RuntimeError as error:
        assert "sqrt" in str(error) and "nan" in str(error)
    ```
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self._mode = check_nan

    def _again(self) -> Any:
        return type(self)(self._mode)

    def _switch(self) -> bool:
        return _c._set_check_nan(self._mode)

    def _back(self, before: bool) -> None:
        _c._set_check_nan(before)


class set_detect_anomaly(detect_anomaly):
    """As `detect_anomaly`, on or off at once, and for the length of a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode and check_nan)
        self._first = _c._set_check_nan(self._mode)

    def _again(self) -> Any:
        return set_detect_anomaly(self._mode)

    def _switch(self) -> bool:
        _c._set_check_nan(self._mode)
        return self._first

from . import function as function  # noqa: E402
from . import functional as functional  # noqa: E402
from . import grad_mode as grad_mode  # noqa: E402
from . import anomaly_mode as anomaly_mode  # noqa: E402
from . import graph as graph  # noqa: E402


def __getattr__(name: str) -> Any:
    # They need modules that are made after this one.
    if name in ("profiler", "variable"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
