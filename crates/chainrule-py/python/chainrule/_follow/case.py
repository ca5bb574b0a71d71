"""A backward pass to be followed, and points at which it is laid beside the right one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FAR = 1e-6
"""The relative error that is allowed far from the given inputs: sums cancel there that do not near
them.
"""

SINGLE = 2e-5
"""The relative error that is allowed of a backward pass that runs in single precision."""

TINY = 1e-12
"""A gradient that is smaller than this beside the largest may be nothing but rounding."""


FAR_SEED = 100
"""The seeds of points far from the given inputs begin here."""


@dataclass
class Quantity:
    """A value of the right passes, with the words for it."""

    words: str
    value: Array
    is_gradient: bool
    name: str = ""
    """The variable of the forward pass that it is, or is the gradient of."""


@dataclass
class Point:
    """Inputs, what comes in from above, and the right gradients there."""

    inputs: list[Any]
    above: list[Any]
    context: Any
    right: list[Array]
    scale: float
    sizes: list[float] = field(default_factory=list)
    """Each gradient's error is judged by this: its own size, unless it is but rounding of
    others."""
    quantities: list[Quantity] = field(default_factory=list)
    seed: int = 0


@dataclass
class Case:
    """A forward and a backward pass that somebody wrote. The arrays are those of one library, which
    `engine` knows.
    """

    engine: Any
    name: str
    inputs: list[Any]
    names: list[str]
    forward: Callable[[list[Any]], tuple[list[Any], Any]]
    """Outputs, and what is kept for the backward pass."""
    backward: Callable[[Any, list[Any]], Sequence[Any]]
    """The gradients of the inputs, by what was kept and the gradients of the outputs."""
    tolerance: float = 1e-9
    at_kink: bool = False
    """Whether the inputs were moved, since those given lie at a kink."""
    _steady: list[bool] | None = None
    fitting: list[bool] | None = None
    """Mask of the gradients that have the shapes of their inputs as the user returns them."""

    @property
    def graded(self) -> list[int]:
        """The inputs that have gradients."""
        return [i for i, x in enumerate(self.inputs) if self.engine.is_graded(x)]

    def at_hand(self) -> list[tuple[str, Any]]:
        """Values from outside the passes that stand at hand everywhere, with their texts."""
        return []

    def point(self, seed: int, quantities: bool = False) -> Point:
        """The given inputs (seed 0), or others near them."""
        engine = self.engine
        inputs = [engine.moved(x, seed, i) for i, x in enumerate(self.inputs)]
        outputs, _ = self.run_forward(inputs)
        above = [engine.probe(y, seed, i) for i, y in enumerate(outputs)]
        right, found = engine.reference(self, inputs, above, quantities)
        _, context = self.run_forward(inputs)
        scale = max([float(np.abs(r).max(initial=0.0)) for r in right], default=0.0) or 1.0
        return Point(inputs, above, context, right, scale, self._sizes(inputs, above, right, scale), found, seed)

    def far(self) -> list[Point]:
        """Points at which inputs that have both signs are larger and of other signs, so that
        bounds, gates and maxima are reached; those at which the function and its
        gradients are finite and do not hang on the last bits of the inputs."""
        out = []
        for seed in (FAR_SEED, FAR_SEED + 1, FAR_SEED + 2):
            try:
                point = self.point(seed)
                found = self.gradients(point)
                shaken, _ = self.engine.reference(self, self._shaken(point.inputs, 3), point.above, False)
            except Exception:
                # Outside of the domain.
                continue
            whole = max([point.scale, *(float(np.abs(self.engine.array(g)).max(initial=0.0)) for g in point.above if g is not None)])
            # Functions that have reached their bounds leave gradients of nearly nothing.
            point.sizes = [max(s, 1e-6 * whole) for s in point.sizes]
            if all(np.isfinite(a).all() for a in [*point.right, *found]) and whole < 1e6 and max(self.errors(point, shaken), default=0.0) < 1e-8:
                out.append(point)
        return out

    def _shaken(self, inputs: list[Any], seed: int) -> list[Any]:
        """The inputs changed in their last bits."""
        engine, draw = self.engine, np.random.default_rng(seed)
        return [engine.tensor(engine.array(x) * (1 + 1e-12 * draw.standard_normal(tuple(x.shape))), x) if x is not None and engine.is_float(x) else x for x in inputs]

    def _sizes(self, inputs: list[Any], above: list[Any], right: list[Array], scale: float) -> list[float]:
        """The sizes of the gradients. One that is tiny beside the others, or beside what comes in,
        may be what is left where they cancel: that changes with the last bits of the inputs, and is
        judged by the others' size."""
        sizes = [float(np.abs(r).max(initial=0.0)) for r in right]
        whole = max([scale, *(float(np.abs(self.engine.array(g)).max(initial=0.0)) for g in above if g is not None)])
        if all(s >= TINY * whole for s in sizes):
            return sizes
        if self._steady is None:
            self._steady = self._steadiness(inputs, above, right, sizes)
        return [s if s >= TINY * whole or s > 0 and stay else whole for s, stay in zip(sizes, self._steady)]

    def _steadiness(self, inputs: list[Any], above: list[Any], right: list[Array], sizes: list[float]) -> list[bool]:
        """Mask of gradients that stay as they are when the inputs, and what comes in from above,
        change in their last bits; asked once, as the function is the same at all points."""
        engine, stays = self.engine, [s > 0 for s in sizes]
        for seed in (3, 4):
            again, _ = engine.reference(self, self._shaken(inputs, seed), self._shaken(above, seed + 2), False)
            stays = [stay and float(np.abs(a - b).max(initial=0.0)) <= 1e-6 * s for a, b, s, stay in zip(again, right, sizes, stays)]
        return stays

    def resized(self) -> list[Point]:
        """Points with other sizes, as far as the forward pass takes them: a size that happens to
        equal a number is told from it there.
        """
        out: list[Point] = []
        tensors = [i for i, x in enumerate(self.inputs) if self.engine.is_tensor(x)]
        sizes = sorted({d for i in tensors for d in self.inputs[i].shape if d > 1}, reverse=True)
        every = [[(i, axis) for i in tensors for axis, d in enumerate(self.inputs[i].shape) if d == size] for size in sizes]
        alone = [[(i, axis)] for i in tensors for axis, d in enumerate(self.inputs[i].shape) if d > 1]
        for axes in [*every[:6], *(a for a in alone if a not in every)][:16]:
            for less in (1, 2):
                try:
                    out.append(replace(self, inputs=self._cut(axes, less)).point(3))
                    break
                except Exception:
                    # Sizes that belong together, or that are fixed.
                    continue
        return out

    def _cut(self, axes: list[tuple[int, int]], less: int) -> list[Any]:
        inputs = list(self.inputs)
        for i, axis in axes:
            inputs[i] = self.engine.cut(inputs[i], axis, int(inputs[i].shape[axis]) - less)
        return inputs

    def run_forward(self, inputs: list[Any]) -> tuple[list[Any], Any]:
        """The forward pass, with the same random numbers each time."""
        with self.engine.quiet(1):
            return self.forward([self.engine.copy(x) for x in inputs])

    def gradients(self, point: Point, context: Any = None, edited: bool = False) -> list[Array]:
        """The gradients by the user's backward at a point, perhaps with an edit in it."""
        engine = self.engine
        with engine.quiet(2):
            found = list(self.backward(engine.copied(point.context if context is None else context), [engine.copy(g) for g in point.above]))
        given = [found[i] if i < len(found) else None for i in self.graded]
        fitting = [g is not None and engine.is_tensor(g) and tuple(g.shape) == tuple(point.inputs[i].shape) for i, g in zip(self.graded, given)]
        if self.fitting is None:
            self.fitting = fitting
        if edited and any(had and not has and g is not None for had, has, g in zip(self.fitting, fitting, given)):
            # A stretched gradient may be summed, but no edit is right that makes it so.
            raise ValueError("a gradient has another shape than before")
        return [engine.as_gradient(g, point.inputs[i]) for i, g in zip(self.graded, given)]

    def tolerance_at(self, point: Point) -> float:
        """The relative error that is allowed at a point."""
        return max(self.tolerance, FAR) if point.seed >= FAR_SEED else self.tolerance

    def errors(self, point: Point, found: list[Array]) -> list[float]:
        """Error of each gradient, relative to its own size."""
        out = []
        for right, given, size in zip(point.right, found, point.sizes):
            if given.shape != right.shape:
                out.append(float("inf"))
                continue
            with np.errstate(all="ignore"):
                worst = float(np.abs(given - right).max(initial=0.0)) / size
                if not np.isfinite(worst):
                    error = np.array(np.abs(given - right))
                    error[(np.isnan(given) & np.isnan(right)) | (given == right)] = 0.0
                    worst = float(error.max(initial=0.0)) / size
            out.append(float("inf") if np.isnan(worst) else worst)
        return out


