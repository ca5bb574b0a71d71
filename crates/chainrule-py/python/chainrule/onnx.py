"""Functions and models as ONNX files.

A training step is exported whole: a session of onnxruntime that feeds the new values of what lasts
back in trains. A model of any origin is read as a module, and trains here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from . import _chainrule as _c
from ._chainrule import Tensor, tensor
from ._captured import module_scopes
from ._nest import put_back, taken
from .autograd import no_grad
from .nn import Module, Parameter
from .program import Compiled

__all__ = ["Exported", "Imported", "Input", "export", "load"]

# Sizes of the batch that a function is traced for; unlikely sizes of anything else.
SIZES = 17, 23


@dataclass(frozen=True)
class Exported:
    """Inputs and outputs of an ONNX file, by name."""

    inputs: list[str]
    outputs: list[str]


def export(function: Callable[..., Any], args: tuple[Any, ...], path: str | os.PathLike[str], *, batch: bool = False) -> Exported:
    """Writes a function of these arguments as an ONNX file of opset 21, in plain ops.

    ``function`` is a module, a function or a compiled function. The file stores what it only
    reads. If it changes parameters (a training step: backward pass and optimizer included), all
    that lasts from run to run is an input whose default is the present value, with its new value as
    an output: the file's metadata ``chainrule.state`` has the pairs as JSON,
    ``chainrule.parameters`` the names of the gradients. No value is changed by the export.

    Nodes have the names of their modules as scopes, as ``/blocks.0/attn/MatMul``, those of a
    backward pass below ``/backward``; stored tensors have the names of the state.

    With ``batch`` the first size of every tensor among the arguments is left open. An op without a
    form is an error that names it.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"onnx.export: args is {type(args).__name__}; give the arguments as a tuple, as in export(model, (x,), path)")
    # Gradients flow in a step as it runs; a module alone is exported for inference.
    if isinstance(function, Module):
        with no_grad():
            return _export(function, args, path, batch)
    return _export(function, args, path, batch)


def _export(function: Callable[..., Any], args: tuple[Any, ...], path: str | os.PathLike[str], batch: bool) -> Exported:
    plain = function._function if isinstance(function, Compiled) else function
    compiled = Compiled(plain, simplify=False, fuse=False)
    with module_scopes(plain):
        if not batch:
            return Exported(*_program(compiled, args).to_onnx(path))
        first, second = (_program(compiled, _of_size(args, n)) for n in SIZES)
        return Exported(*first.to_onnx(path, second))


def _program(compiled: Compiled, args: tuple[Any, ...]) -> Any:
    compiled.trace(*args)
    last = compiled._last
    assert last is not None
    # A gradient that would flow on from the results ends at the file.
    if last.eager is not None and not last.eager.startswith("a gradient"):
        raise ValueError(f"onnx.export: the function cannot be exported as a program: {last.eager}")
    return last.program


def _of_size(args: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """The same arguments with another number of rows."""
    tensors: list[Tensor] = []
    nest = taken(args, tensors)

    def resized(x: Tensor) -> Tensor:
        if x.ndim == 0 or len(x) == 0:
            raise ValueError(f"onnx.export: batch needs arguments with rows, and one has shape {tuple(x.shape)}")
        return x[tensor(np.arange(n) % len(x))]

    out: tuple[Any, ...] = put_back(nest, [resized(x) for x in tensors])
    return out


@dataclass(frozen=True)
class Input:
    """An input of a model that was read: its dtype and sizes as far as the file says them."""

    name: str
    dtype: _c.dtype | None
    sizes: list[int | None] | None


class Imported(Module):
    """An ONNX model that was read: a module whose parameters are the float tensors of the file.

    Running statistics, factors of sizes and masks are buffers. A name with dots is that of a tensor
    in modules: `model.head.weight`. Results are a tensor, or a tuple of several.
    """

    def __init__(self, model: _c.OnnxModel, stored: list[tuple[str, Tensor, bool]]) -> None:
        super().__init__()
        self._model = model
        self._stored: list[tuple[str, Module, str]] = []
        names = {name for name, _, _ in stored}
        for name, value, trained in stored:
            home, last = self._home(name, names)
            if trained:
                home.register_parameter(last, Parameter(value))
            else:
                home.register_buffer(last, value)
            self._stored.append((name, home, last))
        given = [Input(*row) for row in model.inputs if row[0] not in names]
        self.inputs, self.outputs, self.ops = given, model.outputs, model.ops

    def _home(self, name: str, names: set[str]) -> tuple[Module, str]:
        """The module with the tensor of this name, and its name there."""
        parts = name.split(".")
        within = [".".join(parts[:n]) for n in range(1, len(parts))]
        # A tensor may have the name that a module would get.
        if not all(parts) or names.intersection(within) or hasattr(Module, parts[0]):
            return self, name
        home: Module = self
        for part in parts[:-1]:
            if part not in home._modules:
                home.register_module(part, Module())
            inner = home._modules[part]
            assert inner is not None
            home = inner
        return home, parts[-1]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        names = [i.name for i in self.inputs]
        if len(args) > len(names):
            raise TypeError(f"the model takes {', '.join(names)}, and gets {len(args)} tensors")
        given = {**dict(zip(names, args)), **kwargs}
        pairs = [(name, x if isinstance(x, Tensor) else tensor(x)) for name, x in given.items()]
        for name, home, last in self._stored:
            value = home._parameters.get(last, home._buffers.get(last))
            assert value is not None
            pairs.append((name, value))
        out = self._model.run(pairs)
        return out[0] if len(out) == 1 else tuple(out)


def load(source: str | os.PathLike[str] | bytes) -> Imported:
    """Reads an ONNX model from a file, or from the bytes of one, as a module that trains at once.

    Opsets 1 to 28, functions, branches, loops, elements in files beside the model. Errors name what
    is wrong: a file that is cut off, an op or a dtype that is not known.

    ```
    import os, tempfile
    x = cr.tensor([[1.0, 2.0]])
    file = os.path.join(tempfile.mkdtemp(), "linear.onnx")
    cr.onnx.export(cr.nn.Linear(2, 3), (x,), file)
    model = cr.onnx.load(file)
    model(x).sum().backward()
    assert [p.grad.shape for p in model.parameters()] == [(3, 2), (3,)]
    ```
    """
    if isinstance(source, bytes):
        return Imported(*_c._onnx_load("", source))
    return Imported(*_c._onnx_load(os.fspath(source)))
