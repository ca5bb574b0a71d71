"""The studio's page: the backward pass of a tensor, or a training while it runs."""

from __future__ import annotations

import ast
import copy
import linecache
import math
import os
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping
from typing import Any, overload

from . import _chainrule as _c
from ._chainrule import Tensor
from ._making import tensor_of
from ._monitor import Monitor
from ._observers import ACTIVE, STEPPED
from ._random import get_rng_state, set_rng_state
from .nn.module import Module, calls
from .optim._native import Native

# Steps before which nothing is told but what is not finite, and looks in a row that must find it.
_FIRST_TOLD, _SEEN_BEFORE_TOLD = 20, 3

# The share of the loop's time that looks may take.
_SHARE = 0.02

# Elements of a tensor without a gradient beside which a backward pass can be written.
_MOST_OF_DATA = 100_000

# States of one run that are kept in memory.
_MOST_KEPT = 10
_IN_MEMORY = "memory; the loop goes on from it with its next batch"


class Served:
    """A page that is served until the process ends."""

    def wait(self) -> None:
        """Serves the page until Ctrl-C."""
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


class Page(Served):
    """A page that shows a backward pass; it is served until the process ends."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def url(self) -> str:
        """The address, with a token that opens it."""
        return self._native.url  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<page at {self.url}>"


class LivePage(Monitor, Served):
    """A page that shows a training while its `with` block runs: curves, layers, findings.

    From the page the loop can be held between two steps, stepped, and given another rate. If model
    and optimizer have `state_dict`, a state can be kept in memory, and gone back to: the loop goes
    on from there with its next batch, as a run of its own.
    """

    # The page shows each look.
    _has_plain_looks = False
    # It has a way of its own to count steps while no page is open.
    _counts_alone = False

    def __init__(self, model: Any, optimizer: Any, every: int | None, title: str, page: Any, depth: int) -> None:
        super().__init__(model, optimizer, every=100 if every is None else every, _depth=depth + 1)
        # Looks that would take more of the loop's time come later, unless their distance is given.
        self._share = _SHARE if every is None else None
        self._page = page
        self._chosen: float | None = None
        self._seen: dict[tuple[str, str], list[int]] = {}
        self._title, self._ahead = title, 0
        # While no page is open: what is told of steps in the place of the hooks of the loop.
        self._unwatched: Any = None
        # The program that made the newest step.
        self._stepping: Any = None
        self._states: list[_Kept] = []
        self._stateful = [part for part in (model, optimizer) if part is not None]
        if all(hasattr(part, "state_dict") and hasattr(part, "load_state_dict") for part in self._stateful):
            self._page.allow_branches()

    @property
    def url(self) -> str:
        """The address, with a token that opens it."""
        return self._page.url  # type: ignore[no-any-return]

    def __enter__(self) -> LivePage:
        super().__enter__()
        self._wait_for_page()
        return self

    def __exit__(self, *args: object) -> None:
        if self._unwatched is not None:
            self._stop_waiting()
        super().__exit__(*args)
        raised = args[0] if args else None
        self._page.end("all steps are done" if raised is None else f"ended by {getattr(raised, '__name__', 'an error')}")

    def _finish_step(self, out: Any = None) -> float | None:
        looked = self._was_due
        rate = self._rate()
        if not self._page.is_watched():
            # Nobody sees what the next step would show.
            self._native.rest_until(self.steps + 2)
        loss = super()._finish_step(out)
        step = self.steps
        if looked:
            if self._page.is_watched():
                self._page.look(self._native)
            self._tell(step)
        self._page.stepped(step, math.nan if loss is None else loss, math.nan if rate is None else rate)
        self._obey()
        self._wait_for_page()
        return loss

    def _pass_over(self, out: Any = None) -> None:
        # While no page is open, no step is looked at.
        is_spike, is_due, has_orders = self._page.pass_over(self._native, self._optimizer, out)
        self._passed(is_spike, is_due)
        if has_orders:
            self._obey()
        self._wait_for_page()

    # While no page is open

    def _wait_for_page(self) -> None:
        """Takes the hooks of the loop out until a page is open: losses and rates of steps are told
        by the native side.
        """
        optimizer = self._optimizer
        if self._page.is_watched() or self._unwatched is not None or self._is_probing or not isinstance(optimizer, Native) or ACTIVE[-1:] != [self]:
            return
        while self._undo:
            self._undo.pop()()
        if type(optimizer).step is not Native.step:
            self._attach()
            return
        self._unwatched = _c.UnwatchedRun(self._page, self._native, optimizer, self._wake)
        STEPPED.append(self._unwatched)
        # Compiled functions do not call the optimizer.
        ACTIVE.append(self)

    def _stop_waiting(self) -> None:
        self._unwatched.stop()
        STEPPED.remove(self._unwatched)
        ACTIVE.remove(self)
        self._unwatched = None

    def _wake(self, optimizer: Any, loss: float | None) -> None:
        """A page is open, or another optimizer has made a step after a pass of that loss."""
        if optimizer is not self._optimizer and not self._steps_here(optimizer):
            return
        self._stop_waiting()
        self._attach()
        if optimizer is self._optimizer:
            self._obey()
            return
        self._optimizers, self._optimizer = self._optimizers + 1, optimizer
        self._hold()
        if loss is not None:
            self._native.note_number(loss)
        self._pass_over()

    def around(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._unwatched is None:
            return super().around(compiled, args, kwargs)
        out = compiled._call(*args, **kwargs)
        # An optimizer tells of its steps itself where the function ran as it is.
        if self._unwatched is not None and (compiled._last is self._stepping or self._has_stepped_in(compiled)):
            self._stepping = compiled._last
            self._unwatched(self._optimizer, out)
        return out

    def _obey(self) -> None:
        """Waits while the page holds the loop, and carries out what it asks for."""
        self._page.wait()
        # A held loop waits on after each order.
        while (order := self._page.take_branch()) is not None:
            self._branch(*order)
            self._page.wait()
        self._steer()

    def _branch(self, back_to: int | None, rate: float | None) -> None:
        """Keeps the present state, or goes back to a kept one."""
        at = self.steps - self._ahead
        if back_to is None:
            if len(self._states) >= _MOST_KEPT:
                self._page.text(self.steps, "not done", f"{_MOST_KEPT} states of this run are kept already")
                return
            self._states.append(_Kept(at, copy.deepcopy([part.state_dict() for part in self._stateful]), get_rng_state()))
            self._page.kept(self.steps, _IN_MEMORY)
            return
        kept = self._states[back_to]
        for part, state in zip(self._stateful, copy.deepcopy(kept.states), strict=True):
            part.load_state_dict(state)
        set_rng_state(kept.draws)
        self._ahead = self.steps - kept.step
        self._page.go_back(f"gone back to step {kept.step}", f"{self._title}, from step {kept.step}", self._ahead)
        self._states, self._seen, self._chosen = [kept], {}, rate
        self._page.kept(self.steps, _IN_MEMORY)
        if rate is not None:
            self._set_rate(rate)

    def _tell(self, step: int) -> None:
        """Findings that hold for some looks, each once."""
        there = {(f.kind, f.place): f for f in self.findings() if f.confidence > 0.5}
        for key in self._seen.keys() - there.keys():
            self._seen[key][0] = 0
        for key, finding in there.items():
            seen = self._seen.setdefault(key, [0, 0])
            seen[0] += 1
            is_sure = finding.kind == "not_finite" or (seen[0] >= _SEEN_BEFORE_TOLD and step >= _FIRST_TOLD)
            if is_sure and not seen[1]:
                seen[1] = 1
                self._page.found(step, finding.kind, str(finding))

    def _steer(self) -> None:
        """Takes the rate that the page chose; later changes by the loop itself stand."""
        rate = self._page.rate()
        if rate is None or rate == self._chosen:
            return
        self._chosen = rate
        self._set_rate(rate)

    def _set_rate(self, rate: float) -> None:
        for group in getattr(self._optimizer, "param_groups", ()):
            group["lr"] = rate


class _Kept:
    """The state after a step: of the model, of the optimizer, and of the draws."""

    def __init__(self, step: int, states: list[Any], draws: Tensor) -> None:
        self.step, self.states, self.draws = step, states, draws


@overload
def studio(what: Tensor, optimizer: None = None, *, by_hand: Mapping[str, Any] | None = None, port: int = 0, browse: bool = True) -> Page: ...
@overload
def studio(what: Any, optimizer: Any = None, *, every: int | None = None, title: str = "training", port: int = 0, browse: bool = True) -> LivePage: ...


def studio(
    what: Any, optimizer: Any = None, *, by_hand: Mapping[str, Any] | None = None, every: int | None = None, title: str = "training", port: int = 0, browse: bool = True
) -> Page | LivePage:
    """Opens the studio's page: `cr.studio(loss)`, or `with cr.studio(model, optimizer):` at a loop.

    For a tensor the page shows the graph that made it and its backward pass, step by step, with the
    names of the caller's variables and the lines that assign them; it is called before `backward`,
    which frees the graph. Gradients stay as they are. The page is served as long as the process
    lives; `wait()` keeps it there.

    `by_hand` are gradients that were computed by hand (tensors or NumPy arrays), by the names of
    the variables that they belong to: the page shows them beside those of autograd, with the
    verdict on the first that is wrong.

    Round a loop it shows losses, layers and findings while the loop runs, and can hold it between
    two steps, step it, set another rate, keep its state, and go back to a kept one: model,
    optimizer and random numbers are then as they were, and the loop's own variables as they are.
    `model` and `optimizer` are as for `monitor`. While a page is open, tensors are looked at every
    hundred steps, or so seldom that looks take 2 % of the time; `every=n` looks at every `n`th step
    whatever it costs. While none is open, nothing is looked at.

    Operations belong to the modules in whose calls they were made: those of the caller's variables,
    and the 8192 calls before, of modules that have others inside or are classes of the user. A
    large graph opens with modules folded.

    The page is for browsers of this machine alone. Its address is printed and opened; with
    `browse=False` it is neither, and `url` has it. `port=0` takes a free port.

    ```
    w = cr.tensor([2.0, -1.0], requires_grad=True)
    loss = (w * w).sum()
    page = cr.studio(loss, browse=False)
    assert page.url.startswith("http://127.0.0.1:")
    ```
    """
    page: Page | LivePage
    if isinstance(what, Tensor):
        if optimizer is not None:
            raise TypeError("a tensor has no optimizer; give the model for a page about a training")
        if not what.requires_grad:
            raise ValueError("the tensor depends on nothing that has a gradient: there is no backward pass to show")
        frame = sys._getframe(1)
        native = _c._studio_tensor(*seen_from(what, frame), port)
        native.by_hand(hand_gradients(by_hand or {}, frame))
        page = Page(native)
    elif by_hand is not None:
        raise TypeError("gradients by hand belong to a tensor: cr.studio(loss, by_hand={...})")
    else:
        page = LivePage(what, optimizer, every, title, _c._studio_run(title, port), 1)
    if browse:
        print(f"the studio is at {page.url}", file=sys.stderr)
        webbrowser.open(page.url)
    return page


def seen_from(root: Tensor, frame: Any) -> tuple[str, Tensor, list[tuple[Tensor, str, int]], list[str], list[tuple[str, int, int]]]:
    """A computation as the caller in that frame knows it: the name of the file, the result, the
    tensors of variables, the lines of the file, and the calls of modules.
    """
    file = frame.f_code.co_filename
    lines = [line.rstrip("\n") for line in linecache.getlines(file, frame.f_globals)]
    return os.path.basename(file), root, _named(frame, lines), lines, _called(frame)


def hand_gradients(by_hand: Mapping[str, Any], frame: Any) -> list[tuple[str, Tensor, int]]:
    """Gradients by hand, with the lines that assign `dx` for the variable `x`."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    at = _assigned("".join(lines), frame)
    return [(name, tensor_of(gradient), at.get(f"d{name}", 0)) for name, gradient in by_hand.items()]