def is_single(case: Case) -> bool:
    """Whether the backward pass has values in single precision."""
    from .record import Hook, hooked, watched
    from .units import called, unit_of

    point, numbers = case.point(1), itertools.count()
    (functions,) = called(lambda: case.gradients(point))
    units = [u for f in functions if (u := unit_of(f, numbers)) is not None]
    hook = Hook(lambda x: True if case.engine.is_single(x) else None)
    with hooked(units, [watched(u) for u in units], hook):
        case.gradients(point)
    return bool(hook.values)


def lost_gradients(case: Case) -> list[str]:
    """The names of inputs whose gradients are tiny beside the others, and not at all what they
    should be: differences of the function cannot see them.
    """
    wrong: set[int] | None = None
    with case.engine.apart():
        for seed in (1, 2):
            point = case.point(seed)
            above = [float(np.abs(case.engine.array(g)).max(initial=0.0)) for g in point.above if g is not None]
            tiny = {i for i, size in enumerate(point.sizes) if 0 < size < TINY * max([point.scale, *above])}
            if not tiny:
                return []
            errors = case.errors(point, case.gradients(point))
            own = {i for i in tiny if not errors[i] <= 1e-2}
            wrong = own if wrong is None else wrong & own
    return [case.names[case.graded[i]] for i in sorted(wrong or ())]


