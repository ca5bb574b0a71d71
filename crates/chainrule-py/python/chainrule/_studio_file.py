"""`python -m chainrule._studio_file FILE.py [--port N] [--no-open] [--json]`: the first backward
pass of a script, and its training, as the studio's page; `chainrule studio FILE.py` runs it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import traceback
import types
import webbrowser
from collections.abc import Iterator
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor
from ._observers import ACTIVE
from ._studio import LivePage, Page, hand_gradients, scopes, seen_from
from .nn.module import Module
from .optim.optimizer import Optimizer

USAGE = "usage: python -m chainrule._studio_file FILE.py [--port N] [--no-open] [--json]"


class _Shown(BaseException):
    """All that was asked for is printed: the script need not go on."""


class _Script:
    """A script that is run until its end. At its first backward pass the page is made: until then
    all intermediate values are kept, and compiled functions run as they are.
    """

    def __init__(self, path: str, port: int, browse: bool, as_json: bool) -> None:
        self._path, self._port, self._browse, self._as_json = path, port, browse, as_json
        self._page: Any = None
        self._native: Any = None
        # The variables with gradients of the computation that is shown.
        self._shown: dict[str, Tensor] = {}
        self._live: LivePage | None = None
        self._module = types.ModuleType("__main__")
        self._module.__file__ = path

    def run(self) -> int:
        with open(self._path, "rb") as file:
            source = file.read()
        sys.modules["__main__"] = self._module
        sys.argv, sys.path[0] = [self._path], os.path.dirname(os.path.abspath(self._path))
        status = 0
        raised: BaseException | None = None
        try:
            code = compile(source, self._path, "exec")
            with self._watched():
                exec(code, self._module.__dict__)  # noqa: S102
            if self._page is None:
                self._show_result()
        except _Shown:
            return 0
        except SystemExit as end:
            raised = end
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except KeyboardInterrupt as interrupt:
            raised = interrupt
            return 130
        except Exception as error:
            raised = error
            # The script's own lines alone.
            frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
            traceback.print_exception(type(error), error, frames)
            status = 1
        finally:
            if self._live is not None:
                self._live.__exit__(None if raised is None else type(raised))
        if self._page is None:
            if status == 0:
                print(f"error: {self._path}: no backward pass runs, and no variable is a result with a gradient: call `backward`, or assign the result to `loss`", file=sys.stderr)
            return status or 1
        self._native.by_hand(hand_gradients(self._by_hand(), self._frame()))
        print("the script has ended; Ctrl-C ends the page", file=sys.stderr)
        self._page.wait()
        return status

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Shows the first backward pass inside of the block."""
        original, kept = Tensor.backward, _c._set_record_all(True)

        def undo() -> bool:
            """Whether the method is that of the class again: a monitor of the script may wrap it.
            """
            if self in ACTIVE:
                ACTIVE.remove(self)
                _c._set_record_all(kept)
            if Tensor.backward is backward:
                Tensor.backward = original  # type: ignore[method-assign]
            return Tensor.backward is original

        def backward(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self not in ACTIVE or not tensor.requires_grad or _c._session_on():
                return original(tensor, *args, **kwargs)
            is_alone = undo()
            frame = sys._getframe(1)
            self._show(tensor, frame, _training(frame))
            return (tensor.backward if is_alone else functools.partial(original, tensor))(*args, **kwargs)

        Tensor.backward = backward  # type: ignore[method-assign, assignment]
        ACTIVE.insert(0, self)
        try:
            yield
        finally:
            undo()

    def around(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a compiled function as it is."""
        return compiled._function(*args, **kwargs)

    def _show(self, tensor: Tensor, frame: Any, training: tuple[Any, Any] = (None, None)) -> None:
        seen = seen_from(tensor, frame)
        if self._as_json:
            print(_c._studio_json(*seen), file=sys.__stdout__, flush=True)
            raise _Shown
        self._shown = {name: t for t, name, _ in seen[2] if t.requires_grad}
        model, optimizer = training
        title = os.path.basename(self._path)
        native = self._native = _c._studio_tensor(*seen, self._port, title if optimizer is not None else None)
        if optimizer is None:
            self._page = Page(native)
        else:
            self._live = self._page = LivePage(model, optimizer, None, title, native, 2)
            self._live.__enter__()
        print(f"the studio is at {self._page.url}", flush=True)
        if self._browse:
            webbrowser.open(self._page.url)

    def _show_result(self) -> None:
        """Shows the variable `loss`, or the last one that has a gradient, where no pass ran."""
        found = {name: value for name, value in vars(self._module).items() if isinstance(value, Tensor) and value.requires_grad and not value.is_leaf}
        if not found:
            return
        name = "loss" if "loss" in found else list(found)[-1]
        self._show(found[name], self._frame())

    def _frame(self) -> Any:
        """The script's variables at its end, as those of a caller."""
        variables = vars(self._module)
        code = types.SimpleNamespace(co_filename=self._path, co_name="<module>")
        return types.SimpleNamespace(f_globals=variables, f_locals=variables, f_code=code, f_lineno=sys.maxsize)

    def _by_hand(self) -> dict[str, Tensor]:
        """The variables `dx` that have the shape of a variable `x` of the shown computation."""
        return {name: gradient for name, t in self._shown.items() if (gradient := vars(self._module).get(f"d{name}")) is not None and isinstance(gradient, Tensor) and gradient.shape == t.shape}


def _training(frame: Any) -> tuple[Any, Any]:
    """The optimizer among the variables of a frame, and the module with most of its parameters."""
    variables = [value for scope in scopes(frame) for value in scope.values()]
    variables += [value for owner in variables if owner is scopes(frame)[-1].get("self") for value in getattr(owner, "__dict__", {}).values()]
    optimizer = next((value for value in variables if isinstance(value, Optimizer)), None)
    if optimizer is None:
        return None, None
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    modules = [value for value in variables if isinstance(value, Module)]
    shares = [sum(id(p) in trained for p in module.parameters()) for module in modules]
    model = modules[shares.index(max(shares))] if any(shares) else None
    return model, optimizer


def _asked(words: list[str]) -> tuple[str, int, bool, bool] | None:
    """The file, the port, whether a browser is opened, and whether JSON is wanted."""
    rest, port = [word for word in words if word not in ("--no-open", "--json")], 0
    if "--port" in rest[:-1]:
        at = rest.index("--port")
        if not rest[at + 1].isdigit():
            return None
        port = int(rest[at + 1])
        del rest[at : at + 2]
    if len(rest) != 1 or rest[0].startswith("-"):
        return None
    return rest[0], port, "--no-open" not in words, "--json" in words


def main(words: list[str]) -> int:
    """The status: that of the script, 1 if it has nothing to show, 2 if it cannot be run."""
    asked = _asked(words)
    if asked is None:
        print(USAGE, file=sys.stderr)
        return 2
    script = _Script(*asked)
    try:
        # The object stands alone on standard output, whatever the script prints.
        with contextlib.redirect_stdout(sys.stderr) if asked[3] else contextlib.nullcontext():
            return script.run()
    except OSError as error:
        print(f"error: {asked[0]}: {error.strerror or error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