def _named(frame: Any, lines: list[str]) -> list[tuple[Tensor, str, int]]:
    """The tensors of the caller's variables, with their names and the lines that assign them, and
    the parameters of modules that are variables, or stand in lists that are.
    """
    at = _assigned("\n".join(lines), frame)
    found: dict[str, Tensor] = {}
    for scope in scopes(frame):
        for name, value in list(scope.items()):
            if isinstance(value, Tensor) and (value.requires_grad or value.numel() <= _MOST_OF_DATA):
                found[name] = value
    # The name of a variable is better known than that of a module's parameter.
    known = {id(t) for t in found.values()}
    parameters: dict[int, tuple[str, Tensor]] = {}
    for scope in scopes(frame):
        for name, value in list(scope.items()):
            for path, t in _parameters(name, value):
                if id(t) not in known:
                    parameters.setdefault(id(t), (path, t))
    return [(t, name, at.get(name, 0)) for name, t in found.items()] + [(t, path, 0) for path, t in parameters.values()]


def scopes(frame: Any) -> list[dict[str, Any]]:
    return [frame.f_globals, frame.f_locals] if frame.f_locals is not frame.f_globals else [frame.f_globals]


def _modules(name: str, value: Any) -> Iterator[tuple[str, Module]]:
    """The modules that a variable is or holds: in a list, or as fields of `self`."""
    if isinstance(value, Module):
        yield name, value
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{i}]", one) for i, one in enumerate(value) if isinstance(one, Module))
    elif name == "self" and isinstance(fields := getattr(value, "__dict__", None), dict):
        yield from ((f"self.{field}", one) for field, one in fields.items() if isinstance(one, Module))


def _parameters(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    for path, module in _modules(name, value):
        yield from ((f"{path}.{inner}", t) for inner, t in module.named_parameters() if isinstance(t, Tensor))


def _called(frame: Any) -> list[tuple[str, int, int]]:
    """The calls of the modules that the caller's variables hold: the module's name, and the numbers
    on the tape before and behind.
    """
    names: dict[int, str] = {}
    for scope in scopes(frame):
        for name, value in list(scope.items()):
            for path, module in _modules(name, value):
                for inner, part in module.named_modules():
                    names[id(part)] = f"{path}.{inner}" if inner else path
    return [(names[of], before, behind) for of, before, behind in list(calls) if of in names]


def _assigned(text: str, frame: Any) -> dict[str, int]:
    """The last line up to the caller's that assigns each name, in its function or module."""
    try:
        tree: ast.AST = ast.parse(text)
    except SyntaxError:
        return {}
    code = frame.f_code
    if code.co_name != "<module>":
        inside = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == code.co_name and n.lineno <= frame.f_lineno <= (n.end_lineno or n.lineno)]
        if inside:
            tree = max(inside, key=lambda n: n.lineno)
    out: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno <= frame.f_lineno:
            out[node.id] = max(out.get(node.id, 0), node.lineno)
    return out
