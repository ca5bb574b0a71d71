"""Tensors, automatic differentiation and training, with a backward pass that is open.

The names, arguments and defaults are PyTorch's, and so are the effects: views alias, and compiled
functions do what the functions do. An effect that cannot be had is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _chainrule
from ._chainrule import (
    Generator,
    GradientError,
    InternalError,
    Tensor,
    __version__,
    dtype,
    get_default_dtype,
    get_num_threads,
    is_grad_enabled,
    op_table,
    set_num_threads,
)
from ._methods import attach as _attach
from ._methods import set_methods as _set_methods
from ._errors import ArgumentError, DTypeError, OutOfMemoryError
from ._filling import attach as _attach_filling
from ._random import attach as _attach_to_generators
from ._random import default_generator, fork_rng, get_rng_state, initial_seed, seed, set_rng_state
from ._repr import set_printoptions
from ._size import Size
from ._wide import set_default_dtype

_attach()
_attach_filling()
_attach_to_generators()

float32 = float = _chainrule._dtype("float32")
float64 = double = _chainrule._dtype("float64")
float16 = half = _chainrule._dtype("float16")
bfloat16 = _chainrule._dtype("bfloat16")
int64 = long = _chainrule._dtype("int64")
int32 = int = _chainrule._dtype("int32")
int16 = short = _chainrule._dtype("int16")
int8 = _chainrule._dtype("int8")
uint8 = _chainrule._dtype("uint8")
uint16 = _chainrule._dtype("uint16")
uint32 = _chainrule._dtype("uint32")
uint64 = _chainrule._dtype("uint64")
bool = _chainrule._dtype("bool")  # noqa: A001
from math import e, inf, nan, pi  # noqa: E402

newaxis = None

from . import _complex, _elements, _functions, _making, _ops, _products, _shapes  # noqa: E402
from ._elements import *  # noqa: E402, F403
from ._complex import *  # noqa: E402, F403
from ._functions import *  # noqa: E402, F403
from ._making import *  # noqa: E402, F403
from ._ops import *  # noqa: E402, F403
from ._products import *  # noqa: E402, F403
from ._shapes import *  # noqa: E402, F403
from .autograd import checkpoint, enable_grad, inference_mode, no_grad, record_all, set_grad_enabled  # noqa: E402

from . import autograd, distributed, distributions, fft, func, linalg, memory, nn, optim, signal, special, utils  # noqa: E402
from .io import load, save  # noqa: E402
from .compiler import compile  # noqa: E402
from .diagnosis import diagnose  # noqa: E402
from .dlpack import from_dlpack, to_dlpack  # noqa: E402
from . import accelerator, amp, backends, compiler, cuda, hub, jit, mps, multiprocessing, profiler, random, sparse, testing, version  # noqa: E402
from .sparse import sparse_coo_tensor, spmm  # noqa: E402
from ._devices import device  # noqa: E402
from ._accumulated import attach as _attach_accumulated  # noqa: E402
from ._in_place import attach as _attach_writing  # noqa: E402
from ._dtypes import finfo, iinfo  # noqa: E402
from ._legacy import attach as _attach_older  # noqa: E402
from ._legacy import (  # noqa: E402
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor, ShortTensor,
)
from . import _aliases, _autocast, _foreach, _stft, _switches, _ufuncs  # noqa: E402
from ._aliases import *  # noqa: E402, F403
from ._foreach import *  # noqa: E402, F403
from ._stft import *  # noqa: E402, F403
from ._switches import *  # noqa: E402, F403
from ._switches import attach as _attach_switches  # noqa: E402
from ._autocast import *  # noqa: E402, F403
from .func import vmap  # noqa: E402
from . import _more_names  # noqa: E402
from ._more_names import *  # noqa: E402, F403
from . import _later_names  # noqa: E402
from ._later_names import *  # noqa: E402, F403
from . import cpu, return_types, xpu  # noqa: E402
from . import _dynamo, _utils, functional, overrides, types  # noqa: E402
from ._finding import Finding  # noqa: E402
from ._monitor import monitor  # noqa: E402
from ._studio import studio  # noqa: E402

_attach_older()
for _part in (_elements, _products, _shapes):
    _set_methods(_part.METHODS, _part.IN_PLACE)
_attach_writing()
_attach_accumulated()
_aliases.attach()
_ufuncs.attach()
sparse.attach()
_attach_switches()
for _cls in (Tensor, _complex.ComplexTensor):
    for _name, _method in _stft.METHODS.items():
        setattr(_cls, _name, _method)

_LAZY = ("array_api", "bench", "check", "display", "einops", "models", "onnx", "plots", "progress", "torch", "train")

if TYPE_CHECKING:
    from . import array_api, bench, check, display, einops, models, onnx, plots, progress, torch, train  # noqa: F401
else:

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def explain(loss: Tensor) -> str:
    """The backward pass of `loss`, step by step, as text: what came in, the rule, what went out."""
    return loss.trace_backward()


__all__ = [
    *_aliases.__all__, *_autocast.__all__, *_complex.__all__, *_more_names.__all__, *_later_names.__all__, *_elements.__all__, *_functions.__all__, *_making.__all__, *_ops.__all__, *_products.__all__, *_shapes.__all__, *_stft.__all__, *_switches.__all__,
    "ArgumentError", "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DTypeError", "DoubleTensor", "Finding", "FloatTensor", "Generator", "GradientError",
    "HalfTensor", "IntTensor", "InternalError", "LongTensor", "OutOfMemoryError", "ShortTensor", "Size", "Tensor", "__version__", "accelerator", "amp",
    "autograd", "backends", "bfloat16", "bool", "checkpoint", "compile", "compiler", "cpu", "cuda", "default_generator", "device", "diagnose", "distributed", "distributions", "double", "dtype", "e",
    "enable_grad", "explain", "fft", "finfo", "float", "float16", "float32", "float64", "fork_rng", "from_dlpack", "func", "functional", "get_default_dtype",
    "get_num_threads", "get_rng_state", "half", "hub", "iinfo", "inf", "inference_mode", "initial_seed", "int", "int16", "int32", "int64", "int8",
    "is_grad_enabled", "jit", "linalg", "load", "long", "memory", "monitor", "mps", "multiprocessing", "nan", "newaxis", "nn", "no_grad", "op_table", "optim", "overrides", "pi", "profiler", "return_types",
    "random", "record_all", "save", "seed", "set_default_dtype", "set_grad_enabled", "set_num_threads", "set_printoptions", "set_rng_state", "short", "signal", "sparse",
    "sparse_coo_tensor", "special", "spmm", "studio", "testing", "to_dlpack", "types", "uint16", "uint32", "uint64", "uint8", "utils", "version", "vmap", "xpu",
]