def wrong_gradients(case: Case) -> list[str]:
    """The names of the inputs whose gradients are wrong, at the given point, at one of two others,
    or at larger inputs.
    """
    with case.engine.apart():
        points = [case.point(seed) for seed in (0, 1, 2)]
        all_errors = [case.errors(point, case.gradients(point)) for point in points]
        worst = max((e for errors in all_errors for e in errors), default=0.0)
        if case.tolerance < worst < 1e-3 and is_single(case):
            case.tolerance = max(case.tolerance, SINGLE)
    wrong = {i for errors in all_errors for i, e in enumerate(errors) if not e <= case.tolerance}
    return [case.names[case.graded[i]] for i in sorted(wrong)] or wrong_far_off(case)


def is_of_held_values(case: Case) -> bool:
    """Whether the gradients are those of the forward pass with the values held fixed that it
    detaches, which are not those of its function: a straight-through estimator.
    """
    with case.engine.apart():
        for seed in (0, 1, 2):
            point = case.point(seed)
            try:
                point.right = case.engine.held(case, point.inputs, point.above)
            except Exception:
                # The forward pass leaves the library, so that no tape says what is held.
                return False
            if any(e > case.tolerance for e in case.errors(point, case.gradients(point))):
                return False
    return True


def wrong_far_off(case: Case) -> list[str]:
    """The names of the inputs whose gradients are wrong at larger inputs, where bounds and gates
    are reached.
    """
    wrong: dict[int, None] = {}
    with case.engine.apart():
        for point in case.far():
            errors = case.errors(point, case.gradients(point))
            wrong |= {i: None for i, e in enumerate(errors) if not e <= max(case.tolerance, 100 * FAR)}
    return [case.names[case.graded[i]] for i in sorted(wrong)]
