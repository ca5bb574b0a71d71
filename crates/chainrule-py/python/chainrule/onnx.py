"""Functions and models as ONNX files.

A training step is exported whole: a session of onnxruntime that feeds the new values of what lasts
back in trains.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from ._chainrule import Tensor, tensor
from ._nest import put_back, taken
from .autograd import no_grad
from .nn import Module
from .program import Compiled

__all__ = ["Exported", "export"]

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
    ``chainrule.parameters`` the names of the gradients. Nothing is changed by the export.

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
